//! What `slipway crds` and `slipway manifests` print is what an API server takes.

use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::discovery::{ApiResource, Scope};
use serde_json::Value;
use slipway_apiserver::cluster::Config;
use slipway_apiserver::environment::InProcess;

use super::program::{Place, succeeded, wait};

/// Objects of a stream of YAML documents.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// Applies objects as `kubectl apply --server-side` does, each to a kind that the server must know by then.
pub(crate) async fn apply(client: &Client, objects: &[Value]) {
    for object in objects {
        let types: kube::core::TypeMeta = serde_json::from_value(object.clone()).unwrap();
        let kind = kube::core::GroupVersionKind::try_from(&types).unwrap();
        let (resource, capabilities): (ApiResource, _) =
            kube::discovery::pinned_kind(client, &kind).await.unwrap();
        let namespace = object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let api: Api<DynamicObject> = match (capabilities.scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            (Scope::Cluster, None) => Api::all_with(client.clone(), &resource),
            (scope, namespace) => {
                panic!("{kind:?} is {scope:?} and has the namespace {namespace:?}")
            }
        };
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap();
        let applied = api
            .patch(name, &PatchParams::apply("kubectl"), &Patch::Apply(object))
            .await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", types.kind));
    }
}

fn cluster() -> Client {
    let cluster = Config::seeded("test", 1, Arc::new(InProcess::default()))
        .with_admin("token")
        .build();
    Client::new(cluster.service("token"), "default")
}

pub(crate) async fn cluster_with(namespaces: &[&str]) -> Client {
    let client = cluster();
    for name in namespaces {
        let namespace = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        apply(&client, &[namespace]).await;
    }
    client
}

#[test]
fn the_definitions_are_accepted_and_fit_a_client_side_apply() {
    let place = Place::new("crds");
    let text = succeeded(&place.run(&["crds"]));
    assert_eq!(
        text,
        succeeded(&place.run(&["crds"])),
        "the order is not stable"
    );
    let definitions = objects(&text);
    for definition in &definitions {
        assert_eq!(definition["kind"], "CustomResourceDefinition");
        // What `kubectl apply` writes into an annotation, whose limit is 256 KiB.
        assert!(definition.to_string().len() < 262_144);
    }
    wait(async {
        let client = cluster();
        apply(&client, &definitions).await;
        let flipper = serde_json::json!({
            "apiVersion": "flipper.io.github.com/v1alpha1", "kind": "Flipper",
            "metadata": {"name": "a", "namespace": "default"}, "spec": {"interval": "1d"},
        });
        apply(&client, &[flipper]).await;
    });
}

