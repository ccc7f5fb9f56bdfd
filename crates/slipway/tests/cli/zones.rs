//! The original's manifests with our binary: its arguments, its roles, its webhooks, on `slipway apiserver --actors`.

use std::path::Path;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::install::{apply, objects};
use super::operator::{address, eventually, get, kubeconfig_of, status};
use super::program::{Place, Running, appears, client, succeeded, wait};

const NAMESPACE: &str = "default";
const ZONES: [&str; 3] = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

/// What the original is given: no Leases, no Events, few rights to `ConfigMap`s.
fn roles() -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let subjects =
        json!([{"kind": "ServiceAccount", "name": "rollout-operator", "namespace": NAMESPACE}]);
    let role = |kind: &str, name: &str, rules: Value| {
        let mut metadata = json!({"name": name});
        if kind == "Role" {
            metadata["namespace"] = json!(NAMESPACE);
        }
        [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": subjects,
            }),
        ]
    };
    let mut all = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "rollout-operator", "namespace": NAMESPACE},
    })];
    let zpdb = ["zoneawarepoddisruptionbudgets"];
    let rules = json!([
        rule("", &["pods"], &["list", "get", "watch", "delete", "patch"]),
        rule(
            "apps",
            &["statefulsets"],
            &["list", "get", "watch", "patch"]
        ),
        rule("apps", &["statefulsets/status"], &["update"]),
        rule("", &["configmaps"], &["get", "update", "create"]),
        rule(
            "rollout-operator.grafana.com",
            &zpdb,
            &["get", "list", "watch"]
        ),
    ]);
    all.extend(role("Role", "rollout-operator-role", rules));
    let mut secret = rule("", &["secrets"], &["update", "get"]);
    secret["resourceNames"] = json!(["rollout-operator-self-signed-certificate"]);
    let rules = json!([rule("", &["secrets"], &["create"]), secret]);
    all.extend(role("Role", "rollout-operator-webhook-role", rules));
    let hooks = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ];
    let group = "admissionregistration.k8s.io";
    let rules = json!([rule(group, &hooks, &["list", "patch", "watch"])]);
    all.extend(role(
        "ClusterRole",
        "rollout-operator-webhook-clusterrole",
        rules,
    ));
    all
}

fn zone(name: &str, image: &str, most: &str, labels: &Value) -> Value {
    let mut all = json!({"rollout-group": "ingester"});
    for (key, value) in labels.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": all,
            "annotations": {
                "rollout-max-unavailable": most,
                "grafana.com/prepare-downscale-http-path": "prepare",
                "grafana.com/prepare-downscale-http-port": "80",
            },
        },
        "spec": {
            "replicas": 2, "serviceName": "ingester", "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"name": name}},
            "template": {
                "metadata": {"labels": {"name": name, "rollout-group": "ingester"}},
                "spec": {"containers": [{"name": "a", "image": image}]},
            },
        },
    })
}

/// A registration as the original's, but for an operator outside of the cluster.
fn hook(name: &str, address: &str) -> Value {
    let port = address.rsplit(':').next().unwrap();
    let (group, operation, resources) = match name {
        "pod-eviction" => ("", "CREATE", vec!["pods/eviction"]),
        _ => ("apps", "UPDATE", vec!["statefulsets", "statefulsets/scale"]),
    };
    let kind = match name {
        "prepare-downscale" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {
            "name": format!("{name}-{NAMESPACE}"),
            "labels": {
                "grafana.com/inject-rollout-operator-ca": "true",
                "grafana.com/namespace": NAMESPACE,
            },
        },
        "webhooks": [{
            "name": format!("{name}-{NAMESPACE}.grafana.com"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://localhost:{port}/admission/{name}")},
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
            "sideEffects": if name == "prepare-downscale" { "NoneOnDryRun" } else { "None" },
            "rules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": [operation], "scope": "Namespaced",
                "resources": resources,
            }],
        }],
    })
}

/// Two zones of another group that no node takes.
fn stuck() -> [Value; 2] {
    ["stuck-zone-a", "stuck-zone-b"].map(|name| {
        let mut zone = zone(name, "a:1", "1", &json!({"rollout-group": "stuck"}));
        let template = &mut zone["spec"]["template"];
        template["metadata"]["labels"]["rollout-group"] = json!("stuck");
        template["spec"]["nodeSelector"] = json!({"is": "nowhere"});
        zone
    })
}

async fn images(client: &Client) -> Vec<(String, String)> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let all = pods.list(&ListParams::default()).await.unwrap();
    let is_ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    all.iter()
        .filter(|pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none())
        .map(|pod| {
            let container = &pod.spec.as_ref().unwrap().containers[0];
            let name = pod.metadata.name.clone().unwrap();
            (name, container.image.clone().unwrap())
        })
        .collect()
}

