//! L1: what came of it.

use jiff::SignedDuration;
use slipway_sim::history::Image;
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes;

use super::{CANARIES, Canary, Scene, images, is_ready};

/// How long after the last fault and the last change by people a run may take to end.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

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

/// How it is when nothing is left to do.
fn over(scene: &Scene<'_>, canary: &Canary<'_>, case: &Case<'_>, findings: &mut Findings) {
    let end = case.history.end;
    let serving = scene.workload(canary, &canary.primary());
    findings.check(end, serving.is_some_and(is_ready), || {
        format!("{} is not ready, and nothing says why", canary.primary())
    });
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
