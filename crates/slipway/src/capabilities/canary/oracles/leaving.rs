//! T9: what a Canary leaves when it is deleted.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_sim::history::{Change, History, Image};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::routes::{self, TAKEN};

use super::{CANARIES, Canary, SERVICES, Scene, TO_BE_TAKEN, later, size};

/// How long a Canary that is deleted may be kept: its workload has to start.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// T9.
pub(in super::super) fn given_back(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_restored() || history.is_redefined() {
        return findings;
    }
    let changes = history.changes.iter();
    for change in changes.filter(|change| &*change.object.0 == CANARIES) {
        let (Some(before), None) = (change.before.as_deref(), change.after.as_deref()) else {
            continue;
        };
        let canary = Canary {
            object: &change.object,
            image: before,
        };
        if canary.is("/spec/revertOnDeletion") {
            workload(history, &canary, change, &mut findings);
        }
        loose_ends(history, &canary, change.at, &mut findings);
    }
    kept(history, &mut findings);
    findings
}

/// The workload serves again when the Canary goes.
fn workload(history: &History, canary: &Canary<'_>, change: &Change, findings: &mut Findings) {
    let scene = Scene::at(history, change.version);
    let Some(target) = scene.workload(canary, &canary.target()) else {
        return;
    };
    let available = target.number("/status/availableReplicas");
    let available = available.max(target.number("/status/numberAvailable"));
    findings.check(change.at, size(target) > 0 && available > 0, || {
        let name = canary.target();
        format!("the Canary of {name} went, and {available} of its pods are there")
    });
    let Some(apex) = scene.object(canary, SERVICES, &canary.apex()) else {
        return;
    };
    findings.check(change.at, leads_to(apex, target), || {
        let (name, apex) = (canary.target(), canary.apex());
        format!("the Canary of {name} went, and {apex} leads elsewhere")
    });
}

/// Whether a Service selects the pods of a workload.
pub(super) fn leads_to(service: &Image, workload: &Image) -> bool {
    let selector = service.at("/spec/selector").and_then(Value::as_object);
    let labels = workload.at("/spec/template/metadata/labels");
    let has = |(name, value): (&String, &Value)| {
        labels.and_then(|labels| labels.get(name)) == Some(value)
    };
    selector.is_some_and(|selector| !selector.is_empty() && selector.iter().all(has))
}

/// Nobody is sent to a Service that went with the Canary.
fn loose_ends(history: &History, canary: &Canary<'_>, gone: Timestamp, findings: &mut Findings) {
    let at = later(gone.max(history.calm), TO_BE_TAKEN);
    let scene = Scene::when(history, at);
    if at > history.end || scene.canaries().any(|one| one.object == canary.object) {
        return;
    }
    let taken = history.states(TAKEN, super::version_at(history, at));
    let here = taken
        .into_iter()
        .filter(|(object, _)| object.1 == canary.object.1);
    for (object, image) in here {
        let rules = routes::rules(TAKEN, image.value());
        for side in [canary.new_service(), canary.serving_service()] {
            let is_there = scene.object(canary, SERVICES, &side).is_some();
            findings.check(at, is_there || !routes::reaches(&rules, &side), || {
                format!("{} leads to {side}, which went with its Canary", object.2)
            });
        }
    }
}

/// Nobody is kept for ever.
fn kept(history: &History, findings: &mut Findings) {
    let scene = Scene::at(history, u64::MAX);
    for canary in scene.canaries() {
        let deleted = canary.image.text("/metadata/deletionTimestamp");
        let deleted: Option<Timestamp> = deleted.and_then(|text| text.parse().ok());
        let Some(deleted) = deleted else { continue };
        let until = later(deleted.max(history.calm), PATIENCE);
        let holds = history.end <= until || canary.is_explained();
        findings.check(history.end, holds, || {
            format!("Canary {} was deleted and is kept", canary.object.2)
        });
    }
}
