//! What is seen in the control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::fields::text;
use slipway_kernel::instant::later;
use slipway_kernel::store::{Item, Meta, Projection, Seen, Store};
use slipway_kernel::{ClusterId, Facts, Kind, ObjectRef, Stores};

use super::interests::{
    CLUSTERS, KUBECONFIGS, MODULES, NAMING, OF_CLUSTER, OF_KUBECONFIG, OF_UID, SYSTEM, VALUES,
    definition_of, namespace_slot, one_kubeconfig,
};
use crate::observe::cluster::{self, Registered, registered};
use crate::observe::seen::{Assembled, Bare, Installed, RemoteSeen, Whole};
use crate::{kinds, work};

/// What is seen in the control plane.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) stores: &'a Stores,
    pub(crate) home: ClusterId,
}

impl<'a> View<'a> {
    pub(crate) fn new(stores: &'a Stores) -> Self {
        Self {
            stores,
            home: ClusterId::local(),
        }
    }

    /// The uid by which this control plane is known; none while it has not been read.
    pub(crate) fn identity(&self) -> Option<String> {
        let slot = namespace_slot(SYSTEM);
        let store = self
            .stores
            .slot::<Bare>(&self.home, &kinds::NAMESPACE, &slot)?;
        let found = store.get("", SYSTEM)?;
        Some(found.meta.uid.clone()).filter(|uid| !uid.is_empty())
    }

    /// Whether the definition of a kind is going, or gone: then its objects go, and nobody has said that they may.
    pub(crate) fn is_undefined(&self, kind: &Kind) -> bool {
        let name = definition_of(kind);
        let store = self.definitions(&name);
        let Some(store) = store.filter(|store| store.is_synced()) else {
            return false;
        };
        let found = store.get("", &name).and_then(Item::<Installed>::of);
        found.is_none_or(|found| found.body().is_going)
    }

    /// Whether the definition of a kind is so old that the API does not keep this field of its statuses.
    pub(crate) fn forgets(&self, kind: &Kind, field: &str) -> bool {
        let name = definition_of(kind);
        let found = self.definitions(&name).and_then(|all| all.get("", &name));
        let found = found.and_then(Item::<Installed>::of);
        found.is_some_and(|found| !found.body().keeps(field))
    }

