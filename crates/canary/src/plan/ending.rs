//! A Canary that has to give the workload back is kept until it has; see [`revert`].

use slipway_api::canary::Phase;
use slipway_api::flagger::FINALIZER;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::event::EventType;
use slipway_kernel::finalizer::{self, Phase as Guard};
use slipway_kernel::{Plan, Target};

use super::Look;
use super::report::Report;
use crate::engine::Hold;
use crate::reasons::Reason;
use crate::render;
use crate::router::Write;
use crate::standalone::acts::{give_back, workload};
use crate::standalone::adopt;
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
    let is_asked = look.canary.spec.revert_on_deletion == Some(true);
    let stand = match (stood, guard) {
        (Ok(stand), _) => stand,
        // The finalizer is that program's as well: it gives back what is to be.
        (Err(obstacle), Guard::Ending) if obstacle.reason == Reason::FlaggerRuns => return false,
        (Err(obstacle), Guard::Ending) => {
            // Nobody knows what is to be given back, or to whom.
            let text = format!("Nothing is given back: {}", obstacle.message);
            let report = Report::new(look.world, look.now);
            plan.events.push(report.event(EventType::Warning, &text));
            release(look, plan);
            return true;
        }
        (Err(_), _) => return false,
    };
    let seen = look.seen();
    let writes = give_back(&seen, stand);
    let (source, target) = (&stand.sight.source, &stand.sight.target);
    let step = revert::next(is_asked, guard, source, target, writes.is_empty());
    match step {
        Step::Live if guard == Guard::Guarded && !is_asked => {
            release(look, plan);
            return true;
        }
        Step::Live => return false,
        Step::Guard => {
            let body = &look.world.canary.body().finalizers;
            let action = finalizer::add(canary(look), body, FINALIZER, purpose::GUARD);
            if let Some(action) = action {
                plan.prepare(action);
            }
            return true;
        }
        Step::Gone => return true,
        Step::Size(_) | Step::Wait | Step::Route | Step::Release => {}
    }
    if stand.run.phase != Phase::Terminating {
        terminate(look, stand, plan);
        return true;
    }
    match step {
        Step::Size(size) => {
            let write = Write::Patch {
                kind: workload(stand.kind),
                name: stand.names.target.clone(),
                body: primary::sized(stand.kind, size),
            };
            undo(look, write, plan);
        }
        Step::Route => {
            for write in writes {
                undo(look, write, plan);
            }
        }
        Step::Release => release(look, plan),
        _ => {
            let hold = Hold {
                reason: Reason::TargetNotReady,
                message: format!("the workload is given back: {}", target.state().why()),
                until: None,
            };
            Report::new(look.world, look.now).held(stand, &[hold], plan);
        }
    }
    true
}

fn canary(look: &Look<'_>) -> Target {
    Target::seen(render::canary(look.world), look.world.canary.meta())
}

/// Remembers that it ends, before anything is undone.
fn terminate(look: &Look<'_>, stand: &Stand, plan: &mut Plan) {
    let before = look.canary.status.clone().unwrap_or_default();
    let mut run = stand.run.clone();
    run.phase = Phase::Terminating;
    let generation = look.canary.metadata.generation.unwrap_or_default();
    let after = adopt::status(&run, &before, generation, look.now);
    let report = Report::new(look.world, look.now);
    plan.prepares = true;
    plan.statuses.extend(report.status(&before, &after));
    let text = "Terminating: the workload is given back";
    plan.events.push(report.event(EventType::Normal, text));
}

fn undo(look: &Look<'_>, write: Write, plan: &mut Plan) {
    if let Some(action) = render::write(look.world, write, purpose::GIVE_BACK) {
        plan.act(action);
    }
}

fn release(look: &Look<'_>, plan: &mut Plan) {
    let seen = &look.world.canary.body().finalizers;
    let action = finalizer::remove(canary(look), seen, FINALIZER, purpose::LET_GO);
    if let Some(action) = action {
        plan.prepare(action);
    }
}
