//! What is installed stops nobody while it is down, beside what it is there to stop.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::install::{apply, cluster_with, objects};
use super::program::{Place, succeeded, wait};

const ZONES: [&str; 4] = ["manifests", "--controllers", "zones", "--webhooks"];

fn printed(place: &Place, more: &[&str]) -> Vec<Value> {
    objects(&succeeded(&place.run(&[&ZONES[..], more].concat())))
}

fn of<'a>(all: &'a [Value], kind: &str) -> Vec<&'a Value> {
    all.iter().filter(|o| o["kind"] == kind).collect()
}

/// All entries of all registrations.
fn hooks(all: &[Value]) -> Vec<&Value> {
    let kinds = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ];
    let of_kind = kinds.into_iter().flat_map(|kind| of(all, kind));
    of_kind
        .flat_map(|o| o["webhooks"].as_array().unwrap())
        .collect()
}

/// W8, whatever is asked for.
#[test]
fn registrations_select_by_namespace_and_by_label_only_whole_objects() {
    let place = Place::new("registrations");
    let variants: [&[&str]; 4] = [
        &[],
        &["-n", "mimir"],
        &["-n", "mimir,loki", "--operator-namespace", "home"],
        &["-n", "mimir", "--operator-namespace", "mimir"],
    ];
    for variant in variants {
        let all = printed(&place, variant);
        let hooks = hooks(&all);
        assert_eq!(hooks.len(), 6, "{variant:?}");
        for hook in hooks {
            let name = &hook["name"];
            let selector = &hook["namespaceSelector"];
            let terms = selector["matchExpressions"].as_array().unwrap();
            assert_eq!(terms.len(), 1, "{variant:?} {name}");
            let values: Vec<&str> = terms[0]["values"]
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_str().unwrap())
                .collect();
            if variant.is_empty() {
                // Nobody is asked for whom nobody has said so.
                assert_eq!(selector["matchLabels"]["slipway.dev/webhooks"], "enabled");
                assert_eq!(terms[0]["operator"], "NotIn");
                assert_eq!(values, ["kube-system", "rollout"]);
            } else {
                assert_eq!(terms[0]["operator"], "In");
                let named: Vec<&str> = variant[1].split(',').collect();
                assert_eq!(values, named);
            }
            let resources = hook["rules"][0]["resources"].as_array().unwrap();
            let is_part = |r: &Value| r.as_str().unwrap().contains('/');
            let is_apps = hook["rules"][0]["apiGroups"][0] == "apps";
            let is_selected = hook.get("objectSelector").is_some();
            if resources.iter().any(is_part) {
                assert!(!is_selected, "reviews of these carry no labels: {hook}");
            } else if is_apps {
                assert!(is_selected, "all workloads are asked about: {hook}");
            }
        }
    }
}

fn workload(kind: &str, name: &str, labels: &Value) -> Value {
    let mut spec = json!({
        "replicas": 3,
        "selector": {"matchLabels": {"name": name}},
        "template": {
            "metadata": {"labels": {"name": name}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    });
    if kind == "StatefulSet" {
        spec["serviceName"] = json!("app");
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec})
}

async fn put(client: &Client, namespace: &str, mut object: Value) {
    object["metadata"]["namespace"] = json!(namespace);
    apply(client, &[object]).await;
}

/// A Deployment and a pod that nobody has labelled for us, and a zone that somebody has.
async fn furnish(client: &Client, namespace: &str) {
    put(
        client,
        namespace,
        workload("Deployment", "plain", &json!({})),
    )
    .await;
    let labels = json!({"grafana.com/no-downscale": "true", "rollout-group": "g"});
    put(client, namespace, workload("StatefulSet", "zone", &labels)).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain-1"},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    put(client, namespace, pod).await;
}

fn image(to: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": to}]}}}})
}

/// What people do to a namespace; gives what was refused.
async fn meddle(client: &Client, namespace: &str) -> Vec<&'static str> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let usual = PatchParams::default();
    let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let mut refused = Vec::new();
    let mut note = |what: &'static str, is_refused: bool| {
        if is_refused {
            refused.push(what);
        }
    };
    let newer = image("app:2");
    let newer = Patch::Strategic(&newer);
    let set_image = deployments.patch("plain", &usual, &newer).await;
    note("set image", set_image.is_err());
    let guarded = sets.patch("zone", &usual, &newer).await;
    note("set image of a labelled one", guarded.is_err());
    let scaled = deployments.patch_scale("plain", &usual, &fewer).await;
    note("scale", scaled.is_err());
    let drained = pods.evict("plain-1", &EvictParams::default()).await;
    note("drain", drained.is_err());
    refused
}

/// Nothing answers for the webhooks here: the operator is down.
#[test]
fn an_operator_that_is_down_stops_only_what_it_guards() {
    let place = Place::new("down");
    let all = printed(&place, &["-n", "mimir"]);
    wait(async {
        let client = cluster_with(&["mimir", "team"]).await;
        for namespace in ["mimir", "team"] {
            furnish(&client, namespace).await;
        }
        apply(&client, &all).await;
        assert_eq!(meddle(&client, "team").await, [""; 0]);
        let guarded = ["set image of a labelled one", "scale", "drain"];
        assert_eq!(meddle(&client, "mimir").await, guarded);
        repair(&client, "rollout").await;
    });
}

#[test]
fn a_whole_cluster_that_has_it_installed_and_down_goes_on() {
    let place = Place::new("whole");
    let all = printed(&place, &[]);
    wait(async {
        let client = cluster_with(&["team", "mimir"]).await;
        for namespace in ["team", "mimir"] {
            furnish(&client, namespace).await;
        }
        apply(&client, &all).await;
        assert_eq!(meddle(&client, "team").await, [""; 0]);
        // Somebody asks for it.
        let asked = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "mimir", "labels": {"slipway.dev/webhooks": "enabled"}},
        });
        apply(&client, &[asked]).await;
        let guarded = ["set image of a labelled one", "scale", "drain"];
        assert_eq!(meddle(&client, "mimir").await, guarded);
    });
}

