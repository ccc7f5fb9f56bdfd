//! What is to be done now: one sweep over all workloads and policies of a cluster.
//!
//! ```text
//! active   the policies that apply, in order of precedence
//! sweep    each workload: which policy, what the table says, what stands in the way, what the limits leave
//! report   what each policy came to: status, blockers, events
//! ```

pub mod active;
pub mod explain;
pub mod gates;
pub mod report;
pub mod sweep;

use jiff::Timestamp;
use slipway_kernel::Plan;

use crate::observe::World;
use crate::render;
use crate::settings::Settings;
use active::Active;
use sweep::{Outcome, Sweep};

/// How many workloads one plan writes to; the rest is for the next one, at once.
pub const MOST_STEPS: usize = 64;

/// Decides about the whole cluster.
pub fn plan(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    let active = Active::all(settings, world, now);
    let sweep = Sweep::over(settings, world, &active, now);
    let mut plan = Plan {
        basis: world.basis.clone(),
        wake_at: sweep.wake_at,
        ..Plan::default()
    };
    act(&sweep, world, &active, &mut plan, now);
    report::report(settings, world, &active, &sweep, &mut plan, now);
    plan
}

/// Restarts first, the longest overdue before the others; then stamps.
fn act(sweep: &Sweep<'_>, world: &World, active: &[Active<'_>], plan: &mut Plan, now: Timestamp) {
    let restarts = sweep.restarts.iter().filter_map(|at| sweep.cases.get(*at));
    let stamps = sweep
        .cases
        .iter()
        .filter(|case| matches!(case.outcome, Outcome::Stamp { .. }));
    let mut all = restarts.chain(stamps);
    for case in all.by_ref().take(MOST_STEPS) {
        let Some(policy) = active.get(case.place) else {
            continue;
        };
        let step = match case.outcome {
            Outcome::Stamp { repair } => render::stamp(&world.cluster, case, policy, repair, now),
            Outcome::Restart { due, .. } => render::restart(&world.cluster, case, policy, due, now),
            Outcome::Held(_) => continue,
        };
        if let Some(again) = policy.cadence_of(case.item.body()).after(now) {
            plan.wake(again);
        }
        plan.steps.push(step);
    }
    if all.next().is_some() {
        plan.wake(now);
    }
}
