//! Where a line ends: a cluster, whose place another one of its name may take.

use std::sync::{Arc, Mutex, PoisonError};

use slipway_apiserver::cluster::Cluster;
use slipway_kernel::identity::ClusterId;

use crate::history::Recorder;

/// A cluster, and where what happens in it is written down.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// What it is called in the history.
    pub(crate) id: ClusterId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) recorder: Recorder,
}

/// What a name leads to.
#[derive(Debug)]
pub(crate) struct Address {
    /// The cluster as the operator means it.
    pub(crate) name: ClusterId,
    port: Mutex<Port>,
}

impl Address {
    pub(crate) fn new(name: ClusterId, port: Port) -> Self {
        Self {
            name,
            port: Mutex::new(port),
        }
    }

    /// What it leads to now.
    pub(crate) fn port(&self) -> Port {
        let port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        port.clone()
    }

    /// From now on it leads there. Requests that are on their way arrive where it led when they left.
    pub(crate) fn lead_to(&self, other: Port) {
        *self.port.lock().unwrap_or_else(PoisonError::into_inner) = other;
    }
}
