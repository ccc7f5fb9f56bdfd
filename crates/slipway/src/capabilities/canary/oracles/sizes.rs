//! T4, T6: how many replicas each side has.

use slipway_api::purpose::canary as purpose;
use slipway_sim::history::{Change, Image};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes::{self, WHOLE};

use super::{Canary, DAEMON_SETS, DEPLOYMENTS, Scene, both, most, size};

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

/// Whether somebody is there to serve.
fn serves(scene: &Scene<'_>, canary: &Canary<'_>) -> bool {
    let serving = scene.workload(canary, &canary.primary());
    serving.is_some_and(|one| {
        one.number("/status/availableReplicas") > 0 || one.number("/status/numberAvailable") > 0
    })
}

/// T6. Replicas of the new version come and go in the phases for that, which were written before.
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
        let grows = size(after) > size(before);
        let mut phases = if grows {
            vec!["Progressing", "WaitingPromotion", "Promoting", "Failed"]
        } else {
            vec!["Initializing", "Finalising", "Failed"]
        };
        if canary.is("/status/run/draining") {
            phases.push("Progressing");
        }
        let phase = canary.phase();
        findings.check(change.at, phases.contains(&phase), || {
            let (name, how) = (&change.object.2, if grows { "up" } else { "down" });
            format!("{name} was scaled {how} in phase {phase}")
        });
    }
    findings
}
