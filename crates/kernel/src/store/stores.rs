//! All stores of one replica.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Entry, Layout, Meta, Projection, Seen, Store, Undecodable};
use crate::identity::{ClusterId, Kind};
use crate::interest::slot_name;
use crate::parts::Parts;

/// Which store: cluster, kind and projection, with its slot if it has one.
pub type StoreKey = (ClusterId, Kind, Cow<'static, str>);

/// The parts of a [`StoreKey`], whoever owns them: stores are looked up without a copy of any.
trait Keyed {
    fn parts(&self) -> (&ClusterId, &Kind, &str);
}

impl Keyed for StoreKey {
    fn parts(&self) -> (&ClusterId, &Kind, &str) {
        (&self.0, &self.1, &self.2)
    }
}

impl Keyed for (&ClusterId, &Kind, &str) {
    fn parts(&self) -> (&ClusterId, &Kind, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Keyed + 'a> for StoreKey {
    fn borrow(&self) -> &(dyn Keyed + 'a) {
        self
    }
}

impl Ord for dyn Keyed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

impl PartialOrd for dyn Keyed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Keyed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn Keyed + '_ {}

/// The stores of one cluster.
type OfCluster = BTreeMap<StoreKey, Arc<Store>>;

/// All stores of one replica. A clone is a snapshot, and costs no more than counting it. Whoever changes a store while
/// there is a snapshot copies that store and the names of its cluster's, and the list of clusters.
#[derive(Debug, Clone, Default)]
pub struct Stores(Arc<BTreeMap<ClusterId, Arc<OfCluster>>>);

impl Stores {
    /// Makes room for a kind; if there is, only the indexes are added.
    pub(crate) fn make_room(&mut self, key: &StoreKey, layout: Layout<'_>) {
        let of_cluster = Arc::make_mut(&mut self.0).entry(key.0.clone()).or_default();
        let store = Arc::make_mut(of_cluster)
            .entry(key.clone())
            .or_insert_with(|| Arc::new(Store::new(key, layout)));
        for index in layout.indexes {
            if store.indexes.iter().all(|known| known.name != index.name) {
                Arc::make_mut(store).add_index(*index);
            }
        }
    }

    /// A snapshot of one cluster's stores.
    #[must_use]
    pub fn only(&self, cluster: &ClusterId) -> Self {
        let known = self.0.get(cluster);
        let known = known.map(|of_cluster| (cluster.clone(), of_cluster.clone()));
        Self(Arc::new(known.into_iter().collect()))
    }

    /// Gives up a store: nobody is interested in it any more.
    pub fn close(&mut self, key: &StoreKey) {
        let all = Arc::make_mut(&mut self.0);
        let Some(of_cluster) = all.get_mut(&key.0) else {
            return;
        };
        Arc::make_mut(of_cluster).remove(key);
        if of_cluster.is_empty() {
            all.remove(&key.0);
        }
    }

    /// Gives up all stores of a cluster.
    pub fn drop_cluster(&mut self, cluster: &ClusterId) {
        Arc::make_mut(&mut self.0).remove(cluster);
    }

    /// The store behind a key.
    pub fn store(&self, key: &StoreKey) -> Option<&Store> {
        self.0.get(&key.0)?.get(key).map(AsRef::as_ref)
    }

    /// The store behind a key, to take something in.
    pub fn store_mut(&mut self, key: &StoreKey) -> Option<&mut Store> {
        let of_cluster = Arc::make_mut(&mut self.0).get_mut(&key.0)?;
        let store = Arc::make_mut(of_cluster).get_mut(key)?;
        Some(Arc::make_mut(store))
    }

    /// All stores.
    pub fn iter(&self) -> impl Iterator<Item = (&StoreKey, &Store)> {
        let all = self.0.values().flat_map(|of_cluster| of_cluster.iter());
        all.map(|(key, store)| (key, store.as_ref()))
    }

    /// The clusters of which there are stores.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.0.keys()
    }

    /// The stores of a cluster.
    pub fn of_cluster<'a>(
        &'a self,
        cluster: &ClusterId,
    ) -> impl Iterator<Item = (&'a StoreKey, &'a Store)> + use<'a> {
        let of_cluster = self.0.get(cluster).into_iter();
        let all = of_cluster.flat_map(|of_cluster| of_cluster.iter());
        all.map(|(key, store)| (key, store.as_ref()))
    }

    /// The stores of a kind in a cluster, one for each projection.
    pub fn of_kind<'a>(
        &'a self,
        cluster: &ClusterId,
        kind: &'a Kind,
    ) -> impl Iterator<Item = (&'a StoreKey, &'a Store)> + use<'a> {
        let first: StoreKey = (cluster.clone(), kind.clone(), Cow::Borrowed(""));
        let of_cluster = self.0.get(cluster).into_iter();
        of_cluster
            .flat_map(move |of_cluster| of_cluster.range(first.clone()..))
            .take_while(move |((_, what, _), _)| what == kind)
            .map(|(key, store)| (key, store.as_ref()))
    }

    /// Which parts of a kind's objects are read in a cluster, by whichever projection.
    pub fn reads(&self, cluster: &ClusterId, kind: &Kind) -> Parts {
        let all = self.of_kind(cluster, kind);
        all.fold(Parts::NONE, |reads, (_, store)| reads.or(store.reads))
    }

    /// The store of a kind by the projection `T`.
    pub fn typed<T: Projection>(&self, cluster: &ClusterId, kind: &Kind) -> Option<&Store> {
        let key: &dyn Keyed = &(cluster, kind, std::any::type_name::<T>());
        self.0.get(cluster)?.get(key).map(AsRef::as_ref)
    }

    /// The store of a kind by the projection `T` that was opened in a slot of its own.
    pub fn slot<T: Projection>(
        &self,
        cluster: &ClusterId,
        kind: &Kind,
        slot: &str,
    ) -> Option<&Store> {
        let name = slot_name(std::any::type_name::<T>(), slot);
        let key: &dyn Keyed = &(cluster, kind, name.as_str());
        self.0.get(cluster)?.get(key).map(AsRef::as_ref)
    }

    /// All understood objects of a kind, by namespace and name.
    pub fn list<'a, T: Projection>(
        &'a self,
        cluster: &ClusterId,
        kind: &Kind,
    ) -> impl Iterator<Item = Entry<'a, T>> + use<'a, T> {
        self.typed::<T>(cluster, kind)
            .into_iter()
            .flat_map(Store::entries::<T>)
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
        let found = store.and_then(|store| store.under(index, value));
        let found = found.into_iter().flatten();
        found.filter_map(|named| entry::<T>(&named.0))
    }

    /// For how many objects an index gave this value.
    pub fn count_indexed<T: Projection>(
        &self,
        cluster: &ClusterId,
        kind: &Kind,
        index: &'static str,
        value: &str,
    ) -> usize {
        let store = self.typed::<T>(cluster, kind);
        let found = store.and_then(|store| store.under(index, value));
        found.map_or(0, BTreeSet::len)
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

pub(super) fn entry<T: Projection>(seen: &Arc<Seen>) -> Option<Entry<'_, T>> {
    let body = seen.body.as_ref().ok()?.downcast_ref::<T>()?;
    Some(Entry {
        meta: &seen.meta,
        body,
    })
}
