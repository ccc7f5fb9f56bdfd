//! What each policy came to, on its Flipper or in the `ConfigMap` of the default criteria.
//!
//! A status is written only when it differs from the stored one, and an event is told only together with such a change:
//! so a pass in which nothing happened says nothing.

mod map;
mod status;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use slipway_api::flipper::FlipperStatus;
use slipway_api::waiting::MAX_WAITING;
use slipway_kernel::condition::READY;
use slipway_kernel::event::EventType;
use slipway_kernel::plan::Status;
use slipway_kernel::{Blocker, Event, ObjectRef, Plan, Target};

use super::active::Active;
use super::gates::Held;
use super::sweep::{Case, Outcome, Sweep};
use crate::due;
use crate::kinds;
use crate::observe::{Flipper, Item, World, reference};
use crate::reasons::{Reason, news, state};
use crate::render::{self, Subject};
use crate::settings::Settings;

/// Adds statuses, blockers and events to a plan.
pub fn report(
    settings: &Settings,
    world: &World,
    active: &[Active<'_>],
    sweep: &Sweep<'_>,
    plan: &mut Plan,
    now: Timestamp,
) {
    let mut waiting = by_policy(active.len(), sweep);
    for (place, policy) in active.iter().enumerate() {
        let cases = waiting
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default();
        let blockers = blockers(settings, world, policy, cases.as_slice());
        let made = status::of_policy(settings, world, active, sweep, place, &blockers, now);
        if let Some(flipper) = policy.flipper {
            match policy.invalid {
                Some(_) => tell_invalid(world, flipper, &made, plan),
                None => events(world, policy, &cases, &made, flipper, plan),
            }
            write(world, flipper, &made, plan);
        } else {
            tell_deferred(world, policy, &cases, &map::stored(world), plan);
            map::write(settings, world, Some((policy, &made)), plan, now);
        }
        plan.blockers.extend(blockers);
    }
    if !active.iter().any(|policy| policy.flipper.is_none()) {
        map::write(settings, world, None, plan, now);
    }
}

/// Warns of a policy that cannot be followed, whenever something else is wrong with it.
fn tell_invalid(world: &World, flipper: &Item<Flipper>, made: &FlipperStatus, plan: &mut Plan) {
    let ready = |status: &FlipperStatus| {
        let found = status.conditions.iter().find(|c| c.type_ == READY);
        found.map(|c| (c.reason.clone(), c.message.clone()))
    };
    if let Some((_, message)) = ready(made)
        && ready(made) != ready(&status::stored(flipper))
    {
        let generation = flipper.meta().generation.to_string();
        let warning = (EventType::Warning, news::INVALID);
        plan.events
            .push(on_flipper(world, flipper, warning, message, &generation));
    }
}

/// The workloads that policies matched when their statuses were written, as far as those list them: which of them a stamp
/// is written to were stamped before, most likely.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<usize, BTreeSet<String>>);

impl Known {
    /// Whether the policy, as its spec is now, matched the workload of this name before.
    pub(super) fn has(
        &mut self,
        world: &World,
        (place, policy): (usize, &Active<'_>),
        case: &Case<'_>,
    ) -> bool {
        let listed = self.0.entry(place).or_insert_with(|| {
            let status = policy
                .flipper
                .map_or_else(|| map::stored(world), status::stored);
            let now = policy.flipper.map(|flipper| flipper.meta().generation);
            let is_of_now = status.observed_generation == now;
            let workloads = status.workloads.into_iter();
            workloads.filter(|_| is_of_now).collect()
        });
        // Reading them is dear, and most often there are none.
        !listed.is_empty()
            && listed.contains(&reference(&world.cluster, case.kind, case.item).to_string())
    }
}

type Waiting<'a, 'w> = (&'a Case<'w>, &'a Held);

/// What is held back, by policy: first what should move, the oldest first.
fn by_policy<'a, 'w>(policies: usize, sweep: &'a Sweep<'w>) -> Vec<Vec<Waiting<'a, 'w>>> {
    let mut all: Vec<Vec<Waiting<'a, 'w>>> = vec![Vec::new(); policies];
    for case in &sweep.cases {
        if let Outcome::Held(held) = &case.outcome
            && !matches!(
                held.reason,
                Reason::Deleting | Reason::OptedOut | Reason::ZeroReplicas
            )
            && let Some(of) = all.get_mut(case.place)
        {
            of.push((case, held));
        }
    }
    for of in &mut all {
        // The cases are in the order of their names already, and a stable sort leaves them so.
        of.sort_by_key(|(_, held)| (held.reason.is_a_skip(), held.since, held.reason));
    }
    all
}

/// The blockers of one policy: one for each reason that holds back the policy as a whole, and the first of the others.
fn blockers(
    settings: &Settings,
    world: &World,
    policy: &Active<'_>,
    cases: &[Waiting<'_, '_>],
) -> Vec<Blocker> {
    let mut all = Vec::new();
    for reason in Reason::ALL.into_iter().filter(|r| r.is_of_the_policy()) {
        let mut of = cases.iter().filter(|(_, held)| held.reason == reason);
        if let Some((case, held)) = of.next() {
            let mut blocker = blocker(world, policy, case, held);
            let longest = reference(&world.cluster, case.kind, case.item);
            blocker.object = of_policy(settings, world, policy);
            blocker.message = words::together(policy, settings, held, 1 + of.count(), &longest);
            all.push(blocker);
        }
    }
    let room = MAX_WAITING.saturating_sub(all.len());
    let single = cases
        .iter()
        .filter(|(_, held)| !held.reason.is_of_the_policy())
        .take(room)
        .map(|(case, held)| blocker(world, policy, case, held));
    all.extend(single);
    all
}

/// Why one workload is held back.
pub fn blocker(world: &World, policy: &Active<'_>, case: &Case<'_>, held: &Held) -> Blocker {
    let workload = reference(&world.cluster, case.kind, case.item);
    let object = match (held.reason, &held.by) {
        (Reason::DisruptionBudget, Some(name)) => ObjectRef {
            kind: kinds::DISRUPTION_BUDGET,
            name: name.clone(),
            ..workload.clone()
        },
        _ => workload.clone(),
    };
    Blocker {
        reason: held.reason.as_str(),
        message: words::message(policy, held, &workload),
        object,
        since: due::second(held.since),
        until: held.until,
        unblock: words::unblock(held.reason).to_owned(),
    }
}

/// The object that tells of the default criteria.
pub(super) fn status_map(world: &World, namespace: &str) -> ObjectRef {
    map::reference(world, namespace)
}

/// The object that stands for a policy.
fn of_policy(settings: &Settings, world: &World, policy: &Active<'_>) -> ObjectRef {
    match policy.flipper {
        Some(flipper) => flipper_reference(world, flipper),
        None => map::reference(
            world,
            settings.operator_namespace.as_deref().unwrap_or_default(),
        ),
    }
}

fn flipper_reference(world: &World, flipper: &Item<Flipper>) -> ObjectRef {
    ObjectRef {
        cluster: world.cluster.clone(),
        kind: kinds::FLIPPER,
        namespace: flipper.meta().namespace.clone(),
        name: flipper.meta().name.clone(),
    }
}

fn on_flipper(
    world: &World,
    flipper: &Item<Flipper>,
    (severity, reason): (EventType, &'static str),
    note: String,
    instance: &str,
) -> Event {
    Event {
        regarding: flipper_reference(world, flipper),
        uid: flipper.meta().uid.clone(),
        severity,
        reason,
        action: "Plan",
        note,
        instance: instance.to_owned(),
    }
}

/// Tells what is new about a policy and its workloads.
fn events(
    world: &World,
    policy: &Active<'_>,
    cases: &[Waiting<'_, '_>],
    made: &FlipperStatus,
    flipper: &Item<Flipper>,
    plan: &mut Plan,
) {
    let before = status::stored(flipper);
    let generation = flipper.meta().generation.to_string();
    let of = |status: &FlipperStatus, kind: &str| {
        let found = status.conditions.iter().find(|c| c.type_ == kind);
        found.map(|c| (c.status.clone(), c.reason.clone(), c.message.clone()))
    };
    if of(made, status::ACCEPTED) != of(&before, status::ACCEPTED)
        && let Some((_, reason, message)) = of(made, status::ACCEPTED)
    {
        let news = match (policy.policy.is_interval_defaulted, policy.is_raised) {
            _ if reason == state::OUT_OF_SCOPE => Some((EventType::Warning, news::OUT_OF_SCOPE)),
            (true, _) => Some((EventType::Normal, news::INTERVAL_DEFAULTED)),
            (_, true) => Some((EventType::Warning, news::INTERVAL_RAISED)),
            _ => None,
        };
        if let Some(news) = news {
            let told = on_flipper(world, flipper, news, message, &generation);
            plan.events.push(told);
        }
    }
    if let Some((_, _, message)) = of(made, status::OVERLAPS)
        && of(made, status::OVERLAPS) != of(&before, status::OVERLAPS)
    {
        let news = (EventType::Warning, news::OVERLAP);
        let instance = message.clone();
        plan.events
            .push(on_flipper(world, flipper, news, message, &instance));
    }
    if before.observed_generation != made.observed_generation && !made.workloads.is_empty() {
        let note = words::matched(made);
        let news = (EventType::Normal, news::MATCHED);
        plan.events
            .push(on_flipper(world, flipper, news, note, &generation));
    }
    for reason in [Reason::DryRun, Reason::NeverRestarted] {
        let said = |status: &FlipperStatus| {
            let mut all = status.waiting_for.iter();
            let found = all.find(|w| w.reason == reason.as_str());
            found.map(|w| w.message.clone())
        };
        if let Some(message) = said(made)
            && said(&before).as_ref() != Some(&message)
        {
            let news = (EventType::Normal, news::DRY_RUN);
            let instance = message.clone();
            plan.events
                .push(on_flipper(world, flipper, news, message, &instance));
        }
    }
    tell_deferred(world, policy, cases, &before, plan);
}

/// Tells a workload that its restart waits, once for each reason and due time.
fn tell_deferred(
    world: &World,
    policy: &Active<'_>,
    cases: &[Waiting<'_, '_>],
    before: &FlipperStatus,
    plan: &mut Plan,
) {
    for (case, held) in cases.iter().take(MAX_WAITING) {
        if held.reason.is_quiet() {
            continue;
        }
        let blocker = blocker(world, policy, case, held);
        let object = if held.reason.is_of_the_policy() {
            policy
                .flipper
                .map(|flipper| flipper_reference(world, flipper).waiting())
        } else {
            Some(blocker.object.waiting())
        };
        let is_known = before
            .waiting_for
            .iter()
            .any(|w| w.reason == blocker.reason && object.as_ref().is_none_or(|o| w.object == *o));
        if is_known {
            continue;
        }
        let severity = if held.reason.is_a_failure() {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let instance = format!("{} {}", blocker.reason, render::stamp_of(held.occasion()));
        let note = format!("{}: {}", blocker.reason, blocker.message);
        let subject = Subject::new(&world.cluster, case.kind, case.item);
        let told = (severity, news::RESTART_DEFERRED, "Restart");
        plan.events
            .push(render::event(&subject, told, note, &instance));
    }
}

/// Asks for a status to be written if it differs from the stored one.
fn write(world: &World, flipper: &Item<Flipper>, made: &FlipperStatus, plan: &mut Plan) {
    let stored = &flipper.body().status;
    let body = serde_json::to_value(made).unwrap_or_default();
    if body != *stored {
        let target = Target::seen(flipper_reference(world, flipper), flipper.meta());
        plan.statuses.push(Status::whole(target, stored, body));
    }
}
