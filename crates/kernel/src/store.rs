//! What has been seen of the clusters: ordered, projected, indexed.
//!
//! A store keeps of each object only what its projection takes. An object that cannot be projected is kept as such,
//! beside the others, with the reason. Stores are cheap to clone: a clone is a snapshot.

mod index;
mod item;
mod look;
mod meta;
mod stores;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::identity::{ClusterId, Kind};
use crate::parts::Parts;

use index::Named;
use meta::Called;

pub use item::Item;
pub use meta::{Meta, Name, number};
pub use stores::{StoreKey, Stores};

/// Why an object could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Undecodable {
    /// Which field.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a capability keeps of an object.
pub trait Projection: Any + Debug + Send + Sync + Sized {
    /// Which large parts of an object it reads; it is given no others.
    const READS: Parts;

    /// Takes what is needed; whatever can be wrong in a stored object is an error here.
    fn project(object: &Value) -> Result<Self, Undecodable>;

    /// Projects an object that comes from elsewhere than a store, with what is declared and no more.
    fn read(object: &Value) -> Result<Self, Undecodable> {
        Self::project(&Self::READS.of(object))
    }
}

/// An object as it was last seen.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What every object has.
    pub meta: Meta,
    /// What the projection took, or why it could not.
    pub body: Result<Arc<dyn Any + Send + Sync>, Undecodable>,
}

/// An object with what a projection took of it.
#[derive(Debug)]
pub struct Entry<'a, T> {
    /// What every object has.
    pub meta: &'a Meta,
    /// What the projection took.
    pub body: &'a T,
}

/// Takes of an object what is needed.
pub type Project = fn(&Value) -> Result<Arc<dyn Any + Send + Sync>, Undecodable>;

/// A secondary index: the values an object is found under.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// What it is asked for by.
    pub name: &'static str,
    /// The values of an object.
    pub values: fn(&Seen) -> Vec<String>,
}

/// How a store keeps objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub(crate) project: Project,
    pub(crate) reads: Parts,
    pub(crate) indexes: &'a [Index],
}

/// The objects of one kind in one cluster, by one projection.
#[derive(Debug, Clone)]
pub struct Store {
    kind: Kind,
    cluster: ClusterId,
    project: Project,
    reads: Parts,
    indexes: Vec<Index>,
    objects: BTreeMap<Name, Arc<Seen>>,
    /// By the name of an index, then by value.
    by_index: BTreeMap<&'static str, BTreeMap<String, BTreeSet<Named>>>,
    gone: BTreeMap<Name, u64>,
    gone_order: BTreeSet<(u64, Name)>,
    marks: BTreeMap<Name, u64>,
    /// How many of the objects could not be understood.
    bad: usize,
    version: u64,
    synced: bool,
}

/// How many deleted objects are remembered, so that a late event does not bring one back.
const MAX_GONE: usize = 1_024;

/// What an observation did to a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    None,
    /// The object is new, changed or gone.
    Changed,
}

impl Store {
    fn new((cluster, kind, _): &StoreKey, layout: Layout<'_>) -> Self {
        Self {
            kind: kind.clone(),
            cluster: cluster.clone(),
            project: layout.project,
            reads: layout.reads,
            indexes: layout.indexes.to_vec(),
            objects: BTreeMap::new(),
            by_index: BTreeMap::new(),
            gone: BTreeMap::new(),
            gone_order: BTreeSet::new(),
            marks: BTreeMap::new(),
            bad: 0,
            version: 0,
            synced: false,
        }
    }

    /// Takes in an object from a watch, a list or the answer to a write. What is older than what is known is nothing
    /// new: so a late watch event cannot hide a write of our own.
    pub fn observe(&mut self, object: &Value) -> Change {
        let meta = Meta::of(object);
        let version = number(&meta.version);
        let name = meta.key();
        let known = self
            .objects
            .get(&name)
            .map(|seen| number(&seen.meta.version));
        let deleted = self.gone.get(&name).copied();
        if known.is_some_and(|known| version <= known)
            || deleted.is_some_and(|gone| version <= gone)
        {
            return Change::None;
        }
        self.version = self.version.max(version);
        self.unindex(&name);
        let body = project(self.project, &self.reads.of(object));
        let seen = Arc::new(Seen { meta, body });
        self.index(&seen);
        self.marks.insert(name.clone(), mark(object));
        self.bad += usize::from(seen.body.is_err());
        let before = self.objects.insert(name, seen);
        self.bad -= usize::from(before.is_some_and(|seen| seen.body.is_err()));
        Change::Changed
    }

