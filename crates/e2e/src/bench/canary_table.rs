//! What the bench prints.

use slipway_e2e::figures::Earlier::Measured;
use slipway_e2e::figures::{Goal, Row, mega};

use crate::run::Figures;
use crate::ticks::Lateness;

/// A figure of both: its name and unit, how it is read, Flagger's that was measured earlier with 200 Canaries, and the goal.
type Line = (
    &'static str,
    &'static str,
    fn(&Figures) -> f64,
    Option<f64>,
    Goal,
);

const LINES: &[Line] = &[
    (
        "idle: requests for a Canary and tick",
        "",
        |of| of.idle_calls,
        Some(5.7),
        Goal::Most(0.0),
    ),
    (
        "idle: processor for a Canary and tick",
        "ms",
        |of| of.idle_processor,
        Some(2.9),
        Goal::Below(0.1),
    ),
    (
        "6 iterations, image to Succeeded, last",
        "s",
        |of| of.last,
        Some(200.0),
        Goal::Most(70.0),
    ),
    (
        "  the one in the middle",
        "s",
        |of| of.middle,
        None,
        Goal::None,
    ),
    (
        "  requests for a Canary",
        "",
        |of| of.calls,
        Some(123.0),
        Goal::Most(41.0),
    ),
    (
        "  processor for a Canary",
        "ms",
        |of| of.processor,
        None,
        Goal::None,
    ),
    (
        "  resident memory",
        "MB",
        |of| mega(of.resident),
        Some(82.0),
        Goal::Most(41.0),
    ),
];

/// All rows.
pub(crate) fn rows(
    count: usize,
    ours: &Figures,
    theirs: Option<&Figures>,
    late: &[Lateness],
) -> Vec<Row> {
    // What was measured earlier was with so many.
    let is_usual = count == 200;
    let both = LINES.iter().map(|(name, unit, read, earlier, goal)| Row {
        name: (*name).to_owned(),
        unit,
        ours: Some(read(ours)),
        theirs: theirs.map(read),
        earlier: earlier.filter(|_| is_usual).map(Measured),
        goal: *goal,
    });
    let mut all: Vec<Row> = both.collect();
    for one in late {
        let count = one.count;
        let mut alone = |name: String, unit: &'static str, value: f64, goal: Goal| {
            all.push(Row {
                name,
                unit,
                ours: Some(value),
                theirs: None,
                earlier: None,
                goal,
            });
        };
        let title = format!("{count} in a run: ticks late, p99");
        alone(title, "ms", one.p99, Goal::Most(100.0));
        alone("  p50".to_owned(), "ms", one.p50, Goal::None);
        let title = "  processor for a Canary and tick".to_owned();
        alone(title, "ms", one.processor, Goal::None);
        let title = "  resident memory".to_owned();
        alone(title, "MB", mega(one.resident), Goal::None);
    }
    all
}
