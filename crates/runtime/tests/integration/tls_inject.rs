//! The CA bundle in webhook configurations: that field, there and nowhere else, again and again.

use serde_json::{Value, json};
use slipway_apiserver::faults::{Frequency, Match};
use tokio::task::JoinHandle;

use crate::stage::{Stage, secs, virtually};
use crate::tls::{
    SECRET, VALIDATING, bundle, certificates, configuration, entry, injection, labels, shown,
    wanted,
};

const RESOURCE: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

async fn kept(stage: &Stage) -> JoinHandle<()> {
    let certificates = certificates(stage, "one", wanted());
    certificates.prepare().await.unwrap();
    tokio::spawn(async move { certificates.keep(std::future::pending()).await })
}

fn patches(stage: &Stage) -> usize {
    let all = stage.records(|r| r.agent == "one" && r.verb == "patch");
    all.len()
}

fn refuse(stage: &Stage, verb: &str, code: u16, reason: &str, frequency: Frequency) {
    let about = Match {
        verb: verb.to_owned(),
        resource: RESOURCE.to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    };
    stage.refuse(about, code, reason, frequency);
}

#[test]
fn only_the_bundle_changes_and_only_once() {
    virtually(async {
        let stage = Stage::new().await;
        configuration(&stage, "no-downscale-default", labels()).await;
        let path = format!("{VALIDATING}/no-downscale-default");
        let before = stage.get(&path).await;
        let task = kept(&stage).await;
        let mut after = stage.get(&path).await;
        let ca = entry(&stage.get(SECRET).await, "ca");
        assert_eq!(bundle(&stage, "no-downscale-default").await, ca);
        for hook in after["webhooks"].as_array_mut().unwrap() {
            let config = hook["clientConfig"].as_object_mut().unwrap();
            assert!(config.remove("caBundle").is_some(), "every webhook has it");
        }
        assert_eq!(after["webhooks"], before["webhooks"]);
        assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
        secs(600).await;
        assert_eq!(patches(&stage), 1, "nothing to do is nothing written");
        task.abort();
    });
}

#[test]
fn it_comes_to_new_and_to_changed_configurations_within_thirty_seconds() {
    virtually(async {
        let stage = Stage::new().await;
        let task = kept(&stage).await;
        let ca = entry(&stage.get(SECRET).await, "ca");
        secs(100).await;
        configuration(&stage, "late", labels()).await;
        secs(29).await;
        assert_eq!(bundle(&stage, "late").await, ca);
        // Somebody applies a manifest with an empty one.
        let path = format!("{VALIDATING}/late");
        let mut emptied = stage.get(&path).await;
        for hook in emptied["webhooks"].as_array_mut().unwrap() {
            hook["clientConfig"]["caBundle"] = Value::Null;
        }
        stage.send("PUT", &path, &emptied).await;
        assert!(bundle(&stage, "late").await.is_empty());
        secs(29).await;
        assert_eq!(bundle(&stage, "late").await, ca);
        task.abort();
    });
}

#[test]
fn what_is_not_labelled_for_us_is_left_alone() {
    virtually(async {
        let stage = Stage::new().await;
        let inject = "grafana.com/inject-rollout-operator-ca";
        let namespace = "grafana.com/namespace";
        let others = [
            ("none", json!({})),
            ("half", json!({inject: "true"})),
            ("other", json!({inject: "true", namespace: "elsewhere"})),
            ("off", json!({inject: "false", namespace: "default"})),
        ];
        for (name, labels) in &others {
            configuration(&stage, name, labels.clone()).await;
        }
        let task = kept(&stage).await;
        secs(60).await;
        for (name, _) in &others {
            assert!(bundle(&stage, name).await.is_empty(), "{name}");
        }
        assert_eq!(patches(&stage), 0);
        task.abort();
    });
}