#[test]
fn the_manifests_are_accepted_under_the_names_of_the_design() {
    let place = Place::new("manifests");
    let all = objects(&succeeded(&place.run(&["manifests"])));
    wait(async {
        let client = cluster();
        apply(&client, &all).await;
    });
    let named = |kind: &str, name: &str| {
        let found = all
            .iter()
            .find(|o| o["kind"] == kind && o["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    };
    named("Namespace", "rollout");
    named("ServiceAccount", "controller-manager");
    named("CustomResourceDefinition", "flippers.flipper.io.github.com");
    let deployment = named("Deployment", "rollout-controller");
    assert_eq!(deployment["metadata"]["namespace"], "rollout");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "controller-manager");
    assert_eq!(
        pod["containers"][0]["readinessProbe"]["httpGet"]["path"],
        "/ready"
    );
}

#[test]
fn the_container_is_told_what_the_program_understands() {
    let place = Place::new("container");
    let all = objects(&succeeded(&place.run(&[
        "manifests",
        "--image",
        "registry/slipway:1",
        "--replicas",
        "2",
    ])));
    let deployment = all.iter().find(|o| o["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry/slipway:1");
    let arguments = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap());
    // Its own arguments, but with a kubeconfig that is not there: it gets as far as reading it.
    let arguments: Vec<&str> = arguments.chain(["--kubeconfig", "/nowhere/kc"]).collect();
    let output = place.run(&arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("/nowhere/kc"), "{text}");
}

/// The names and fields that the design and the original's manifests have.
#[test]
fn the_manifests_of_zones_register_their_webhooks_under_the_original_s_names() {
    let place = Place::new("manifests-zones");
    let asked = [
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--operator-namespace",
        "mimir",
        "--namespace",
        "mimir,loki",
    ];
    let all = objects(&succeeded(&place.run(&asked)));
    wait(async { apply(&cluster_with(&["mimir", "loki"]).await, &all).await });
    let named = |kind: &str, name: &str| {
        let found = all
            .iter()
            .find(|o| o["kind"] == kind && o["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    };
    let deployment = named("Deployment", "rollout-operator");
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["spec"]["serviceAccountName"], "rollout-operator");
    let service = named("Service", "rollout-operator");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8443);
    for (label, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(&pod["metadata"]["labels"][label], value, "{label}");
    }
    for (kind, name) in [
        ("ValidatingWebhookConfiguration", "no-downscale"),
        ("MutatingWebhookConfiguration", "prepare-downscale"),
        ("ValidatingWebhookConfiguration", "pod-eviction"),
        ("ValidatingWebhookConfiguration", "zpdb-validation"),
    ] {
        let object = named(kind, &format!("{name}-mimir"));
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["grafana.com/inject-rollout-operator-ca"], "true");
        assert_eq!(labels["grafana.com/namespace"], "mimir");
        let hooks = object["webhooks"].as_array().unwrap();
        assert_eq!(hooks[0]["name"], format!("{name}-mimir.grafana.com"));
        for hook in hooks {
            assert_eq!(hook["failurePolicy"], "Fail");
            let service = &hook["clientConfig"]["service"];
            assert_eq!(service["path"], format!("/admission/{name}"));
            let places = &hook["namespaceSelector"]["matchExpressions"][0]["values"];
            assert_eq!(places, &serde_json::json!(["mimir", "loki"]));
        }
    }
    // Rights are in the namespaces that are looked after; only webhooks are registered outside of them.
    for role in all.iter().filter(|o| o["kind"] == "ClusterRole") {
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["apiGroups"][0], "admissionregistration.k8s.io");
        }
    }
}

