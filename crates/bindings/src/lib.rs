//! Bindings: names for values that differ from cluster to cluster, and what they come to.
//!
//! ```text
//! bindings ─► needs(known) ─► somebody reads ─► known ─┐   (again, until nothing is needed: names may lead to names)
//!     └───────────────────────────────────────────────►├─ evaluate ─► values ─► export, substitutions, revision
//! what is given (CLUSTER_NAME, …) ─────────────────────┘
//! ```
//!
//! What always holds:
//!
//! - It is a function of the set of bindings: their order does not matter, and neither does who asks first.
//! - It fails closed: a name without a value is told of by that name, and nothing takes its place, unless the binding is
//!   optional.
//! - A text is expanded exactly once: what a value has in it is never looked through for names, here or in the cluster that
//!   it is exported to.
//! - What comes out of a Secret is secret, and so is all that is computed from it: it is in no message, in no `Debug`, in no
//!   hash and in no binding that is exported.
//! - It always ends, however the bindings mention each other, and no value is longer than [`MAX_TEXT`].
//!
//! It reads nothing itself: in which cluster and namespace a [`Reference`] is looked up is for the caller to say.

#![allow(
    clippy::result_large_err,
    reason = "a failure says where it comes from, and is made once for a binding that is to be mended"
)]

pub mod canonical;
pub mod evaluate;
pub mod expand;
pub mod export;
pub mod failure;
pub mod given;
pub mod known;
pub mod pointer;
pub mod revision;
pub mod value;

pub use evaluate::{Evaluation, evaluate};
pub use export::{Export, export};
pub use failure::Failure;
pub use given::Given;
pub use known::{Found, Known, Read, Reference};
pub use value::{MAX_TEXT, Text};
