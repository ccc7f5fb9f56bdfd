//! Questions that leave the cluster, and what comes of them.
//!
//! A [`Call`] says all that may happen on its behalf: whom, with what, for how long, how much is read, and what is read out
//! of it. Values out of Secrets are in none of this: a call has references, and whoever makes it puts the values in. A
//! failure is an answer of its own ([`Failure`]), never an absence. What is read out of an answer is a function of its
//! bytes ([`Wanted::read`]), so that a simulation and the real thing read alike.

mod call;
mod failure;
mod header;
mod number;
pub mod prometheus;
mod reply;
mod secret;
pub mod template;

pub use call::{Call, Credential, Method, Target, Trust};
pub use failure::{Failure, Waiting};
pub use header::{Header, NotAHeader};
pub use number::Number;
pub use reply::{Reply, Text, Value, Wanted};
pub use secret::{NotSecrets, NotYours, OtherNamespaces, SecretRef, SharedSecrets};

/// How a question ended.
pub type Answer = Result<Reply, Failure>;