    /// Where the definition of this name is seen.
    fn definitions(&self, name: &str) -> Option<&'a Store> {
        let (stores, kind) = (self.stores, &kinds::DEFINITION);
        stores.slot::<Installed>(&self.home, kind, name)
    }

    /// An object of ours.
    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Item<Whole>> {
        let store = self.stores.typed::<Whole>(&self.home, kind)?;
        Item::of(store.get(namespace, name)?)
    }

    /// A `RemoteAssemblage`.
    pub(crate) fn remote(&self, namespace: &str, name: &str) -> Option<Item<RemoteSeen>> {
        let kind = &kinds::REMOTE_ASSEMBLAGE;
        let store = self.stores.typed::<RemoteSeen>(&self.home, kind)?;
        Item::of(store.get(namespace, name)?)
    }

    /// All `RemoteAssemblages` of a namespace.
    pub(crate) fn all_remotes(&self, namespace: &str) -> Vec<Item<RemoteSeen>> {
        let kind = &kinds::REMOTE_ASSEMBLAGE;
        items(self.stores.typed::<RemoteSeen>(&self.home, kind), namespace)
    }

    /// An assemblage.
    pub(crate) fn assemblage(&self, namespace: &str, name: &str) -> Option<Item<Assembled>> {
        let store = self
            .stores
            .typed::<Assembled>(&self.home, &kinds::ASSEMBLAGE)?;
        Item::of(store.get(namespace, name)?)
    }

    /// All objects of a kind in a namespace.
    pub(crate) fn all(&self, kind: &Kind, namespace: &str) -> Vec<Item<Whole>> {
        items(self.stores.typed::<Whole>(&self.home, kind), namespace)
    }

    /// All `Assemblage`s, of all namespaces.
    pub(crate) fn every_assemblage(&self) -> impl Iterator<Item = Item<Assembled>> {
        let store = self
            .stores
            .typed::<Assembled>(&self.home, &kinds::ASSEMBLAGE);
        let all = store.into_iter().flat_map(Store::objects);
        all.filter_map(Item::<Assembled>::of)
    }

    /// All assemblages of a namespace.
    pub(crate) fn assemblages(&self, namespace: &str) -> Vec<Item<Assembled>> {
        let store = self
            .stores
            .typed::<Assembled>(&self.home, &kinds::ASSEMBLAGE);
        items(store, namespace)
    }

    /// The clusters of a namespace that somebody is for: those that have been assigned something, and those of which an object that stands
    /// for them is selected.
    pub(crate) fn clusters(
        &self,
        namespace: &str,
        assigned: &BTreeSet<String>,
        is_selected: impl Fn(&Value) -> bool,
    ) -> BTreeMap<String, Registered> {
        let mut clusters = self.all(&kinds::CLUSTER_BEFORE, namespace);
        clusters.extend(self.all(&kinds::CLUSTER, namespace));
        let secrets = self.secrets(CLUSTERS);
        let secrets: Vec<Item<Bare>> = items(secrets, namespace);
        let objects = clusters
            .iter()
            .map(|item| (item.meta(), item.body().object()));
        let objects = objects.chain(
            secrets
                .iter()
                .map(|item| (item.meta(), item.body().object())),
        );
        // Several objects may stand for one, and one of them wins: either all of them are looked at, or none.
        let mut meant: BTreeSet<&str> = assigned.iter().map(String::as_str).collect();
        let selected = objects.filter(|(_, object)| is_selected(object));
        meant.extend(selected.map(|(meta, _)| meta.name.as_str()));
        let is_meant = |meta: &Meta| meant.contains(meta.name.as_str());
        let clusters = clusters.iter().filter(|item| is_meant(item.meta()));
        let secrets = secrets.iter().filter(|item| is_meant(item.meta()));
        let mut all = registered(
            clusters.map(|item| item.body().object()),
            secrets.map(|item| item.body().object()),
        );
        let lost: Vec<&String> = assigned
            .iter()
            .filter(|one| !all.contains_key(*one))
            .collect();
        if !lost.is_empty() {
            // Somebody may take the label from all of them at once.
            let formers = self.formers(namespace);
            for name in lost.into_iter().filter(|name| formers.contains(*name)) {
                let former = self.unlabelled(namespace, name);
                all.extend(former.map(|former| (name.clone(), former)));
            }
        }
        all
    }

    /// The names of the clusters for which Secrets stood when they were recorded.
    pub(crate) fn formers(&self, namespace: &str) -> BTreeSet<String> {
        let by_secret = |object: &Value| former(object).map(str::to_owned);
        let remotes = self.all_remotes(namespace);
        let mut all: BTreeSet<String> = remotes
            .iter()
            .filter_map(|item| by_secret(item.body().object()))
            .collect();
        let bootstraps = self.assemblages(namespace);
        let named = bootstraps
            .iter()
            .filter(|one| one.body().cluster().is_some());
        all.extend(named.filter_map(|item| by_secret(item.body().object())));
        all
    }

    /// A Secret that stood for a cluster, and has lost its label: it is the same cluster, and nobody selects it.
    fn former(&self, namespace: &str, name: &str) -> Option<Registered> {
        let former = self.unlabelled(namespace, name)?;
        self.formers(namespace).contains(name).then_some(former)
    }

    /// A Secret that is looked at by its name alone, as a cluster.
    fn unlabelled(&self, namespace: &str, name: &str) -> Option<Registered> {
        let store = self.secrets(&one_kubeconfig(namespace, name))?;
        let found = Item::<Bare>::of(store.get(namespace, name)?)?;
        Registered::of_former(found.body().object())
    }

    /// One cluster.
    pub(crate) fn cluster(&self, namespace: &str, name: &str) -> Option<Registered> {
        let found = self.get(&kinds::CLUSTER, namespace, name);
        let found = found.or_else(|| self.get(&kinds::CLUSTER_BEFORE, namespace, name));
        if let Some(found) = found {
            return Registered::of_cluster(found.body().object());
        }
        let secret = self.secrets(CLUSTERS)?.get(namespace, name);
        match secret.and_then(Item::<Bare>::of) {
            Some(found) => Registered::of_secret(found.body().object()),
            None => self.former(namespace, name),
        }
    }

    /// All clusters, of all namespaces.
    pub(crate) fn all_clusters(&self) -> Vec<Registered> {
        let places = |store: Option<&Store>| -> Vec<(String, String)> {
            let all = store.into_iter().flat_map(Store::objects);
            all.map(|seen| seen.meta.key()).collect()
        };
        let mut names = places(self.stores.typed::<Whole>(&self.home, &kinds::CLUSTER));
        let before = self
            .stores
            .typed::<Whole>(&self.home, &kinds::CLUSTER_BEFORE);
        names.extend(places(before));
        names.extend(places(self.secrets(CLUSTERS)));
        names.sort();
        names.dedup();
        let all = names
            .iter()
            .filter_map(|(namespace, name)| self.cluster(namespace, name));
        all.collect()
    }

    pub(crate) fn secrets(&self, slot: &str) -> Option<&'a Store> {
        self.stores.slot::<Bare>(&self.home, &kinds::SECRET, slot)
    }

    /// Which version of a kubeconfig has been seen, if it has.
    pub(crate) fn kubeconfig_version(&self, namespace: &str, name: &str) -> Option<&'a str> {
        let one = one_kubeconfig(namespace, name);
        let slots = [CLUSTERS, KUBECONFIGS, one.as_str()];
        let mut found = slots
            .into_iter()
            .filter_map(|slot| self.secrets(slot)?.get(namespace, name));
        found.next().map(|seen| seen.meta.version.as_str())
    }

    /// Whether a kubeconfig is there; none while that has not been looked for.
    pub(crate) fn has_kubeconfig(&self, namespace: &str, name: &str) -> Option<bool> {
        if self.kubeconfig_version(namespace, name).is_some() {
            return Some(true);
        }
        let one = self.secrets(&one_kubeconfig(namespace, name))?;
        one.is_synced().then_some(false)
    }

    /// The `RemoteAssemblages` of a cluster; the one of its own name first.
    pub(crate) fn remotes(&self, namespace: &str, cluster: &str) -> Vec<Item<RemoteSeen>> {
        let mut all = self.remotes_under(OF_CLUSTER, &format!("{namespace}/{cluster}"));
        all.sort_by_key(|item| item.meta().name != cluster);
        all
    }

    /// The `RemoteAssemblages` of a namespace that name this kubeconfig.
    pub(crate) fn remotes_by_kubeconfig(
        &self,
        namespace: &str,
        secret: &str,
    ) -> Vec<Item<RemoteSeen>> {
        self.remotes_under(OF_KUBECONFIG, &format!("{namespace}/{secret}"))
    }

    /// The `RemoteAssemblages` of a namespace that recorded the cluster of this uid.
    pub(crate) fn recorded(&self, namespace: &str, uid: &str) -> Vec<Item<RemoteSeen>> {
        self.remotes_under(OF_UID, &format!("{namespace}/{uid}"))
    }

    /// The `RemoteAssemblages` of all namespaces that name modules.
    pub(crate) fn naming_modules(&self) -> Vec<Item<RemoteSeen>> {
        self.remotes_under(NAMING, MODULES)
    }

    /// The `RemoteAssemblages` that name a module.
    pub(crate) fn remotes_naming(&self, namespace: &str, module: &str) -> Vec<Item<RemoteSeen>> {
        self.remotes_under(NAMING, &format!("{namespace}/{module}"))
    }

    /// The `Assemblage`s that name a bootstrap module.
    pub(crate) fn assemblages_naming(&self, namespace: &str, module: &str) -> Vec<Item<Assembled>> {
        self.assemblages_under(NAMING, &format!("{namespace}/{module}"))
    }

    /// The `Assemblage`s that name a cluster.
    pub(crate) fn assemblages_of(&self, namespace: &str, cluster: &str) -> Vec<Item<Assembled>> {
        self.assemblages_under(OF_CLUSTER, &format!("{namespace}/{cluster}"))
    }

    /// The `Assemblage`s of a namespace that recorded the cluster of this uid.
    pub(crate) fn assemblages_recording(&self, namespace: &str, uid: &str) -> Vec<Item<Assembled>> {
        self.assemblages_under(OF_UID, &format!("{namespace}/{uid}"))
    }

    /// The `Assemblage`s that are found under this value.
    fn assemblages_under(&self, index: &'static str, value: &str) -> Vec<Item<Assembled>> {
        let (stores, kind) = (self.stores, &kinds::ASSEMBLAGE);
        let found = stores.indexed::<Assembled>(&self.home, kind, index, value);
        found
            .filter_map(|entry| self.assemblage(&entry.meta.namespace, &entry.meta.name))
            .collect()
    }

    /// How many assemblages name a module of this kind.
    pub(crate) fn count_naming(&self, kind: &Kind, namespace: &str, module: &str) -> usize {
        let (stores, home) = (self.stores, &self.home);
        let module = format!("{namespace}/{module}");
        if *kind == kinds::MODULE {
            stores.count_indexed::<RemoteSeen>(home, &kinds::REMOTE_ASSEMBLAGE, NAMING, &module)
        } else {
            stores.count_indexed::<Assembled>(home, &kinds::ASSEMBLAGE, NAMING, &module)
        }
    }

    /// The Secrets with values of a namespace of which a label says this.
    pub(crate) fn values(&self, namespace: &str, label: &str, value: &str) -> Vec<Item<Whole>> {
        let said = format!("{namespace}/{label}={value}");
        let (stores, kind) = (self.stores, &kinds::SECRET);
        let found = stores.indexed::<Whole>(&self.home, kind, VALUES, &said);
        let found = found.map(|entry| entry.meta);
        found
            .filter_map(|meta| self.get(kind, &meta.namespace, &meta.name))
            .collect()
    }

    /// The `RemoteAssemblages` that are found under this value.
    fn remotes_under(&self, index: &'static str, value: &str) -> Vec<Item<RemoteSeen>> {
        let (stores, kind) = (self.stores, &kinds::REMOTE_ASSEMBLAGE);
        let found = stores.indexed::<RemoteSeen>(&self.home, kind, index, value);
        let found = found.map(|entry| entry.meta);
        found
            .filter_map(|meta| self.remote(&meta.namespace, &meta.name))
            .collect()
    }

    /// Whether there may be clusters that we have no right to see.
    pub(crate) fn is_blind_to_clusters(&self, facts: &Facts) -> bool {
        let kinds = [kinds::CLUSTER, kinds::CLUSTER_BEFORE, kinds::SECRET];
        kinds.iter().any(|kind| facts.is_blind_to(&self.home, kind))
    }

    /// Whether all clusters of this kind are seen as they are: else one that is not seen may be there.
    pub(crate) fn knows_clusters(&self, facts: &Facts, kind: &str) -> bool {
        if kind == cluster::SECRET {
            return self.secrets(CLUSTERS).is_some_and(Store::is_synced)
                && !facts.is_blind_to(&self.home, &kinds::SECRET);
        }
        let versions = [kinds::CLUSTER, kinds::CLUSTER_BEFORE];
        let is_seen = |kind: &Kind| {
            self.stores.is_synced::<Whole>(&self.home, kind) && !facts.is_absent(&self.home, kind)
        };
        let is_blind = |kind: &Kind| facts.is_blind_to(&self.home, kind);
        versions.iter().any(is_seen) && !versions.iter().any(is_blind)
    }
}

