//! What a fresh cluster has: namespaces, roles, the service of the API itself.
//!
//! Most of it is the same in every cluster: it is made once in a process and shared until somebody changes it. Only
//! namespaces and service accounts have uids of their own, as people take the uid of `kube-system` for the cluster's.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::Cluster;
use crate::authorize::{self, Policy};
use crate::builtin::bootstrap;
use crate::environment::{Entropy, SeededEntropy, uuid};
use crate::registry::Registry;
use crate::resource::{Context, Resource};
use crate::store::Stored;
use crate::value;

/// Kinds of which each cluster has objects of its own.
const OWN: [&str; 2] = ["Namespace", "ServiceAccount"];

/// Where the uids of shared objects come from.
const SHARED_UIDS: u64 = 0x51f0_17a7;

/// The start of a cluster at one moment.
struct Fresh {
    second: i64,
    /// What each cluster makes for itself.
    own: Vec<(Arc<Resource>, Value)>,
    /// What all share, by resource, in versions behind those of `own`.
    shared: Vec<(String, Vec<Arc<Stored>>)>,
    policy: Arc<Policy>,
}

/// Who may do what in a fresh cluster, whenever it began.
static POLICY: OnceLock<Arc<Policy>> = OnceLock::new();

/// The latest one: clusters of a simulation all begin at the same moment.
static LATEST: Mutex<Option<Arc<Fresh>>> = Mutex::new(None);

impl Cluster {
    /// Creates the objects of a fresh cluster.
    pub(super) fn bootstrap(&self) {
        let fresh = Fresh::at(self.now());
        for (resource, object) in &fresh.own {
            let object = complete(resource, object.clone(), &self.uid(), self.now());
            let (namespace, name) = place(&object);
            // The cluster is empty: nobody can have taken the name.
            let _ = self
                .store
                .create(&resource.bucket(), namespace, name, |version| {
                    Self::encode(resource, &object, version)
                });
        }
        for (bucket, objects) in &fresh.shared {
            self.store.restore(bucket, objects.iter().cloned());
        }
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh.policy.clone());
        // Nobody has seen anything older, and a real cluster does not keep its first versions either.
        self.store.compact();
    }
}

impl Fresh {
    fn at(now: jiff::Timestamp) -> Arc<Self> {
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some(fresh) if fresh.second == now.as_second() => fresh.clone(),
            _ => latest.insert(Arc::new(Self::new(now))).clone(),
        }
    }

    fn new(now: jiff::Timestamp) -> Self {
        let registry = Registry::default();
        let uids = SeededEntropy::new(SHARED_UIDS);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (group, kind, object) in bootstrap::objects() {
            let Some(resource) = registry.by_kind(&group, &kind) else {
                continue;
            };
            let list = if OWN.contains(&&*kind) {
                &mut own
            } else {
                &mut others
            };
            list.push((resource.clone(), object));
        }
        let mut shared: Vec<(String, Vec<Arc<Stored>>)> = Vec::new();
        let mut version = own.len() as u64;
        for (resource, object) in others {
            version += 1;
            let object = complete(&resource, object, &uuid(uids.draw()), now);
            let stored = Arc::new(Cluster::encode(&resource, &object, version));
            let bucket = resource.bucket();
            match shared.iter_mut().find(|(name, _)| *name == bucket) {
                Some((_, objects)) => objects.push(stored),
                None => shared.push((bucket, vec![stored])),
            }
        }
        let policy = POLICY.get_or_init(|| policy(&shared)).clone();
        Self {
            second: now.as_second(),
            own,
            shared,
            policy,
        }
    }
}

fn policy(shared: &[(String, Vec<Arc<Stored>>)]) -> Arc<Policy> {
    let all = |plural: &str| -> Vec<Value> {
        let bucket = format!("{}/{plural}", authorize::GROUP);
        let found = shared.iter().find(|(name, _)| *name == bucket);
        let objects = found.map_or(&[][..], |(_, objects)| objects);
        objects.iter().map(|stored| stored.decode()).collect()
    };
    Arc::new(Policy::build(
        all("roles").iter(),
        all("rolebindings").iter(),
        all("clusterroles").iter(),
        all("clusterrolebindings").iter(),
    ))
}

/// The object with its defaults and with what the server sets, without asking anybody.
fn complete(resource: &Resource, mut object: Value, uid: &str, now: jiff::Timestamp) -> Value {
    let cx = Context {
        version: &resource.storage_version,
        now,
        user: None,
    };
    let strategy = &resource.strategy;
    strategy.default(&mut object, &cx);
    crate::meta::prepare_create(&mut object, uid, now);
    strategy.prepare_create(&mut object, &cx);
    if strategy.has_generation() {
        value::put(&mut object, "metadata.generation", 1);
    }
    object
}

fn place(object: &Value) -> (&str, &str) {
    (
        value::text(object, "metadata.namespace"),
        value::text(object, "metadata.name"),
    )
}
