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
use slipway_kernel::{Blocker, Plan};

use crate::kinds;
use crate::observe::World;
use crate::render::{self, Decider, Stamping, Subject};
use crate::settings::Settings;
use active::Active;
use sweep::{Outcome, Sweep};

/// How many workloads one plan writes to; the rest is for the next one, at once.
pub const MAX_STEPS: usize = 64;

/// Why nothing is restarted while policies may be there that are not known.
pub const POLICIES_UNSEEN: &str = "PoliciesUnseen";

/// Decides about the whole cluster.
pub fn plan(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    if world.is_blind {
        return blind(settings, world, now);
    }
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

/// Nothing is done while any workload may be governed by a Flipper that is not known.
fn blind(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    let namespace = settings.operator_namespace.as_deref().unwrap_or_default();
    let (plural, group) = (&kinds::FLIPPER.plural, &kinds::FLIPPER.group);
    let blocker = Blocker {
        reason: POLICIES_UNSEEN,
        message: format!(
            "no workload is restarted: {plural}.{group} are defined and cannot be listed, or have not been yet"
        ),
        object: report::status_map(world, namespace),
        since: now,
        until: None,
        unblock: "a complete list of Flippers; grant get, list and watch if they are missing"
            .to_owned(),
    };
    Plan {
        basis: world.basis.clone(),
        blockers: vec![blocker],
        ..Plan::default()
    }
}

/// Restarts first, the longest overdue before the others; then stamps.
fn act(sweep: &Sweep<'_>, world: &World, active: &[Active<'_>], plan: &mut Plan, now: Timestamp) {
    let restarts = sweep.restarts.iter().filter_map(|at| sweep.cases.get(*at));
    let stamps = sweep
        .cases
        .iter()
        .filter(|case| matches!(case.outcome, Outcome::Stamp { .. }));
    let mut known = report::Known::default();
    let mut all = restarts.chain(stamps);
    for case in all.by_ref().take(MAX_STEPS) {
        let Some(policy) = active.get(case.place) else {
            continue;
        };
        let subject = Subject::new(&world.cluster, case.kind, case.item);
        let decider = Decider {
            name: policy.name(),
            often: policy.often(),
        };
        let step = match case.outcome {
            Outcome::Stamp { repair } => {
                let is_known = known.has(world, (case.place, policy), case);
                let why = match (repair, is_known) {
                    (true, _) => Stamping::Repair,
                    (false, true) => Stamping::Again,
                    (false, false) => Stamping::First,
                };
                render::stamp(&subject, &decider, why, now)
            }
            Outcome::Restart { due, .. } => render::restart(&subject, &decider, due, now),
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
