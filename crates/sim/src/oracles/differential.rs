//! G8: a run with faults ends as the run without.
//!
//! What may differ is in [`super::MASKED`]; everything else of every object at the end is compared, and for each object how
//! often its spec was changed by the operator. Where a storm delayed restarts, there may be fewer of them, as many as
//! fit into the delay, but never more. Where something is only ever what was asked for last ([`super::Specifics`]), what was asked
//! for while all was held up may be left out, and others may have been the first to get it: then only the laws of the capability
//! judge. So it is with a workload that a capability brings in steps to what is wanted of it now, where something lasted for long.
//!
//! A delay is excused cluster by cluster: by what went wrong in that cluster or at home, where all is decided. What went wrong
//! in a member excuses nothing in another one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use slipway_kernel::identity::ClusterId;

use super::masks::{Masked, is_counted, is_fleeting, is_left_out, stable};
use super::members::is_forgotten;
use super::{AFTERMATH, Case, Findings, workload};
use crate::fault::{EventFault, RequestFault};
use crate::history::{Change, Event, History, Image, Object, Review};

/// What lasts as long keeps an operator from a version for longer than some people wait with the next one.
const LONG: Duration = Duration::from_secs(15);

/// G8.
pub(super) fn same_end(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let Some(reference) = case.reference else {
        return findings;
    };
    if is_another_story(case.history) {
        return findings;
    }
    let end = case.history.end;
    let (wanted, found) = (
        spec_changes(case, reference),
        spec_changes(case, case.history),
    );
    let is_held_up = is_held_up(case);
    let mut missed: BTreeMap<&ClusterId, u64> = BTreeMap::new();
    let mut delayed: BTreeSet<&ClusterId> = BTreeSet::new();
    let places: BTreeSet<&Place<'_>> = wanted.keys().chain(found.keys()).collect();
    for place in places {
        let cluster = &place.0;
        let missed = *missed
            .entry(cluster)
            .or_insert_with(|| missed_in(case, cluster));
        let want = wanted.get(place).copied().unwrap_or_default();
        let have = found.get(place).copied().unwrap_or_default();
        // What goes down and up again is missed as a whole.
        let pair = if is_unchanged(reference, place) { 2 } else { 1 };
        let fewer = have < want && have + pair * missed >= want;
        let more = have > want && is_misled(case);
        let is_latest = is_superseded(case, place.1);
        let is_late = is_latest || is_followed(case, place) && is_held_up_for_long(case);
        let other = have != want && is_held_up && is_late;
        // What was asked for at once is written at once, or one by one where a fault came between.
        let split = is_latest && case.history.is_disturbed() && have.abs_diff(want) <= 1;
        if fewer || other {
            delayed.insert(cluster);
        }
        findings.check(end, have == want || fewer || more || other || split, || {
            let object = workload::name(place.1);
            format!(
                "{object} in {cluster}: {have} changes of its spec by the operator, {want} without faults"
            )
        });
    }
    let settled = case.history.calm.checked_add(AFTERMATH);
    if !is_misled(case) && settled.is_ok_and(|settled| settled <= end) {
        compare(&mut findings, case, reference, &delayed);
    }
    findings
}

/// Whether something came out otherwise for people than in the reference: a webhook let it pass unseen, or could not be
/// asked, or was asked later. What comes of that is for the other oracles.
fn is_another_story(history: &History) -> bool {
    let differs = |event: &Event| matches!(event, Event::Otherwise(_));
    history.reviews.iter().any(Review::is_open)
        || history.is_restored()
        || history.is_out_of_time()
        || history.is_redefined()
        || history.has_other_clusters()
        || history.is_disturbed() && history.marks.iter().any(|mark| differs(&mark.what))
}

/// Whether the operator never heard of a change of a policy: then it went on by the old one until it listed them again,
/// which R1 to R3 judge.
fn is_misled(case: &Case<'_>) -> bool {
    let lost = EventFault::Drop.name();
    case.history.marks.iter().any(|mark| {
        let Event::Watch(cluster, about, fault) = &mark.what else {
            return false;
        };
        let mut orders = case.specifics.iter().flat_map(|one| one.orders);
        cluster.is_local() && *fault == lost && orders.any(|plural| plural == about)
    })
}

