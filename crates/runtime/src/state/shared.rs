//! The state behind its lock, who waits for changes of it, and whether this replica may act.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use slipway_kernel::identity::ClusterId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Phase, State};
use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::request_filter::RequestFilter;
use crate::settings::Settings;

/// The state of one replica, and what never changes about it.
pub(crate) struct Shared {
    pub(crate) environment: Environment,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    /// Who looks at requests before they are answered.
    pub(crate) request_filter: OnceLock<Arc<dyn RequestFilter>>,
    state: Mutex<State>,
    /// No new steps: the process is about to end.
    pub(crate) draining: AtomicBool,
    version: AtomicU64,
    changed: Notify,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(environment: Environment, settings: Settings) -> Self {
        Self {
            environment,
            settings,
            metrics: Metrics::default(),
            request_filter: OnceLock::new(),
            state: Mutex::default(),
            draining: AtomicBool::new(false),
            version: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    /// The state. Never held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who look that something has changed.
    pub(crate) fn notify_observers(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Waits until the version is newer than `seen`, and gives it.
    pub(crate) async fn changed_since(&self, seen: u64) -> u64 {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let version = self.version.load(Ordering::Acquire);
            if version > seen {
                return version;
            }
            changed.await;
        }
    }

    /// The number of this replica's leadership, if it may act now for this lease at home.
    pub(crate) fn leads(&self, lease: &str) -> Option<i64> {
        if self.draining.load(Ordering::Acquire) {
            return None;
        }
        self.holds(lease)
    }

    /// The same in a cluster, for a controller. In a member it may only if no former leader can any more there either, and if the
    /// member is the cluster that the controller takes it for.
    pub(crate) fn leads_in(
        &self,
        lease: &str,
        cluster: &ClusterId,
        controller: &str,
    ) -> Option<i64> {
        let epoch = self.leads(lease)?;
        if cluster.is_local() {
            return Some(epoch);
        }
        let state = self.lock();
        let member = state.of(cluster)?.member.as_ref()?;
        let is_fenced = member.fenced.get(lease) == Some(&epoch);
        (is_fenced && member.is_open_to(controller)).then_some(epoch)
    }

    /// The same, also while ending.
    pub(crate) fn holds(&self, lease: &str) -> Option<i64> {
        self.is_in(Phase::Acting, lease)
    }

    /// The number of this replica's leadership, if the lease is its own in this phase.
    pub(crate) fn is_in(&self, phase: Phase, lease: &str) -> Option<i64> {
        let state = self.lock();
        let standing = state.standings.get(lease)?;
        if standing.phase != phase {
            return None;
        }
        let valid = standing.until.is_none_or(|(instant, timestamp)| {
            Instant::now() < instant && self.environment.now() < timestamp
        });
        valid.then_some(standing.epoch)
    }
}
