//! Zones under exactly the design's Role, and under less.

use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};
use slipway_kernel::ClusterId;
use slipway_kernel::identity::kinds;
use slipway_runtime::tls::{Certificates, Source};
use slipway_runtime::{Environment, Operator, Settings};
use slipway_zones::Zones;
use slipway_zones::observe::Tracker;

use crate::stage::{Replica, Stage, committed, epoch, only_one, secs, virtually};
use crate::tls::{bundle, configuration, entry, environment, handshake, labels, now, wanted};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
pub(crate) const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub(crate) const BUDGETS: &str = "zoneawarepoddisruptionbudgets";
const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

/// The rules of the design, word for word.
pub(crate) fn design() -> Vec<Value> {
    vec![
        rule("", "pods", &["list", "get", "watch", "delete"]),
        rule("apps", "statefulsets", &["list", "get", "watch"]),
        rule("apps", "statefulsets/status", &["update"]),
    ]
}

/// Has zone-aware budgets defined.
pub(crate) async fn define_budgets(stage: &Stage) {
    let mut all = slipway_api::crds::crds().into_iter();
    let definition = all.find(|one| one.spec.names.plural == BUDGETS).unwrap();
    let definition = serde_json::to_value(definition).unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.create(definitions, &definition).await;
    secs(1).await;
}

/// Grants rules to the user that may do nothing else.
pub(crate) async fn grant(stage: &Stage, name: &str, rules: Vec<Value>) {
    let api = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": rules});
    stage.create(ROLES, &role).await;
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": "weak"}],
    });
    stage
        .create(&ROLES.replace("/roles", "/rolebindings"), &binding)
        .await;
}

pub(crate) async fn grant_everywhere(stage: &Stage, name: &str, rules: Vec<Value>) {
    let api = "rbac.authorization.k8s.io";
    let root = format!("/apis/{api}/v1");
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    stage.create(&format!("{root}/clusterroles"), &role).await;
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": "weak"}],
    });
    stage
        .create(&format!("{root}/clusterrolebindings"), &binding)
        .await;
}

fn weak(stage: &Stage) -> Client {
    Client::new(stage.cluster.service("weak").with_agent("one"), "default")
}

fn template(zone: &str) -> Value {
    json!({
        "metadata": {"labels": {"name": zone}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

/// A zone with two pods of the old revision, to be of the new one.
pub(crate) async fn zone(stage: &Stage, name: &str) {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"rollout-group": "ingester"}},
        "spec": {
            "replicas": 2, "serviceName": "ingester", "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"name": name}}, "template": template(name),
        },
    });
    stage.create(SETS, &set).await;
    let status = json!({"status": {
        "observedGeneration": 1, "replicas": 2, "readyReplicas": 2,
        "currentRevision": "old", "updateRevision": "new",
    }});
    stage
        .send("PATCH", &format!("{SETS}/{name}/status"), &status)
        .await;
    for ordinal in 0..2 {
        pod(stage, name, ordinal, "old").await;
    }
}

