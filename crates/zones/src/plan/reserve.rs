//! Notes which pods a rollout is about to delete, where the pod-eviction webhooks of all replicas look before they let a
//! pod go, and which they change when they do.
//!
//! Without, another replica whose watch is late would let a pod of another zone go in the same moment. Whoever writes
//! second sees what the first one wrote: pods are deleted only in a plan that knows the map with the note in it. It is one
//! write for all pods of a plan, and none where no zone-aware budget is about them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::Plan;
use slipway_kernel::fact::Cause;
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::later;
use slipway_kernel::store::Meta;

use super::act::refused;
use super::rollout::Victim;
use crate::disruption::budget_of;
use crate::observe::{HOLD, RESERVATIONS, Until, World};
use crate::render;

/// How long a note has to hold for a deletion to be sent under it.
const ENOUGH: Duration = Duration::from_secs(20);

/// Whether all victims are noted; if not, that is what the plan does.
pub(super) fn is_announced(
    world: &World,
    victims: &[&Victim<'_>],
    plan: &mut Plan,
    now: Timestamp,
) -> bool {
    // What cannot be read back cannot be waited for. One replica does without, as its webhook sees what it deletes; of
    // several only pods that are down already come here.
    let Some(announced) = &world.announced else {
        return true;
    };
    let mut all = true;
    for (budget, uids) in guarded(world, victims) {
        all &= note(world, (budget, announced.get(budget)), &uids, plan, now);
    }
    all
}

/// Why no pod that is up may go, if what replicas note for one another cannot be seen: what others let go would not count,
/// and they would not know what goes here. Without a budget nobody notes anything.
pub(super) fn hidden(world: &World) -> Option<(String, &'static str)> {
    if world.announced.is_some() || world.is_alone {
        return None;
    }
    let pods = || world.zones.iter().flat_map(|zone| &zone.pods);
    let mut budgets = world.budgets.iter();
    let is_guarded = budgets.any(|budget| {
        let mut pods = pods();
        pods.any(|pod| budget.body().concerns(&pod.body().labels))
    });
    if !is_guarded {
        return None;
    }
    let message = format!(
        "which pods other replicas let go cannot be seen, nor can they be told which go here: list and watch on configmaps in namespace {} are not granted",
        world.namespace
    );
    Some((
        message,
        "that right; or running one replica without leader election",
    ))
}

/// The victims that budgets are about, by budget. One that several are about has been refused before.
fn guarded<'w>(world: &'w World, victims: &[&Victim<'w>]) -> BTreeMap<&'w str, Vec<&'w str>> {
    let budgets: Vec<_> = world
        .budgets
        .iter()
        .map(|budget| (budget.meta().name.as_str(), budget.body()))
        .collect();
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for victim in victims {
        let pod = victim.member.pod;
        if let Ok(Some((budget, _))) = budget_of(&budgets, &pod.body().labels) {
            all.entry(budget).or_default().push(&pod.meta().uid);
        }
    }
    all
}

fn note(
    world: &World,
    (budget, known): (&str, Option<&(Meta, Until)>),
    uids: &[&str],
    plan: &mut Plan,
    now: Timestamp,
) -> bool {
    let enough = later(now, ENOUGH).unwrap_or(now);
    let is_announced = |uid: &&str| {
        let until = known.and_then(|(_, until)| until.get(*uid));
        until.is_some_and(|until| enough <= *until)
    };
    if uids.iter().all(is_announced) {
        return true;
    }
    let name = format!("{RESERVATIONS}{budget}");
    let map = world.object(kinds::CONFIG_MAP, &name);
    if let Some(refusal) = world.refused(&map, now) {
        // The webhook of the only replica sees what it deletes.
        let is_off = world.is_alone && known.is_none() && refusal.cause == Cause::NoRight;
        if !is_off {
            let what = format!("noting the pods that go in {name}");
            refused(map, &what, refusal, plan, now);
        }
        return is_off;
    }
    let Some(until) = later(now, HOLD) else {
        return false;
    };
    let mut pods: Until = known.map(|(_, pods)| pods.clone()).unwrap_or_default();
    pods.retain(|_, until| now < *until);
    pods.extend(uids.iter().map(|uid| ((*uid).to_owned(), until)));
    plan.prepare(render::note(
        world,
        &name,
        known.map(|(meta, _)| meta),
        &pods,
    ));
    false
}
