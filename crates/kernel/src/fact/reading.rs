//! Reads on which a review may rest.
//!
//! What the stores hold may be older than a review. A webhook that is about to let something go names the
//! [`Collection`]s that it looked at; the runtime reads them, shared by all reviews that wait together, and says what
//! came of it.

use crate::identity::Kind;

/// All objects of a kind in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collection {
    /// The kind.
    pub kind: Kind,
    /// The namespace.
    pub namespace: String,
}

/// What came of reading a collection for a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The stores hold it as it was after the review arrived, or newer.
    Current,
    /// The API does not serve such a kind.
    Undefined,
    /// It could not be read: what the stores hold may be out of date.
    Failed(String),
}
