//! Histories of zones that never happened.

use serde_json::{Value, json};
use slipway_api::names::DISRUPTION_CLAIM;
use slipway_kernel::claim::Claim;

use super::made::{Made, object};
use slipway_sim::history::{Call, Event, Review};

const SETS: &str = "apps/statefulsets";
const PODS: &str = "/pods";
const PREPARE: &str = "/admission/prepare-downscale";
const EVICTION: &str = "/admission/pod-eviction";

impl Made {
    fn zone(&mut self, name: &str, more: &Value) {
        let mut value = json!({
            "metadata": {
                "name": name, "uid": name, "generation": 1, "labels": {"rollout-group": "db"}, "annotations": {},
            },
            "spec": {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
            "status": {"observedGeneration": 1, "currentRevision": "old", "updateRevision": "new"},
        });
        super::made::merge(&mut value, more);
        self.put(object(SETS, name), value, None);
    }

    fn pod(&mut self, name: &str, revision: &str, ready: bool) {
        let zone = name.rsplit_once('-').unwrap().0;
        let value = json!({
            "metadata": {
                "name": name, "uid": name, "labels": {"controller-revision-hash": revision, "rollout-group": "db"},
                "ownerReferences": [{"kind": "StatefulSet", "uid": zone, "controller": true}],
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            },
        });
        self.put(object(PODS, name), value, None);
    }

    fn ours(&mut self, method: &str, uri: &str, body: Value) -> u64 {
        let number = self.request(method, uri, body);
        self.last_request().context.controller = "zones".to_owned();
        number
    }

    fn delete(&mut self, name: &str) {
        let preconditions = json!({"preconditions": {"uid": name, "resourceVersion": "1"}});
        let uri = format!("/api/v1/namespaces/shop/pods/{name}");
        let by = self.ours("DELETE", &uri, preconditions);
        let object = object(PODS, name);
        let mut value = self.current(&object);
        value["metadata"]["deletionTimestamp"] = json!("2026-01-05T00:00:30Z");
        self.put(object, value, Some(by));
    }

    /// We change a `StatefulSet`.
    fn change(&mut self, name: &str, change: &Value) {
        let body = json!({"metadata": {"uid": name, "resourceVersion": "1"}});
        let by = self.ours(
            "PATCH",
            &format!("/apis/apps/v1/namespaces/shop/statefulsets/{name}"),
            body,
        );
        let object = object(SETS, name);
        let mut value = self.current(&object);
        super::made::merge(&mut value, change);
        self.put(object, value, Some(by));
    }

    fn review(&mut self, path: &str, asked: Value, uid: &str) {
        let at = self.now();
        let version = self.history.changes.last().unwrap().version;
        self.history.reviews.push(Review {
            replica: "slipway-0-0".to_owned(),
            path: path.to_owned(),
            patience: std::time::Duration::from_secs(10),
            at,
            ended: at + jiff::SignedDuration::from_secs(1),
            asked,
            said: Some(json!({"uid": uid, "allowed": true})),
            versions: (version, version),
        });
    }

    /// What the last review was answered with.
    fn answer(&mut self) -> &mut Value {
        let last = self.history.reviews.last_mut().unwrap();
        last.said.as_mut().unwrap()
    }

    /// A zone-aware budget over all pods.
    fn budget(&mut self, more: &Value) {
        let mut spec = json!({"selector": {"matchLabels": {"rollout-group": "db"}}});
        super::made::merge(&mut spec, more);
        let budgets = "rollout-operator.grafana.com/zoneawarepoddisruptionbudgets";
        let budget = json!({"metadata": {"uid": "budget"}, "spec": spec});
        self.put(object(budgets, "db"), budget, None);
    }

    fn call(&mut self, pod: &str) {
        let at = self.now();
        self.history.calls.push(Call {
            at,
            replica: "slipway-0-0".to_owned(),
            method: "POST".to_owned(),
            url: format!("http://{pod}/prepare"),
            pod: ("shop".to_owned(), pod.to_owned()),
            uid: pod.to_owned(),
            code: Some(200),
        });
    }
}

/// Two zones with two outdated pods each, all well.
fn good() -> Made {
    let mut made = Made::new();
    made.scenario.settings = json!({"controllers": ["zones"]});
    for zone in ["zone-a", "zone-b"] {
        made.zone(zone, &json!({}));
        for ordinal in 0..2 {
            made.pod(&format!("{zone}-{ordinal}"), "old", true);
        }
    }
    made
}

/// The same, and both pods of the first zone are replaced one after the other.
pub(super) fn good_rollout() -> Made {
    let mut made = good();
    made.scenario.quiet = std::time::Duration::ZERO;
    for name in ["zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"] {
        made.pass(30);
        made.delete(name);
        made.pass(30);
        made.pod(name, "new", true);
    }
    made
}

fn downscale(name: &str) -> Value {
    json!({
        "uid": "1", "namespace": "shop", "name": name,
        "oldObject": {"spec": {"replicas": 2}}, "object": {"spec": {"replicas": 1}},
    })
}

/// Labels of a zone whose pods are told.
fn told() -> Value {
    json!({"metadata": {"labels": {"grafana.com/prepare-downscale": "true"}}})
}

fn eviction(name: &str) -> Value {
    json!({"uid": "1", "namespace": "shop", "name": name})
}

/// One bad history for each oracle of zones.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = good();
    let told = told();
    let until = Claim {
        holder: "zones".to_owned(),
        until: made.now() + jiff::SignedDuration::from_hours(1),
    };
    let claim = json!({"metadata": {"annotations": {DISRUPTION_CLAIM: until.render()}}});
    match id {
        "Z1" => {
            made.pod("zone-b-1", "old", false);
            made.delete("zone-a-0");
        }
        "Z2" | "Z6" => {
            made.delete("zone-a-0");
            made.delete("zone-a-1");
        }
        "Z3" => {
            let by = made.ours(
                "PATCH",
                "/api/v1/namespaces/shop/configmaps/slipway-zones-db",
                json!({}),
            );
            let status = json!({"zones": [{"name": "zone-a", "maxUnavailable": 2}]});
            let map = json!({"data": {"group": "db", "status": status.to_string()}});
            made.put(object("/configmaps", "slipway-zones-db"), map, Some(by));
        }
        "Z4" => {
            made.zone(
                "zone-b",
                &json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}),
            );
            made.delete("zone-a-0");
        }
        "Z5" => {
            made.pod("zone-a-0", "new", true);
            made.delete("zone-a-0");
        }
        "Z7" => {
            made.change("zone-a", &claim);
            made.change("zone-b", &claim);
        }
        "Z8" => {
            let leader = json!({"metadata": {"annotations": {"grafana.com/rollout-downscale-leader": "zone-a"}}});
            made.zone("zone-b", &leader);
            made.change("zone-b", &json!({"spec": {"replicas": 1}}));
        }
        "Z9" => {
            made.zone("zone-a", &told);
            made.zone("zone-b", &told);
            made.review(PREPARE, downscale("zone-a"), "1");
            made.review(PREPARE, downscale("zone-b"), "1");
        }
        "Z10" => {
            made.budget(&json!({"podNamePartitionRegex": "zone-[a-z]-([0-9]+)"}));
            made.pod("zone-b-0", "old", false);
            made.review(EVICTION, eviction("zone-a-0"), "1");
        }
        "Z11" => {
            made.call("zone-a-1");
            made.pass(600);
        }
        "Z12" => {
            made.zone(
                "zone-a",
                &json!({"metadata": {"annotations": {"grafana.com/rollout-paused": "true"}}}),
            );
            made.delete("zone-a-0");
        }
        "Z14" => {
            // The zone itself would allow two.
            let two = json!({"metadata": {"annotations": {"rollout-max-unavailable": "2"}}});
            made.zone("zone-a", &two);
            made.budget(&json!({"maxUnavailable": 1}));
            made.delete("zone-a-0");
            made.delete("zone-a-1");
        }
        "Z13" => made.change("zone-a", &json!({"status": {"currentRevision": "new"}})),
        "order" => made.delete("zone-b-0"),
        _ => return bad_review(id),
    }
    Some(made)
}

