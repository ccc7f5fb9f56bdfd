//! A Canary that has to give the workload back is kept until it has; see [`revert`]. One that changes a person's own route is
//! kept until that is what it was.

use jiff::Timestamp;
use slipway_api::canary::{CanaryCondition, Phase};
use slipway_api::flagger::FINALIZER;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::event::EventType;
use slipway_kernel::finalizer::{self, Phase as Guard};
use slipway_kernel::instant::later;
use slipway_kernel::{Kind, Plan, Target};

use super::Look;
use super::report::Report;
use crate::claims;
use crate::engine::{Readiness, Run};
use crate::provider::Provider;
use crate::reasons::Reason;
use crate::render;
use crate::router::{self, Write};
use crate::spec::grace;
use crate::standalone::acts::{draw_back, give_back, restore, size_back, workload};
use crate::standalone::adopt;
use crate::standalone::leave::{Leave, before, former, leave, pods_back};
use crate::standalone::primary;
use crate::standalone::revert::{self, Step};
use crate::standalone::scene::{Obstacle, Stand};

/// Plans the end of a Canary; gives whether nothing else is to be planned.
pub(super) fn end(
    look: &Look<'_>,
    guard: Guard,
    stood: Result<&Stand, &Obstacle>,
    plan: &mut Plan,
) -> bool {
    let is_live = matches!(guard, Guard::Unguarded | Guard::Guarded);
    let is_followed = stood.is_ok_and(|stand| !stand.asked.rules.suspend);
    if is_live && end_former_claims(look, plan) {
        return true;
    }
    if is_live && is_followed && give_former_back(look, plan) {
        return true;
    }
    match (guard, stood) {
        // The finalizer is that program's as well: it gives back what is to be.
        (Guard::Ending, Err(obstacle)) if obstacle.reason == Reason::FlaggerRuns => false,
        // Whoever came second has taken nothing, unless it serves another workload and has come to want the same Service.
        (Guard::Ending, Err(obstacle))
            if obstacle.reason == Reason::TargetBusy && !has_copy(look) =>
        {
            release(look, plan);
            true
        }
        (Guard::Ending, _) => {
            give_all_back(look, plan);
            true
        }
        (Guard::Guarded, Ok(_)) if !is_asked(look) => {
            release(look, plan);
            true
        }
        (Guard::Unguarded, Ok(_)) if is_asked(look) => {
            let body = &look.world.canary.body().finalizers;
            let action = finalizer::add(canary(look), body, FINALIZER, purpose::GUARD);
            if let Some(action) = action {
                plan.prepare(action);
            }
            true
        }
        (Guard::Released, _) => true,
        _ => false,
    }
}

/// Claims on a workload that was named before end before that name is forgotten; gives whether there are any.
fn end_former_claims(look: &Look<'_>, plan: &mut Plan) -> bool {
    let before = before(&look.seen());
    before.is_some_and(|before| claims::end_former(look.world, &before, plan, look.now))
}

/// What a person owns, and traffic does not go by any more, becomes what it was before anything else is done; gives whether it
/// has to.
fn give_former_back(look: &Look<'_>, plan: &mut Plan) -> bool {
    let seen = look.seen();
    let mut writes = former(&seen);
    writes.extend(pods_back(&seen));
    let is_needed = !writes.is_empty();
    for write in writes {
        undo(look, write, plan);
    }
    Report::new(look.world, look.now).refused(plan);
    is_needed
}

/// Whether what serves is ours.
fn has_copy(look: &Look<'_>) -> bool {
    let leave = leave(&look.seen());
    leave.is_some_and(|leave| leave.source.readiness != Readiness::Missing)
}

/// Whether something is to be given back.
fn is_asked(look: &Look<'_>) -> bool {
    is_reverted(look) || is_borrowing(look)
}

/// Whether the workload is to be given back.
fn is_reverted(look: &Look<'_>) -> bool {
    look.canary.spec.revert_on_deletion == Some(true)
}

/// Whether a person's own route is changed.
fn is_borrowing(look: &Look<'_>) -> bool {
    let seen = look.seen();
    leave(&seen).is_some_and(|leave| leave.borrows(&seen))
}

/// Gives the workload back, whatever else is in the way; where that is not asked for, a person's own route.
fn give_all_back(look: &Look<'_>, plan: &mut Plan) {
    let seen = look.seen();
    let Some(leave) = leave(&seen) else {
        release(look, plan);
        return;
    };
    if leave.run.phase != Phase::Terminating {
        terminate(look, &leave, plan);
        return;
    }
    // Where nothing is remembered, an abort may be older than the deletion, and meant for a version.
    let is_kept = look
        .canary
        .status
        .as_ref()
        .is_some_and(|status| status.run.is_some());
    if let Some(abort) = leave.abort.as_ref().filter(|_| is_kept) {
        let report = Report::new(look.world, look.now);
        let text = format!("Let go of as it is, {}", abort.because);
        plan.events.push(report.event(EventType::Warning, &text));
        part(look, &leave, plan);
        return;
    }
    if let Some(kind) = unseen(look, &leave) {
        let (plural, group) = (&kind.plural, &kind.group);
        let message = format!(
            "{plural}.{group} cannot be seen, and one of them may have to be changed or given back; grant get, list and watch, or abort, which lets go of it as it is"
        );
        let report = Report::new(look.world, look.now);
        report.ending(look.canary, Reason::RouteNotFound, &message, plan);
        return;
    }
    if !is_reverted(look) {
        let writes = restore(&seen, &leave);
        if writes.is_empty() {
            part(look, &leave, plan);
        }
        for write in writes {
            undo(look, write, plan);
        }
        return;
    }
    let writes = give_back(&seen, &leave);
    if leave.run.serving.is_none() && writes.is_empty() {
        // Nothing was taken.
        part(look, &leave, plan);
        return;
    }
    let (mut source, target) = (leave.source.clone(), &leave.target);
    // What a run took of its replicas is given back as well.
    source.size = source.size.max(leave.run.replicas.unwrap_or_default());
    let source = &source;
    let step = revert::next(true, Guard::Ending, source, target, writes.is_empty());
    if matches!(step, Step::Size(_) | Step::Wait) && !source.state().is_down() {
        // What is new may be why the Canary goes: it has nothing until all is given back.
        for write in draw_back(&seen, &leave)
            .into_iter()
            .chain(size_back(&leave))
        {
            undo(look, write, plan);
        }
    }
    match step {
        Step::Size(size) => {
            let write = Write::Patch {
                kind: workload(leave.kind),
                name: leave.names.target.clone(),
                body: primary::sized(leave.kind, size),
            };
            undo(look, write, plan);
        }
        Step::Route => {
            for write in writes {
                undo(look, write, plan);
            }
        }
        Step::Release => let_go(look, &leave, plan),
        _ => {
            let why = target.state();
            let message = format!(
                "the workload is given back when it is ready: {}; abort lets go of it as it is",
                why.why()
            );
            let report = Report::new(look.world, look.now);
            report.ending(look.canary, Reason::TargetNotReady, &message, plan);
        }
    }
}

