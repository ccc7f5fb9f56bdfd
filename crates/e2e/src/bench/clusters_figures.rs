//! What was measured, how it grows, and what was asked for.

use std::time::Duration;

use slipway_e2e::growth::{self, Column, Goal, Measured};

/// The largest exponent.
const MOST_GROWTH: f64 = 1.1;

/// What was measured with one number of members.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) members: usize,
    /// Of the operator, in bytes, when nothing happens.
    pub(crate) resident: u64,
    /// The most that it ever had.
    pub(crate) most_resident: u64,
    pub(crate) connections: u64,
    pub(crate) tasks: u64,
    /// From the start of its process until all members are known.
    pub(crate) start: Duration,
    /// From a change to the write, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Part of one processor, when nothing happens.
    pub(crate) idle: f64,
    /// Memory of the servers, in bytes.
    pub(crate) servers: u64,
}

impl Measured for Figures {
    const WHAT: &'static str = "members";

    fn size(&self) -> usize {
        self.members
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
const COLUMNS: &[Column<Figures>] = &[
    ("resident memory", "MB", |f| f.resident as f64 / 1e6),
    ("  the most it ever was", "MB", |f| {
        f.most_resident as f64 / 1e6
    }),
    ("connections", "", |f| f.connections as f64),
    ("tasks", "", |f| f.tasks as f64),
    ("cold start", "s", |f| f.start.as_secs_f64()),
    ("change to write, p50", "ms", |f| f.p50),
    ("change to write, p99", "ms", |f| f.p99),
    ("processor, idle", "%", |f| f.idle * 100.0),
    ("the servers' memory", "MB", |f| f.servers as f64 / 1e6),
];

/// All figures, one line each.
pub(crate) fn table(all: &[Figures]) -> Vec<String> {
    growth::table(all, COLUMNS)
}

/// What was asked for with so many members: the figure by its name, and the most.
const GOALS: &[Goal] = &[
    (1_000, "resident memory", 100.0),
    (1_000, "cold start", 8.0),
    (1_000, "change to write, p99", 100.0),
    (10_000, "resident memory", 600.0),
    (10_000, "cold start", 60.0),
    (10_000, "change to write, p99", 1_000.0),
    (10_000, "processor, idle", 5.0),
];

/// Those whose growth is limited.
const LIMITED: &[&str] = &[
    "resident memory",
    "connections",
    "tasks",
    "cold start",
    "change to write, p50",
    "change to write, p99",
    "processor, idle",
];

/// Each goal of this number of members in a line, and whether it is missed.
pub(crate) fn of_size(figures: &Figures) -> Vec<(String, bool)> {
    growth::goals_of(figures, COLUMNS, GOALS)
}

/// Each goal in a line, and whether it is missed. One of which nothing was measured is neither met nor missed, and says so.
pub(crate) fn goals(all: &[Figures]) -> Vec<(String, bool)> {
    let mut lines = growth::goals(all, COLUMNS, GOALS);
    for name in LIMITED {
        let column = COLUMNS.iter().find(|column| column.0 == *name);
        let grows = column.and_then(|(_, _, read)| growth::exponent(all, *read));
        let Some(grows) = grows else { continue };
        let is_met = grows <= MOST_GROWTH;
        let line = format!(
            "growth of {name}: {grows:.2}, at most {MOST_GROWTH}: {}",
            growth::word(is_met)
        );
        lines.push((line, !is_met));
    }
    lines
}
