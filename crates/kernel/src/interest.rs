//! What a capability wants to see, where, and which work an object's change is.

use std::borrow::Cow;
use std::sync::Arc;

use crate::identity::{ClusterId, Key, Kind};
use crate::parts::Parts;
use crate::store::{Index, Layout, Meta, Project, Projection, Seen, StoreKey, Stores};

/// Which work a change of an object is, with all that is known now: an object that is gone is not in the stores any more.
pub type Triggers = fn(&ClusterId, &Meta, &Stores) -> Vec<Key>;

/// Which members a change of an object at home may have added, changed or taken away.
pub type Means = fn(&Meta, &Stores) -> Vec<ClusterId>;

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

/// In which clusters something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Where {
    /// In the cluster that the operator runs in.
    #[default]
    Home,
    /// In those that a capability names ([`crate::Controller::members`]).
    Members,
    /// In all of them.
    Both,
}

impl Where {
    /// Whether a cluster is meant.
    pub fn holds(self, cluster: &ClusterId) -> bool {
        match self {
            Self::Home => cluster.is_local(),
            Self::Members => !cluster.is_local(),
            Self::Both => true,
        }
    }
}

/// One kind that a capability watches.
#[derive(Debug, Clone)]
pub struct Interest {
    /// What.
    pub kind: Kind,
    /// Where.
    pub at: Where,
    /// Only objects with these labels; empty for all.
    pub labels: String,
    /// Only the object of this name, in the operator's own namespace; none for all.
    pub own: Option<Cow<'static, str>>,
    /// Only the object of this name, in each watched namespace; none for all.
    pub named: Option<Cow<'static, str>>,
    /// Only the object of this namespace and name, whatever is watched otherwise; none for all. Interests of this form
    /// share a store whatever they name.
    pub only: Option<(String, String)>,
    /// What tells its store from others of the same kind and projection; see [`Interest::in_slot`].
    pub slot: Option<Cow<'static, str>>,
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
    /// Which members a change is about, where objects mean clusters.
    pub means: Option<Means>,
    /// Whether the capability can do without.
    pub need: Need,
}

impl Interest {
    /// An interest in all objects of a kind at home, by the projection `T`.
    pub fn of<T: Projection>(kind: Kind, triggers: Triggers) -> Self {
        Self {
            kind,
            at: Where::Home,
            labels: String::new(),
            own: None,
            named: None,
            only: None,
            slot: None,
            project: |object| Ok(Arc::new(T::project(object)?)),
            reads: T::READS,
            projection: std::any::type_name::<T>(),
            indexes: Vec::new(),
            triggers,
            means: None,
            need: Need::Required,
        }
    }

    /// The same in these clusters.
    #[must_use]
    pub fn at(self, at: Where) -> Self {
        Self { at, ..self }
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

    /// The same, but only in objects with these labels.
    #[must_use]
    pub fn labelled(self, labels: impl Into<String>) -> Self {
        let labels = labels.into();
        Self { labels, ..self }
    }

    /// The same, but only in the object of this name in the operator's own namespace (a watch with the field selector
    /// `metadata.name`, so that a role can be limited to that name).
    #[must_use]
    pub fn own(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            own: Some(name.into()),
            ..self
        }
    }

    /// The same, but only in the objects of this name, in the watched namespaces.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            named: Some(name.into()),
            ..self
        }
    }

    /// The same, but only in the object of this namespace (empty if the kind has none) and name.
    #[must_use]
    pub fn only(self, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            only: Some((namespace.into(), name.into())),
            ..self
        }
    }

    /// The same, in a store of its own ([`Stores::slot`]): for several interests in one kind by one projection that differ
    /// in their labels, which are known only at run time.
    #[must_use]
    pub fn in_slot(self, slot: impl Into<Cow<'static, str>>) -> Self {
        Self {
            slot: Some(slot.into()),
            ..self
        }
    }

    /// The same, whose objects mean clusters: these are asked for again when one changes.
    #[must_use]
    pub fn meaning(self, means: Means) -> Self {
        Self {
            means: Some(means),
            ..self
        }
    }

    /// Which objects of the kind it is in. Those who share a store must have the same one.
    pub fn selection(&self) -> String {
        let own = self.own.as_ref();
        let own = own.map(|name| format!("{name} in the operator's namespace"));
        let named = self.named.as_ref();
        let named = named.map(|name| format!("{name} in each namespace"));
        let only = self.only.is_some().then(|| "single objects".to_owned());
        let labels = (!self.labels.is_empty()).then(|| self.labels.clone());
        let parts: Vec<String> = [own, named, only, labels].into_iter().flatten().collect();
        if parts.is_empty() {
            return "all".to_owned();
        }
        parts.join(" with ")
    }

    /// The store that it has in a cluster.
    pub fn store(&self, cluster: &ClusterId) -> StoreKey {
        let name = match &self.slot {
            None => Cow::Borrowed(self.projection),
            Some(slot) => Cow::Owned(slot_name(self.projection, slot)),
        };
        (cluster.clone(), self.kind.clone(), name)
    }

    /// The same, with an index.
    #[must_use]
    pub fn indexed(mut self, name: &'static str, values: fn(&Seen) -> Vec<String>) -> Self {
        self.indexes.push(Index { name, values });
        self
    }
}

/// What a store is called that is one of several of a projection.
pub(crate) fn slot_name(projection: &str, slot: &str) -> String {
    format!("{projection} {slot}")
}

impl Stores {
    /// Makes room for an interest in a cluster; if there is, only its indexes are added.
    pub fn open(&mut self, cluster: &ClusterId, interest: &Interest) -> StoreKey {
        let layout = Layout {
            project: interest.project,
            reads: interest.reads,
            indexes: &interest.indexes,
        };
        let key = interest.store(cluster);
        self.make_room(&key, layout);
        key
    }
}
