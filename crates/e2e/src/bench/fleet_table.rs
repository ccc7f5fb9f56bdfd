//! What was measured, what was asked for, and what others have published.

use std::time::Duration;

/// What was measured with one number of clusters.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) clusters: usize,
    /// Of the operator, in bytes, when all is told.
    pub(crate) resident: u64,
    /// The most that it ever had.
    pub(crate) most: u64,
    /// From the start of its process until all is told.
    pub(crate) start: Duration,
    /// One rollout, in seconds.
    pub(crate) rollout: f64,
    /// From a leaf's news to what the hub writes of it, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Of the hub, for a cluster and version.
    pub(crate) writes: f64,
}

/// A figure, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&Figures) -> f64);

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
const COLUMNS: &[Column] = &[
    ("resident memory", "MB", |f| f.resident as f64 / 1e6),
    ("  the most it ever was", "MB", |f| f.most as f64 / 1e6),
    ("cold start", "s", |f| f.start.as_secs_f64()),
    ("one rollout", "s", |f| f.rollout),
    ("news to write, p50", "ms", |f| f.p50),
    ("news to write, p99", "ms", |f| f.p99),
    ("writes a cluster", "", |f| f.writes),
];

/// `KubeFleet`'s own report of April 2026: 1,000 clusters on larger machines, real agents in them.
const PUBLISHED: &str = "KubeFleet (published 2026-04, 1,000 clusters, 32 vCPU): one rollout over 100 clusters 95 s, hub agent busy 11.2 GB, restart 10 min 25 s";

/// All figures, one line each.
pub(crate) fn lines(all: &[Figures]) -> Vec<String> {
    let heads = all
        .iter()
        .map(|figures| format!("{:>14}", figures.clusters));
    let heads: Vec<String> = heads.collect();
    let mut lines = vec![format!(
        "{:28}{}{:>10}",
        "clusters",
        heads.concat(),
        "exponent"
    )];
    for (name, unit, read) in COLUMNS {
        let cells = all
            .iter()
            .map(|figures| format!("{:>14}", format!("{:.1} {unit}", read(figures))));
        let cells: Vec<String> = cells.collect();
        let grows = exponent(all, *read).map_or("–".to_owned(), |grows| format!("{grows:.2}"));
        lines.push(format!("{name:28}{}{grows:>10}", cells.concat()));
    }
    lines.push(PUBLISHED.to_owned());
    lines
}

/// How a figure grows from the first to the last number of clusters.
#[allow(clippy::cast_precision_loss, reason = "numbers of clusters are small")]
fn exponent(all: &[Figures], read: fn(&Figures) -> f64) -> Option<f64> {
    let (first, last) = (all.first()?, all.last()?);
    let across = (last.clusters as f64 / first.clusters as f64).ln();
    let up = (read(last) / read(first)).ln();
    (across > 0.0 && up.is_finite()).then(|| up / across)
}

/// What was asked for with 1,000 clusters: the figure by its name, and the most.
const GOALS: &[(&str, f64)] = &[
    ("resident memory", 300.0),
    ("cold start", 15.0),
    ("one rollout", 5.0),
    ("news to write, p99", 100.0),
    ("writes a cluster", 4.0),
];

/// Each goal in a line, and whether it is met. Nothing is asked of other numbers.
pub(crate) fn goals(all: &[Figures]) -> Vec<(String, bool)> {
    let Some(figures) = all.iter().find(|figures| figures.clusters == 1_000) else {
        return Vec::new();
    };
    let lines = GOALS.iter().filter_map(|(name, most)| {
        let (_, unit, read) = COLUMNS.iter().find(|column| column.0 == *name)?;
        let is_met = read(figures) <= *most;
        let word = if is_met { "met" } else { "MISSED" };
        let line = format!(
            "{name} {:.1} {unit}, at most {most} {unit}: {word}",
            read(figures)
        );
        Some((line, is_met))
    });
    lines.collect()
}