/// A rollout deletes a pod while another group under the same budget has one down.
pub(super) fn shared_budget(labels: &Value) -> Made {
    let mut made = good();
    let cache = json!({"metadata": {"labels": {"rollout-group": "cache", "team": "store"}}});
    made.zone("cache-a", &cache);
    made.pod("cache-a-0", "old", true);
    made.pod("cache-a-1", "old", false);
    let more = json!({"metadata": {"labels": labels}});
    for zone in ["zone-a", "zone-b"] {
        made.zone(zone, &more);
    }
    let budgets = "rollout-operator.grafana.com/zoneawarepoddisruptionbudgets";
    let selector = json!({"matchLabels": {"team": "store"}});
    let budget = json!({"metadata": {"uid": "b"}, "spec": {"selector": selector}});
    made.put(object(budgets, "store"), budget, None);
    let pod = object(PODS, "zone-a-0");
    let mut value = made.current(&pod);
    super::made::merge(&mut value, &more);
    made.put(pod, value, None);
    made.delete("zone-a-0");
    made
}

/// A rollout deletes a pod after its sender was answered with these codes when it read the budgets, which are defined: a list,
/// and then watches.
pub(super) fn read_budgets(codes: &[u16]) -> Made {
    let mut made = good();
    let definition = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
    let definitions = "apiextensions.k8s.io/customresourcedefinitions";
    made.put(object(definitions, definition), json!({}), None);
    for (n, code) in codes.iter().enumerate() {
        made.pass(2);
        let uri = "/apis/rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets";
        let query = if n == 0 { "" } else { "?watch=true" };
        made.ours("GET", &format!("{uri}{query}"), json!(null));
        made.last_request().ending = slipway_sim::history::Ending::Answered(*code);
    }
    made.pass(2);
    made.delete("zone-a-0");
    made
}

