//! Z8, Z9, Z11: zones that are scaled.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_api::zones::{
    DOWNSCALE_LEADER, FORCE_REPLICAS, LAST_DOWNSCALE, MIN_TIME_BETWEEN_DOWNSCALES,
    PREPARE_DOWNSCALE, ROLLOUT_GROUP,
};
use slipway_kernel::duration;

use super::{PREPARE, SETS, Scene, Zone, is_going, replicas};
use slipway_sim::history::{Image, Review};
use slipway_sim::oracles::{Case, Findings, time};

/// After this time a pod that stays must have been told so.
const SOON: SignedDuration = SignedDuration::from_mins(3);
/// The longest that a review takes in which pods are asked: what it allows is written after that.
pub(super) const LONGEST_REVIEW: SignedDuration = SignedDuration::from_secs(30);

fn least(set: &Image) -> Option<SignedDuration> {
    let text = set.label(MIN_TIME_BETWEEN_DOWNSCALES)?;
    SignedDuration::try_from(duration::parse(text).ok()?).ok()
}

/// The newest downscale among these zones, by their annotations.
fn last<'a>(zones: impl Iterator<Item = &'a Zone<'a>>) -> Option<Timestamp> {
    zones
        .filter_map(|zone| time(zone.set.annotation(LAST_DOWNSCALE)))
        .max()
}

/// Z8.
pub(in super::super) fn followers(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (change, request) in case.history.deeds() {
        let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref())
        else {
            continue;
        };
        let (from, to) = (replicas(before), replicas(after));
        let leader = before.annotation(DOWNSCALE_LEADER);
        let (Some(leader), SETS) = (leader, &*change.object.0) else {
            continue;
        };
        if from == to || before.annotation(FORCE_REPLICAS).is_some() {
            continue;
        }
        let seen = Scene::behind(case.history, change, request);
        let name = &change.object.2;
        let Some(leader) = seen.zone(&change.object.1, leader) else {
            findings.check(change.at, false, || {
                format!("{name} follows nobody and was scaled")
            });
            continue;
        };
        let most = leader.replicas();
        findings.check(change.at, to >= most, || {
            format!("{name} was scaled to {to}, below its leader's {most}")
        });
        let group = before.label(ROLLOUT_GROUP).unwrap_or_default();
        let group = seen.group(&change.object.1, group);
        let others = group.iter().filter(|zone| *zone.object != change.object);
        if let (true, Some(last), Some(least)) = (to < from, last(others), least(before)) {
            let skew = SignedDuration::try_from(case.history.skew).unwrap_or_default();
            let passed = change.at.duration_since(last) + skew + skew;
            findings.check(change.at, passed >= least, || {
                format!("{name} was scaled down {passed} after another zone, not {least}")
            });
        }
    }
    findings
}

/// A downscale for which pods have to be told: its group, and from how many to how many.
pub(super) fn downscale<'a>(scene: &Scene<'a>, review: &Review) -> Option<(Zone<'a>, i64, i64)> {
    let zone = scene.zone(review.text("/namespace"), review.text("/name"))?;
    let number = |of: &str| {
        let replicas = review.asked.pointer(&format!("/{of}/spec/replicas"));
        replicas.and_then(Value::as_i64).unwrap_or_default()
    };
    let (from, to) = (number("oldObject"), number("object"));
    let told = zone.set.label(PREPARE_DOWNSCALE) == Some("true");
    (told && to < from && !review.is_dry_run()).then_some((zone, from, to))
}

/// Z9: of two downscales of a group at once one is let through at most, and the next one after its time.
pub(in super::super) fn one_at_a_time(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let allowed: Vec<&Review> = history
        .reviews
        .iter()
        .filter(|r| r.path == PREPARE && r.is_allowed() && !r.is_open())
        .collect();
    for (n, review) in allowed.iter().enumerate() {
        let scene = Scene::at(history, review.versions.0);
        let Some((zone, _, _)) = downscale(&scene, review) else {
            continue;
        };
        let group = zone.set.label(ROLLOUT_GROUP).unwrap_or_default();
        for other in allowed.iter().skip(n + 1) {
            let Some((next, _, _)) = downscale(&scene, other) else {
                continue;
            };
            let same = next.set.label(ROLLOUT_GROUP) == Some(group)
                && next.object.1 == zone.object.1
                && next.object != zone.object;
            let at_once = other.at < review.ended && other.ended > review.at;
            findings.check(other.ended, !(same && at_once), || {
                format!("{} and {} were let down at once", zone.name(), next.name())
            });
        }
        for other in scene.group(&zone.object.1, group) {
            let last = time(other.set.annotation(LAST_DOWNSCALE));
            if let (Some(last), Some(least), true) =
                (last, least(other.set), other.object != zone.object)
            {
                let skew = SignedDuration::try_from(history.skew).unwrap_or_default();
                let passed = review.ended.duration_since(last) + skew + skew;
                findings.check(review.ended, passed >= least, || {
                    format!(
                        "{} was let down {passed} after {}",
                        zone.name(),
                        other.name()
                    )
                });
            }
        }
    }
    findings
}

/// Z11.
pub(in super::super) fn undone(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let end = Scene::at(history, u64::MAX);
    let is_told = |call: &slipway_sim::history::Call| call.code.is_some_and(|code| code < 300);
    for (n, call) in history.calls.iter().enumerate() {
        if call.method != "POST" {
            continue;
        }
        let (namespace, name) = &call.pod;
        let pod = end
            .pod(namespace, name)
            .filter(|pod| pod.text("/metadata/uid") == Some(call.uid.as_str()) && !is_going(pod));
        let stays = pod
            .and_then(|pod| end.zone_of(pod))
            .is_some_and(|zone| zone.places().any(|place| place == *name));
        let mut later = history.calls.iter().skip(n + 1);
        let called_off = later.any(|other| other.uid == call.uid && is_told(other));
        let since = call.at.max(history.calm);
        // Whoever let it go has never done so, since everything was put back, and nothing tells of it.
        let answered = call.at.checked_add(LONGEST_REVIEW).unwrap_or(call.at);
        let is_forgotten = history.is_taken_back((call.at, answered), history.end);
        if !stays || is_forgotten || history.end.duration_since(since) < SOON {
            continue;
        }
        findings.check(history.end, called_off || !is_told(call), || {
            format!(
                "{namespace}/{name} stays and was told at {} that it goes",
                call.at
            )
        });
    }
    findings
}
