//! L1: what came of it.

use jiff::{SignedDuration, Timestamp};
use slipway_api::flagger::COMMAND;
use slipway_sim::history::{Change, History, Image};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes;

use super::pods::is_undivided;
use super::{A_MOMENT, CANARIES, Canary, Scene, images, is_ready};

/// How long after the last fault and the last change by people a run may take to end.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// How long a run may make no progress where nothing is said.
const USUAL_DEADLINE: SignedDuration = SignedDuration::from_mins(10);

/// L1: a run has ended, or says what it waits for; what serves in the end is what was promoted, is ready, and has the traffic.
pub(in super::super) fn nothing_left(case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    let by_people = history.changes.iter().filter(|change| change.by.is_none());
    let mut of_canaries = by_people.filter(|change| {
        let of = &*change.object.0;
        of == CANARIES || of == super::DEPLOYMENTS && super::both(change).is_some_and(is_push)
    });
    let last = of_canaries
        .next_back()
        .map_or(history.start, |change| change.at);
    if history.end.duration_since(last.max(history.calm)) < PATIENCE {
        return;
    }
    let scene = Scene::at(history, u64::MAX);
    for canary in scene.canaries() {
        if canary.is_explained() {
            findings.check(history.end, true, String::new);
            continue;
        }
        let phase = canary.phase();
        let is_over = ["Initialized", "Succeeded", "Failed"].contains(&phase);
        findings.check(history.end, is_over, || {
            format!("{} is {phase}, and nothing says why", canary.object.2)
        });
        over(&scene, &canary, case, findings);
    }
}

fn is_push((before, after): (&Image, &Image)) -> bool {
    images(before) != images(after)
}

/// A version was sent back for a cause: too many checks failed, somebody or a webhook asked for it, one of both sides was not ready
/// or had not its share of the pods, or there was no progress in time.
fn caused(canary: &Canary<'_>, case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    let mut changes = history.changes.iter().rev();
    let is_end = |change: &&Change| {
        let phase = |image: &Image| image.text("/status/phase") == Some("Failed");
        let both = super::both(change).filter(|_| change.object == *canary.object);
        both.is_some_and(|(before, after)| !phase(before) && phase(after))
    };
    let Some(end) = changes.find(is_end) else {
        return;
    };
    let spec = |path: &str| canary.image.number(path);
    let enough = spec("/spec/analysis/threshold").max(1);
    let failed = end
        .after
        .as_deref()
        .map(|after| after.number("/status/failedChecks"));
    let is_asked = canary.image.annotation(COMMAND).is_some() || canary.has_hook("rollback");
    let deadline = match spec("/spec/progressDeadlineSeconds") {
        0 => USUAL_DEADLINE,
        seconds => SignedDuration::from_secs(seconds),
    };
    let is_late = end.at.duration_since(begun(history, canary, end.at)) >= deadline;
    let before = end.at.checked_sub(A_MOMENT).unwrap_or(end.at);
    let scenes = [
        Scene::at(history, end.version),
        Scene::when(history, before),
    ];
    let was_unready = scenes.iter().any(|scene| {
        let sides = [canary.target(), canary.primary()];
        let mut sides = sides.iter().map(|name| scene.workload(canary, name));
        sides.any(|side| !side.is_some_and(is_ready))
    });
    let was_undivided = scenes.iter().any(|scene| is_undivided(scene, canary));
    let is_caused = failed >= Some(enough) || is_asked || is_late || was_unready || was_undivided;
    findings.check(end.at, is_caused, || {
        let name = canary.target();
        format!("{name} was sent back after {failed:?} failed checks, and nothing shows why")
    });
}

/// When the version was pushed that a run until this moment was about.
fn begun(history: &History, canary: &Canary<'_>, until: Timestamp) -> Timestamp {
    let changes = history.changes.iter().rev();
    let mut earlier = changes.filter(|change| change.at <= until && change.by.is_none());
    let pushed = earlier
        .find(|change| canary.is_about(&change.object) && super::both(change).is_some_and(is_push));
    pushed.map_or(history.start, |change| change.at)
}

/// How it is when nothing is left to do.
fn over(scene: &Scene<'_>, canary: &Canary<'_>, case: &Case<'_>, findings: &mut Findings) {
    let end = case.history.end;
    let serving = scene.workload(canary, &canary.primary());
    findings.check(end, serving.is_some_and(is_ready), || {
        format!("{} is not ready, and nothing says why", canary.primary())
    });
    if canary.phase() == "Failed" {
        caused(canary, case, findings);
    }
    if !["Initialized", "Succeeded"].contains(&canary.phase()) {
        return;
    }
    let of = |name: &str| scene.workload(canary, name).map(images);
    let (target, serves) = (of(&canary.target()), of(&canary.primary()));
    findings.check(end, target == serves, || {
        format!("{target:?} is wanted, and {serves:?} serves")
    });
    let service = canary.new_service();
    for rules in [scene.written(canary), scene.taken(canary)] {
        findings.check(end, !routes::reaches(&rules, &service), || {
            format!("nothing is left to do, and requests go to {service}")
        });
    }
}
