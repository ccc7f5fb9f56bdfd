//! What the actors know: one ordered cache per kind, fed by watches and by the answers to their own writes.
//!
//! An object is never replaced by an older version of itself, so that an actor always sees at least its own writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Node, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use kube::api::ObjectMeta;

use super::autoscaler::Memory;
use super::flux::{GitRepository, Kustomization, kustomize, source};
use super::gateway::{HttpRoute, Taken, TrafficSplit, VirtualService};
use super::key::{Job, Key, Kind};
use super::owner;
use super::script::Script;
use super::told::Head;

/// A kind that the actors keep a cache of.
pub(crate) trait Watched:
    Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + Send + Sync + 'static
{
    const KIND: Kind;
    fn cache(world: &World) -> &Cache<Self>;
    fn cache_mut(world: &mut World) -> &mut Cache<Self>;
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Cache<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// Uids of objects that we know to be gone, until the watch says so too.
    gone: BTreeSet<String>,
    synced: bool,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            gone: BTreeSet::new(),
            synced: false,
        }
    }
}

impl<K> Cache<K> {
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All objects of a namespace, by name.
    pub(crate) fn within<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<K>)> {
        let start = Key::new(namespace, "");
        self.objects
            .range(start..)
            .take_while(move |(key, _)| key.namespace == namespace)
    }

    /// All objects, by namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects.iter()
    }
}

/// One change of what is known: the metadata before and after.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) old: Option<ObjectMeta>,
    pub(crate) new: Option<ObjectMeta>,
}

/// Everything the actors know.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) deployments: Cache<Deployment>,
    pub(crate) replica_sets: Cache<ReplicaSet>,
    pub(crate) stateful_sets: Cache<StatefulSet>,
    pub(crate) daemon_sets: Cache<DaemonSet>,
    pub(crate) revisions: Cache<ControllerRevision>,
    pub(crate) pods: Cache<Pod>,
    pub(crate) nodes: Cache<Node>,
    pub(crate) budgets: Cache<PodDisruptionBudget>,
    pub(crate) autoscalers: Cache<HorizontalPodAutoscaler>,
    pub(crate) services: Cache<Service>,
    pub(crate) endpoints: Cache<Endpoints>,
    pub(crate) slices: Cache<EndpointSlice>,
    pub(crate) secrets: Cache<Secret>,
    pub(crate) config_maps: Cache<ConfigMap>,
    pub(crate) sources: Cache<GitRepository>,
    pub(crate) kustomizations: Cache<Kustomization>,
    pub(crate) http_routes: Cache<HttpRoute>,
    pub(crate) virtual_services: Cache<VirtualService>,
    pub(crate) traffic_splits: Cache<TrafficSplit>,
    pub(crate) ingresses: Cache<Ingress>,
    pub(crate) taken: Cache<Taken>,
    /// The dependents of each controller, by its uid.
    owned: BTreeMap<String, BTreeSet<(Kind, Key)>>,
    /// Objects that no controller owns.
    orphans: BTreeSet<(Kind, Key)>,
    /// What an API call for a job ended with the last time, if it failed.
    pub(crate) failures: BTreeMap<Job, Failure>,
    /// What the autoscalers remember of their own recommendations.
    pub(crate) recommendations: BTreeMap<Key, Memory>,
    /// What Flux is fetching.
    pub(crate) fetches: BTreeMap<Key, source::Fetch>,
    /// What Flux is applying.
    pub(crate) attempts: BTreeMap<Key, kustomize::Memory>,
    /// When a gateway takes what it has not taken yet.
    pub(crate) takes: BTreeMap<(Kind, Key), jiff::Timestamp>,
    /// Changes that nobody has looked at yet.
    changes: Vec<Change>,
}

/// A job whose last write failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// It was the creation or deletion of something, not a change of what is known.
    pub(crate) about_pods: bool,
    pub(crate) attempts: u32,
    pub(crate) retry_at: jiff::Timestamp,
}