/// A kind of objects that the run's traffic goes by, or the workload's, that cannot be seen.
fn unseen<'a>(look: &Look<'a>, leave: &Leave) -> Option<&'a Kind> {
    let serving = leave.run.serving.as_ref();
    let taken = serving.and(leave.provider);
    let router = leave.run.router.as_deref();
    let provider = router.and_then(|name| Provider::of(name).ok()).or(taken);
    let workload = serving.map(|_| workload(leave.kind));
    let kinds = provider.into_iter().flat_map(router::kinds).chain(workload);
    let kinds: Vec<Kind> = kinds.collect();
    look.world.unseen.iter().find(|kind| kinds.contains(*kind))
}

/// Lets go of the Canary, and so of what serves, when the data plane has had a while to take where requests lead now.
fn let_go(look: &Look<'_>, leave: &Leave, plan: &mut Plan) {
    let report = Report::new(look.world, look.now);
    if leave.source.readiness == Readiness::Missing {
        part(look, leave, plan);
        return;
    }
    let since = leave.run.free_since.or_else(|| ended(look));
    let Some(since) = since.filter(|since| *since <= look.now) else {
        let mut run = leave.run.clone();
        run.free_since = Some(look.now);
        remember(look, &run, plan);
        return;
    };
    let end = later(since, grace(&look.canary.spec));
    if end.is_none_or(|end| end <= look.now) {
        part(look, leave, plan);
        return;
    }
    let message = "the data plane has a while to take that requests lead to the workload, before the copy goes";
    report.ending(look.canary, Reason::RoutingPending, message, plan);
    if let Some(end) = end {
        plan.wake(end);
    }
}

/// Since when it ends, where the definition of Canaries keeps nothing of a run: conditions are in every one.
fn ended(look: &Look<'_>) -> Option<Timestamp> {
    let status = look.canary.status.as_ref()?;
    let mut conditions = status.conditions.iter();
    let is_it = |one: &&CanaryCondition| {
        one.kind == "Promoted" && one.reason == Phase::Terminating.as_str()
    };
    let found = conditions.find(is_it).filter(|_| status.run.is_none())?;
    Some(found.last_update_time.as_ref()?.0)
}

fn canary(look: &Look<'_>) -> Target {
    Target::seen(render::canary(look.world), look.world.canary.meta())
}

/// Remembers that it ends, before anything is undone.
fn terminate(look: &Look<'_>, leave: &Leave, plan: &mut Plan) {
    let mut run = leave.run.clone();
    run.phase = Phase::Terminating;
    run.free_since = None;
    if let Some(abort) = &leave.abort {
        // It was meant for a version, and not for the deletion.
        run.command = Some(abort.id.clone());
    }
    if !leave.source.state().is_down() {
        (run.weight, run.mirrored) = (0, false);
    }
    remember(look, &run, plan);
    let report = Report::new(look.world, look.now);
    let text = if is_reverted(look) {
        "Terminating: the workload is given back"
    } else {
        "Terminating: the route becomes what it was"
    };
    plan.events.push(report.event(EventType::Normal, text));
}

fn remember(look: &Look<'_>, run: &Run, plan: &mut Plan) {
    let before = look.canary.status.clone().unwrap_or_default();
    let generation = look.canary.metadata.generation.unwrap_or_default();
    let after = adopt::status(run, &before, generation, look.now);
    let report = Report::new(look.world, look.now);
    plan.prepares = true;
    plan.statuses.extend(report.status(&before, &after));
}

fn undo(look: &Look<'_>, write: Write, plan: &mut Plan) {
    if let Some(action) = render::write(look.world, write, purpose::GIVE_BACK) {
        plan.act(action);
    }
}

/// Lets go of a Canary that may have been in the middle of a run: others may disrupt its workload from now on.
fn part(look: &Look<'_>, leave: &Leave, plan: &mut Plan) {
    claims::give_up(look.world, leave, plan, look.now);
    release(look, plan);
}

fn release(look: &Look<'_>, plan: &mut Plan) {
    let seen = &look.world.canary.body().finalizers;
    let action = finalizer::remove(canary(look), seen, FINALIZER, purpose::LET_GO);
    if let Some(action) = action {
        plan.prepare(action);
    }
}
