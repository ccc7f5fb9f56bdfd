//! What was measured, how it grows, and what was asked for.

use std::time::Duration;

/// From so many members on growth is looked at: below, what the operator costs by itself is most of it.
const GROWTH_FROM: usize = 100;
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

/// One of several values, sorted or not.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// A figure, its unit, and how it is read.
type Column = (&'static str, &'static str, fn(&Figures) -> f64);

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
const COLUMNS: &[Column] = &[
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

/// The exponent with which a figure grows in the number of members: the slope of a line through the logarithms.
#[allow(clippy::cast_precision_loss, reason = "numbers of members are small")]
pub(crate) fn exponent(all: &[Figures], read: fn(&Figures) -> f64) -> Option<f64> {
    let points: Vec<(f64, f64)> = all
        .iter()
        .filter(|figures| figures.members >= GROWTH_FROM && read(figures) > 0.0)
        .map(|figures| ((figures.members as f64).ln(), read(figures).ln()))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let count = points.len() as f64;
    let (sum_x, sum_y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut up, mut across) = (0.0, 0.0);
    for (x, y) in &points {
        up += (x - mean_x) * (y - mean_y);
        across += (x - mean_x) * (x - mean_x);
    }
    (across > 0.0).then(|| up / across)
}

/// All figures, one line each.
pub(crate) fn table(all: &[Figures]) -> Vec<String> {
    let heads: Vec<String> = all
        .iter()
        .map(|figures| format!("{:>14}", figures.members))
        .collect();
    let mut lines = vec![format!(
        "{:28}{}{:>10}",
        "members",
        heads.concat(),
        "exponent"
    )];
    for (name, unit, read) in COLUMNS {
        let cells: Vec<String> = all
            .iter()
            .map(|figures| format!("{:>14}", format!("{:.1} {unit}", read(figures))))
            .collect();
        let grows = exponent(all, *read).map_or("–".to_owned(), |grows| format!("{grows:.2}"));
        lines.push(format!("{name:28}{}{grows:>10}", cells.concat()));
    }
    lines
}

/// What was asked for with so many members: the figure by its name, and the most.
const GOALS: &[(usize, &str, f64)] = &[
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

fn column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.0 == name)
}

fn word(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// Each goal of this number of members in a line, and whether it is missed.
pub(crate) fn of_size(figures: &Figures) -> Vec<(String, bool)> {
    let goals = GOALS.iter().filter(|goal| goal.0 == figures.members);
    goals
        .filter_map(|(members, name, most)| {
            let (_, unit, read) = column(name)?;
            let is_met = read(figures) <= *most;
            let line = format!(
                "{members} members: {name} {:.1} {unit}, at most {most} {unit}: {}",
                read(figures),
                word(is_met)
            );
            Some((line, !is_met))
        })
        .collect()
}

/// Each goal in a line, and whether it is missed. One of which nothing was measured is neither met nor missed, and says so.
pub(crate) fn goals(all: &[Figures]) -> Vec<(String, bool)> {
    let mut lines: Vec<_> = all.iter().flat_map(of_size).collect();
    for (members, name, most) in GOALS {
        if !all.iter().any(|figures| figures.members == *members) {
            let line = format!("{members} members: {name}, at most {most}: nothing to tell by");
            lines.push((line, false));
        }
    }
    for name in LIMITED {
        let grows = column(name).and_then(|(_, _, read)| exponent(all, *read));
        let Some(grows) = grows else { continue };
        let is_met = grows <= MOST_GROWTH;
        let line = format!(
            "growth of {name}: {grows:.2}, at most {MOST_GROWTH}: {}",
            word(is_met)
        );
        lines.push((line, !is_met));
    }
    lines
}