/// Waits until all pods are ready with this image.
async fn all_are(client: &Client, image: &str) {
    eventually(image, || async {
        let all = images(client).await;
        let done = all.len() == 6 && all.iter().all(|(_, of)| of == image);
        done.then_some(())
    })
    .await;
}

async fn roll(client: &Client) {
    let zones = |image: &str| {
        // One has a budget that is none.
        let most = |name: &str| if name == ZONES[0] { "0" } else { "2" };
        ZONES.map(|name| zone(name, image, most(name), &json!({})))
    };
    apply(client, &zones("a:1")).await;
    all_are(client, "a:1").await;
    apply(client, &zones("a:2")).await;
    all_are(client, "a:2").await;
}

/// What an API server says to a downscale of the first zone.
async fn scaled_down(client: &Client) -> String {
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), NAMESPACE);
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let scaled = sets
        .patch_scale(ZONES[0], &PatchParams::default(), &scale)
        .await;
    match scaled {
        Err(kube::Error::Api(refused)) => refused.message.clone(),
        other => panic!("it was not refused: {other:?}"),
    }
}

async fn guard(client: &Client, address: &str) {
    apply(client, &[hook("no-downscale", address)]).await;
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let trusts = |hook: ValidatingWebhookConfiguration| {
        let first = hook.webhooks.unwrap_or_default().into_iter().next()?;
        first.client_config.ca_bundle
    };
    eventually("the CA is injected", || async {
        trusts(hooks.get("no-downscale-default").await.unwrap())
    })
    .await;
    let label = json!({"grafana.com/no-downscale": "true"});
    apply(client, &[zone(ZONES[0], "a:2", "1", &label)]).await;
    assert_eq!(
        scaled_down(client).await,
        "admission webhook \"no-downscale-default.grafana.com\" denied the request: downscale of \
         statefulsets/ingester-zone-a in default from 2 to 1 replicas is not allowed because it has the label \
         'grafana.com/no-downscale=true'"
    );
}

/// Pods that are to be prepared, and cannot be reached.
async fn prepare(client: &Client, address: &str) {
    let budget = json!({
        "apiVersion": "rollout-operator.grafana.com/v1", "kind": "ZoneAwarePodDisruptionBudget",
        "metadata": {"name": "ingester", "namespace": NAMESPACE},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"rollout-group": "ingester"}}},
    });
    apply(client, &[budget]).await;
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    hooks
        .delete("no-downscale-default", &DeleteParams::default())
        .await
        .unwrap();
    let label = json!({"grafana.com/prepare-downscale": "true"});
    apply(client, &[zone(ZONES[0], "a:2", "1", &label)]).await;
    apply(client, &[hook("prepare-downscale", address)]).await;
    let refused = eventually("the CA is injected", || async {
        let said = scaled_down(client).await;
        (!said.contains("failed calling webhook")).then_some(said)
    })
    .await;
    assert!(
        refused.contains(
            "downscale of statefulsets/ingester-zone-a in default from 2 to 1 replicas is not allowed because one or \
             more pods failed to prepare for shutdown. ingester-zone-a-1: http://ingester-zone-a-1."
        ),
        "{refused}"
    );
}

/// Pods of all zones are evicted at the same moment: the budget has room for one. The client tries again where it is refused,
/// so that only the numbers tell of that.
async fn evict(client: &Client, address: &str, probes: &str) {
    apply(client, &[hook("pod-eviction", address)]).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let denied = "rollout_operator_zpdb_eviction_requests_total{reason=\"denied\",status=\"429\"} ";
    eventually("an eviction is refused", || async {
        let names = ZONES.map(|zone| format!("{zone}-1"));
        let asked = EvictParams::default();
        let all = names.iter().map(|pod| pods.evict(pod, &asked));
        futures::future::join_all(all).await;
        get(probes, "/metrics").contains(denied).then_some(())
    })
    .await;
}