/// How long after its deletion an object that goes is undone: its definition may be what is deleted, and is heard of by another watch.
const SETTLING: Duration = Duration::from_secs(3);

/// Until when it is not known whether an object that goes, or its definition, was deleted; none if it is.
pub(crate) fn unsettled(object: &Value, now: Timestamp) -> Option<Timestamp> {
    let since: Timestamp = text(object, "/metadata/deletionTimestamp")?.parse().ok()?;
    later(since, SETTLING).filter(|until| *until > now)
}

/// The objects of a store in a namespace.
pub(crate) fn items<T: Projection>(store: Option<&Store>, namespace: &str) -> Vec<Item<T>> {
    let seen = store
        .into_iter()
        .flat_map(|store| store.in_namespace(namespace));
    seen.filter_map(Item::of).collect()
}

/// What is kept of an object whole.
pub(crate) fn whole(seen: &Seen) -> Option<&Value> {
    let body = seen.body.as_ref().ok()?;
    body.downcast_ref::<Whole>().map(Whole::object)
}

/// What is kept of a `RemoteAssemblage`, without its lists.
pub(crate) fn remote(seen: &Seen) -> Option<&Value> {
    let body = seen.body.as_ref().ok()?;
    body.downcast_ref::<RemoteSeen>().map(RemoteSeen::object)
}

/// The cluster that an assemblage is about, if a Secret stood for it when it was recorded.
pub(crate) fn former(assemblage: &Value) -> Option<&str> {
    let kind = text(assemblage, "/status/cluster/kind");
    (kind == Some(cluster::SECRET)).then(|| cluster_of(assemblage))
}

/// The cluster that a `RemoteAssemblage` is about.
pub(crate) fn cluster_of(assemblage: &Value) -> &str {
    let named = text(assemblage, "/spec/clusterName");
    let name = named.or_else(|| text(assemblage, "/metadata/name"));
    name.unwrap_or_default()
}

/// The member that a `RemoteAssemblage` is about.
pub(crate) fn member_of(meta: &Meta, assemblage: &Value) -> ClusterId {
    work::member(&meta.namespace, cluster_of(assemblage))
}

/// An object of the control plane.
pub(crate) fn reference(kind: &Kind, meta: &Meta) -> ObjectRef {
    ObjectRef::local(kind.clone(), &meta.namespace, &meta.name)
}
