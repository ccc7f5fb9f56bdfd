//! What one replica knows, shared between its loop and those who look at it.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The state of one replica.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    version: AtomicU64,
    changed: Notify,
}

impl Shared {
    /// Waits until the version is newer than `seen`, and gives it.
    pub(crate) async fn changed_since(&self, seen: u64) -> u64 {
        loop {
            let changed = self.changed.notified();
            let version = self.version.load(Ordering::Acquire);
            if version > seen {
                return version;
            }
            changed.await;
        }
    }
}
