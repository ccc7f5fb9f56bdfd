//! What there is to be seen of clusters, as values: rows of capabilities, workloads with their pods, blockers, events. Made
//! out of objects by [`gather()`], whoever keeps these; nothing here looks anywhere.

mod gather;
#[cfg(test)]
mod tests;
mod turns;
mod workload;

pub(crate) use gather::gather;
pub(crate) use slipway_kernel::capability::show::{Row, State, Waiting};

use jiff::Timestamp;

/// One cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cluster {
    /// Its name.
    pub(crate) name: String,
    /// Nodes that are ready, of all.
    pub(crate) nodes: (usize, usize),
    /// Its namespaces with something to show, by name.
    pub(crate) namespaces: Vec<Namespace>,
    /// Why workloads wait, oldest first.
    pub(crate) waiting: Vec<Waiting>,
    /// What was told, oldest first.
    pub(crate) events: Vec<Told>,
}

/// One namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Namespace {
    /// Its name.
    pub(crate) name: String,
    /// What capabilities show in it, in their order.
    pub(crate) rows: Vec<Row>,
    /// Its workloads, by kind and name.
    pub(crate) workloads: Vec<Workload>,
}

/// A Deployment, `StatefulSet` or `DaemonSet`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Workload {
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// Pods of the newest revision that are available, of those wanted.
    pub(crate) progress: (i64, i64),
    /// What there is to say: what a zone waits for.
    pub(crate) info: String,
    /// When it was last restarted.
    pub(crate) restarted: Option<Timestamp>,
    /// Its pods by revision, newest first.
    pub(crate) revisions: Vec<Revision>,
}

/// The pods of one revision of a workload.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Revision {
    /// The `ReplicaSet`'s name, or the revision's.
    pub(crate) name: String,
    /// Its number; 0 if it has none.
    pub(crate) number: i64,
    /// The pods by name.
    pub(crate) pods: Vec<Pod>,
}

/// One pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pod {
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) state: State,
    /// In a word.
    pub(crate) word: String,
    /// How often its containers were restarted.
    pub(crate) restarts: i64,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    /// When.
    pub(crate) at: Timestamp,
    /// About what: `Deployment shop/web`.
    pub(crate) about: String,
    /// A word.
    pub(crate) reason: String,
    /// A sentence.
    pub(crate) note: String,
    /// Whether somebody should look.
    pub(crate) warning: bool,
    /// How often.
    pub(crate) count: i64,
}
