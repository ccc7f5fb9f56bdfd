//! All stores of one replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, Layout, Meta, Projection, Seen, Store, Undecodable};
use crate::identity::{ClusterId, Kind};

/// Which store: cluster, kind and projection.
pub type StoreKey = (ClusterId, Kind, &'static str);

/// All stores of one replica. A clone is a snapshot, and costs no more than counting it.
#[derive(Debug, Clone, Default)]
pub struct Stores(Arc<BTreeMap<StoreKey, Arc<Store>>>);

impl Stores {
    /// Makes room for a kind; if there is, only the indexes are added.
    pub(crate) fn make_room(&mut self, key: &StoreKey, layout: Layout<'_>) {
        let store = Arc::make_mut(&mut self.0)
            .entry(key.clone())
            .or_insert_with(|| Arc::new(Store::new(key, layout)));
        for index in layout.indexes {
            if store.indexes.iter().all(|known| known.name != index.name) {
                Arc::make_mut(store).add_index(*index);
            }
        }
    }

    /// The store behind a key.
    pub fn store(&self, key: &StoreKey) -> Option<&Store> {
        self.0.get(key).map(AsRef::as_ref)
    }

    /// The store behind a key, to take something in.
    pub fn store_mut(&mut self, key: &StoreKey) -> Option<&mut Store> {
        Arc::make_mut(&mut self.0).get_mut(key).map(Arc::make_mut)
    }

    /// All stores.
    pub fn iter(&self) -> impl Iterator<Item = (&StoreKey, &Store)> {
        self.0.iter().map(|(key, store)| (key, store.as_ref()))
    }

    /// The stores of a kind in a cluster, one for each projection.
    pub fn of_kind<'a>(
        &'a self,
        cluster: &'a ClusterId,
        kind: &'a Kind,
    ) -> impl Iterator<Item = (&'a StoreKey, &'a Store)> {
        self.iter()
            .filter(move |((of, what, _), _)| of == cluster && what == kind)
    }

    /// The store of a kind by the projection `T`.
    pub fn typed<T: Projection>(&self, cluster: &ClusterId, kind: &Kind) -> Option<&Store> {
        let key = (cluster.clone(), kind.clone(), std::any::type_name::<T>());
        self.store(&key)
    }

    /// All understood objects of a kind, by namespace and name.
    pub fn list<'a, T: Projection>(
        &'a self,
        cluster: &ClusterId,
        kind: &Kind,
    ) -> impl Iterator<Item = Entry<'a, T>> + use<'a, T> {
        self.typed::<T>(cluster, kind)
            .into_iter()
            .flat_map(Store::objects)
            .filter_map(|seen| entry::<T>(seen))
    }

    /// The understood object of this name.
    pub fn get<'a, T: Projection>(
        &'a self,
        cluster: &ClusterId,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Option<Entry<'a, T>> {
        entry::<T>(self.typed::<T>(cluster, kind)?.get(namespace, name)?)
    }

    /// The understood objects for which an index gave this value.
    pub fn indexed<'a, T: Projection>(
        &'a self,
        cluster: &ClusterId,
        kind: &Kind,
        index: &'static str,
        value: &str,
    ) -> impl Iterator<Item = Entry<'a, T>> + use<'a, T> {
        let store = self.typed::<T>(cluster, kind);
        let names = store.and_then(|s| s.by_index.get(&(index, value.to_owned())));
        names
            .into_iter()
            .flatten()
            .filter_map(move |name| entry::<T>(store?.objects.get(name)?))
    }

    /// Objects that could not be understood, and why.
    pub fn undecodable<'a, T: Projection>(
        &'a self,
        cluster: &ClusterId,
        kind: &Kind,
    ) -> impl Iterator<Item = (&'a Meta, &'a Undecodable)> + use<'a, T> {
        self.typed::<T>(cluster, kind)
            .into_iter()
            .flat_map(Store::objects)
            .filter_map(|seen| Some((&seen.meta, seen.body.as_ref().err()?)))
    }

    /// Whether a complete list of this kind has been taken in.
    pub fn is_synced<T: Projection>(&self, cluster: &ClusterId, kind: &Kind) -> bool {
        self.typed::<T>(cluster, kind).is_some_and(Store::is_synced)
    }
}

fn entry<T: Projection>(seen: &Arc<Seen>) -> Option<Entry<'_, T>> {
    let body = seen.body.as_ref().ok()?.downcast_ref::<T>()?;
    Some(Entry {
        meta: &seen.meta,
        body,
    })
}
