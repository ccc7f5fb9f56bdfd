//! What a capability wants to see, and which work an object's change is.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use crate::identity::{ClusterId, Key, Kind};
use crate::store::{Meta, Projection, Seen, Undecodable};

/// Takes of an object what is needed.
pub type Project = fn(&Value) -> Result<Arc<dyn Any + Send + Sync>, Undecodable>;

/// Which work a change of an object is.
pub type Triggers = fn(&ClusterId, &Meta) -> Vec<Key>;

/// A secondary index: the values an object is found under.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// What it is asked for by.
    pub name: &'static str,
    /// The values of an object.
    pub values: fn(&Seen) -> Vec<String>,
}

/// One kind that a capability watches.
#[derive(Debug, Clone)]
pub struct Interest {
    /// What.
    pub kind: Kind,
    /// Only objects with these labels; empty for all.
    pub labels: String,
    /// Only the object of this name, in the operator's own namespace; none for all.
    pub own: Option<&'static str>,
    /// What is kept of each object.
    pub project: Project,
    /// The name of the projection.
    pub projection: &'static str,
    /// How objects are found besides by name.
    pub indexes: Vec<Index>,
    /// Which work a change is.
    pub triggers: Triggers,
    /// Whether the capability can do without: a missing definition or right does not hold up its start.
    pub optional: bool,
}

impl Interest {
    /// An interest in all objects of a kind, by the projection `T`.
    pub fn of<T: Projection>(kind: Kind, triggers: Triggers) -> Self {
        Self {
            kind,
            labels: String::new(),
            own: None,
            project: |object| Ok(Arc::new(T::project(object)?)),
            projection: std::any::type_name::<T>(),
            indexes: Vec::new(),
            triggers,
            optional: false,
        }
    }

    /// The same, without which the capability can do.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// The same, but only in the object of this name in the operator's own namespace (a watch with the field selector
    /// `metadata.name`, so that a role can be limited to that name).
    #[must_use]
    pub fn own(self, name: &'static str) -> Self {
        Self {
            own: Some(name),
            ..self
        }
    }

    /// The same, with an index.
    #[must_use]
    pub fn indexed(mut self, name: &'static str, values: fn(&Seen) -> Vec<String>) -> Self {
        self.indexes.push(Index { name, values });
        self
    }
}
