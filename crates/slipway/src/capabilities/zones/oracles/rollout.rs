//! Z1–Z7, Z12, Z13 and the order of zones: which pods the operator deletes, and when.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::names::DISRUPTION_CLAIM;
use slipway_api::zones::{PAUSED, ROLLOUT_GROUP};
use slipway_kernel::claim::Claim;

use super::{MAPS, SETS, Scene, Zone, controller, deletions, is_going, is_ready};
use slipway_sim::history::Image;
use slipway_sim::oracles::{Case, Findings};

/// Z1.
pub(in super::super) fn zones_apart(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let Some((own, group)) = deletion.zone() else {
            continue;
        };
        for zone in group.iter().filter(|zone| zone.object != own.object) {
            let down = deletion.down(case.history, zone);
            findings.check(deletion.change.at, down.is_empty(), || {
                let name = deletion.name();
                format!("{name} was deleted while {} was down", down.join(", "))
            });
        }
    }
    findings
}

/// Z2, with Z3 and Z6: a pod that goes is down until another one in its place is ready.
pub(in super::super) fn budget(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let Some((own, _)) = deletion.zone() else {
            continue;
        };
        // One that is down already costs nothing.
        if !is_ready(deletion.pod) {
            continue;
        }
        let name = &*deletion.change.object.2;
        let down = deletion.down(case.history, &own);
        let others = down.iter().filter(|place| *place != name).count();
        let most = own.most_unavailable();
        let after = i64::try_from(others + 1).unwrap_or(i64::MAX);
        findings.check(deletion.change.at, after <= most, || {
            format!(
                "{} was deleted: {after} pods of {} are down, {most} may be",
                deletion.name(),
                own.name()
            )
        });
    }
    findings
}

/// Z3, as the operator shows it.
pub(in super::super) fn shown_budget(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, request) in case.history.deeds() {
        let Some(map) = change
            .after
            .as_deref()
            .filter(|_| &*change.object.0 == MAPS)
        else {
            continue;
        };
        let status: Option<Value> = map
            .text("/data/status")
            .and_then(|s| serde_json::from_str(s).ok());
        let zones = status.as_ref().and_then(|s| s.get("zones")?.as_array());
        let seen = Scene::behind(case.history, change, request);
        for shown in zones.into_iter().flatten() {
            let name = shown
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let Some(zone) = seen.zone(&change.object.1, name) else {
                continue;
            };
            let most = zone.most_unavailable();
            let told = shown.get("maxUnavailable").and_then(Value::as_i64);
            findings.check(
                change.at,
                told == Some(most) || zone.replicas() == 0,
                || format!("{name}: {told:?} pods may be unavailable, it should be {most}"),
            );
        }
    }
    findings
}

/// Z4.
pub(in super::super) fn sound_group(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let Some((own, mut group)) = deletion.zone() else {
            continue;
        };
        let name = own.set.label(ROLLOUT_GROUP).unwrap_or_default();
        let known = Scene::known(case.history, deletion.request);
        group.extend(known.group(&own.object.1, name));
        for zone in &group {
            let set = zone.set;
            let reasons = [
                (
                    set.text("/spec/updateStrategy/type") != Some("OnDelete"),
                    "is not OnDelete",
                ),
                (
                    set.number("/status/observedGeneration") < set.number("/metadata/generation"),
                    "has a status older than its spec",
                ),
                (is_going(set), "was being deleted"),
            ];
            for (holds, reason) in reasons {
                findings.check(deletion.change.at, !holds, || {
                    format!(
                        "{} was deleted although {} {reason}",
                        deletion.name(),
                        zone.name()
                    )
                });
            }
        }
    }
    findings
}

/// Z5, and whose pods: outdated ones, of a zone.
pub(in super::super) fn outdated(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let zone = deletion.zone();
        findings.check(deletion.change.at, zone.is_some(), || {
            let owner = controller(deletion.pod);
            format!(
                "{} of {owner:?} is of no zone and was deleted",
                deletion.name()
            )
        });
        if let Some((own, _)) = zone {
            findings.check(deletion.change.at, own.is_outdated(deletion.pod), || {
                format!("{} was up to date and was deleted", deletion.name())
            });
        }
    }
    findings
}

