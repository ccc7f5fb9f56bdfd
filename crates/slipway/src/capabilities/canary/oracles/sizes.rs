//! T4, T6: how many replicas each side has.

use slipway_api::purpose::canary as purpose;
use slipway_sim::history::{Change, Image};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes::{self, WHOLE};

use super::leaving::leads_to;
use super::{Canary, DAEMON_SETS, DEPLOYMENTS, SERVICES, Scene, both, most, size};

/// A workload that the operator has changed: before and after.
fn resized(change: &Change) -> Option<(&Image, &Image)> {
    let is_workload = [DEPLOYMENTS, DAEMON_SETS].contains(&&*change.object.0);
    both(change).filter(|_| is_workload)
}

/// T4. By what the operator had seen of routes, and by what a gateway had taken in fact.
pub(in super::super) fn scaled(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let Some((before, after)) = resized(change) else {
            continue;
        };
        let (from, to) = (size(before), size(after));
        if to >= from {
            continue;
        }
        let now = Scene::at(history, change.version);
        let Some(canary) = now.of(&change.object) else {
            continue;
        };
        let name = &change.object.2;
        if canary.is_divided() {
            let seen = |resource: &str| {
                let plural = resource.rsplit('/').next().unwrap_or_default();
                let basis = request.context.basis.get(plural).copied();
                Scene::at(history, basis.unwrap_or(change.version))
            };
            let scenes = [seen(canary.workloads()), seen(SERVICES)];
            let is_borne = is_borne(&scenes, &canary, (&**name, to));
            findings.check(change.at, is_borne, || {
                format!("{name} was scaled from {from} to {to}, and others do not bear its share")
            });
            // Whoever keeps some pods has its share by them.
            if **name != *canary.target() || to > 0 {
                continue;
            }
        }
        if **name != *canary.target() {
            let wanted = now.workload(&canary, &canary.target()).map_or(0, size);
            let holds = canary.phase() == "Promoting" && to >= wanted.max(1);
            findings.check(change.at, holds, || {
                format!(
                    "{name}, which serves, was scaled from {from} to {to}, and {wanted} are wanted"
                )
            });
            continue;
        }
        let service = canary.new_service();
        let routes = canary.routes().into_iter();
        let seen = routes.map(|(resource, _)| {
            let plural = resource.rsplit('/').next().unwrap_or_default();
            let basis = request.context.basis.get(plural).copied();
            let scene = Scene::at(history, basis.unwrap_or(change.version));
            most(&scene.written(&canary), &service)
        });
        let seen = seen.max().unwrap_or(0) * 100 / WHOLE;
        findings.check(change.at, seen == 0, || {
            format!("{name} was scaled from {from} to {to} while the new version had {seen}%")
        });
        // A gateway that was put back with everything else says what it had taken then.
        let taken = now.taken(&canary);
        let holds = !routes::reaches(&taken, &service) || history.is_restored();
        findings.check(change.at, holds, || {
            let has = most(&taken, &service) * 100 / WHOLE;
            format!(
                "{name} was scaled from {from} to {to} while the new version had {has}% in fact"
            )
        });
        findings.check(change.at, serves(&now, &canary), || {
            let serving = canary.primary();
            format!("{name} was scaled from {from} to {to} while {serving} had no pods")
        });
    }
    findings
}

/// Where the numbers of pods are the weights, whether there are as many as before the run without those that go: by what had been
/// seen of workloads, and of the Service that clients know. Whoever goes altogether is not led to any more.
fn is_borne(
    [workloads, services]: &[Scene<'_>; 2],
    canary: &Canary<'_>,
    (name, to): (&str, i64),
) -> bool {
    let (target, serving) = (canary.target(), canary.primary());
    let other = if *name == *target { &serving } else { &target };
    let others = workloads
        .workload(canary, other)
        .map_or(0, |one| one.number("/status/availableReplicas"));
    if to > 0 {
        return others + to >= canary.image.number("/status/run/replicas");
    }
    let apex = services.object(canary, SERVICES, &canary.apex());
    let going = workloads.workload(canary, name);
    let is_led = apex
        .zip(going)
        .is_some_and(|(apex, going)| leads_to(apex, going));
    *name == *target && !is_led
}

/// Whether somebody is there to serve.
fn serves(scene: &Scene<'_>, canary: &Canary<'_>) -> bool {
    let serving = scene.workload(canary, &canary.primary());
    serving.is_some_and(|one| {
        one.number("/status/availableReplicas") > 0 || one.number("/status/numberAvailable") > 0
    })
}

/// T6. Replicas of the new version come and go in the phases for that, which were written before; where their numbers are the weights,
/// also with each share.
pub(in super::super) fn remembered(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let Some((before, after)) = resized(change) else {
            continue;
        };
        if !request.is_for(purpose::SIZE) {
            continue;
        }
        let basis = request.context.basis.get("canaries").copied();
        let scene = Scene::at(history, basis.unwrap_or(change.version));
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let (from, to) = (size(before), size(after));
        let grows = to > from;
        let mut phases = if grows {
            vec!["Progressing", "WaitingPromotion", "Promoting", "Failed"]
        } else {
            vec!["Initializing", "Finalising", "Failed"]
        };
        if canary.is("/status/run/draining") {
            phases.extend(["Progressing", "Waiting", "Succeeded"]);
        }
        if canary.is_divided() {
            // Each side has its share, and what serves has all of them again at the end.
            phases.extend(["Progressing", "WaitingPromotion", "Finalising"]);
            if grows && *change.object.2 == *canary.primary() {
                phases.extend(["Waiting", "Succeeded"]);
            }
        }
        let phase = canary.phase();
        findings.check(change.at, phases.contains(&phase), || {
            let (name, how) = (&change.object.2, if grows { "up" } else { "down" });
            format!("{name} was scaled {how} in phase {phase}")
        });
    }
    findings
}
