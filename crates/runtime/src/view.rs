//! What others may see of a running operator: probes, metrics, the dashboard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slipway_kernel::blocker::Blocker;
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Need;
use slipway_kernel::store::Stores;

use crate::metrics::traffic::Meter;
use crate::state::{Shared, WatchState};
use crate::watch::WatchKey;

/// There may be no contact about a kind for this long before the replica is not ready.
const CONTACT_WITHIN: Duration = Duration::from_secs(30);
/// The loop turns at least this often.
const PROGRESS_WITHIN: Duration = Duration::from_mins(1);

/// What is wrong with a watch that is needed, if anything is.
fn lost(key: &WatchKey, watch: &WatchState) -> Option<String> {
    let silence = watch.control.reached().elapsed();
    let what = if key.namespace.is_empty() {
        key.kind.plural.to_string()
    } else {
        format!("{} in namespace {}", key.kind.plural, key.namespace)
    };
    let cause = watch.control.failing().map(|(_, cause)| cause);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    if !watch.listed {
        return Some(format!("{what} not listed yet{cause}"));
    }
    (silence >= CONTACT_WITHIN).then(|| {
        let silence = silence.as_secs();
        format!("no contact about {what} for {silence} s{cause}")
    })
}

/// A window into a running operator. It outlives it and then shows its last state.
#[derive(Debug)]
pub struct View {
    shared: Arc<Shared>,
    seen: AtomicU64,
}

impl Clone for View {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            seen: AtomicU64::new(self.seen.load(Ordering::Relaxed)),
        }
    }
}

impl View {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            seen: AtomicU64::new(0),
        }
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Whether everything that is needed has been listed, there is contact with the API about each kind of it, and webhooks
    /// can be served if they are to be. A follower is ready too; one that was told to end is not.
    pub fn is_ready(&self) -> bool {
        self.unready().is_empty()
    }

    /// What is missing until this replica is ready, for people; empty if it is.
    pub fn unready(&self) -> Vec<String> {
        if self.shared.draining.load(Ordering::Acquire) {
            return vec!["the operator is about to end".to_owned()];
        }
        let state = self.shared.lock();
        let mut all = Vec::new();
        if state.progress.is_none() {
            all.push("the operator has not started yet".to_owned());
        }
        // What is wrong with a member is no reason to take this replica away.
        for (key, watch) in &state.home.watches {
            let is_exempt = watch.off || state.home.hidden.contains(key);
            if watch.need != Need::Optional && !is_exempt {
                all.extend(lost(key, watch));
            }
        }
        if state.certificate_needed && state.certificate_ends.is_none() {
            all.push("there is no certificate for webhooks yet".to_owned());
        }
        all
    }

    /// Whether the loop has made progress lately.
    pub fn is_healthy(&self) -> bool {
        let state = self.shared.lock();
        // Before the start there is nothing to be sick.
        state
            .progress
            .is_none_or(|at| at.elapsed() < PROGRESS_WITHIN)
    }

    /// Whether this replica acts for this controller at home now.
    pub fn is_leader(&self, controller: &str) -> bool {
        let lease = {
            let state = self.shared.lock();
            let found = state.capabilities.iter().find(|c| c.name() == controller);
            found.map(|capability| capability.lease())
        };
        lease.is_some_and(|lease| self.shared.holds(lease).is_some())
    }

    /// Everything that has been seen of the clusters.
    pub fn stores(&self) -> Stores {
        self.shared.lock().stores.clone()
    }

    /// What is known of home besides: refused writes, features that are off, and the state of each member.
    pub fn facts(&self) -> Facts {
        Facts::clone(&self.shared.lock().home.facts)
    }

    /// What is known of a cluster besides; none if it is not worked on.
    pub fn facts_of(&self, cluster: &ClusterId) -> Option<Facts> {
        let state = self.shared.lock();
        state.of(cluster).map(|known| Facts::clone(&known.facts))
    }

    /// How many answers to questions of keys are kept, in all clusters.
    pub fn answers(&self) -> usize {
        let state = self.shared.lock();
        let members = state.members.values();
        let all = std::iter::once(&state.home).chain(members);
        all.map(|known| known.answers.len()).sum()
    }

    /// How much is under way: watches, writes, elections, and all else that is waited for.
    pub fn tasks(&self) -> usize {
        self.shared.lock().tasks
    }

    /// Why nothing happens, of all controllers.
    pub fn blockers(&self) -> Vec<Blocker> {
        self.shared
            .lock()
            .blockers
            .values()
            .flatten()
            .cloned()
            .collect()
    }

    /// The metrics as `OpenMetrics` text.
    pub fn metrics(&self) -> String {
        self.shared.metrics.text(&self.shared)
    }

    /// What measures requests to a path, for those metrics.
    pub(crate) fn meter(&self, path: &str) -> Meter {
        self.shared
            .metrics
            .traffic
            .meter(&http::Method::GET, path, None)
    }

    /// Waits until something has changed since the last call on this view.
    pub async fn changed(&self) {
        let version = self
            .shared
            .changed_since(self.seen.load(Ordering::Relaxed))
            .await;
        self.seen.store(version, Ordering::Relaxed);
    }
}
