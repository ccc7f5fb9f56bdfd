//! What can be looked up in a store, without changing it.

use std::ops::Bound;
use std::sync::Arc;

use super::{Called, Entry, Meta, Name, Projection, Seen, Store, stores};
use crate::identity::ObjectRef;

impl Store {
    /// The object of this name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Seen>> {
        let name: &dyn Called = &(namespace, name);
        self.objects.get(name)
    }

    /// All objects by namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Seen>> {
        self.objects.values()
    }

    /// The objects of one namespace, by name.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Seen>> {
        self.since(namespace)
            .take_while(move |((of, _), _)| of == namespace)
            .map(|(_, seen)| seen)
    }

    /// The objects of one namespace and of all that come after it, by namespace and name.
    pub(super) fn since(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&Name, &Arc<Seen>)> + use<'_> {
        let first: &dyn Called = &(namespace, "");
        self.objects
            .range::<dyn Called + '_, _>((Bound::Included(first), Bound::Unbounded))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// How many of them could not be understood.
    pub fn undecodable(&self) -> usize {
        self.bad
    }

    /// All understood objects, by namespace and name.
    pub fn entries<T: Projection>(&self) -> impl Iterator<Item = Entry<'_, T>> {
        self.objects().filter_map(stores::entry::<T>)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether a complete list has been taken in.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// The newest version that has been seen: the basis of what is decided on this store.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A reference to an object of this store.
    pub fn reference(&self, meta: &Meta) -> ObjectRef {
        ObjectRef {
            cluster: self.cluster.clone(),
            kind: self.kind.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
        }
    }
}
