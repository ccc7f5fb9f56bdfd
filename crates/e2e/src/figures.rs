//! Figures of a bench: ours beside somebody else's, how they compare, and what was asked for.

use std::time::Duration;

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// Ours is at most this part of the other's.
    Below(f64),
    /// Ours is at least so many times the other's.
    Times(f64),
    /// Ours is at most this.
    Most(f64),
    /// Ours is at least this.
    Least(f64),
    /// Nothing was.
    None,
}

/// Somebody else's figure that is not of this run.
#[derive(Debug, Clone, Copy)]
pub enum Earlier {
    /// Measured at another time.
    Measured(f64),
    /// Never measured: computed from the other's own limits.
    Derived(f64),
}

/// What the marks in the other's column mean.
pub const MARKS: &str =
    "* measured at another time; ~ computed from the other's own limits, never measured";

/// What a bench ends with that missed a goal.
pub const MISSED: u8 = 3;

/// A figure of both.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Of both values.
    pub unit: &'static str,
    /// Ours.
    pub ours: Option<f64>,
    /// Measured in this run.
    pub theirs: Option<f64>,
    /// Shown with a mark where there is none of this run.
    pub earlier: Option<Earlier>,
    /// What was asked for.
    pub goal: Goal,
}

/// The line above the rows.
pub fn title(name: &str, theirs: &str) -> String {
    format!(
        "{name:46}{:>14}{theirs:>16}{:>9}   goal",
        "slipway", "ratio"
    )
}

impl Row {
    /// The other's figure, and its mark.
    fn other(&self) -> (Option<f64>, &'static str) {
        match (self.theirs, self.earlier) {
            (Some(value), _) => (Some(value), ""),
            (None, Some(Earlier::Measured(value))) => (Some(value), "*"),
            (None, Some(Earlier::Derived(value))) => (Some(value), "~"),
            (None, None) => (None, ""),
        }
    }

    fn ratio(&self) -> Option<f64> {
        let (theirs, _) = self.other();
        self.ours.zip(theirs).map(|(ours, theirs)| ours / theirs)
    }

    /// Whether the goal is met; none where there is no goal, or nothing to tell it by.
    pub fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::Below(part) => self.ratio().map(|ratio| ratio <= part),
            Goal::Times(times) => self.ratio().map(|ratio| ratio >= times),
            Goal::Most(most) => self.ours.map(|ours| ours <= most),
            Goal::Least(least) => self.ours.map(|ours| ours >= least),
            Goal::None => None,
        }
    }

    /// As it is printed under [`title`].
    pub fn line(&self) -> String {
        let cell = |value: Option<f64>, mark: &str| {
            value.map_or_else(
                || "–".to_owned(),
                |value| format!("{}{mark} {}", short(value), self.unit),
            )
        };
        let (theirs, mark) = self.other();
        let goal = match self.goal {
            Goal::Below(part) => format!("at most {part:.2} of it"),
            Goal::Times(times) => format!("at least {times:.0} times"),
            Goal::Most(most) => format!("at most {}", short(most)),
            Goal::Least(least) => format!("at least {}", short(least)),
            Goal::None => String::new(),
        };
        let verdict = match self.is_met() {
            Some(true) => ": met",
            Some(false) => ": MISSED",
            None => "",
        };
        let ratio = self
            .ratio()
            .map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        format!(
            "{:46}{:>14}{:>16}{ratio:>9}   {goal}{verdict}",
            self.name,
            cell(self.ours, ""),
            cell(theirs, mark)
        )
    }
}

/// What all rows come to: what the bench ends with, and a line that says so. A goal that nothing tells about is not met.
pub fn verdict(rows: &[Row]) -> (u8, String) {
    let goals: Vec<&Row> = rows
        .iter()
        .filter(|row| !matches!(row.goal, Goal::None))
        .collect();
    let open: Vec<&str> = goals
        .iter()
        .filter(|row| row.is_met().is_none())
        .map(|row| row.name.trim())
        .collect();
    let missed: Vec<&str> = goals
        .iter()
        .filter(|row| row.is_met() == Some(false))
        .map(|row| row.name.trim())
        .collect();
    let met = goals.len() - open.len() - missed.len();
    let mut line = format!("goals: {met} of {} met", goals.len());
    if !missed.is_empty() {
        line = format!("{line}; MISSED: {}", missed.join(", "));
    }
    if !open.is_empty() {
        line = format!("{line}; nothing to tell by: {}", open.join(", "));
    }
    let code = if missed.is_empty() { 0 } else { MISSED };
    (code, line)
}

/// What this runs on.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let models: Vec<&str> = cpus
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split(": ").nth(1))
        .collect();
    let memory = read("/proc/meminfo");
    let kilobytes: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default();
    format!(
        "{} × {}, {} GiB, Linux {}, load {}",
        models.len(),
        models.first().unwrap_or(&"unknown processor"),
        kilobytes >> 20,
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default()
    )
}

fn short(value: f64) -> String {
    if value >= 1_000.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

/// Megabytes, for people.
#[allow(clippy::cast_precision_loss, reason = "megabytes for people")]
pub fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A count.
#[allow(clippy::cast_precision_loss, reason = "counts of a bench are small")]
pub fn number(count: usize) -> f64 {
    count as f64
}

/// Milliseconds.
pub fn milli(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
