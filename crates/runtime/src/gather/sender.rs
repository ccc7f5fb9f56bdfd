//! Who our requests say that they come from.

use ::http::{HeaderName, HeaderValue};
use slipway_kernel::admission::Count;

/// What requests to pods and to the API say of where they come from, and how a pod tells that it takes none from there.
/// Pure. Which words these are is the business of whoever answers in the place of another program.
pub trait Sender: Send + Sync + 'static {
    /// The header that says it, if anything does.
    fn header(&self) -> Option<(HeaderName, HeaderValue)>;
    /// What is in a pod's answer, if it is that it takes no requests from here.
    fn rejection(&self, code: u16, body: &str) -> Option<Rejection>;
}

/// A pod takes no requests from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What is counted.
    pub count: Count,
    /// Why, in the pod's words.
    pub message: String,
}