/// How many restarts of one object in a cluster the faults there and at home can have cost: one for each ten minutes of storm, or
/// until a lost event was noticed; none for any other single fault.
fn missed_in(case: &Case<'_>, cluster: &ClusterId) -> u64 {
    let history = case.history;
    let concerns = |other: &ClusterId| other.is_local() || other == cluster;
    let faults: Vec<&str> = history
        .requests
        .iter()
        .filter(|request| concerns(&request.cluster))
        .filter_map(|request| request.fault)
        .collect();
    let events = history.marks.iter().filter_map(|mark| match &mark.what {
        Event::Watch(of, _, fault) if concerns(of) => Some(*fault),
        _ => None,
    });
    let (lost, others): (Vec<&str>, Vec<&str>) =
        events.partition(|fault| *fault == EventFault::Drop.name());
    // Whoever is asked to wait for long waits for five minutes.
    let is_held_up = faults.contains(&RequestFault::ThrottledForLong.name())
        || history
            .all_spells()
            .any(|(_, spell)| spell.cluster.is_none() || spell.is_in(cluster));
    if lost.is_empty() && faults.len() + others.len() <= 1 && !is_held_up {
        return 0;
    }
    let storm = history.calm.duration_since(history.start);
    let lasted = storm.as_secs() / SignedDuration::from_mins(10).as_secs();
    1 + u64::try_from(lasted).unwrap_or_default()
}

/// Whether what is asked for takes the place of what was asked for before.
fn is_superseded(case: &Case<'_>, (resource, ..): &Object) -> bool {
    let mut all = case.specifics.iter().flat_map(|one| one.superseded);
    all.any(|own| *own == &**resource)
}

/// Whether the faults can have kept an operator from something for longer than people wait until they ask for the next thing:
/// anything but a single fault that is over when it has happened.
fn is_held_up(case: &Case<'_>) -> bool {
    let history = case.history;
    let faults = history.requests.iter().filter_map(|one| one.fault);
    let faults: Vec<&str> = faults.collect();
    let lasting = [RequestFault::ThrottledForLong, RequestFault::Forbidden];
    let events = history.marks.iter().filter_map(|mark| match &mark.what {
        Event::Watch(_, _, fault) => Some(*fault),
        _ => None,
    });
    let events: Vec<&str> = events.collect();
    faults.len() + events.len() > 1
        || lasting.iter().any(|fault| faults.contains(&fault.name()))
        || events.contains(&EventFault::Drop.name())
        || history.all_spells().next().is_some()
}

/// The same, where what goes wrong for a time does so for long enough that people have asked for something else meanwhile.
fn is_held_up_for_long(case: &Case<'_>) -> bool {
    let spells = case.history.all_spells();
    let longest = spells.map(|(_, spell)| spell.lasts).max();
    is_held_up(case) && longest.is_none_or(|longest| longest >= LONG)
}

/// Whether a capability makes of a workload at home, in steps, what people want of it now.
fn is_followed(case: &Case<'_>, (cluster, object): &Place<'_>) -> bool {
    let mut all = case.specifics.iter();
    cluster.is_local() && all.any(|one| (one.follows)(case, object))
}

/// Whether an object is asked for the same in the end as in the beginning.
fn is_unchanged(history: &History, (cluster, object): &Place<'_>) -> bool {
    let spec = |version| {
        let state = history.state_in(cluster, object, version);
        state.and_then(|image| image.at("/spec"))
    };
    spec(history.base_in(cluster)) == spec(u64::MAX)
}

/// An object, and where it is.
type Place<'a> = (ClusterId, &'a Object);

/// How often the operator changed the spec of each workload, and of what it keeps as people want it.
fn spec_changes<'a>(case: &Case<'_>, history: &'a History) -> BTreeMap<Place<'a>, u64> {
    let mut counts = BTreeMap::new();
    let home = ClusterId::local();
    for cluster in std::iter::once(&home).chain(history.members.keys()) {
        for (change, _) in history.deeds_in(cluster) {
            let object = &change.object;
            if workload::kind(&object.0).is_none() && !is_superseded(case, object) {
                continue;
            }
            let both = change.before.as_deref().zip(change.after.as_deref());
            if both.is_some_and(|(before, after)| before.at("/spec") != after.at("/spec")) {
                *counts.entry((cluster.clone(), object)).or_default() += 1;
            }
        }
    }
    counts
}

/// Compares the ends in all clusters but the `delayed`. What home says of a member is as late as the member is.
fn compare(
    findings: &mut Findings,
    case: &Case<'_>,
    reference: &History,
    delayed: &BTreeSet<&ClusterId>,
) {
    let home = ClusterId::local();
    if delayed.is_empty() {
        compare_in(findings, case, reference, &home);
    }
    // What is in a cluster that home has let go is what was there then.
    let is_held_up = is_held_up(case);
    let is_past = |cluster: &ClusterId| is_held_up && is_forgotten(reference, cluster);
    for cluster in reference.members.keys() {
        if !delayed.contains(cluster) && !is_past(cluster) {
            compare_in(findings, case, reference, cluster);
        }
    }
}

