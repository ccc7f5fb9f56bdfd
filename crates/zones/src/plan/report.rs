//! What a group came to, in its `ConfigMap`: written on change, and rarely. Events about the group are told together with
//! such a change, so that a pass in which nothing happened says nothing.

use jiff::Timestamp;
use slipway_api::zones::{GroupStatus, ZoneStatus};
use slipway_kernel::capability::Severity;
use slipway_kernel::capability::show::count;
use slipway_kernel::condition::{self, PROGRESSING, READY, RECONCILING, STALLED};
use slipway_kernel::event::EventType;
use slipway_kernel::identity::kinds;
use slipway_kernel::status_map::Contents;
use slipway_kernel::store::Item;
use slipway_kernel::{Blocker, Plan, blocker};

use crate::observe::{World, status_map_name};
use crate::readiness::Survey;
use crate::reasons::{Reason, news, state};
use crate::render;

/// Adds the status and the events of a group to a plan.
pub(super) fn report(world: &World, surveys: &[Survey<'_>], plan: &mut Plan, now: Timestamp) {
    let before = stored(world);
    let made = status(world, surveys, &before, &plan.blockers, now);
    if before != made {
        events(world, surveys, &before, &made, plan);
    }
    write(world, &made, plan, now);
}

/// The status as stored; what cannot be read counts as absent.
fn stored(world: &World) -> GroupStatus {
    let map = world.status_map.iter().flatten().next();
    map.map(|map| map.body().status()).unwrap_or_default()
}

fn status(
    world: &World,
    surveys: &[Survey<'_>],
    before: &GroupStatus,
    blockers: &[Blocker],
    now: Timestamp,
) -> GroupStatus {
    let zones = surveys.iter().map(|survey| ZoneStatus {
        name: survey.name().to_owned(),
        replicas: survey.set().desired(),
        unavailable: survey.unavailable(),
        outdated: i64::try_from(survey.outdated()).unwrap_or(i64::MAX),
        max_unavailable: survey.set().most_unavailable(),
        paused: survey.set().is_paused,
    });
    let mut made = GroupStatus {
        group: world.group.clone(),
        conditions: before.conditions.clone(),
        zones: zones.collect(),
        waiting_for: blocker::waiting_for(blockers, &before.waiting_for),
    };
    conditions(&mut made, blockers, now);
    made
}

fn conditions(made: &mut GroupStatus, blockers: &[Blocker], now: Timestamp) {
    let outdated: i64 = made.zones.iter().map(|zone| zone.outdated).sum();
    let unavailable: i64 = made.zones.iter().map(|zone| zone.unavailable).sum();
    let of = |test: fn(Reason) -> bool| {
        let reasons = blockers
            .iter()
            .filter_map(|b| Some((Reason::of(b.reason)?, b)));
        reasons
            .filter(|(reason, _)| test(*reason))
            .map(|(_, b)| b)
            .next()
    };
    let wrong = of(|reason| reason.is_a_failure() || reason.is_stalled());
    let is_rolling = outdated > 0;
    let is_ready = outdated == 0 && unavailable == 0 && wrong.is_none();
    let (reason, message) = match (wrong, is_rolling) {
        (Some(wrong), _) => (wrong.reason, wrong.message.clone()),
        (None, true) => (
            state::ROLLING_OUT,
            format!(
                "{} to be replaced, {unavailable} unavailable",
                count(outdated, "pod")
            ),
        ),
        (None, false) if !is_ready => (
            state::WAITING,
            format!("{} unavailable", count(unavailable, "pod")),
        ),
        _ => (
            state::UP_TO_DATE,
            "all pods are up to date and ready".to_owned(),
        ),
    };
    let all = &mut made.conditions;
    condition::set(all, READY, is_ready, reason, &message, 0, now);
    let progress = if is_rolling {
        state::ROLLING_OUT
    } else {
        state::IDLE
    };
    condition::set(
        all,
        PROGRESSING,
        is_rolling && wrong.is_none(),
        progress,
        &message,
        0,
        now,
    );
    for (kind, holds) in [
        (RECONCILING, is_rolling && wrong.is_none()),
        (STALLED, wrong.is_some()),
    ] {
        if holds {
            condition::set(all, kind, true, reason, &message, 0, now);
        } else {
            condition::clear(all, kind);
        }
    }
}

fn is_rolling(status: &GroupStatus) -> bool {
    status.zones.iter().any(|zone| zone.outdated > 0)
}

fn events(
    world: &World,
    surveys: &[Survey<'_>],
    before: &GroupStatus,
    made: &GroupStatus,
    plan: &mut Plan,
) {
    let revisions: Vec<&str> = surveys
        .iter()
        .map(|survey| survey.set().status.update_revision.as_str())
        .collect();
    let instance = revisions.join(",");
    let known = !before.zones.is_empty();
    let turn = match (is_rolling(before), is_rolling(made)) {
        (false, true) => Some((news::STARTED, "begins")),
        (true, false) if known => Some((news::FINISHED, "is done")),
        _ => None,
    };
    if let (Some((reason, what)), Some(zone)) = (turn, world.zones.first()) {
        let note = format!("The rollout of group {:?} {what}", world.group);
        let told = (EventType::Normal, reason, "Rollout");
        plan.events
            .push(render::event(world, zone, told, note, &instance));
    }
    let fresh = |blocker: &&Blocker| {
        let object = blocker.object.waiting();
        let same = |w: &&slipway_api::waiting::WaitingFor| {
            w.reason == blocker.reason && w.object == object
        };
        is_worth_an_event(blocker) && !before.waiting_for.iter().any(|w| same(&w))
    };
    for blocker in plan.blockers.clone().iter().filter(fresh) {
        let about = world
            .zones
            .iter()
            .find(|z| world.set_ref(z) == blocker.object);
        if let Some(zone) = about.or(world.zones.first()) {
            let told = (EventType::Warning, news::BLOCKED, "Rollout");
            let instance = format!("{instance} {} {}", blocker.reason, blocker.object);
            let note = blocker.message.clone();
            plan.events
                .push(render::event(world, zone, told, note, &instance));
        }
    }
    for survey in surveys {
        complaints(world, survey, plan);
    }
}

fn is_worth_an_event(blocker: &Blocker) -> bool {
    Reason::of(blocker.reason).is_some_and(|reason| reason.severity() > Severity::Expected)
}

/// What is wrong with a zone, and is passed over.
fn complaints(world: &World, survey: &Survey<'_>, plan: &mut Plan) {
    let set = survey.set();
    let instance = survey.zone.set.meta().generation.to_string();
    if let Err(error) = &set.max_unavailable {
        let note = format!(
            "Annotation {}: {error}",
            slipway_api::zones::MAX_UNAVAILABLE
        );
        let told = (EventType::Warning, news::ANNOTATION_IGNORED, "Rollout");
        plan.events
            .push(render::event(world, survey.zone, told, note, &instance));
    }
    if set.pod_name_label.is_none() {
        let note =
            "The pod template has no label name: other tools do not find its pods".to_owned();
        let told = (EventType::Warning, news::NAME_LABEL_MISSING, "Rollout");
        plan.events
            .push(render::event(world, survey.zone, told, note, &instance));
    }
}

fn write(world: &World, made: &GroupStatus, plan: &mut Plan, now: Timestamp) {
    let Some(stored) = &world.status_map else {
        return;
    };
    let name = status_map_name(&world.group);
    if let Some(refusal) = world.refused(&world.object(kinds::CONFIG_MAP, &name), now) {
        plan.wake(refusal.retry_at);
        return;
    }
    let before = stored.as_ref().map(Item::body);
    let contents = Contents::default().with_status(made);
    if let Some(mut data) = contents.due(before, plan, now) {
        data["group"] = world.group.as_str().into();
        plan.act(render::status_map(world, data));
    }
}