/// The original's metrics, each with the labels that dashboards and alerts look at.
const METRICS: [&str; 18] = [
    "rollout_operator_group_reconciles_total{rollout_group=\"ingester\"}",
    "rollout_operator_group_reconciles_failed_total{rollout_group=\"ingester\"}",
    "rollout_operator_group_reconcile_duration_seconds_bucket{le=\"0.005\",rollout_group=\"ingester\"}",
    "rollout_operator_last_successful_group_reconcile_timestamp_seconds{rollout_group=\"ingester\"}",
    "rollout_operator_request_duration_seconds_count{method=\"POST\",route=\"admission_no_downscale\",status_code=\"200\",ws=\"false\"}",
    "rollout_operator_request_duration_seconds_count{method=\"GET\",route=\"ready\",status_code=\"200\",ws=\"false\"}",
    "rollout_operator_request_message_bytes_count{method=\"POST\",route=\"admission_pod_eviction\"}",
    "rollout_operator_response_message_bytes_count{method=\"GET\",route=\"metrics\"}",
    "rollout_operator_inflight_requests{method=\"POST\",route=\"admission_zpdb_validation\"}",
    "rollout_operator_kubernetes_api_client_request_duration_seconds_count{path=\"core/v1/pods object\",method=\"DELETE\",status_code=\"200\"}",
    "rollout_operator_kubernetes_api_client_rate_limited_requests_total{api_group=\"core\"}",
    "rollout_operator_pod_http_client_request_duration_seconds_count{path=\"/prepare\",method=\"POST\",status_code=\"error\"}",
    "rollout_operator_zpdb_configurations_observed_total{result=\"updated\"}",
    "rollout_operator_zpdb_inflight_eviction_requests ",
    "rollout_operator_zpdb_eviction_requests_total{reason=\"allowed\",status=\"200\"}",
    "rollout_operator_zpdb_eviction_requests_total{reason=\"denied\",status=\"429\"}",
    "rollout_operator_server_invalid_cluster_validation_label_requests_total{protocol=\"http\",method=\"other\",cluster_validation_label=\"default\",request_cluster_validation_label=\"\"} 1",
    "kube_validating_webhook_failure_policy{policy=\"Fail\",type=\"MutatingWebhook\",webhook=\"prepare-downscale-default.grafana.com\"} 1",
];

fn measured(address: &str) {
    let unnamed = status(address, "/debug/vars");
    assert!(
        unnamed.contains("511"),
        "a request without X-Cluster: {unnamed}"
    );
    let text = get(address, "/metrics");
    let missing: Vec<&&str> = METRICS
        .iter()
        .filter(|name| !text.lines().any(|line| line.starts_with(**name)))
        .collect();
    assert!(missing.is_empty(), "{missing:#?} are not in {text}");
    assert!(
        text.contains("slipway_feature_off{feature=\"lease slipway-zones\"} 1"),
        "a missing right is not shown"
    );
}

/// The lines that the original's runbooks look for, and the design's level for a budget of nothing.
fn logged(operator: &mut Running) {
    operator.catch_up();
    for (level, text) in [
        ("debug", "msg=\"reconcile started\""),
        ("debug", "msg=\"reconcile done\""),
        ("info", "msg=\"terminating pod ingester-zone-a-"),
        ("info", " pod=ingester-zone-c-1 "),
        ("warn", "Annotation rollout-max-unavailable: \\\"0\\\""),
        ("warn", "one replica is assumed"),
        ("info", "msg=\"pod eviction allowed\""),
        ("info", "msg=\"pod eviction denied\""),
        ("info", "method=admission.PodEviction()"),
        ("info", " object.name=ingester-zone-"),
        ("info", " object.namespace=default"),
        ("info", " object.resource=pods"),
        ("info", " request.uid="),
        ("info", "msg=\"Pod not considered ready\""),
        (
            "error",
            "has RollingUpdate update strategy while OnDelete is expected, skipping reconcile",
        ),
        ("warn", "msg=\"reconcile failed\""),
        (
            "warn",
            "StatefulSets have some not-Ready pods, skipping reconcile: stuck-zone-",
        ),
    ] {
        let begin = format!("level={level} ts=");
        let is_it = |line: &&String| line.starts_with(&begin) && line.contains(text);
        assert!(
            operator.seen.iter().any(|line| is_it(&line)),
            "no line {level} {text}: {:#?}",
            operator.seen
        );
    }
    let once = |text: &str| operator.seen.iter().filter(|l| l.contains(text)).count();
    assert_eq!(once("one replica is assumed"), 1);
    assert_eq!(once("no events can be told"), 1);
}