/// Z6: of the places that are empty or being emptied no more than allowed, also where a status says otherwise.
pub(in super::super) fn terminating(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history).filter(|deletion| is_ready(deletion.pod)) {
        let Some((own, _)) = deletion.zone() else {
            continue;
        };
        let namespace = &own.object.1;
        let going = own.places().filter(|name| {
            let seen = deletion.seen.pod(namespace, name);
            **name != *deletion.change.object.2 && seen.is_none_or(is_going)
        });
        let going = i64::try_from(going.count()).unwrap_or(i64::MAX);
        findings.check(deletion.change.at, going < own.most_unavailable(), || {
            format!(
                "{} was deleted while {going} others were on their way",
                deletion.name()
            )
        });
    }
    findings
}

fn our_claim(set: &Image, now: Timestamp) -> bool {
    let claim = set.annotation(DISRUPTION_CLAIM);
    let claim = claim.and_then(|claim| Claim::read(claim, now));
    claim.is_some_and(|claim| claim.holder == "zones")
}

/// Z7.
pub(in super::super) fn claims(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, _) in case.history.deeds() {
        let Some(after) = change
            .after
            .as_deref()
            .filter(|_| &*change.object.0 == SETS)
        else {
            continue;
        };
        // Whether a claim is over is for the clock of whoever takes the next one to say.
        let now = change.at.checked_add(case.history.skew);
        let now = now.unwrap_or(Timestamp::MAX);
        let (Some(group), true) = (after.label(ROLLOUT_GROUP), our_claim(after, now)) else {
            continue;
        };
        let scene = Scene::at(case.history, change.version);
        let group = scene.group(&change.object.1, group);
        let others = group
            .iter()
            .filter(|zone| *zone.object != change.object && our_claim(zone.set, now));
        let others: Vec<&str> = others.map(Zone::name).collect();
        findings.check(change.at, others.is_empty(), || {
            format!(
                "{} has the turn, and so has {}",
                change.object.2,
                others.join(", ")
            )
        });
    }
    findings
}

/// The zones of a group go by name, except that one with a pod down goes first.
pub(in super::super) fn order(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let Some((own, group)) = deletion.zone() else {
            continue;
        };
        if !deletion.seen.down(&own).is_empty() {
            continue;
        }
        let sure = Scene::known(case.history, deletion.request);
        for zone in group.iter().take_while(|zone| zone.object != own.object) {
            let is_paused = zone.set.annotation(PAUSED) == Some("true");
            let known = sure.zone(&zone.object.1, zone.name());
            let late = known.is_some_and(|known| {
                let is_late = |(_, pod): (_, &Image)| known.is_outdated(pod);
                deletion.seen.pods_of(zone).any(is_late) && sure.pods_of(&known).any(is_late)
            });
            findings.check(deletion.change.at, is_paused || !late, || {
                format!(
                    "{} was deleted before {} was done",
                    deletion.name(),
                    zone.name()
                )
            });
        }
    }
    findings
}

/// Z12.
pub(in super::super) fn paused(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for deletion in deletions(case.history) {
        let Some((own, _)) = deletion.zone() else {
            continue;
        };
        let is_paused = own.set.annotation(PAUSED) == Some("true");
        findings.check(deletion.change.at, !is_paused, || {
            format!(
                "{} was deleted although {} is paused",
                deletion.name(),
                own.name()
            )
        });
    }
    findings
}

/// Z13.
pub(in super::super) fn settled(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, request) in case.history.deeds() {
        let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref())
        else {
            continue;
        };
        let pointer = "/status/currentRevision";
        if &*change.object.0 != SETS || before.text(pointer) == after.text(pointer) {
            continue;
        }
        let seen = Scene::behind(case.history, change, request);
        let Some(zone) = seen.zone(&change.object.1, &change.object.2) else {
            continue;
        };
        let down = seen.down(&zone);
        let late = seen.pods_of(&zone).any(|(_, pod)| zone.is_outdated(pod));
        findings.check(change.at, down.is_empty() && !late, || {
            format!("{} was called done before its pods were", change.object.2)
        });
    }
    findings
}