/// D11: the original's cache looks patched after a failure, and it never tries again.
#[test]
fn a_failed_injection_is_tried_again() {
    for (code, reason) in [
        (500, "InternalError"),
        (409, "Conflict"),
        (429, "TooManyRequests"),
    ] {
        virtually(async {
            let stage = Stage::new().await;
            configuration(&stage, "no-downscale-default", labels()).await;
            let three = Frequency::Count { skip: 0, times: 3 };
            refuse(&stage, "patch", code, reason, three);
            let task = kept(&stage).await;
            assert!(bundle(&stage, "no-downscale-default").await.is_empty());
            secs(10).await;
            let ca = entry(&stage.get(SECRET).await, "ca");
            assert_eq!(bundle(&stage, "no-downscale-default").await, ca);
            assert_eq!(patches(&stage), 4);
            task.abort();
        });
    }
}

#[test]
fn a_missing_right_is_no_failure_is_shown_and_is_noticed_when_granted() {
    for verb in ["list", "patch"] {
        virtually(async {
            let stage = Stage::new().await;
            configuration(&stage, "no-downscale-default", labels()).await;
            refuse(&stage, verb, 403, "Forbidden", Frequency::always());
            let (certificates, view) = shown(&stage);
            certificates.prepare().await.unwrap();
            let task = tokio::spawn(async move { certificates.keep(std::future::pending()).await });
            secs(3_600).await;
            assert!(!task.is_finished());
            let off = format!(
                "slipway_feature_off{{feature=\"{verb} validatingwebhookconfigurations\"}} 1"
            );
            assert!(view.metrics().contains(&off), "{}", view.metrics());
            let asked = stage.records(|r| {
                r.agent == "one" && r.verb == verb && r.resource.contains("validating")
            });
            assert!(asked.len() <= 61, "{} in an hour", asked.len());
            stage.cluster.faults().clear();
            secs(61).await;
            assert!(!view.metrics().contains("slipway_feature_off"));
            let ca = entry(&stage.get(SECRET).await, "ca");
            assert_eq!(bundle(&stage, "no-downscale-default").await, ca);
            task.abort();
        });
    }
}

/// One webhook as an API server keeps it.
fn hook(name: &str, config: &Value) -> Value {
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "clientConfig": config, "sideEffects": "None",
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["statefulsets"]}],
    })
}

/// Another operator of this kind, whose configurations have the same label, and webhooks that are not ours at all
/// beside ours in one configuration.
#[test]
fn webhooks_of_others_keep_their_ca_also_where_no_namespace_is_named() {
    virtually(async {
        let stage = Stage::new().await;
        let service = |name: &str, namespace: &str| json!({"service": {"name": name, "namespace": namespace, "path": "/admission/no-downscale"}});
        let hooks = [
            hook("a.ours.dev", &service("rollout-operator", "default")),
            hook("b.theirs.dev", &service("rollout-operator", "mimir")),
            hook("c.theirs.dev", &service("gatekeeper", "default")),
            hook(
                "d.theirs.dev",
                &json!({"url": "https://example.com/admission"}),
            ),
            hook(
                "e.ours.dev",
                &json!({"url": "https://rollout-operator.default.svc:8443/admission/no-downscale"}),
            ),
        ];
        let theirs = json!("dGhlaXJz");
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "mixed", "labels": labels()},
            "webhooks": hooks.iter().map(|hook| {
                let mut hook = hook.clone();
                hook["clientConfig"]["caBundle"] = theirs.clone();
                hook
            }).collect::<Vec<_>>(),
        });
        stage.create(VALIDATING, &body).await;
        let mut everywhere = wanted();
        everywhere.inject = Some(injection(&[]));
        let certificates = certificates(&stage, "one", everywhere);
        certificates.prepare().await.unwrap();
        let task = tokio::spawn(async move { certificates.keep(std::future::pending()).await });
        secs(600).await;
        let found = stage.get(&format!("{VALIDATING}/mixed")).await;
        let ours: Vec<&str> = found["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|hook| hook["clientConfig"]["caBundle"] != theirs)
            .map(|hook| hook["name"].as_str().unwrap())
            .collect();
        assert_eq!(ours, ["a.ours.dev", "e.ours.dev"]);
        assert_eq!(patches(&stage), 1, "nobody is rewritten again and again");
        task.abort();
    });
}
