//! C1, C2, C4, C5: where traffic goes.

use jiff::Timestamp;
use serde_json::Value;
use slipway_sim::history::{Change, Image};
use slipway_sim::oracles::{Case, Findings};

use super::{A_MOMENT, CANARIES, Canary, DEPLOYMENTS, SPLITS, Scene, is_ready, share};

/// C1.
pub(in super::super) fn sums(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, _) in case.history.deeds() {
        let (SPLITS, Some(after)) = (&*change.object.0, change.after.as_deref()) else {
            continue;
        };
        let backends = after.at("/spec/backends").and_then(Value::as_array);
        let backends = backends.into_iter().flatten();
        let weights = backends.filter_map(|one| one.get("weight")?.as_i64());
        let sum: i64 = weights.sum();
        findings.check(change.at, sum == 100, || {
            format!("the weights of {} sum to {sum}", change.object.2)
        });
    }
    findings
}

/// C2. What counts is what the operator had seen of the Deployment when it decided.
pub(in super::super) fn ready(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let (SPLITS, Some(after)) = (&*change.object.0, change.after.as_deref()) else {
            continue;
        };
        let scene = Scene::at(history, change.version);
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let service = format!("{}-canary", canary.apex());
        let before = change.before.as_deref();
        let had = before.map_or(0, |before| share(before, &service));
        let has = share(after, &service);
        if has <= had {
            continue;
        }
        let basis = request.context.basis.get("deployments").copied();
        let seen = Scene::at(history, basis.unwrap_or(change.version));
        let target = seen.object(&canary, DEPLOYMENTS, &canary.target());
        findings.check(change.at, target.is_some_and(is_ready), || {
            let name = canary.target();
            format!("{name} got {has}% of the traffic while it was not ready")
        });
    }
    findings
}

/// C4.
pub(in super::super) fn scaled(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (change, request) in history.deeds() {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let (DEPLOYMENTS, Some(before), Some(after)) = (&*change.object.0, before, after) else {
            continue;
        };
        let replicas = |image: &Image| image.number("/spec/replicas");
        let (from, to) = (replicas(before), replicas(after));
        if to >= from {
            continue;
        }
        let basis = request.context.basis.get("trafficsplits").copied();
        let scene = Scene::at(history, basis.unwrap_or(change.version));
        let Some(canary) = scene.of(&change.object) else {
            continue;
        };
        let has = scene.share(&canary);
        let holds = if *change.object.2 == *canary.target() {
            has == 0
        } else {
            // A person may have asked for fewer with the version that is promoted.
            to > 0 && canary.phase() == "Promoting"
        };
        findings.check(change.at, holds, || {
            let name = &change.object.2;
            format!("{name} was scaled from {from} to {to} while the new version had {has}%")
        });
    }
    findings
}

/// C5.
pub(in super::super) fn sent_back(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_disturbed() {
        // When it comes through depends on the faults; that it does is L1's.
        return findings;
    }
    for (change, _) in history.deeds() {
        let Some(canary) = failed(change) else {
            continue;
        };
        let Ok(until) = change.at.checked_add(A_MOMENT) else {
            continue;
        };
        let has = share_at(case, &canary, until);
        findings.check(until, has == 0, || {
            format!("{} was sent back and still has {has}%", canary.target())
        });
    }
    findings
}

/// A Canary that has just failed, with all traffic to go to what serves.
fn failed(change: &Change) -> Option<Canary<'_>> {
    let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
    let phase = |image: &Image| image.text("/status/phase").map(str::to_owned);
    let is_new = phase(after).as_deref() == Some("Failed") && phase(before) != phase(after);
    let is_meant = &*change.object.0 == CANARIES && after.number("/status/canaryWeight") == 0;
    (is_new && is_meant).then_some(Canary {
        object: &change.object,
        image: after,
    })
}

fn share_at(case: &Case<'_>, canary: &Canary<'_>, at: Timestamp) -> i64 {
    let changes = case.history.changes.iter();
    let last = changes.take_while(|change| change.at <= at).last();
    let version = last.map_or(case.history.base, |change| change.version);
    Scene::at(case.history, version).share(canary)
}