macro_rules! watched {
    ($($object:ty, $kind:ident, $field:ident;)*) => {
        $(impl Watched for $object {
            const KIND: Kind = Kind::$kind;
            fn cache(world: &World) -> &Cache<Self> {
                &world.$field
            }
            fn cache_mut(world: &mut World) -> &mut Cache<Self> {
                &mut world.$field
            }
        })*

        impl World {
            /// Whether every kind has been listed at least once.
            pub(crate) fn is_synced(&self) -> bool {
                true $(&& self.$field.synced)*
            }

            /// Takes in an object as the server answered it.
            pub(crate) fn learn_text(&mut self, kind: Kind, text: &str) -> serde_json::Result<()> {
                let head = Head::of(text)?;
                match kind {
                    $(Kind::$kind => self.learn::<$object>(head.read(text)?),)*
                    Kind::Claim => {}
                }
                Ok(())
            }

            /// Forgets an object that the server says is not there (any more).
            pub(crate) fn forget_key(&mut self, kind: Kind, key: &Key) {
                match kind {
                    $(Kind::$kind => self.forget::<$object>(key),)*
                    Kind::Claim => {}
                }
            }
        }
    };
}

watched! {
    Deployment, Deployment, deployments;
    ReplicaSet, ReplicaSet, replica_sets;
    StatefulSet, StatefulSet, stateful_sets;
    DaemonSet, DaemonSet, daemon_sets;
    ControllerRevision, Revision, revisions;
    Pod, Pod, pods;
    Node, Node, nodes;
    PodDisruptionBudget, Budget, budgets;
    HorizontalPodAutoscaler, Autoscaler, autoscalers;
    Service, Service, services;
    Endpoints, Endpoints, endpoints;
    EndpointSlice, Slice, slices;
    Secret, Secret, secrets;
    ConfigMap, ConfigMap, config_maps;
    GitRepository, GitRepository, sources;
    Kustomization, Kustomization, kustomizations;
    HttpRoute, HttpRoute, http_routes;
    VirtualService, VirtualService, virtual_services;
    TrafficSplit, TrafficSplit, traffic_splits;
    Ingress, Ingress, ingresses;
    Taken, Taken, taken;
}

/// The version of an object; versions of one server are ordered numbers.
fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

impl World {
    /// One for a script: nobody waits for what only somebody looks at who is not played.
    pub(crate) fn of(script: &Script) -> Self {
        let mut world = Self::default();
        if script.flux.is_none() {
            world.secrets.synced = true;
            world.config_maps.synced = true;
            world.sources.synced = true;
            world.kustomizations.synced = true;
        }
        if script.gateway.is_none() {
            world.http_routes.synced = true;
            world.virtual_services.synced = true;
            world.traffic_splits.synced = true;
            world.ingresses.synced = true;
            world.taken.synced = true;
        }
        world
    }

    /// Takes in an object, unless a later version of it is known.
    pub(crate) fn learn<K: Watched>(&mut self, mut object: K) {
        object.meta_mut().managed_fields = None;
        let key = Key::of(object.meta());
        let cache = K::cache_mut(self);
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        if cache.gone.contains(uid) {
            return;
        }
        let known = cache.objects.get(&key);
        if known.is_some_and(|known| version(known.meta()) >= version(object.meta())) {
            return;
        }
        let object = Arc::new(object);
        let old = cache.objects.insert(key.clone(), object.clone());
        self.changed::<K>(key, old.as_deref(), Some(&object));
    }

    /// Takes in an object as a watch shows it. Mostly it is the echo of an own write: what is known is not read again.
    pub(crate) fn learn_shown<K: Watched>(&mut self, head: &Head, text: &str) {
        if self.is_known::<K>(head) {
            return;
        }
        match head.read::<K>(text) {
            Ok(object) => self.learn(object),
            Err(error) => tracing::debug!(kind = ?K::KIND, %error, "cannot read an object"),
        }
    }

    /// Whether this version of an object, or a later one, is known, or that it is gone.
    fn is_known<K: Watched>(&self, head: &Head) -> bool {
        let cache = K::cache(self);
        let key = Key::new(&head.namespace, &head.name);
        let shown: u64 = head.version.parse().unwrap_or(0);
        let known = cache.objects.get(&key);
        cache.gone.contains(&head.uid) || known.is_some_and(|known| version(known.meta()) >= shown)
    }

