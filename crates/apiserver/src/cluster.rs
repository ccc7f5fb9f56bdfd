//! One cluster: its objects, the resources it serves and the rules it goes by.

mod answer;
mod bootstrap;
mod build;
mod decoded;
mod definitions;
mod encode;
mod nonresource;
mod own;
mod snapshot;
mod warning;

pub use answer::Lost;
pub use build::Config;
use build::Start;
use decoded::Decoded;
pub(crate) use encode::encode;
#[cfg(test)]
pub(crate) use nonresource::version;
pub use snapshot::Snapshot;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::authenticate::{Records, Tokens};
use crate::authorize::{Audit, Policy};
use crate::environment::{Clock, Dial, Entropy};
use crate::registry::Registry;
use crate::resource::{Derived, Resource, bucket};
use crate::shell::Body;
use crate::store::{Change, Compacted, Named, Store, Stored};

/// What a cluster takes from outside.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Uids and generated names.
    pub entropy: Arc<dyn Entropy>,
    /// Outgoing admission calls.
    pub dial: Arc<dyn Dial>,
}

/// One cluster.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) name: String,
    pub(crate) environment: Environment,
    pub(crate) store: Arc<Store>,
    registry: RwLock<Registry>,
    policy: Mutex<Option<Arc<Policy>>>,
    decoded: Decoded,
    pub(crate) tokens: Tokens,
    audit: Audit,
    pub(crate) trace: crate::trace::Trace,
    pub(crate) faults: crate::faults::Faults,
    draining: AtomicBool,
    watches: AtomicUsize,
    drained: Notify,
}

/// One of [`Cluster::watches`].
#[derive(Debug)]
pub(crate) struct OpenWatch(Arc<Cluster>);

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the server keeps, as tokens of service accounts are checked against it.
struct Kept(Arc<Store>);

impl Records for Kept {
    fn uid(&self, kind: &str, namespace: &str, name: &str) -> Option<String> {
        let plural = format!("{}s", kind.to_ascii_lowercase());
        let namespace = if kind == "Node" { "" } else { namespace };
        let stored = self.0.get(&bucket("", &plural), namespace, name)?;
        Some(stored.header.uid.to_string())
    }
}

impl Cluster {
    fn new(config: Config) -> Arc<Self> {
        let store = Arc::new(Store::default());
        let tokens = config.tokens.with_records(Arc::new(Kept(store.clone())));
        let cluster = Arc::new(Self {
            name: config.name,
            environment: config.environment,
            store,
            registry: RwLock::new(Registry::default()),
            policy: Mutex::new(None),
            decoded: Decoded::default(),
            tokens,
            audit: Audit::default(),
            trace: crate::trace::Trace::keeping(config.trace),
            faults: crate::faults::Faults::default(),
            draining: AtomicBool::new(false),
            watches: AtomicUsize::new(0),
            drained: Notify::new(),
        });
        match &config.start {
            Start::Bare => {}
            Start::Fresh => cluster.bootstrap(),
            Start::With(snapshot) => cluster.begin_with(snapshot),
        }
        cluster
    }

    /// The name, as in `/clusters/NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every request so far, with its outcome.
    pub fn trace(&self) -> &crate::trace::Trace {
        &self.trace
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> &crate::faults::Faults {
        &self.faults
    }

    /// Which rule allowed what so far, and what was refused.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The version of the last write.
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    /// What happened to all objects after version `since`, oldest first, each with its `group/plural`, and the version
    /// up to which this is complete: what a checker of histories reads.
    pub fn history(&self, since: u64) -> Result<(Vec<Named<Change>>, u64), Compacted> {
        self.store.all_changes(since)
    }

    /// Waits for the next write after this call. Waiters are woken in the order in which they waited.
    pub fn next_write(&self) -> Notified<'_> {
        self.store.written()
    }

    /// Forgets the past, as etcd's compaction does.
    pub fn compact(&self) {
        self.store.compact();
    }

    /// All objects at this moment, each with its `group/plural`, and the version: a look that is no request.
    pub fn everything(&self) -> (Vec<Named<Arc<Stored>>>, u64) {
        self.store.everything()
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Counts a watch until the answer is dropped.
    pub(crate) fn count_watch(self: &Arc<Self>) -> OpenWatch {
        self.watches.fetch_add(1, Ordering::Relaxed);
        OpenWatch(self.clone())
    }

    /// Answers one request.
    pub async fn handle(self: &Arc<Self>, request: Request<Bytes>) -> Result<Response<Body>, Lost> {
        answer::answer(self, request).await
    }

    /// Ends all watches and refuses new ones.
    pub fn shut_down(&self) {
        self.draining.store(true, Ordering::Release);
        self.drained.notify_waiters();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Waits until the cluster shuts down.
    pub(crate) async fn drained(&self) {
        let drained = self.drained.notified();
        if !self.is_draining() {
            drained.await;
        }
    }

    pub(crate) fn registry(&self) -> Registry {
        self.registry
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.environment.clock.now()
    }

    /// A fresh uid, in the form of a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        crate::environment::uuid(self.environment.entropy.draw())
    }

    /// All objects of a built-in resource, decoded.
    pub(crate) fn objects(&self, group: &str, plural: &str) -> Vec<Value> {
        self.store
            .list(&bucket(group, plural), "", &|_| true)
            .objects
            .iter()
            .map(|stored| stored.decode())
            .collect()
    }

    /// The rules of who may do what, as the stored roles say now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        let mut cached = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(policy) = &*cached {
            return policy.clone();
        }
        let group = "rbac.authorization.k8s.io";
        let policy = Arc::new(Policy::build(
            self.objects(group, "roles").iter(),
            self.objects(group, "rolebindings").iter(),
            self.objects(group, "clusterroles").iter(),
            self.objects(group, "clusterrolebindings").iter(),
        ));
        *cached = Some(policy.clone());
        policy
    }

    /// Brings what is derived from objects up to date after a write to `resource`.
    pub(crate) fn written(&self, resource: &Resource) {
        match resource.strategy.derived() {
            Derived::Policy => {
                *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            Derived::Registry => {
                let definitions = self.store.list(&resource.bucket(), "", &|_| true);
                let mut registry = self
                    .registry
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                *registry = registry.with_definitions(&definitions.objects);
            }
            Derived::Nothing if resource.custom => {
                let definition = format!("{}.{}", resource.names.plural, resource.names.group);
                let going = self.store.get(
                    "apiextensions.k8s.io/customresourcedefinitions",
                    "",
                    &definition,
                );
                if going.is_some_and(|stored| stored.header.deleting) {
                    self.clean_up_definition(&definition);
                }
            }
            Derived::Nothing => {}
        }
    }

    /// Encodes an object of `resource` for the store.
    pub(crate) fn encode(resource: &Resource, object: &Value, version: u64) -> Stored {
        let strategy = &resource.strategy;
        let fields = strategy.fields(object, &resource.storage_version);
        let stored = Stored::encode(object, version, &fields);
        // What lacks nothing is served as it is, and need not be read for that.
        if !resource.as_is() && strategy.defaults() != 0 && strategy.has_defaults(object) {
            return stored.with(strategy.defaults());
        }
        stored
    }
}
