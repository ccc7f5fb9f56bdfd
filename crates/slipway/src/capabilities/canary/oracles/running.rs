//! C3, C6, L1: what was decided, and what came of it.

use jiff::SignedDuration;
use serde_json::Value;
use slipway_api::purpose::canary as purpose;
use slipway_sim::history::Image;
use slipway_sim::oracles::{Case, Findings};

use super::{CANARIES, Canary, DEPLOYMENTS, Scene};

/// How long after the last fault and the last change by people a run may take to end.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

fn template(image: &Image) -> Option<&Value> {
    image.at("/spec/template/spec")
}

/// C3. The copy that serves changes in a promotion, or back after one that failed; and no check says then that it has failed.
pub(in super::super) fn promoted(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let (DEPLOYMENTS, Some(before), Some(after)) = (&*change.object.0, before, after) else {
            continue;
        };
        if template(before) == template(after) {
            continue;
        }
        let scene = Scene::at(history, change.version);
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let is_copy = *change.object.2 == *canary.primary();
        let phase = canary.phase();
        let is_time = ["Promoting", "Failed"].contains(&phase);
        let may = is_copy && is_time && request.is_for(purpose::SERVE);
        findings.check(change.at, may, || {
            format!("{} got another template in phase {phase}", change.object.2)
        });
        if phase == "Promoting" && !is_skipping(&canary) {
            findings.check(change.at, !has_failing(&canary), || {
                format!("{} was promoted with a check that failed", canary.target())
            });
        }
    }
    findings
}

fn is_skipping(canary: &Canary<'_>) -> bool {
    let is = |pointer: &str| canary.image.at(pointer).and_then(Value::as_bool) == Some(true);
    is("/spec/skipAnalysis") || is("/status/run/skip")
}

fn has_failing(canary: &Canary<'_>) -> bool {
    let checks = canary.image.at("/status/checks").and_then(Value::as_array);
    let mut checks = checks.into_iter().flatten();
    checks.any(|check| check.get("verdict").and_then(Value::as_str) == Some("Failed"))
}

/// C6. Replicas of the new version come and go in the phases for that, which were written before.
pub(in super::super) fn remembered(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let (DEPLOYMENTS, Some(before), Some(after)) = (&*change.object.0, before, after) else {
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
        let grows = after.number("/spec/replicas") > before.number("/spec/replicas");
        let phases: &[&str] = if grows {
            &["Progressing", "WaitingPromotion", "Promoting", "Failed"]
        } else {
            &["Initializing", "Finalising", "Failed"]
        };
        let phase = canary.phase();
        findings.check(change.at, phases.contains(&phase), || {
            let (name, how) = (&change.object.2, if grows { "up" } else { "down" });
            format!("{name} was scaled {how} in phase {phase}")
        });
    }
    findings
}

/// L1: a run has ended, or says what it waits for; and what serves in the end is what was promoted.
pub(in super::super) fn nothing_left(case: &Case<'_>, findings: &mut Findings) {
    let history = case.history;
    let by_people = history.changes.iter().filter(|change| change.by.is_none());
    let of_canaries = by_people.filter(|change| &*change.object.0 == CANARIES);
    let last = of_canaries.last().map_or(history.start, |change| change.at);
    if history.end.duration_since(last.max(history.calm)) < PATIENCE {
        return;
    }
    let scene = Scene::at(history, u64::MAX);
    for canary in scene.canaries() {
        let waits = canary.image.at("/status/waitingFor");
        let waits = waits.and_then(Value::as_array);
        let is_explained = waits.is_some_and(|waits| !waits.is_empty());
        let phase = canary.phase();
        let is_over = ["Initialized", "Succeeded", "Failed"].contains(&phase);
        findings.check(history.end, is_over || is_explained, || {
            format!("{} is {phase}, and nothing says why", canary.object.2)
        });
        if phase != "Succeeded" {
            continue;
        }
        let image = |name: &str| {
            let object = scene.object(&canary, DEPLOYMENTS, name);
            object.and_then(|one| one.text("/spec/template/spec/containers/0/image"))
        };
        let (target, primary) = (image(&canary.target()), image(&canary.primary()));
        findings.check(history.end, target == primary, || {
            format!("{target:?} is wanted, and {primary:?} serves")
        });
    }
}
