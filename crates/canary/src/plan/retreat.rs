//! What is done about a run whose Canary cannot be followed any more: its version loses its traffic where a person asks for
//! that, where nobody would answer it, or where the Canary asks for what only another provider can do.

use slipway_api::canary::Phase;
use slipway_api::purpose::canary as purpose;
use slipway_kernel::Plan;

use super::report::Report;
use super::{Look, telling};
use crate::engine::{Level, News, Run, withdrawn};
use crate::provider::Provider;
use crate::reasons::Reason;
use crate::render;
use crate::router;
use crate::spec;
use crate::standalone::acts::{restore, size_back};
use crate::standalone::adopt;
use crate::standalone::leave::{Leave, leave};
use crate::standalone::scene::Obstacle;

/// Takes traffic back, where it has to be; gives whether something was remembered, which comes alone.
pub(super) fn retreat(look: &Look<'_>, obstacle: &Obstacle, plan: &mut Plan) -> bool {
    if obstacle.reason == Reason::FlaggerRuns {
        // It is that program's to do.
        return false;
    }
    let seen = look.seen();
    let Some(leave) = leave(&seen) else {
        return false;
    };
    if leave.run.phase == Phase::Failed && !has_traffic(&leave.run) {
        if obstacle.reason == Reason::TargetBusy && !leave.run.draining {
            // It has nothing left to take back. What it names by now is led by the other one.
            return false;
        }
        let is_drawn_back = draw_back(look, &leave, plan);
        return is_drawn_back && move_on(look, &leave, plan);
    }
    let is_begun = leave.run.phase.is_running() || leave.run.phase == Phase::Waiting;
    if !is_begun && !has_traffic(&leave.run) {
        return false;
    }
    let outgrown = || outgrown(look).filter(|_| leave.run.phase.is_running());
    let Some(why) = why(&leave).or_else(outgrown) else {
        return false;
    };
    let weight = if is_alone(&leave) {
        leave.run.weight
    } else {
        0
    };
    let analysis = look.canary.spec.analysis().unwrap_or_default();
    let provider = leave.provider.unwrap_or(look.settings.provider);
    let way = spec::way(&analysis, provider).as_str();
    let mut run = withdrawn(&leave.run, weight, way, look.now);
    if let Some(abort) = &leave.abort {
        run.command = Some(abort.id.clone());
    }
    remember(look, &run, &why, plan);
    true
}

/// Whether nobody but the version could answer what it gets.
fn is_alone(leave: &Leave) -> bool {
    leave.source.state().is_down() && !leave.target.state().is_down()
}

fn has_traffic(run: &Run) -> bool {
    run.weight > 0 || run.mirrored
}

/// Why the version is to have nothing.
fn why(leave: &Leave) -> Option<String> {
    if let Some(abort) = &leave.abort {
        return Some(format!("aborted {}", abort.because));
    }
    let target = leave.target.state();
    let is_deserted = target.is_down() && !leave.source.state().is_down();
    if is_deserted && has_traffic(&leave.run) {
        return Some(format!("the new version went down: {}", target.why()));
    }
    // It was sent back before, and kept what it had because it alone answered.
    let is_over = leave.run.phase == Phase::Failed && leave.run.draining && !is_alone(leave);
    is_over.then(|| "the serving version answers again".to_owned())
}

/// Remembers that the version failed, before anything is done about it.
fn remember(look: &Look<'_>, run: &Run, why: &str, plan: &mut Plan) {
    let news = [News {
        text: if run.weight == 0 {
            format!("Rolling back: {why}; all traffic goes to the serving version")
        } else {
            format!(
                "Rolling back: {why}; its traffic goes to the serving version when that answers"
            )
        },
        is_warning: true,
        alert: Some(Level::Error),
    }];
    write(look, run, &news, plan);
}

/// Writes a run, with what is to be told of it.
fn write(look: &Look<'_>, run: &Run, news: &[News], plan: &mut Plan) {
    let before = look.canary.status.clone().unwrap_or_default();
    let generation = look.canary.metadata.generation.unwrap_or_default();
    let mut after = adopt::status(run, &before, generation, look.now);
    telling::keep(look, run, news, &mut after);
    let report = Report::new(look.world, look.now);
    plan.prepares = true;
    plan.statuses.extend(report.status(&before, &after));
    report.news(news, plan);
}

/// What has nothing any more gets nothing, in the route that is there. Its pods stay until the Canary can be followed. Gives
/// whether all of that is done.
fn draw_back(look: &Look<'_>, leave: &Leave, plan: &mut Plan) -> bool {
    let Some(provider) = leave.provider else {
        return false;
    };
    let writes = router::retreat(provider, &leave.route, &look.world.objects);
    let is_done = writes.is_empty();
    for write in writes {
        if let Some(action) = render::write(look.world, write, purpose::ROUTE) {
            plan.act(action);
        }
    }
    let size = size_back(leave);
    let size = size.and_then(|write| render::write(look.world, write, purpose::SIZE));
    if let Some(action) = size {
        plan.act(action);
    }
    is_done
}

/// Why a run cannot go on by what it began with: the Canary has come to ask for what only another provider can do.
fn outgrown(look: &Look<'_>) -> Option<String> {
    let (spec, usual) = (&look.canary.spec, look.settings.provider);
    let kept = Provider::of_canary(look.canary, usual).ok()?;
    let problem = spec::read_with(spec, kept).err()?;
    spec::read(spec, usual).ok()?;
    let name = kept.full_name();
    Some(format!("the run began with provider {name}: {problem}"))
}

/// A version that was sent back because its Canary asks for what only another provider can do has nothing any more of the one
/// that it began with: what is left to be done is done by the other. Gives whether that was remembered.
fn move_on(look: &Look<'_>, leave: &Leave, plan: &mut Plan) -> bool {
    if outgrown(look).is_none() {
        return false;
    }
    let seen = look.seen();
    let writes = restore(&seen, leave);
    if writes.is_empty() {
        let (spec, usual) = (&look.canary.spec, look.settings.provider);
        let mut run = leave.run.clone();
        run.router = spec::read(spec, usual).ok().map(|asked| asked.rules.router);
        write(look, &run, &[], plan);
        return true;
    }
    for write in writes {
        if let Some(action) = render::write(look.world, write, purpose::GIVE_BACK) {
            plan.act(action);
        }
    }
    false
}