    /// The watch says that an object is gone.
    pub(crate) fn lose<K: Watched>(&mut self, head: &Head) {
        let key = Key::new(&head.namespace, &head.name);
        let cache = K::cache_mut(self);
        cache.gone.remove(&head.uid);
        let known = cache.objects.get(&key);
        if known.is_some_and(|known| known.meta().uid.as_deref() == Some(&*head.uid)) {
            let old = cache.objects.remove(&key);
            self.changed::<K>(key, old.as_deref(), None);
        }
    }

    /// Our own request found or made an object gone; the watch will say so later.
    fn forget<K: Watched>(&mut self, key: &Key) {
        let cache = K::cache_mut(self);
        if let Some(old) = cache.objects.remove(key) {
            cache.gone.extend(old.meta().uid.clone());
            self.changed::<K>(key.clone(), Some(&old), None);
        }
    }

    /// Takes in a complete list, as of `at`.
    pub(crate) fn replace<K: Watched>(&mut self, listed: Vec<K>, at: &str) {
        let at: u64 = at.parse().unwrap_or(0);
        let present: BTreeSet<Key> = listed.iter().map(|o| Key::of(o.meta())).collect();
        let uids: BTreeSet<_> = listed.iter().filter_map(|o| o.meta().uid.clone()).collect();
        let cache = K::cache_mut(self);
        cache.synced = true;
        cache.gone.retain(|uid| uids.contains(uid));
        let missing = cache
            .objects
            .iter()
            .filter(|(key, known)| !present.contains(*key) && version(known.meta()) <= at)
            .map(|(key, _)| key.clone());
        for key in missing.collect::<Vec<_>>() {
            let old = K::cache_mut(self).objects.remove(&key);
            self.changed::<K>(key, old.as_deref(), None);
        }
        for object in listed {
            self.learn(object);
        }
    }

    /// A pod is on its way to this node: the server has said so, but not shown it yet.
    pub(crate) fn assume_bound(&mut self, key: &Key, node: &str) {
        let Some(pod) = self.pods.objects.get(key).cloned() else {
            return;
        };
        let mut bound = Pod::clone(&pod);
        bound.spec.get_or_insert_default().node_name = Some(node.to_owned());
        let bound = Arc::new(bound);
        self.pods.objects.insert(key.clone(), bound.clone());
        self.changed::<Pod>(key.clone(), Some(&pod), Some(&bound));
    }

    fn changed<K: Watched>(&mut self, key: Key, old: Option<&K>, new: Option<&K>) {
        let entry = (K::KIND, key.clone());
        if let Some(old) = old {
            match owner::controller(old.meta()) {
                Some(owner) => {
                    if let Some(owned) = self.owned.get_mut(&owner.uid) {
                        owned.remove(&entry);
                        if owned.is_empty() {
                            self.owned.remove(&owner.uid);
                        }
                    }
                }
                None => {
                    self.orphans.remove(&entry);
                }
            }
        }
        if let Some(new) = new {
            match owner::controller(new.meta()) {
                Some(owner) => {
                    let owned = self.owned.entry(owner.uid.clone()).or_default();
                    owned.insert(entry);
                }
                None => {
                    self.orphans.insert(entry);
                }
            }
        }
        self.changes.push(Change {
            kind: K::KIND,
            key,
            old: old.map(|object| object.meta().clone()),
            new: new.map(|object| object.meta().clone()),
        });
    }

    /// The changes since the last time.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// The objects of a kind that this controller owns, by name.
    pub(crate) fn owned_by<K: Watched>(&self, owner: &ObjectMeta) -> Vec<Arc<K>> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let owned = self.owned.get(uid).into_iter().flatten();
        owned
            .filter(|(kind, _)| *kind == K::KIND)
            .filter_map(|(_, key)| K::cache(self).get(key).cloned())
            .collect()
    }

    /// The objects of a kind in a namespace that no controller owns, by name.
    pub(crate) fn orphans<K: Watched>(&self, namespace: &str) -> Vec<Arc<K>> {
        let start = (K::KIND, Key::new(namespace, ""));
        self.orphans
            .range(start..)
            .take_while(|(kind, key)| *kind == K::KIND && key.namespace == namespace)
            .filter_map(|(_, key)| K::cache(self).get(key).cloned())
            .collect()
    }
}