fn compare_in(findings: &mut Findings, case: &Case<'_>, reference: &History, cluster: &ClusterId) {
    let history = case.history;
    let wanted = ends(case, reference, cluster);
    let found = ends(case, history, cluster);
    let mut keys: Vec<&String> = wanted.keys().chain(found.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (want, have) = (wanted.get(key), found.get(key));
        findings.check(history.end, want == have, || match (want, have) {
            (Some(want), Some(have)) => format!("{key} differs: {}", difference(want, have)),
            (None, _) => format!("{key} is not there without faults"),
            (_, None) => format!("{key} is missing"),
        });
    }
}

/// The objects of the end by name, masked, as far as they have changed since the start, which both runs share. Those
/// whose names no two runs share are counted by owner and state; those with a version of another object in their names, by the rest
/// of it.
fn ends(case: &Case<'_>, history: &History, of: &ClusterId) -> BTreeMap<String, Vec<Value>> {
    let is_held_up = is_held_up(case);
    let mut masked: BTreeMap<&str, Masked> = BTreeMap::new();
    let mut last: BTreeMap<&Object, &Change> = BTreeMap::new();
    let base = history.base_in(of);
    let changes = history.changes_in(of).iter();
    for change in changes.filter(|c| c.version > base) {
        last.insert(&change.object, change);
    }
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (object, change) in last {
        let Some(image) = change.after.as_deref().or(change.before.as_deref()) else {
            continue;
        };
        let Some(key) = key(case, object, image) else {
            continue;
        };
        let counted = key.ends_with('*');
        let value = match (&change.after, counted) {
            // What was held up may never have been there.
            (None, is_passed_over) if is_passed_over || is_held_up => continue,
            (None, _) => Value::Null,
            (Some(_), _) if is_counted(&object.0) => summary(image.value()),
            (Some(_), _) => {
                let masked = masked
                    .entry(&object.0)
                    .or_insert_with(|| Masked::of(case, &object.0, is_held_up));
                let mut value = image.value().clone();
                masked.hide(&mut value);
                value
            }
        };
        all.entry(key).or_default().push(value);
    }
    for values in all.values_mut() {
        values.sort_by_cached_key(Value::to_string);
    }
    all
}

fn key(case: &Case<'_>, object: &Object, image: &Image) -> Option<String> {
    let (resource, namespace, name) = object;
    if is_left_out(resource) || is_fleeting(case, object) {
        return None;
    }
    if !is_counted(resource) {
        return Some(match stable(case, name) {
            Some(stable) => format!("{resource} {namespace}/{stable}*"),
            None => format!("{resource} {namespace}/{name}"),
        });
    }
    let owner = image
        .text("/metadata/ownerReferences/0/name")
        .unwrap_or_default();
    let kind = image.text("/metadata/ownerReferences/0/kind");
    // The hash at the end of a replica set's name, which may be short.
    let stable = match owner.rsplit_once('-') {
        Some((stem, _)) if kind == Some("ReplicaSet") => stem,
        _ => owner,
    };
    Some(format!("{resource} of {namespace}/{stable} *"))
}

/// What remains of an object whose name is not compared.
fn summary(value: &Value) -> Value {
    let get = |pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
    let endpoints = value.pointer("/endpoints").and_then(Value::as_array);
    let is_ready = |one: &&Value| one.pointer("/conditions/ready") == Some(&Value::Bool(true));
    serde_json::json!({
        "endpoints": endpoints.map(|all| all.iter().filter(is_ready).count()),
        "replicas": get("/spec/replicas"),
        "containers": get("/spec/containers/0/image"),
        "phase": get("/status/phase"),
        "ready": get("/status/readyReplicas"),
        "deleting": value.pointer("/metadata/deletionTimestamp").is_some(),
    })
}

/// The first place where two values differ.
fn difference(want: &[Value], have: &[Value]) -> String {
    if want.len() != have.len() {
        return format!("{} instead of {}", have.len(), want.len());
    }
    want.iter()
        .zip(have)
        .find_map(|(want, have)| first(want, have, ""))
        .unwrap_or_default()
}

fn first(want: &Value, have: &Value, path: &str) -> Option<String> {
    match (want, have) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys());
            keys.into_iter().find_map(|key| {
                let null = Value::Null;
                let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                first(a, b, &format!("{path}.{key}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(n, (a, b))| first(a, b, &format!("{path}[{n}]"))),
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path} is {b}, without faults {a}")),
    }
}
