//! How members are reached: by whatever makes a way to them out of what a Secret holds.
//!
//! The runtime reads the Secret, hands over the bytes of its one entry, and lets them go: they are in no store, fact or message.

use slipway_kernel::member::Member;

use crate::channel::Channel;

/// Finds ways to members.
pub trait Connect: Send + Sync + 'static {
    /// The way to a member, by the bytes that the entry of its Secret holds. Does not wait for the member to answer. Called
    /// again when the Secret changes, and for as long as it fails, with growing pauses.
    fn connect(&self, member: &Member, credentials: &[u8]) -> Result<Channel, Unconnected>;
}

/// Why there is no way. The text never has anything in it that is out of the Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unconnected(pub String);

/// Reaches no member: what an operator has unless told otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Connect for Nowhere {
    fn connect(&self, member: &Member, _: &[u8]) -> Result<Channel, Unconnected> {
        let cluster = &member.cluster;
        Err(Unconnected(format!(
            "this operator was not set up to reach clusters such as {cluster}"
        )))
    }
}
