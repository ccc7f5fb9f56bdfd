//! Objects in, model out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_kernel::capability::show::Objects;

use super::*;
use crate::registry::Registry;

/// Objects by resource, then by namespace and name.
#[derive(Default)]
struct Mirror(BTreeMap<String, BTreeMap<(String, String), Value>>);

impl Mirror {
    fn add(&mut self, resource: &str, object: Value) {
        let text = |path: &str| slipway_kernel::capability::show::text(&object, path);
        let key = (text("/metadata/namespace"), text("/metadata/name"));
        let all = self.0.entry(resource.to_owned()).or_default();
        all.insert(key, object);
    }
}

impl Objects for Mirror {
    fn all<'a>(&'a self, resource: &str) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
        let objects = self.0.get(resource).into_iter();
        Box::new(objects.flat_map(BTreeMap::values))
    }
}

fn gather(name: &str, mirror: &Mirror, now: Timestamp) -> Cluster {
    super::gather(&Registry::default().profiles(), name, mirror, now)
}

fn owned(name: &str, uid: &str, owner: &str) -> Value {
    json!({"name": name, "namespace": "shop", "uid": uid, "ownerReferences": [{"uid": owner}]})
}

fn pod(name: &str, owner: &str, status: &Value) -> Value {
    json!({"metadata": owned(name, name, owner), "status": status})
}

fn running() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

/// A Deployment of two in the middle of its rollout.
fn rolling() -> Mirror {
    let mut mirror = Mirror::default();
    mirror.add(
        "apps/deployments",
        json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 2,
                "annotations": {"flipper.io/rollout-last-restart": "2026-01-02T03:00:00Z"}},
            "spec": {"replicas": 2, "template": {"metadata": {"annotations":
                {"kubectl.kubernetes.io/restartedAt": "2026-01-02T02:00:00Z"}}}},
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2},
        }),
    );
    for (name, revision) in [("web-1", "1"), ("web-2", "2"), ("web-0", "0")] {
        let mut meta = owned(name, name, "d");
        meta["annotations"] = json!({"deployment.kubernetes.io/revision": revision});
        mirror.add("apps/replicasets", json!({"metadata": meta}));
    }
    mirror.add("/pods", pod("web-1-a", "web-1", &running()));
    mirror.add("/pods", pod("web-1-b", "web-1", &running()));
    mirror.add(
        "/pods",
        pod("web-2-a", "web-2", &json!({"phase": "Running"})),
    );
    mirror
}

fn only(mirror: &Mirror) -> Workload {
    let cluster = gather("hub", mirror, "2026-01-02T04:00:00Z".parse().unwrap());
    cluster.namespaces[0].workloads[0].clone()
}

#[test]
fn a_rollout_shows_its_revisions_newest_first() {
    let web = only(&rolling());
    assert_eq!(
        (web.state, web.word.as_str(), web.progress),
        (State::Busy, "Rolling", (0, 2))
    );
    let names: Vec<&str> = web.revisions.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(
        names,
        ["web-2", "web-1"],
        "a revision without pods is history"
    );
    assert_eq!(web.revisions[0].pods[0].word, "Starting");
    assert_eq!(web.restarted, "2026-01-02T03:00:00Z".parse().ok());
}

