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
    /// Measured at another time; shown with a mark where there is none of this run.
    pub earlier: Option<f64>,
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
    /// As it is printed under [`title`].
    pub fn line(&self) -> String {
        let cell = |value: Option<f64>, mark: &str| {
            value.map_or_else(
                || "–".to_owned(),
                |value| format!("{}{mark} {}", short(value), self.unit),
            )
        };
        let (theirs, mark) = match self.theirs {
            Some(value) => (Some(value), ""),
            None => (self.earlier, "*"),
        };
        let ratio = self.ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        let (goal, is_met) = match self.goal {
            Goal::Below(part) => (
                format!("at most {part:.2} of it"),
                ratio.map(|ratio| ratio <= part),
            ),
            Goal::Times(times) => (
                format!("at least {times:.0} times"),
                ratio.map(|ratio| ratio >= times),
            ),
            Goal::Most(most) => (
                format!("at most {}", short(most)),
                self.ours.map(|ours| ours <= most),
            ),
            Goal::Least(least) => (
                format!("at least {}", short(least)),
                self.ours.map(|ours| ours >= least),
            ),
            Goal::None => (String::new(), None),
        };
        let verdict = match is_met {
            Some(true) => ": met",
            Some(false) => ": MISSED",
            None => "",
        };
        let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        format!(
            "{:46}{:>14}{:>16}{ratio:>9}   {goal}{verdict}",
            self.name,
            cell(self.ours, ""),
            cell(theirs, mark)
        )
    }
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
