//! What a fresh cluster has: namespaces, roles, the service of the API itself.
//!
//! Most of it is the same in every cluster but for the moment of its creation: it is made once in a process and shared until
//! somebody changes it. Only namespaces and service accounts have uids of their own, as people take the uid of
//! `kube-system` for the cluster's.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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

/// The objects of one resource that all clusters share, and its name.
type OfResource = (String, Vec<Arc<Stored>>);

/// The start of any cluster.
struct Beginning {
    /// What each cluster makes for itself.
    own: Vec<(Arc<Resource>, Value)>,
    /// What all share but for the moment of its creation, in versions behind those of `own`.
    shared: Vec<OfResource>,
    policy: Arc<Policy>,
}

/// The start of a cluster at one moment.
struct Fresh {
    second: i64,
    shared: Vec<OfResource>,
}

static BEGINNING: LazyLock<Beginning> = LazyLock::new(Beginning::new);

/// The latest one: clusters of a simulation all begin at the same moment.
static LATEST: Mutex<Option<Arc<Fresh>>> = Mutex::new(None);

impl Cluster {
    /// Creates the objects of a fresh cluster.
    pub(super) fn bootstrap(&self) {
        let fresh = Fresh::at(self.now());
        for (resource, object) in &BEGINNING.own {
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
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(BEGINNING.policy.clone());
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
        let moment = crate::meta::timestamp(now);
        let created = |stored: &Arc<Stored>| Arc::new(stored.created(&moment));
        Self {
            second: now.as_second(),
            shared: BEGINNING
                .shared
                .iter()
                .map(|(bucket, all)| (bucket.clone(), all.iter().map(created).collect()))
                .collect(),
        }
    }
}

impl Beginning {
    fn new() -> Self {
        let registry = Registry::default();
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
        let shared = shared(&others, own.len() as u64, jiff::Timestamp::UNIX_EPOCH);
        let policy = policy(&shared);
        Self {
            own,
            shared,
            policy,
        }
    }
}

/// These objects as they are stored, in versions from the one after `version` on.
fn shared(
    objects: &[(Arc<Resource>, Value)],
    mut version: u64,
    now: jiff::Timestamp,
) -> Vec<OfResource> {
    let uids = SeededEntropy::new(SHARED_UIDS);
    let mut shared: Vec<OfResource> = Vec::new();
    for (resource, object) in objects {
        version += 1;
        let object = complete(resource, object.clone(), &uuid(uids.draw()), now);
        let fields = resource.strategy.fields(&object, &resource.storage_version);
        let stored = Arc::new(Stored::encode_dated(&object, version, &fields));
        let bucket = resource.bucket();
        match shared.iter_mut().find(|(name, _)| *name == bucket) {
            Some((_, objects)) => objects.push(stored),
            None => shared.push((bucket, vec![stored])),
        }
    }
    shared
}

fn policy(shared: &[OfResource]) -> Arc<Policy> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_what_would_have_been_made_at_that_moment() {
        let now: jiff::Timestamp = jiff::Timestamp::constant(1_767_225_600, 0);
        let registry = Registry::default();
        let others: Vec<_> = bootstrap::objects()
            .into_iter()
            .filter(|(_, kind, _)| !OWN.contains(&kind.as_str()))
            .filter_map(|(group, kind, object)| {
                Some((registry.by_kind(&group, &kind)?.clone(), object))
            })
            .collect();
        let made = shared(&others, BEGINNING.own.len() as u64, now);
        let fresh = Fresh::new(now);
        assert_eq!(made.len(), fresh.shared.len());
        for ((bucket, made), (other, fresh)) in made.iter().zip(&fresh.shared) {
            assert_eq!(bucket, other);
            let text = |all: &[Arc<Stored>]| all.iter().map(|s| s.decode()).collect::<Vec<_>>();
            assert_eq!(text(made), text(fresh), "{bucket}");
            assert!(made.iter().zip(fresh).all(|(a, b)| a.text == b.text));
        }
    }
}
