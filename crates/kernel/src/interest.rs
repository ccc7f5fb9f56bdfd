//! What a capability wants to see, and which work an object's change is.

use std::sync::Arc;

use crate::identity::{ClusterId, Key, Kind};
use crate::parts::Parts;
use crate::store::{Index, Layout, Meta, Project, Projection, Seen, StoreKey, Stores};

/// Which work a change of an object is, with all that is known now: an object that is gone is not in the stores any more.
pub type Triggers = fn(&ClusterId, &Meta, &Stores) -> Vec<Key>;

/// Whether a capability can do without a kind. Ordered: of several interests in one kind the strictest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A missing definition or a missing right turns off what needs it.
    Optional,
    /// A missing definition turns off what needs it. A missing right must not look like "there are none": it is a fact of
    /// its own (`see` and the plural of the kind), and the capability says what has to wait.
    RequiredIfServed,
    /// Nothing is planned without.
    Required,
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
    /// Only the object of this name, in each watched namespace; none for all.
    pub named: Option<&'static str>,
    /// What is kept of each object.
    pub project: Project,
    /// Which large parts of each object the projection reads.
    pub reads: Parts,
    /// The name of the projection.
    pub projection: &'static str,
    /// How objects are found besides by name.
    pub indexes: Vec<Index>,
    /// Which work a change is.
    pub triggers: Triggers,
    /// Whether the capability can do without.
    pub need: Need,
}

impl Interest {
    /// An interest in all objects of a kind, by the projection `T`.
    pub fn of<T: Projection>(kind: Kind, triggers: Triggers) -> Self {
        Self {
            kind,
            labels: String::new(),
            own: None,
            named: None,
            project: |object| Ok(Arc::new(T::project(object)?)),
            reads: T::READS,
            projection: std::any::type_name::<T>(),
            indexes: Vec::new(),
            triggers,
            need: Need::Required,
        }
    }

    /// The same, without which the capability can do.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            need: Need::Optional,
            ..self
        }
    }

    /// The same, without which the capability can do only where the kind is not defined.
    #[must_use]
    pub fn where_defined(self) -> Self {
        Self {
            need: Need::RequiredIfServed,
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

    /// The same, but only in the objects of this name, in the watched namespaces.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self {
            named: Some(name),
            ..self
        }
    }

    /// Which objects of the kind it is in. Those who share a projection share a store, and must have the same one.
    pub fn selection(&self) -> String {
        let own = self
            .own
            .map(|name| format!("{name} in the operator's namespace"));
        let named = self.named.map(|name| format!("{name} in each namespace"));
        let labels = (!self.labels.is_empty()).then(|| self.labels.clone());
        let parts: Vec<String> = [own, named, labels].into_iter().flatten().collect();
        if parts.is_empty() {
            return "all".to_owned();
        }
        parts.join(" with ")
    }

    /// The same, with an index.
    #[must_use]
    pub fn indexed(mut self, name: &'static str, values: fn(&Seen) -> Vec<String>) -> Self {
        self.indexes.push(Index { name, values });
        self
    }
}

impl Stores {
    /// Makes room for an interest in a cluster; if there is, only its indexes are added.
    pub fn open(&mut self, cluster: &ClusterId, interest: &Interest) -> StoreKey {
        let layout = Layout {
            project: interest.project,
            reads: interest.reads,
            indexes: &interest.indexes,
        };
        let key = (cluster.clone(), interest.kind.clone(), interest.projection);
        self.make_room(&key, layout);
        key
    }
}