#[test]
fn a_pod_that_crashes_is_named_on_its_workload() {
    let mut mirror = rolling();
    let crashing = json!({"phase": "Running", "containerStatuses": [
        {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    mirror.add("/pods", pod("web-2-a", "web-2", &crashing));
    let web = only(&mirror);
    assert_eq!(
        (web.state, web.word.as_str()),
        (State::Warning, "CrashLoopBackOff")
    );
    assert_eq!(web.revisions[0].pods[0].restarts, 3);
}

#[test]
fn a_finished_rollout_is_a_number_of_pods() {
    let mut mirror = rolling();
    mirror.add(
        "apps/deployments",
        json!({"metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}}),
    );
    let web = only(&mirror);
    assert_eq!((web.state, web.word.as_str()), (State::Good, "2 pods"));
}

#[test]
fn a_policy_shows_its_rhythm_and_why_it_waits() {
    let mut mirror = Mirror::default();
    mirror.add(
        "flipper.io.github.com/flippers",
        json!({"metadata": {"name": "nightly", "namespace": "shop"}, "spec": {"interval": "24h"}, "status": {
            "matched": 3, "pending": 1, "nextRestart": "2026-01-03T03:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
            "waitingFor": [{"reason": "RolloutInProgress", "message": "it is rolling", "unblock": "the rollout's end",
                "since": "2026-01-02T03:00:00Z", "object": {"kind": "Deployment", "namespace": "shop", "name": "web"}}]}}),
    );
    let cluster = gather("hub", &mirror, "2026-01-02T04:00:00Z".parse().unwrap());
    let policy = &cluster.namespaces[0].rows[0];
    assert_eq!(policy.state, State::Waiting);
    assert_eq!(policy.info, ["every 24h", "3 matched", "1 due"]);
    assert_eq!(policy.next, "2026-01-03T03:00:00Z".parse().ok());
    assert_eq!(cluster.waiting[0].object, "Deployment shop/web");
}

#[test]
fn a_policy_that_cannot_be_read_shows_what_its_conditions_say() {
    let mut mirror = Mirror::default();
    mirror.add(
        "flipper.io.github.com/flippers",
        json!({"metadata": {"name": "bad", "namespace": "shop"}, "spec": {"interval": 12}, "status": {"conditions": [
            {"type": "Stalled", "status": "True", "reason": "Invalid", "message": "spec.interval: no string"}]}}),
    );
    let cluster = gather("hub", &mirror, Timestamp::UNIX_EPOCH);
    let policy = &cluster.namespaces[0].rows[0];
    assert_eq!(
        (policy.state, policy.word.as_str()),
        (State::Bad, "Invalid")
    );
    assert_eq!(policy.problem, "spec.interval: no string");
}

#[test]
fn the_default_criteria_are_shown_while_they_apply() {
    let mut mirror = Mirror::default();
    let status =
        json!({"matched": 4, "conditions": [{"type": "Ready", "status": "True"}]}).to_string();
    let map = |active: &str| {
        json!({"metadata": {"name": "slipway-restarts", "namespace": "rollout"},
            "data": {"active": active, "criteria": "interval=10m0s labels=mesh=true", "status": status}})
    };
    mirror.add("/configmaps", map("true"));
    let cluster = gather("hub", &mirror, Timestamp::UNIX_EPOCH);
    let policy = &cluster.namespaces[0].rows[0];
    assert_eq!(
        (policy.title.as_str(), policy.name.as_str()),
        ("default criteria", "default criteria")
    );
    assert_eq!(policy.state, State::Good);
    assert_eq!(
        policy.info,
        ["interval=10m0s labels=mesh=true", "4 matched"]
    );
    mirror.add("/configmaps", map("false"));
    assert!(
        gather("hub", &mirror, Timestamp::UNIX_EPOCH)
            .namespaces
            .is_empty()
    );
}

#[test]
fn a_rollout_group_shows_how_far_it_is_and_why_it_waits() {
    let mut mirror = Mirror::default();
    let waiting = json!({"since": "2026-01-02T03:59:00Z", "reason": "NotReady", "message": "1 pod is not ready",
        "object": {"kind": "StatefulSet", "namespace": "shop", "name": "zone-a"}, "unblock": "the pod"});
    let zone = |name: &str, outdated: i64| json!({"name": name, "replicas": 3, "unavailable": 1 - outdated / 3, "outdated": outdated, "maxUnavailable": 1});
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "RollingOut", "message": "",
            "lastTransitionTime": "2026-01-02T03:00:00Z"})
    };
    let status = json!({"group": "db", "zones": [zone("zone-a", 0), zone("zone-b", 3)], "waitingFor": [waiting],
        "conditions": [condition("Ready", "False"), condition("Progressing", "True")]});
    mirror.add(
        "/configmaps",
        json!({"metadata": {"name": "slipway-zones-db", "namespace": "shop",
            "labels": {"slipway.dev/zones-status": "true"}}, "data": {"status": status.to_string()}}),
    );
    let cluster = gather("hub", &mirror, "2026-01-02T04:00:00Z".parse().unwrap());
    let group = &cluster.namespaces[0].rows[0];
    assert_eq!(
        (group.state, group.word.as_str(), group.progress),
        (State::Busy, "RollingOut", Some((3, 6)))
    );
    assert_eq!(
        group.info,
        ["2 zones", "3 pods to be replaced", "1 unavailable"]
    );
    assert!(group.has("StatefulSet", "zone-a") && group.has("StatefulSet", "zone-b"));
    let why = &cluster.waiting[0];
    assert_eq!(
        (why.by.as_str(), why.object.as_str()),
        ("group shop/db", "StatefulSet shop/zone-a")
    );
}

/// A zone of two, whose pods are of the old revision except for `updated`; `down` are starting.
fn zone(mirror: &mut Mirror, name: &str, updated: i64, down: &[i64]) {
    mirror.add(
        "apps/statefulsets",
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 2},
            "spec": {"replicas": 2},
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": updated, "availableReplicas": 2},
        }),
    );
    for ordinal in 0..2_i64 {
        let status = if down.contains(&ordinal) {
            json!({"phase": "Running"})
        } else {
            running()
        };
        let mut pod = pod(&format!("{name}-{ordinal}"), name, &status);
        let hash = if ordinal < updated { "new" } else { "old" };
        pod["metadata"]["labels"] = json!({"controller-revision-hash": hash});
        mirror.add("/pods", pod);
    }
    for (number, hash) in [(1, "old"), (2, "new")] {
        let revision = json!({"metadata": owned(hash, hash, ""), "revision": number});
        mirror.add("apps/controllerrevisions", revision);
    }
}