    /// Takes in an object of a complete list that was begun after all that is known of the object had been seen. So what
    /// it says counts, also where it is older, as after a restore of the API's storage. Gives whether it is older.
    pub fn observe_listed(&mut self, object: &Value) -> (Change, bool) {
        let meta = Meta::of(object);
        let (version, name) = (number(&meta.version), meta.key());
        let known = self.objects.get(&name);
        let is_older = known.is_some_and(|seen| version < number(&seen.meta.version));
        let is_back = self.gone.get(&name).is_some_and(|gone| version <= *gone);
        if is_back {
            self.exhume(&name);
        }
        if is_older {
            self.remove(&name);
        }
        (self.observe(object), is_older || is_back)
    }

    /// Takes in an object of a list that was begun after a restore of the API's storage: nothing that was known of it before
    /// counts, not even where it had the same version.
    pub fn observe_restored(&mut self, object: &Value) -> Change {
        let meta = Meta::of(object);
        let name = meta.key();
        self.exhume(&name);
        let before = self.remove(&name);
        self.observe(object);
        if before.is_some_and(|seen| seen.meta == meta) {
            Change::None
        } else {
            Change::Changed
        }
    }

    /// Whether something newer has been seen than this version of an object, or its end.
    pub fn is_past(&self, namespace: &str, name: &str, version: &str) -> bool {
        let version = number(version);
        let name: &dyn Called = &(namespace, name);
        let known = self.objects.get(name);
        known.is_some_and(|seen| version < number(&seen.meta.version))
            || self.gone.get(name).is_some_and(|gone| version <= *gone)
    }

    /// Forgets versions that there are no more, after a complete list that was older than what was known.
    pub fn rebase(&mut self) {
        self.gone.clear();
        self.gone_order.clear();
        let versions = self.objects.values().map(|seen| number(&seen.meta.version));
        self.version = versions.max().unwrap_or_default();
    }

    /// Takes in that an object was deleted; `object` is its last state.
    pub fn observe_deletion(&mut self, object: &Value) -> Change {
        let meta = Meta::of(object);
        let version = number(&meta.version);
        self.version = self.version.max(version);
        let name = meta.key();
        // A watch event about an earlier object of the same name says nothing about the present one.
        if self
            .objects
            .get(&name)
            .is_some_and(|seen| number(&seen.meta.version) > version)
        {
            return Change::None;
        }
        self.bury(&name, version)
    }

    /// Takes in that there is no object of this name and uid any more, as a write that found nothing tells.
    pub fn observe_absence(&mut self, namespace: &str, name: &str, uid: &str) -> Change {
        let name = (namespace.to_owned(), name.to_owned());
        match self.objects.get(&name) {
            Some(seen) if seen.meta.uid == uid => {
                let version = number(&seen.meta.version);
                self.bury(&name, version)
            }
            _ => Change::None,
        }
    }

    /// Takes in a complete list: what is not in it and not newer than it is gone.
    pub fn observe_list(&mut self, objects: &[Value], version: &str) -> Vec<Name> {
        let version = number(version);
        let newer: BTreeSet<Name> = self
            .objects
            .iter()
            .filter(|(_, seen)| version != 0 && number(&seen.meta.version) > version)
            .map(|(name, _)| name.clone())
            .collect();
        let listed: BTreeSet<Name> = objects.iter().map(|o| Meta::of(o).key()).collect();
        let gone = self.retain_listed("", &listed, &newer);
        let mut changed: Vec<Name> = gone.iter().map(Meta::key).collect();
        let new = objects
            .iter()
            .filter(|object| self.observe(object) == Change::Changed);
        changed.extend(new.map(|object| Meta::of(object).key()));
        self.version = self.version.max(version);
        self.synced = true;
        changed
    }