async fn pod(stage: &Stage, zone: &str, ordinal: usize, revision: &str) {
    let set = stage.get(&format!("{SETS}/{zone}")).await;
    let mut pod = template(zone);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"] = json!({
        "name": format!("{zone}-{ordinal}"),
        "labels": {"name": zone, "controller-revision-hash": revision},
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true,
            "name": zone, "uid": set["metadata"]["uid"],
        }],
    });
    stage.create(PODS, &pod).await;
    let status = json!({"status": {
        "phase": "Running",
        "containerStatuses": [{
            "name": "c", "ready": true, "image": "i", "imageID": "", "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }});
    let path = format!("{PODS}/{zone}-{ordinal}/status");
    stage.send("PATCH", &path, &status).await;
}

const ZONES: [&str; 2] = ["ingester-zone-a", "ingester-zone-b"];

async fn pods(stage: &Stage) -> Vec<(String, String)> {
    let list = stage.get(PODS).await;
    let of = |pod: &Value, path: &str| pod.pointer(path).unwrap().as_str().unwrap().to_owned();
    let revision = "/metadata/labels/controller-revision-hash";
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|pod| (of(pod, "/metadata/name"), of(pod, revision)))
        .collect()
}

/// Is the `StatefulSet` controller for a while: brings back what is missing. Never may two zones have a pod away.
async fn bring_back(stage: &Stage, seconds: u64) {
    for _ in 0..seconds {
        let there = pods(stage).await;
        let mut away = Vec::new();
        for zone in ZONES {
            for ordinal in 0..2 {
                let name = format!("{zone}-{ordinal}");
                if !there.iter().any(|(pod, _)| *pod == name) {
                    away.push((zone, ordinal));
                }
            }
        }
        let zones: Vec<&str> = away.iter().map(|(zone, _)| *zone).collect();
        assert!(zones.windows(2).all(|two| two[0] == two[1]), "{away:?}");
        assert!(away.len() <= 1, "{away:?}");
        for (zone, ordinal) in away {
            pod(stage, zone, ordinal, "new").await;
        }
        secs(1).await;
    }
}

pub(crate) fn start(stage: &Stage) -> Replica {
    let settings = Settings {
        namespace: "default".to_owned(),
        namespaces: vec!["default".to_owned()],
        ..only_one("one")
    };
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, weak(stage), settings);
    Replica::run(operator.with(Arc::new(Zones::default())))
}

async fn rolled_under(rules: Vec<Value>, seconds: u64) -> (Stage, Replica) {
    let stage = Stage::new().await;
    grant(&stage, "rollout-operator-role", rules).await;
    for name in ZONES {
        zone(&stage, name).await;
    }
    let replica = start(&stage);
    bring_back(&stage, seconds).await;
    let all = pods(&stage).await;
    assert!(all.iter().all(|(_, revision)| revision == "new"), "{all:?}");
    for name in ZONES {
        let set = stage.get(&format!("{SETS}/{name}")).await;
        assert_eq!(set["status"]["currentRevision"], "new", "{name}");
        assert_eq!(set["status"]["readyReplicas"], 2, "the rest stays");
    }
    assert!(replica.view.is_ready());
    (stage, replica)
}

fn is_off(replica: &Replica, feature: &str) -> bool {
    let line = format!("slipway_feature_off{{feature=\"{feature}\"}} 1");
    replica.view.metrics().contains(&line)
}

#[test]
fn a_group_rolls_under_exactly_the_designs_role() {
    virtually(async {
        let (stage, replica) = rolled_under(design(), 60).await;
        for feature in [
            "lease slipway-zones",
            "events",
            "watch configmaps",
            "patch statefulsets/status",
        ] {
            assert!(
                is_off(&replica, feature),
                "{feature}: {:?}",
                replica.view.facts().missing
            );
        }
        let others = stage.records(|r| {
            let is_read = matches!(&*r.verb, "get" | "list" | "watch");
            // Asking for one's own rights changes nothing.
            r.agent == "one"
                && committed(r)
                && !is_read
                && !r.resource.contains("selfsubjectaccessreviews")
        });
        let did: Vec<&str> = others.iter().map(|r| r.verb.as_str()).collect();
        assert_eq!(did.iter().filter(|verb| **verb == "delete").count(), 4);
        assert_eq!(did.iter().filter(|verb| **verb == "update").count(), 2);
        assert_eq!(did.len(), 6, "{did:?}");
    });
}

#[test]
fn a_group_rolls_also_where_nothing_may_be_watched() {
    virtually(async {
        let rules = vec![
            rule("", "pods", &["list", "get", "delete"]),
            rule("apps", "statefulsets", &["list", "get"]),
            rule("apps", "statefulsets/status", &["update"]),
        ];
        let (_stage, replica) = rolled_under(rules, 120).await;
        assert!(is_off(&replica, "stream pods"));
        assert!(is_off(&replica, "stream statefulsets"));
    });
}

/// 0013: where the definition of budgets is there and the right to see them is not, the operator is ready and says so, and
/// no pod goes that a budget might be about; with the right the rollout goes on by itself.
#[test]
fn a_group_waits_for_the_right_to_see_budgets_and_the_operator_is_ready() {
    virtually(async {
        let stage = Stage::new().await;
        define_budgets(&stage).await;
        grant(&stage, "rollout-operator-role", design()).await;
        for name in ZONES {
            zone(&stage, name).await;
        }
        let replica = start(&stage);
        secs(5).await;
        for _ in 0..60 {
            assert!(replica.view.is_ready());
            let old = pods(&stage).await;
            assert!(old.iter().all(|(_, revision)| revision == "old"), "{old:?}");
            secs(1).await;
        }
        assert!(is_off(&replica, &format!("see {BUDGETS}")));
        let waits = replica.view.blockers();
        assert!(
            waits
                .iter()
                .any(|b| b.reason == "BudgetsHidden" && b.message.contains(BUDGETS)),
            "{waits:?}"
        );
        let seeing = rule(
            "rollout-operator.grafana.com",
            BUDGETS,
            &["get", "list", "watch"],
        );
        grant(&stage, "budgets", vec![seeing]).await;
        bring_back(&stage, 60).await;
        let all = pods(&stage).await;
        assert!(all.iter().all(|(_, revision)| revision == "new"), "{all:?}");
        assert!(!is_off(&replica, &format!("see {BUDGETS}")));
    });
}

fn tracked(replica: &Replica, namespace: &str) -> Option<usize> {
    let (stores, cluster) = (replica.view.stores(), ClusterId::local());
    let name = "rollout-operator-zone-tracker";
    let map = stores.get::<Tracker>(&cluster, &kinds::CONFIG_MAP, namespace, name);
    map.map(|map| usize::try_from(map.meta.generation).unwrap_or_default())
}

/// Upstream's Role has `get`, `update` and `create` on config maps, and neither `list` nor `watch`.
#[test]
fn the_tracker_is_read_in_the_groups_namespace_also_with_get_alone() {
    for verbs in [&["get", "list", "watch"][..], &["get", "update", "create"]] {
        virtually(async {
            let stage = Stage::new().await;
            let mut rules = design();
            rules.push(rule("", "configmaps", verbs));
            grant(&stage, "rollout-operator-role", rules).await;
            let replica = start(&stage);
            secs(10).await;
            assert!(replica.view.is_ready());
            assert_eq!(tracked(&replica, "default"), None);
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rollout-operator-zone-tracker"}});
            for namespace in ["default", "slipway-system"] {
                let path = format!("/api/v1/namespaces/{namespace}/configmaps");
                stage.create(&path, &map).await;
            }
            secs(6).await;
            assert!(tracked(&replica, "default").is_some(), "{verbs:?}");
            let listed = verbs.contains(&"list");
            for _ in 0..20 {
                assert_eq!(is_off(&replica, "watch configmaps"), !listed);
                secs(1).await;
            }
            assert!(tracked(&replica, "slipway-system").is_none());
        });
    }
}

/// The two roles of the design's section on TLS.
#[test]
fn certificates_are_made_kept_and_injected_under_exactly_the_designs_roles() {
    virtually(async {
        let stage = Stage::new().await;
        let mut named = rule("", "secrets", &["update", "get"]);
        named["resourceNames"] = json!(["rollout-operator-self-signed-certificate"]);
        let rules = vec![rule("", "secrets", &["create"]), named];
        grant(&stage, "rollout-operator-webhook-role", rules).await;
        let name = "rollout-operator-webhook-default-clusterrole";
        let group = "admissionregistration.k8s.io";
        let listing = rule(group, "validatingwebhookconfigurations", &["list", "patch"]);
        grant_everywhere(&stage, name, vec![listing]).await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let mut wanted = wanted();
        wanted.lifetime = std::time::Duration::from_mins(20);
        let source = Source::SelfSigned(wanted);
        let one = Certificates::new(source, environment(), Some(weak(&stage)), None);
        one.prepare().await.unwrap();
        let first = bundle(&stage, "no-downscale-default").await;
        handshake(&one.server_config(), &first, now()).unwrap();
        let kept = one.clone();
        let task = tokio::spawn(async move { kept.keep(std::future::pending()).await });
        secs(14 * 60).await;
        let second = bundle(&stage, "no-downscale-default").await;
        assert_ne!(second, first, "renewed");
        let at = now() + jiff::SignedDuration::from_mins(14);
        handshake(&one.server_config(), &second, at).unwrap();
        let path = "/api/v1/namespaces/default/secrets/rollout-operator-self-signed-certificate";
        let secret = stage.get(path).await;
        assert_eq!(entry(&secret, "ca-previous"), first);
        task.abort();
    });
}