fn zones(mirror: &mut Mirror, waiting: &Value) -> Vec<(State, String, String)> {
    let zones = ["zone-a", "zone-b"].map(|name| {
        json!({"name": name, "replicas": 2, "unavailable": 0, "outdated": 1, "maxUnavailable": 1})
    });
    let status = json!({"group": "db", "zones": zones,
        "waitingFor": waiting, "conditions": []});
    mirror.add(
        "/configmaps",
        json!({"metadata": {"name": "slipway-zones-db", "namespace": "shop",
            "labels": {"slipway.dev/zones-status": "true"}}, "data": {"status": status.to_string()}}),
    );
    let cluster = gather("hub", mirror, "2026-01-02T04:00:00Z".parse().unwrap());
    let workloads = cluster.namespaces[0].workloads.iter();
    workloads
        .map(|w| (w.state, w.word.clone(), w.info.clone()))
        .collect()
}

#[test]
fn a_zone_that_waits_for_its_turn_is_not_called_rolling() {
    let named = |state, word: &str, info: &str| (state, word.to_owned(), info.to_owned());
    let rolling = || named(State::Busy, "Rolling", "");
    let mut mirror = Mirror::default();
    zone(&mut mirror, "zone-a", 1, &[0]);
    zone(&mut mirror, "zone-b", 0, &[]);
    assert_eq!(
        zones(&mut mirror, &json!([])),
        [rolling(), named(State::Waiting, "Waiting", "for zone-a")]
    );
    // Between two pods it is still the first one's turn.
    zone(&mut mirror, "zone-a", 1, &[]);
    assert_eq!(
        zones(&mut mirror, &json!([])),
        [rolling(), named(State::Waiting, "Waiting", "for its turn")]
    );
    let blocked = json!([{"since": "2026-01-02T03:59:00Z", "reason": "MaxUnavailable", "message": "", "unblock": "",
        "object": {"kind": "StatefulSet", "namespace": "shop", "name": "zone-a"}}]);
    let held = named(State::Waiting, "Waiting", "for its turn (MaxUnavailable)");
    assert_eq!(zones(&mut mirror, &blocked), [held.clone(), held]);
}