/// Somebody was let go, everything is put back to so many seconds before, 60 seconds after that, and then the rollout goes on.
pub(super) fn evicted_and_restored(back: u64) -> Made {
    let mut made = good();
    made.budget(&json!({}));
    made.review(EVICTION, eviction("zone-b-1"), "1");
    made.pass(30);
    made.restore(back);
    made.pass(1);
    made.delete("zone-a-0");
    made
}

/// A pod that stays was told that it goes, and five minutes later everything is put back to so many seconds before.
pub(super) fn told_and_restored(back: u64) -> Made {
    let mut made = good();
    made.call("zone-a-1");
    made.pass(300);
    made.restore(back);
    made.pass(600);
    made
}

/// Something labelled no-downscale is scaled down so many seconds after a review of that was let pass with a warning.
pub(super) fn scaled_after(seconds: i64) -> Made {
    let mut made = good();
    let fixed = json!({"metadata": {"labels": {"grafana.com/no-downscale": "true"}}});
    made.zone("zone-a", &fixed);
    let hooks = "admissionregistration.k8s.io/validatingwebhookconfigurations";
    made.put(object(hooks, "no-downscale"), json!({}), None);
    made.review("/admission/no-downscale", downscale("zone-a"), "1");
    made.answer()["warnings"] = json!(["it could not be read"]);
    made.pass(seconds);
    let less = json!({"metadata": fixed["metadata"], "spec": {"replicas": 1}});
    made.zone("zone-a", &less);
    made
}

/// A replica stands still for a minute, and so many seconds after that began it answers a review too late.
pub(super) fn late_after_pause(seconds: i64) -> Made {
    let mut made = good();
    let minute = std::time::Duration::from_mins(1);
    made.mark(Event::Paused("slipway-0-0".to_owned(), minute), 0);
    made.pass(seconds);
    made.review(EVICTION, eviction("zone-a-0"), "1");
    let last = made.history.reviews.last_mut().unwrap();
    last.ended = last.at + jiff::SignedDuration::from_secs(10);
    made
}

/// While one eviction waits, one of another zone is let through; its pod is replaced before the first is let through too.
pub(super) fn let_go_meanwhile(is_back: bool) -> Made {
    let mut made = good();
    made.budget(&json!({}));
    made.review(EVICTION, eviction("zone-a-0"), "1");
    let waiting = made.history.reviews.pop();
    made.pass(1);
    made.pod("zone-b-0", "old", true);
    made.review(EVICTION, eviction("zone-b-1"), "1");
    made.pass(4);
    made.pod("zone-b-1", "new", is_back);
    let pod = object(PODS, "zone-b-1");
    let mut another = made.current(&pod);
    another["metadata"]["uid"] = json!("another");
    made.put(pod, another, None);
    let mut waiting = waiting.unwrap();
    waiting.ended = made.now();
    waiting.versions.1 = made.history.changes.last().unwrap().version + 1;
    made.history.reviews.push(waiting);
    made
}

/// One bad history for each oracle of webhooks.
fn bad_review(id: &str) -> Option<Made> {
    let mut made = good();
    match id {
        "W1" => {
            let fixed = json!({"metadata": {"labels": {"grafana.com/no-downscale": "true"}}});
            made.zone("zone-a", &fixed);
            let hooks = "admissionregistration.k8s.io/validatingwebhookconfigurations";
            made.put(object(hooks, "no-downscale"), json!({}), None);
            made.zone("zone-a", &json!({"spec": {"replicas": 1}}));
        }
        "W3" => {
            made.review("/admission/no-downscale", downscale("zone-a"), "1");
            made.answer()["warnings"] = json!(["it could not be read"]);
        }
        "W4" => {
            made.zone("zone-a", &told());
            made.review(PREPARE, downscale("zone-a"), "1");
        }
        "W5" => {
            let mut asked = downscale("zone-a");
            asked["dryRun"] = json!(true);
            made.review(PREPARE, asked, "1");
            made.call("zone-a-1");
        }
        "W6" => made.review(PREPARE, downscale("zone-a"), "2"),
        "W7" => {
            made.budget(&json!({}));
            made.pod("zone-b-1", "old", false);
            made.review(EVICTION, eviction("zone-a-0"), "1");
        }
        "W11" => {
            made.budget(&json!({}));
            made.review(EVICTION, eviction("zone-a-0"), "1");
        }
        "W12" => {
            made.budget(&json!({}));
            let uri = "/api/v1/namespaces/shop/configmaps/slipway-zpdb-db";
            let body = json!({"metadata": {"resourceVersion": "1"}, "data": {"zone-a-0": "soon"}});
            made.ours("PUT", uri, body);
            made.last_request().context.purpose = "write-reservation".to_owned();
            made.last_request().ending = slipway_sim::history::Ending::Answered(500);
            made.review(EVICTION, eviction("zone-a-0"), "1");
        }
        "W9" => {
            made.review(EVICTION, eviction("zone-a-0"), "1");
            made.answer()["patch"] = json!("W10=");
        }
        _ => return None,
    }
    Some(made)
}