    /// Takes in what is there in one namespace, or in all if it is empty: whatever else is known of it is gone, except
    /// `kept` (written by us after the list was made). Tells what is gone, as it was.
    pub fn retain_listed(
        &mut self,
        namespace: &str,
        listed: &BTreeSet<Name>,
        kept: &BTreeSet<Name>,
    ) -> Vec<Meta> {
        let missing: Vec<Name> = self
            .within(namespace)
            .filter(|name| !listed.contains(*name) && !kept.contains(*name))
            .cloned()
            .collect();
        let mut gone = Vec::with_capacity(missing.len());
        for name in &missing {
            gone.extend(self.observe_unlisted(name));
        }
        gone
    }

    /// Takes in that a list does not have this object, although it could; tells what is gone, as it was.
    pub fn observe_unlisted(&mut self, name: &Name) -> Option<Meta> {
        let meta = self.objects.get(name).map(|seen| seen.meta.clone())?;
        // An answer that was under way does not bring it back.
        self.bury(name, number(&meta.version));
        Some(meta)
    }

    /// The names in one namespace, or in all if it is empty.
    fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Name> {
        let names = self.since(namespace).map(|(name, _)| name);
        names.take_while(move |name| namespace.is_empty() || name.0 == namespace)
    }

    /// Forgets one namespace, or all if it is empty, because nothing can be seen of it any more: what was there may be there
    /// still. Tells what was known.
    pub fn forget_extent(&mut self, namespace: &str) -> Vec<Meta> {
        let known: Vec<Name> = self.within(namespace).cloned().collect();
        let forgotten = known.iter().filter_map(|name| self.forget(name));
        forgotten.collect()
    }

    /// The same of one object.
    pub fn forget(&mut self, name: &Name) -> Option<Meta> {
        self.remove(name).map(|seen| seen.meta.clone())
    }

    /// Says whether all parts have been listed.
    pub fn set_synced(&mut self, synced: bool) {
        self.synced = synced;
    }

    /// A digest of what people and other controllers ask of an object: generation, labels, annotations, and whether it
    /// is being deleted. Its status alone does not change it.
    pub fn mark(&self, namespace: &str, name: &str) -> Option<u64> {
        let name: &dyn Called = &(namespace, name);
        self.marks.get(name).copied()
    }

    fn bury(&mut self, name: &Name, version: u64) -> Change {
        if let Some(before) = self.gone.insert(name.clone(), version) {
            self.gone_order.remove(&(before, name.clone()));
        }
        self.gone_order.insert((version, name.clone()));
        while self.gone_order.len() > MAX_GONE
            && let Some((_, oldest)) = self.gone_order.pop_first()
        {
            self.gone.remove(&oldest);
        }
        match self.remove(name) {
            Some(_) => Change::Changed,
            None => Change::None,
        }
    }

    /// Forgets that an object is gone.
    fn exhume(&mut self, name: &Name) {
        if let Some(gone) = self.gone.remove(name) {
            self.gone_order.remove(&(gone, name.clone()));
        }
    }

    fn remove(&mut self, name: &Name) -> Option<Arc<Seen>> {
        self.unindex(name);
        self.marks.remove(name);
        let before = self.objects.remove(name)?;
        self.bad -= usize::from(before.body.is_err());
        Some(before)
    }
}

/// Projects; a projection that panics has not understood its object.
fn project(project: Project, object: &Value) -> Result<Arc<dyn Any + Send + Sync>, Undecodable> {
    catch_unwind(AssertUnwindSafe(|| project(object))).unwrap_or_else(|_| {
        Err(Undecodable {
            field: "object".to_owned(),
            problem: "the operator has a defect that this object brings out; report it".to_owned(),
        })
    })
}

/// See [`Store::mark`].
fn mark(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in ["generation", "labels", "annotations", "deletionTimestamp"] {
        let value = object.get("metadata").and_then(|meta| meta.get(part));
        value.map(Value::to_string).hash(&mut hasher);
    }
    hasher.finish()
}
