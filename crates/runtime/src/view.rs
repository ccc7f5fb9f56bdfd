//! What others may see of a running operator: probes, metrics, the dashboard.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use slipway_kernel::blocker::Blocker;
use slipway_kernel::store::Stores;

use crate::state::Shared;

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

    /// Whether everything that is needed has been listed and the API can be reached. A follower is ready too.
    pub fn is_ready(&self) -> bool {
        false
    }

    /// Whether the loop has made progress lately.
    pub fn is_healthy(&self) -> bool {
        false
    }

    /// Whether this replica acts for this controller now.
    pub fn is_leader(&self, _controller: &str) -> bool {
        false
    }

    /// Everything that has been seen of the clusters.
    pub fn stores(&self) -> Stores {
        Stores::default()
    }

    /// Why nothing happens, of all controllers.
    pub fn blockers(&self) -> Vec<Blocker> {
        Vec::new()
    }

    /// The metrics as `OpenMetrics` text.
    pub fn metrics(&self) -> String {
        String::new()
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
