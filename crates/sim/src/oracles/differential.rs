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

use serde_json::Value;
use slipway_kernel::identity::ClusterId;

use super::excuses::{Count, Place, is_held_up, is_misled, is_superseded, missed_in};
use super::masks::{Masked, is_apart, is_counted, is_fleeting, is_left_out, stable};
use super::members::is_forgotten;
use super::{AFTERMATH, Case, Findings, workload};
use crate::history::{Change, History, Image, Object};

/// G8.
pub(super) fn same_end(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let Some(reference) = case.reference else {
        return findings;
    };
    if is_apart(case.history) {
        return findings;
    }
    let end = case.history.end;
    let (wanted, found) = (
        spec_changes(case, reference),
        spec_changes(case, case.history),
    );
    let mut missed: BTreeMap<&ClusterId, u64> = BTreeMap::new();
    let mut delayed: BTreeSet<&ClusterId> = BTreeSet::new();
    let places: BTreeSet<&Place<'_>> = wanted.keys().chain(found.keys()).collect();
    for place in places {
        let cluster = &place.0;
        let missed = *missed
            .entry(cluster)
            .or_insert_with(|| missed_in(case, cluster));
        let count = Count {
            case,
            reference,
            place,
            want: wanted.get(place).copied().unwrap_or_default(),
            have: found.get(place).copied().unwrap_or_default(),
            missed,
        };
        let mut excuses = count.excuses().peekable();
        let is_excused = excuses.peek().is_some();
        if excuses.any(|one| one.is_delay) {
            delayed.insert(cluster);
        }
        let (want, have) = (count.want, count.have);
        findings.check(end, have == want || is_excused, || {
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