/// The original is installed beside what it looks after.
#[test]
fn an_operator_in_the_namespace_that_it_guards_can_be_repaired_while_it_is_down() {
    let place = Place::new("beside");
    let all = printed(&place, &["-n", "mimir", "--operator-namespace", "mimir"]);
    assert!(of(&all, "Namespace").is_empty(), "it is somebody's own");
    wait(async {
        let client = cluster_with(&["mimir"]).await;
        furnish(&client, "mimir").await;
        apply(&client, &all).await;
        let guarded = ["set image of a labelled one", "scale", "drain"];
        assert_eq!(meddle(&client, "mimir").await, guarded);
        repair(&client, "mimir").await;
    });
}

/// Another image, no replica, two again, and its pods drained.
async fn repair(client: &Client, namespace: &str) {
    let usual = PatchParams::default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "slipway:2"}]}}}});
    let patch = Patch::Strategic(patch);
    let patched = deployments.patch("rollout-operator", &usual, &patch);
    patched.await.unwrap();
    for replicas in [0, 2] {
        let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let scaled = deployments.patch_scale("rollout-operator", &usual, &scale);
        scaled.await.unwrap();
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rollout-operator-1"},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    put(client, namespace, pod).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    pods.evict("rollout-operator-1", &EvictParams::default())
        .await
        .unwrap();
}

#[test]
fn two_replicas_apart_go_one_after_the_other_and_answer_until_nobody_asks() {
    let place = Place::new("replicas");
    let all = printed(&place, &["-n", "mimir", "--", "--webhooks-drain", "20s"]);
    let deployment = of(&all, "Deployment")[0];
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_i64();
    let grace = pod["terminationGracePeriodSeconds"].as_i64().unwrap();
    assert!(grace >= sleep.unwrap() + 20 + 20, "{grace}");
    assert_eq!(
        pod["topologySpreadConstraints"].as_array().unwrap().len(),
        2
    );
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let budget = of(&all, "PodDisruptionBudget")[0];
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
    let policy = of(&all, "NetworkPolicy")[0];
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], labels);
    let ports: Vec<&Value> = policy["spec"]["ingress"][0]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| &port["port"])
        .collect();
    assert_eq!(ports, [8001, 8443]);
}

#[test]
fn a_manifest_installs_its_own_kinds_only() {
    let place = Place::new("kinds");
    for (controllers, expected) in [
        ("restarts", &["Flipper"][..]),
        (
            "zones",
            &["ReplicaTemplate", "ZoneAwarePodDisruptionBudget"],
        ),
        (
            "restarts,zones",
            &["Flipper", "ReplicaTemplate", "ZoneAwarePodDisruptionBudget"],
        ),
    ] {
        for command in ["manifests", "crds"] {
            let all = place.run(&[command, "--controllers", controllers]);
            let all = objects(&succeeded(&all));
            let kinds: Vec<&str> = of(&all, "CustomResourceDefinition")
                .into_iter()
                .map(|o| o["spec"]["names"]["kind"].as_str().unwrap())
                .collect();
            assert_eq!(kinds, expected, "{command} of {controllers}");
        }
    }
}

#[test]
fn what_cannot_be_installed_is_refused_before_anything_is_printed() {
    let place = Place::new("refused");
    let refused: [(&[&str], &str); 13] = [
        (&["--image", ""], "an image has a name"),
        (&["--image", "a b"], "an image has a name"),
        (&["--operator-namespace", "Not_One"], "a namespace has"),
        (&["--operator-namespace", ""], "a namespace has"),
        (&["-n", "mimir,-x"], "a namespace has"),
        (&["-n", "kube-system", "--webhooks"], "kube-system"),
        (&["--replicas", "0"], "--replicas"),
        (&["--", "--no-such-flag"], "--no-such-flag"),
        (&["--", "--controllers", "restarts"], "before the --"),
        (&["--", "--bind", "127.0.0.1"], "leave the others out"),
        (
            &["--", "--tls-self-signed-secret-name", "other"],
            "leave the others out",
        ),
        (
            &["--", "--tls-self-signed-dns-name", "other"],
            "leave the others out",
        ),
        (
            &["--replicas", "2", "--", "--no-leader-elect"],
            "one replica",
        ),
    ];
    for (more, why) in refused {
        let output = place.run(&[&["manifests", "--controllers", "zones"], more].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {text}");
        assert!(text.contains(why), "{more:?}: {text}");
        assert!(output.stdout.is_empty(), "{more:?}");
    }
}

#[test]
fn the_operator_s_own_flags_are_part_of_its_manifest() {
    let place = Place::new("flags");
    let more = [
        "-n",
        "mimir",
        "--",
        "--log-format",
        "json",
        "--strict-admission",
    ];
    let all = printed(&place, &more);
    let container = &of(&all, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
    let told: Vec<&str> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap())
        .collect();
    assert!(
        told.ends_with(&["--log-format", "json", "--strict-admission"]),
        "{told:?}"
    );
}

#[test]
fn one_controller_can_be_removed_without_the_namespace_of_another() {
    let place = Place::new("no-namespace");
    let all = printed(&place, &["-n", "mimir", "--no-crds", "--no-namespace"]);
    assert!(of(&all, "Namespace").is_empty());
    assert!(of(&all, "CustomResourceDefinition").is_empty());
    assert_eq!(of(&all, "Deployment").len(), 1);
}
