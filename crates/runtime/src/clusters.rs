//! The clusters that are worked on, each with its own client and its own bound on writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use slipway_kernel::identity::ClusterId;
use tokio::sync::Semaphore;

use crate::channel::Channel;
use crate::rights::Rights;

/// How many pages and objects of a member may wait to be taken in.
const NEWS: usize = 64;

/// One cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// The number of the connection: of a member there is another one with every client. Home's is 0.
    pub(crate) run: u64,
    pub(crate) client: Channel,
    /// Writes in flight; waiting is in order.
    pub(crate) slots: Arc<Semaphore>,
    /// Room for what its watches have told and nobody has taken in.
    pub(crate) news: Arc<Semaphore>,
    pub(crate) rights: Arc<Rights>,
}

/// All clusters; they come and go at run time.
#[derive(Clone, Default)]
pub(crate) struct Clusters(Arc<Mutex<BTreeMap<ClusterId, Cluster>>>);

impl Clusters {
    pub(crate) fn add(&self, id: ClusterId, (run, client): (u64, Channel), concurrency: usize) {
        let slots = Arc::new(Semaphore::new(concurrency.max(1)));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = Cluster {
            run,
            client,
            slots,
            news: Arc::new(Semaphore::new(NEWS)),
            rights: Arc::default(),
        };
        all.insert(id, cluster);
    }

    pub(crate) fn remove(&self, id: &ClusterId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(id);
    }

    pub(crate) fn get(&self, id: &ClusterId) -> Option<Cluster> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).cloned()
    }
}
