//! T1, T2, T5: what is written about where traffic goes.

use slipway_sim::history::{Change, Image};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes::{self, WHOLE};

use super::pods::{thinned, whole};
use super::{A_MOMENT, CANARIES, Canary, Scene, TO_BE_TAKEN, both, is_ready, later, most};

/// T1. In a person's own route the weights are theirs, times a hundred. Where pods are the weights, see [`whole`].
pub(in super::super) fn sums(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, request) in case.history.deeds() {
        let Some(after) = change.after.as_deref() else {
            continue;
        };
        whole(case.history, (change, request), &mut findings);
        let scene = Scene::at(case.history, change.version);
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let is_theirs = canary.image.at("/spec/routeRef").is_some();
        let service = canary.new_service();
        for rule in routes::rules(&change.object.0, after.value()) {
            let sum = rule.sum();
            let is_whole = if is_theirs {
                rule.weights.contains_key(&service) && sum % 100 == 0
                    || !rule.weights.contains_key(&service)
            } else {
                sum == 100
            };
            let is_shared = rule.weights.values().all(|weight| *weight >= 0);
            findings.check(change.at, is_whole && is_shared, || {
                format!("the weights of {} sum to {sum}", change.object.2)
            });
        }
    }
    findings
}

/// T2. What counts is what the operator had seen of the workload when it decided.
pub(in super::super) fn ready(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let scene = Scene::at(history, change.version);
        let shown = exposed(&scene, change).or_else(|| thinned(&scene, change));
        let Some((canary, (had, has))) = shown else {
            continue;
        };
        if has <= had || is_abandoned(&canary) {
            continue;
        }
        let plural = canary.workloads().rsplit('/').next().unwrap_or_default();
        let basis = request.context.basis.get(plural).copied();
        let seen = Scene::at(history, basis.unwrap_or(change.version));
        let target = seen.workload(&canary, &canary.target());
        findings.check(change.at, target.is_some_and(is_ready), || {
            let (name, has) = (canary.target(), has * 100 / WHOLE);
            format!("{name} got {has}% of the traffic while it was not ready")
        });
    }
    findings
}

/// Whether somebody has taken away the Canary and wants the workload as it is: what serves goes with it, ready or not.
fn is_abandoned(canary: &Canary<'_>) -> bool {
    let is_going = !canary.text("/metadata/deletionTimestamp").is_empty();
    is_going && !canary.is("/spec/revertOnDeletion")
}

/// How much of the traffic the new version has by an object before a change and after it, where that divides traffic.
fn exposed<'a>(scene: &Scene<'a>, change: &Change) -> Option<(Canary<'a>, (i64, i64))> {
    let after = change.after.as_deref()?;
    let mut canaries = scene.canaries();
    let canary = canaries.find(|canary| canary.is_routed_by(&change.object))?;
    let service = canary.new_service();
    let share = |image: &Image| {
        let rules = scene.rules(&canary, &change.object.0, image);
        let copied = rules.iter().any(|rule| rule.copies.contains(&service));
        most(&rules, &service).max(i64::from(copied))
    };
    let had = change.before.as_deref().map_or(0, share);
    Some((canary, (had, share(after))))
}

/// T5. Where something goes wrong meanwhile, a moment after that is over.
pub(in super::super) fn sent_back(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, _) in history.deeds() {
        let Some(canary) = failed(change) else {
            continue;
        };
        let service = canary.new_service();
        let from = change.at.max(history.calm);
        for (patience, is_taken) in [(A_MOMENT, false), (TO_BE_TAKEN, true)] {
            let patience = if history.is_disturbed() {
                patience * 6
            } else {
                patience
            };
            let until = later(from, patience);
            let scene = Scene::when(history, until);
            let now = scene.canaries().find(|one| one.object == canary.object);
            // Somebody may have begun something else meanwhile.
            let is_so = now.is_some_and(|now| is_failed(&now));
            if until > history.end || !is_so {
                continue;
            }
            let rules = if is_taken {
                scene.taken(&canary)
            } else {
                scene.written(&canary)
            };
            let has = most(&rules, &service) * 100 / WHOLE;
            findings.check(until, has == 0, || {
                let how = if is_taken {
                    "in fact"
                } else {
                    "by what is written"
                };
                format!(
                    "{} was sent back and still has {has}% {how}",
                    canary.target()
                )
            });
        }
    }
    findings
}

fn is_failed(canary: &Canary<'_>) -> bool {
    canary.phase() == "Failed" && canary.image.number("/status/canaryWeight") == 0
}

/// A Canary that has just failed, with all traffic to go to what serves.
fn failed(change: &Change) -> Option<Canary<'_>> {
    let (before, after) = both(change)?;
    if &*change.object.0 != CANARIES {
        return None;
    }
    let of = |image| Canary {
        object: &change.object,
        image,
    };
    (is_failed(&of(after)) && !is_failed(&of(before))).then(|| of(after))
}
