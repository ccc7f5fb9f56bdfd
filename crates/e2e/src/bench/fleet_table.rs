//! What was measured, what was asked for, and what others have published.

use std::time::Duration;

use slipway_e2e::growth::{self, Column, Goal, Measured};

/// What was measured with one number of clusters.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) clusters: usize,
    /// Of the operator, in bytes, when all is known.
    pub(crate) resident: u64,
    /// The most that it ever had.
    pub(crate) most: u64,
    /// From the start of the first process until all clusters have all that is assigned to them, and that is told.
    pub(crate) assigned: Duration,
    /// From the start of the next process until all is known and nothing is left to be done.
    pub(crate) start: Duration,
    /// One rollout, in seconds.
    pub(crate) rollout: f64,
    /// From a change of an assignment to the switch in its cluster, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Of that, from when home had taken the change in until the request for the switch came in at the cluster.
    pub(crate) ours_p50: f64,
    pub(crate) ours_p99: f64,
    /// What the hub writes for a cluster and a version: to its assemblage, and to all else.
    pub(crate) specs: f64,
    pub(crate) statuses: f64,
    pub(crate) others: f64,
    /// Memory of the servers, in bytes.
    pub(crate) servers: u64,
}

impl Measured for Figures {
    const WHAT: &'static str = "clusters";

    fn size(&self) -> usize {
        self.clusters
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
const COLUMNS: &[Column<Figures>] = &[
    ("resident memory", "MB", |f| f.resident as f64 / 1e6),
    ("  the most it ever was", "MB", |f| f.most as f64 / 1e6),
    ("all assigned from nothing", "s", |f| {
        f.assigned.as_secs_f64()
    }),
    ("cold start, lists included", "s", |f| f.start.as_secs_f64()),
    ("one rollout", "s", |f| f.rollout),
    ("change to switch, p50", "ms", |f| f.p50),
    ("change to switch, p99", "ms", |f| f.p99),
    ("  news to request, p50", "ms", |f| f.ours_p50),
    ("  news to request, p99", "ms", |f| f.ours_p99),
    ("writes a cluster, spec", "", |f| f.specs),
    ("writes a cluster, status", "", |f| f.statuses),
    ("writes a cluster, others", "", |f| f.others),
    ("the servers' memory", "MB", |f| f.servers as f64 / 1e6),
];

/// `KubeFleet`'s own report of April 2026: 1,000 clusters on larger machines, real agents in them.
const PUBLISHED: &str = "KubeFleet (published 2026-04, 1,000 clusters, 32 vCPU): one rollout over 100 clusters 95 s, hub agent busy 11.2 GB, restart 10 min 25 s";

/// What was asked for. How soon the operator switches is from the arrival of the news to the leaving of the request.
const GOALS: &[Goal] = &[
    (1_000, "resident memory", 300.0),
    (1_000, "cold start, lists included", 15.0),
    (1_000, "one rollout", 5.0),
    (1_000, "  news to request, p99", 100.0),
    (1_000, "writes a cluster, spec", 1.0),
    (1_000, "writes a cluster, status", 3.0),
];

/// All figures, one line each, with what others have published below.
pub(crate) fn lines(all: &[Figures]) -> Vec<String> {
    let mut lines = growth::table(all, COLUMNS);
    lines.push(PUBLISHED.to_owned());
    lines
}

/// Each goal in a line, and whether it is missed.
pub(crate) fn goals(all: &[Figures]) -> Vec<(String, bool)> {
    growth::goals(all, COLUMNS, GOALS)
}