/// Whatever is asked for, an API server takes it, the ports are those of the program, and so are the rights.
#[test]
fn every_variant_of_the_manifests_of_zones_is_whole() {
    let place = Place::new("manifests-variants");
    let zones = ["--controllers", "zones"];
    let variants: [&[&str]; 8] = [
        &[],
        &["--webhooks"],
        &["--namespace", "mimir"],
        &["--namespace", "mimir", "--webhooks"],
        &["--namespace", "mimir,loki", "--webhooks"],
        &["--operator-namespace", "mimir", "--webhooks"],
        &["--replicas", "3", "--webhooks"],
        &["--image", "registry/slipway:1", "--webhooks"],
    ];
    for variant in variants {
        let asked = [&["manifests"], &zones[..], variant].concat();
        let all = objects(&succeeded(&place.run(&asked)));
        wait(async { apply(&cluster_with(&["mimir", "loki"]).await, &all).await });
        let of = |kind: &str| all.iter().filter(|o| o["kind"] == kind).collect::<Vec<_>>();
        let deployments = of("Deployment");
        let [deployment] = deployments.as_slice() else {
            panic!("{variant:?}: {} Deployments", deployments.len())
        };
        // Replicas agree by a Lease, so the next one comes before the last one goes (0017).
        assert!(deployment["spec"].get("strategy").is_none());
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let ports = container["ports"].as_array().unwrap().iter();
        let ports: Vec<i64> = ports
            .map(|p| p["containerPort"].as_i64().unwrap())
            .collect();
        let served = variant.contains(&"--webhooks");
        let expected: &[i64] = if served { &[8001, 8443] } else { &[8001] };
        assert_eq!(ports, expected, "{variant:?}");
        let mut effects: Vec<(String, String)> = of("ValidatingWebhookConfiguration")
            .into_iter()
            .chain(of("MutatingWebhookConfiguration"))
            .map(|o| {
                let hook = &o["webhooks"][0];
                let path = hook["clientConfig"]["service"]["path"].as_str().unwrap();
                let effects = hook["sideEffects"].as_str().unwrap();
                (path.replace("/admission/", ""), effects.to_owned())
            })
            .collect();
        effects.sort();
        let expected: &[(&str, &str)] = &[
            ("no-downscale", "None"),
            ("pod-eviction", "NoneOnDryRun"),
            ("prepare-downscale", "NoneOnDryRun"),
            ("zpdb-validation", "None"),
        ];
        let effects: Vec<(&str, &str)> = effects
            .iter()
            .map(|(path, effects)| (path.as_str(), effects.as_str()))
            .collect();
        assert_eq!(effects, if served { expected } else { &[] }, "{variant:?}");
        let rules: Vec<String> = of("Role")
            .into_iter()
            .chain(of("ClusterRole"))
            .flat_map(|role| role["rules"].as_array().unwrap())
            .map(Value::to_string)
            .collect();
        for (resource, verb) in [
            ("pods", "delete"),
            ("statefulsets", "patch"),
            ("statefulsets/status", "update"),
            ("zoneawarepoddisruptionbudgets", "watch"),
            ("configmaps", "create"),
            ("leases", "create"),
        ] {
            let is_granted = |rule: &&String| {
                rule.contains(&format!("\"{resource}\"")) && rule.contains(&format!("\"{verb}\""))
            };
            assert!(
                rules.iter().any(|rule| is_granted(&rule)),
                "{variant:?} does not grant {verb} on {resource}: {rules:#?}"
            );
        }
    }
}

#[test]
fn webhooks_are_refused_where_there_are_none() {
    let place = Place::new("no-webhooks");
    for command in ["manifests", "run"] {
        let output = place.run(&[command, "--controllers", "restarts", "--webhooks"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            text.contains("--webhooks needs --controllers zones"),
            "{text}"
        );
    }
}

#[test]
fn nothing_is_granted_that_lets_others_in() {
    let place = Place::new("roles");
    let all = objects(&succeeded(&place.run(&["manifests"])));
    let mut rules = 0;
    for role in all
        .iter()
        .filter(|o| o["kind"] == "ClusterRole" || o["kind"] == "Role")
    {
        for rule in role["rules"].as_array().unwrap() {
            rules += 1;
            let text = rule.to_string();
            for never in [
                "\"*\"",
                "secrets",
                "rbac.authorization.k8s.io",
                "escalate",
                "impersonate",
            ] {
                assert!(
                    !text.contains(never),
                    "{}: {text}",
                    role["metadata"]["name"]
                );
            }
        }
    }
    assert!(rules > 5);
}

/// Flux prunes what it applied: with the definition of assemblages would go all that clusters have.
#[test]
fn the_fleets_definitions_and_namespace_are_not_pruned() {
    let place = Place::new("pruned");
    let is_kept = |object: &Value| {
        let kept = &object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"];
        kept == "disabled"
    };
    for (controller, kept) in [("agent", true), ("fleet", true), ("restarts", false)] {
        let text = succeeded(&place.run(&["manifests", "--controllers", controller]));
        for object in objects(&text) {
            let kind = object["kind"].as_str().unwrap();
            let is_meant = ["Namespace", "CustomResourceDefinition"].contains(&kind);
            let name = &object["metadata"]["name"];
            assert_eq!(
                is_kept(&object),
                is_meant && kept,
                "{controller}: {kind} {name}"
            );
        }
    }
}
