//! Numbers about all policies together. No object's name is a label.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::capability::Gauge;

use crate::observe::World;
use crate::plan::active::Active;
use crate::plan::sweep::{Outcome, Sweep};
use crate::reasons::Reason;
use crate::settings::Settings;

/// The numbers of now.
pub fn gauges(settings: &Settings, world: &World, now: Timestamp) -> Vec<Gauge> {
    let active = Active::all(settings, world, now);
    let sweep = Sweep::over(settings, world, &active, now);
    let sum = |of: fn(&crate::plan::sweep::Tally) -> usize| sweep.tallies.iter().map(of).sum();
    let overdue = sweep.cases.iter().filter(|case| match &case.outcome {
        Outcome::Restart { .. } => true,
        Outcome::Held(held) => !held.reason.is_a_skip() && !held.reason.is_a_remark(),
        Outcome::Stamp { .. } => false,
    });
    let next = sweep.tallies.iter().filter_map(|tally| tally.next).min();
    let invalid = world.flippers.iter().filter(|f| f.body().policy.is_err());
    let mut all = vec![
        number(
            "slipway_restarts_policies",
            "Policies that apply",
            active.iter().filter(|p| p.invalid.is_none()).count(),
        ),
        number(
            "slipway_restarts_invalid_policies",
            "Flippers that cannot be followed",
            invalid.count(),
        ),
        number(
            "slipway_restarts_matched",
            "Workloads that a policy decides about",
            sum(|t| t.matched),
        ),
        number(
            "slipway_restarts_pending",
            "Workloads that are due and wait",
            sum(|t| t.pending),
        ),
        number(
            "slipway_restarts_in_progress",
            "Workloads that are rolling",
            sum(|t| t.in_progress),
        ),
        number(
            "slipway_restarts_skipped",
            "Workloads that are left alone",
            sum(|t| t.skipped),
        ),
        number(
            "slipway_restarts_overdue",
            "Workloads that are due",
            overdue.count(),
        ),
    ];
    if let Some(next) = next {
        let help = "When the next workload is due";
        all.push(Gauge {
            name: "slipway_restarts_next_restart_timestamp_seconds",
            help,
            labels: BTreeMap::new(),
            value: next.as_duration().as_secs_f64(),
        });
    }
    for reason in Reason::ALL {
        let held = sweep.tallies.iter();
        let held = held.filter_map(|tally| tally.reasons.get(&reason)).sum();
        let mut gauge = number(
            "slipway_restarts_held",
            "Workloads held back, by reason",
            held,
        );
        gauge.labels.insert("reason", reason.as_str().to_owned());
        all.push(gauge);
    }
    all
}

fn number(name: &'static str, help: &'static str, value: usize) -> Gauge {
    Gauge {
        name,
        help,
        labels: BTreeMap::new(),
        value: f64::from(u32::try_from(value).unwrap_or(u32::MAX)),
    }
}
