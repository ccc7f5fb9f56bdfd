//! What the bench prints: ours, the original's, how they compare, and what was asked for.

use slipway_e2e::figures::Earlier::{self, Derived, Measured};
use slipway_e2e::figures::{self, Goal, Row, mega, milli, number};
use slipway_e2e::suite::say;

use crate::{Measurement, SIZES};

/// Figures of the original (its main branch of July 2026) that were measured earlier, on a machine of two processors; one was not.
mod earlier {
    pub(super) const RESIDENT: [f64; 3] = [47.0, 60.0, 153.0];
    pub(super) const FIRST: f64 = 1.2;
    pub(super) const TOTAL: f64 = 150.0;
    pub(super) const MOST: f64 = 4.0;
    pub(super) const CALLS: f64 = 2.0;
    /// Computed: it asks the API once and once more for each zone, and its client lets five requests through in a second.
    pub(super) const EVICTIONS: f64 = 1.25;
    pub(super) const DOWNSCALES: f64 = 8_324.0;
    pub(super) const P50: f64 = 3.8;
    pub(super) const P99: f64 = 15.7;
    pub(super) const DOOR: f64 = 56.0;
    pub(super) const SIZE: f64 = 59.6;
}

/// Prints all of it, and gives the rows.
pub(crate) fn print(ours: &Measurement, theirs: Option<&Measurement>) -> Vec<Row> {
    say(&format!("\n{}", figures::title("zones", "the original")));
    let rows = rows(ours, theirs);
    for row in &rows {
        say(&row.line());
    }
    rows
}

#[expect(clippy::too_many_lines, reason = "a table, row by row")]
fn rows(ours: &Measurement, theirs: Option<&Measurement>) -> Vec<Row> {
    let mut all = Vec::new();
    for (index, (pods, earlier)) in SIZES.iter().zip(earlier::RESIDENT).enumerate() {
        let at = |of: &Measurement| of.resident.get(index).copied().map(mega);
        all.push(Row {
            name: format!("resident memory, {pods} pods"),
            unit: "MB",
            ours: at(ours),
            theirs: theirs.and_then(at),
            earlier: Some(Measured(earlier)),
            goal: Goal::Below(1.0 / 3.0),
        });
    }
    let mut row = |name: &str,
                   unit: &'static str,
                   of: &dyn Fn(&Measurement) -> Option<f64>,
                   earlier: Option<Earlier>,
                   goal: Goal| {
        all.push(Row {
            name: name.to_owned(),
            unit,
            ours: of(ours),
            theirs: theirs.and_then(of),
            earlier,
            goal,
        });
    };
    let rollout = |of: &Measurement, figure: &dyn Fn(&crate::rollout::Figures) -> f64| {
        of.rollout.as_ref().map(figure)
    };
    row(
        "template changed to first pod deleted",
        "s",
        &|of| rollout(of, &|f| f.first.as_secs_f64()),
        Some(Measured(earlier::FIRST)),
        Goal::Below(0.1),
    );
    row(
        "3 × 100 pods, budget 10, in all",
        "s",
        &|of| rollout(of, &|f| f.total.as_secs_f64()),
        Some(Measured(earlier::TOTAL)),
        Goal::Below(0.1),
    );
    row(
        "  most pods away at once",
        "",
        &|of| rollout(of, &|f| number(f.most)),
        Some(Measured(earlier::MOST)),
        Goal::None,
    );
    row(
        "  requests about pods, per pod",
        "",
        &|of| rollout(of, &|f| f.pods),
        Some(Measured(earlier::CALLS)),
        Goal::Most(1.005),
    );
    row(
        "  beside them: Events",
        "",
        &|of| rollout(of, &|f| f.events),
        None,
        Goal::None,
    );
    row(
        "  beside them: statuses",
        "",
        &|of| rollout(of, &|f| f.statuses),
        None,
        Goal::None,
    );
    row(
        "  beside them: claims, leases",
        "",
        &|of| rollout(of, &|f| f.others),
        None,
        Goal::None,
    );
    row(
        "  resident memory afterwards",
        "MB",
        &|of| rollout(of, &|f| mega(f.resident)),
        Some(Measured(59.0)),
        Goal::None,
    );
    let evictions = |of: &Measurement, figure: &dyn Fn(&crate::door::Evictions) -> f64| {
        of.evictions.as_ref().map(figure)
    };
    row(
        "evictions refused",
        "/s",
        &|of| evictions(of, &|f| f.refused),
        Some(Derived(earlier::EVICTIONS)),
        Goal::Least(1_000.0),
    );
    row(
        "evictions allowed, dry run",
        "/s",
        &|of| evictions(of, &|f| f.allowed),
        Some(Derived(earlier::EVICTIONS)),
        Goal::Least(1_000.0),
    );
    let door = |of: &Measurement, figure: &dyn Fn(&crate::door::Figures) -> f64| {
        of.door.as_ref().map(figure)
    };
    row(
        "downscales refused, TLS, one processor",
        "/s",
        &|of| door(of, &|f| f.rate),
        Some(Measured(earlier::DOWNSCALES)),
        Goal::Times(3.0),
    );
    row(
        "  p50",
        "ms",
        &|of| door(of, &|f| milli(f.p50)),
        Some(Measured(earlier::P50)),
        Goal::None,
    );
    row(
        "  p99",
        "ms",
        &|of| door(of, &|f| milli(f.p99)),
        Some(Measured(earlier::P99)),
        Goal::Below(1.0 / 3.0),
    );
    row(
        "  resident memory",
        "MB",
        &|of| door(of, &|f| mega(f.resident)),
        Some(Measured(earlier::DOOR)),
        Goal::Below(0.5),
    );
    row(
        "failed of 10,000 handshakes over a rotation",
        "",
        &|of| of.handshakes.map(|(failed, _)| number(failed)),
        None,
        Goal::Most(0.0),
    );
    row(
        "size of the program, stripped",
        "MB",
        &|of| Some(mega(of.size)),
        Some(Measured(earlier::SIZE)),
        Goal::None,
    );
    all
}