async fn observe(admin: &Path, probes: &str, webhooks: &str) {
    let client = client(admin).await;
    eventually("it is ready", || async {
        status(probes, "/ready").contains("200").then_some(())
    })
    .await;
    roll(&client).await;
    guard(&client, webhooks).await;
    prepare(&client, webhooks).await;
    evict(&client, webhooks, probes).await;
    let mut wrong = zone("ingester-zone-d", "a:2", "1", &json!({}));
    wrong["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    apply(&client, &[wrong]).await;
    apply(&client, &stuck()).await;
    let failed = "rollout_operator_group_reconciles_failed_total{rollout_group=\"ingester\"} ";
    let stuck = "rollout_operator_group_reconciles_total{rollout_group=\"stuck\"} ";
    eventually("a pass over pods that no node takes", || async {
        get(probes, "/metrics").contains(stuck).then_some(())
    })
    .await;
    eventually("a failed pass", || async {
        let text = get(probes, "/metrics");
        let line = text.lines().find(|line| line.starts_with(failed))?;
        (!line.ends_with(" 0")).then_some(())
    })
    .await;
}

#[test]
fn the_original_s_arguments_and_roles_start_our_binary_and_a_group_is_rolled() {
    let place = Place::new("zones");
    let admin = place.path("kubeconfig");
    let file = admin.to_str().unwrap();
    let server = [
        "apiserver",
        "--port",
        "0",
        "--actors",
        "--crds",
        "--kubeconfig-out",
        file,
    ];
    let server = Running::start(&mut place.command(&server), true);
    appears(&admin);
    let own = wait(async {
        apply(&client(&admin).await, &roles()).await;
        kubeconfig_of(&place, &admin, NAMESPACE, "rollout-operator").await
    });
    let text = std::fs::read_to_string(&own).unwrap();
    let url = text.split("server: ").nth(1).unwrap();
    let url = url.lines().next().unwrap().trim_matches('"');
    // The original's own arguments, and those that let it run outside of a pod.
    let operator = [
        "rollout-operator",
        "-kubernetes.namespace=default",
        "-use-zone-tracker=true",
        "-zone-tracker.config-map-name=rollout-operator-zone-tracker",
        "-zpdb.pod-ready-annotation-patch-timeout=5s",
        "-server-tls.enabled=true",
        "--log.level=debug",
        "-kubernetes.api-url",
        url,
        "-kubernetes.config-file",
        own.to_str().unwrap(),
        "-server.port=0",
        "-server-tls.port=0",
        "-server-tls.self-signed-cert.dns-name=localhost",
        "-pods.client-timeout=1s",
        "-server.cluster-validation.http.enabled=true",
    ];
    let mut operator = Running::start(&mut place.command(&operator), true);
    let probes = address(&operator.line("serving /healthz"));
    let webhooks = address(&operator.line("serving webhooks"));
    wait(observe(&admin, &probes, &webhooks));
    measured(&probes);
    logged(&mut operator);
    assert_eq!(operator.terminate(), Some(0));
    assert_eq!(server.terminate(), Some(0));
}

async fn install(place: &Place, admin: &Path) -> std::path::PathBuf {
    let asked = [
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--namespace",
        NAMESPACE,
    ];
    let all = objects(&succeeded(&place.run(&asked)));
    // There is no network in which the webhooks' Service would lead anywhere.
    let all: Vec<Value> = all
        .into_iter()
        .filter(|o| {
            !o["kind"]
                .as_str()
                .unwrap()
                .ends_with("WebhookConfiguration")
        })
        .collect();
    apply(&client(admin).await, &all).await;
    kubeconfig_of(place, admin, "rollout", "rollout-operator").await
}

#[test]
fn under_our_own_role_nothing_is_missing() {
    let place = Place::new("zones-run");
    let admin = place.path("kubeconfig");
    let file = admin.to_str().unwrap();
    let server = [
        "apiserver",
        "--port",
        "0",
        "--actors",
        "--kubeconfig-out",
        file,
    ];
    let server = Running::start(&mut place.command(&server), true);
    appears(&admin);
    let own = wait(install(&place, &admin));
    let operator = [
        "run",
        "--controllers",
        "zones",
        "--webhooks",
        "--namespace",
        NAMESPACE,
        "--kubeconfig",
        own.to_str().unwrap(),
        "--port",
        "0",
        "--webhooks-port",
        "0",
        "--webhooks-drain",
        "0s",
        "--bind",
        "127.0.0.1",
    ];
    let mut operator = Running::start(&mut place.command(&operator), true);
    let probes = address(&operator.line("serving /healthz"));
    wait(async {
        let client = client(&admin).await;
        eventually("it is ready", || async {
            status(&probes, "/ready").contains("200").then_some(())
        })
        .await;
        roll(&client).await;
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let done = || async {
            let map = maps.get_opt("slipway-zones-ingester").await.unwrap()?;
            let status = map.data?.get("status")?.clone();
            let is_done = status.contains("all pods are up to date and ready");
            is_done.then_some(())
        };
        eventually("the group's status", done).await;
    });
    let text = get(&probes, "/metrics");
    assert!(!text.contains("slipway_feature_off{"), "{text}");
    let of_restarts = |line: &&str| line.contains("restart") || line.contains("flipper");
    let foreign: Vec<&str> = text.lines().filter(of_restarts).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    assert!(text.contains("\nslipway_build_info{"), "{text}");
    assert!(
        text.contains("slipway_leader{controller=\"zones\"} 1"),
        "{text}"
    );
    operator.catch_up();
    let refused =
        |line: &&String| line.contains("write not done") || line.contains("goes on without");
    let refused: Vec<&String> = operator.seen.iter().filter(refused).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert_eq!(operator.terminate(), Some(0));
    assert_eq!(server.terminate(), Some(0));
}
