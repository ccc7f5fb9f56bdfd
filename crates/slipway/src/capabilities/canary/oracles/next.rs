//! T8: every new version has its run, whatever became of the one before.

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, History};
use slipway_sim::oracles::{Case, Findings};

use super::{Canary, DAEMON_SETS, DEPLOYMENTS, Scene, both, images, later};

/// How long after it came, and after the last fault, a version may wait without a word.
const PATIENCE: SignedDuration = SignedDuration::from_mins(4);

/// T8.
pub(in super::super) fn begun(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if history.is_restored() || history.is_redefined() || history.is_out_of_time() {
        return findings;
    }
    for change in history.changes.iter().filter(|change| change.by.is_none()) {
        let Some(pushed) = pushed(change) else {
            continue;
        };
        let scene = Scene::at(history, change.version);
        let mut canaries = scene.canaries();
        let is_target = |canary: &Canary<'_>| {
            canary.is_about(&change.object) && *canary.target() == *change.object.2
        };
        let Some(canary) = canaries.find(is_target) else {
            continue;
        };
        let until = later(change.at.max(history.calm), PATIENCE);
        if until > history.end || has_changed(history, change, until) {
            continue;
        }
        let serving = scene.workload(&canary, &canary.primary());
        let Some(serving) = serving.filter(|serving| images(serving) != pushed) else {
            continue;
        };
        let tried = canary.text("/status/lastAppliedSpec");
        let is_begun = is_begun(history, &canary, (change.at, until), tried);
        findings.check(until, is_begun, || {
            let (name, now) = (canary.target(), images(serving));
            format!("{name} became {pushed:?} beside {now:?}, and no run began")
        });
    }
    findings
}

/// What a workload runs from here on.
fn pushed(change: &Change) -> Option<Vec<&str>> {
    if ![DEPLOYMENTS, DAEMON_SETS].contains(&&*change.object.0) {
        return None;
    }
    let (before, after) = both(change)?;
    let (before, after) = (images(before), images(after));
    (before != after).then_some(after)
}

/// Whether somebody has changed a workload again, or made its Canary another one.
fn has_changed(history: &History, change: &Change, until: Timestamp) -> bool {
    let later = history.changes.iter();
    let mut later = later.filter(|one| one.version > change.version && one.at <= until);
    later.any(|one| one.by.is_none() && one.object == change.object && pushed(one).is_some())
}

/// Whether a version was tried after a moment, or its waiting was explained in the end, or the Canary was deleted.
fn is_begun(
    history: &History,
    canary: &Canary<'_>,
    (from, until): (Timestamp, Timestamp),
    tried: &str,
) -> bool {
    let changes = history.changes.iter();
    let mut of_it = changes.filter(|change| {
        change.object == *canary.object && change.at >= from && change.at <= until
    });
    let is_tried = of_it.any(|change| {
        let after = change.after.as_ref();
        let now = after.and_then(|after| after.text("/status/lastAppliedSpec"));
        now.is_some_and(|now| now != tried)
    });
    let scene = Scene::when(history, until);
    let mut canaries = scene.canaries();
    let last = canaries.find(|one| one.object == canary.object);
    is_tried || last.is_none_or(|last| last.is_explained() || last.is("/spec/suspend"))
}
