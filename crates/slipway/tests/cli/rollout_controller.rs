//! `slipway rollout-controller` as it is started: the original's flags, Lease, default criteria and reach.

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::operator::{address, eventually, status};
use super::program::{Place, Running, appears, binary, client, wait};

fn said(name: &str, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let place = Place::new(name);
    let mut whole = vec!["rollout-controller"];
    whole.extend(arguments);
    let output = place.run(&whole);
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let text = String::from_utf8(output.stderr).unwrap();
    let lines = text.lines().map(str::to_owned).collect();
    (output.status.code(), lines)
}

#[test]
fn help_and_wrong_flags_are_go_s() {
    let (code, lines) = said("controller-help", &["--help"]);
    assert_eq!(code, Some(0));
    assert_eq!(lines[0], "Usage of rollout-controller:");
    assert!(lines.contains(&"  -leader-elect".to_owned()), "{lines:?}");
    let (code, lines) = said("controller-flag", &["--default-labels=a"]);
    assert_eq!(code, Some(2));
    assert_eq!(lines[0], "flag provided but not defined: -default-labels");
    let (code, lines) = said("controller-level", &["--zap-log-level=loud"]);
    assert_eq!(code, Some(1));
    assert_eq!(lines, ["invalid log level \"loud\""]);
}

#[test]
fn a_link_of_the_controller_s_name_is_enough() {
    let place = Place::new("controller-link");
    let link = place.path("rollout-controller");
    std::os::unix::fs::symlink(binary(), &link).unwrap();
    let output = std::process::Command::new(link).arg("-h").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("Usage of rollout-controller:"), "{text}");
}

async fn make(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["rollout", "shop"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }
    let past = jiff::Timestamp::now() - SignedDuration::from_mins(11);
    let stamp = past.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (namespace, mesh) in [
        ("shop", "true"),
        ("kube-system", "true"),
        ("default", "false"),
    ] {
        let deployment = serde_json::from_value(json!({
            "metadata": {"name": "web", "labels": {"mesh": mesh}, "annotations": {"flipper.io/rollout-last-restart": stamp}},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}},
        }))
        .unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        deployments
            .create(&PostParams::default(), &deployment)
            .await
            .unwrap();
    }
}

async fn is_restarted(client: &Client, namespace: &str) -> bool {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let found = deployments.get("web").await.unwrap();
    let value = serde_json::to_value(found).unwrap();
    value
        .pointer("/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt")
        .is_some()
}

#[test]
fn without_a_flipper_it_restarts_by_the_default_criteria_in_every_namespace() {
    let place = Place::new("controller");
    let admin = place.path("kubeconfig");
    let file = admin.to_str().unwrap();
    let server = [
        "apiserver",
        "--port",
        "0",
        "--crds",
        "--kubeconfig-out",
        file,
    ];
    let server = Running::start(&mut place.command(&server), true);
    appears(&admin);
    wait(async { make(&client(&admin).await).await });
    let operator = [
        "rollout-controller",
        "--leader-elect",
        "--health-probe-bind-address=127.0.0.1:0",
        "--kubeconfig",
        file,
    ];
    let mut command = place.command(&operator);
    command
        .env("POD_NAMESPACE", "rollout")
        .env("POD_NAME", "one");
    let mut operator = Running::start(&mut command, true);
    let probes = address(&operator.line("serving /healthz"));
    wait(async {
        let client = client(&admin).await;
        for namespace in ["shop", "kube-system"] {
            eventually("it is restarted", || async {
                is_restarted(&client, namespace).await.then_some(())
            })
            .await;
        }
        assert!(!is_restarted(&client, "default").await);
        let leases: Api<Lease> = Api::namespaced(client, "rollout");
        let lease = leases.get("d5a9c41d.github.com").await.unwrap();
        assert_eq!(lease.spec.unwrap().holder_identity.unwrap(), "one");
    });
    operator.line("DefaultCriteriaActive");
    assert!(status(&probes, "/readyz").contains("200"));
    assert!(status(&probes, "/healthz").contains("200"));
    assert_eq!(operator.terminate(), Some(0));
    assert_eq!(server.terminate(), Some(0));
}
