#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use serde_json::{Value, json};

use super::*;
use crate::field::FieldErrors;
use crate::resource::{Context, Part, Strategy};

fn cx() -> Context<'static> {
    Context {
        version: "v1",
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        user: None,
    }
}

fn texts(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn made(strategy: &dyn Strategy, spec: impl Into<Value>) -> Value {
    let mut object = json!({"metadata": {"name": "d0"}, "spec": spec.into()});
    strategy.default(&mut object, &cx());
    strategy.prepare_create(&mut object, &cx());
    object
}

fn spec() -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]}}})
}

fn kinds() -> [(&'static str, Arc<dyn Strategy>); 4] {
    [
        ("Deployment", Arc::new(deployment::RULES)),
        ("ReplicaSet", Arc::new(replicaset::RULES)),
        ("StatefulSet", Arc::new(statefulset::RULES)),
        ("DaemonSet", Arc::new(daemonset::RULES)),
    ]
}

#[test]
fn defaults_are_those_of_the_real_server() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i",
        "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always"}], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst", "securityContext": {}, "schedulerName": "default-scheduler"}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let deployment = made(&deployment::RULES, spec());
    assert_eq!(
        deployment["spec"],
        json!({"replicas": 1, "selector": selector, "template": template,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    );
    let set = made(&statefulset::RULES, spec());
    assert_eq!(
        set["spec"],
        json!({"replicas": 1, "selector": selector, "template": template,
        "podManagementPolicy": "OrderedReady", "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}})
    );
    let daemons = made(&daemonset::RULES, spec());
    assert_eq!(
        daemons["metadata"]["annotations"],
        json!({"deprecated.daemonset.template.generation": "1"})
    );
    assert_eq!(
        daemons["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    );
    for (name, strategy) in kinds() {
        let object = made(strategy.as_ref(), spec());
        assert_eq!(
            texts(&strategy.validate(&object, &cx())),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn empty_specs_are_told_what_the_real_server_says() {
    let deployment = made(&deployment::RULES, json!({}));
    assert_eq!(
        texts(&deployment::RULES.validate(&deployment, &cx())),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value",
        ]
    );
    let set = made(
        &statefulset::RULES,
        json!({"updateStrategy": {"type": "x"}}),
    );
    assert_eq!(
        texts(&statefulset::RULES.validate(&set, &cx()))[0],
        "spec.updateStrategy: Invalid value: {\"Type\":\"x\",\"RollingUpdate\":null}: must be 'RollingUpdate' or 'OnDelete'"
    );
    let daemons = made(&daemonset::RULES, json!({"updateStrategy": {"type": "x"}}));
    assert_eq!(
        texts(&daemonset::RULES.validate(&daemons, &cx())),
        [
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value",
            "spec.updateStrategy: Unsupported value: {\"Type\":\"x\",\"RollingUpdate\":null}: supported values: \"RollingUpdate\", \"OnDelete\"",
        ]
    );
    let replicas = made(&replicaset::RULES, json!({"selector": {}}));
    assert_eq!(
        texts(&replicaset::RULES.validate(&replicas, &cx())),
        [
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
            "spec.template.spec.containers: Required value",
        ]
    );
}

#[test]
fn selectors_are_immutable() {
    for (name, strategy) in kinds() {
        let old = made(strategy.as_ref(), spec());
        let mut new = old.clone();
        new["spec"]["selector"]["matchLabels"]["x"] = json!("y");
        new["spec"]["template"]["metadata"]["labels"]["x"] = json!("y");
        strategy.prepare_update(Part::Main, &mut new, &old, &cx());
        let want = if name == "StatefulSet" {
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
             are forbidden"
        } else {
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"x\":\"y\"}}: field is immutable"
        };
        assert_eq!(
            texts(&strategy.validate_update(Part::Main, &new, &old, &cx())),
            [want],
            "{name}"
        );
    }
}

#[test]
fn deployments_count_annotations_as_a_generation() {
    let old = made(&deployment::RULES, spec());
    let mut new = old.clone();
    assert!(!deployment::RULES.generation_changed(&new, &old));
    new["metadata"]["annotations"] = json!({"x": "y"});
    assert!(deployment::RULES.generation_changed(&new, &old));
    assert!(!replicaset::RULES.generation_changed(&new, &old));
}

#[test]
fn rolling_updates_need_room() {
    let mut object = made(&deployment::RULES, spec());
    object["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": "0%"});
    assert_eq!(
        texts(&deployment::RULES.validate(&object, &cx())),
        [
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"
        ]
    );
    object["spec"]["strategy"]["rollingUpdate"] =
        json!({"maxUnavailable": "120%", "maxSurge": "x"});
    assert_eq!(
        texts(&deployment::RULES.validate(&object, &cx())),
        [
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"x\": a valid percent string must be a numeric \
             string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"120%\": must not be greater than 100%",
        ]
    );
}

#[test]
fn status_counts_are_consistent() {
    let old = made(&deployment::RULES, spec());
    let mut new = old.clone();
    new["status"] = json!({"replicas": 1, "readyReplicas": 2, "availableReplicas": -1});
    new["spec"]["replicas"] = json!(7);
    new["metadata"]["labels"] = json!({"x": "y"});
    deployment::RULES.prepare_update(Part::Status, &mut new, &old, &cx());
    assert_eq!(new["spec"]["replicas"], 1);
    assert!(new["metadata"].get("labels").is_none());
    assert_eq!(
        texts(&deployment::RULES.validate_update(Part::Status, &new, &old, &cx())),
        [
            "status.availableReplicas: Invalid value: -1: must be greater than or equal to 0",
            "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        ]
    );
}

#[test]
fn daemon_sets_count_their_templates() {
    let old = made(&daemonset::RULES, spec());
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({});
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j");
    daemonset::RULES.prepare_update(Part::Main, &mut new, &old, &cx());
    assert_eq!(
        new["metadata"]["annotations"]["deprecated.daemonset.template.generation"],
        "2"
    );
}

#[test]
fn claim_templates_serve_as_volumes() {
    let mut spec = spec();
    spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    spec["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/d"}]);
    let set = made(&statefulset::RULES, spec);
    assert_eq!(
        texts(&statefulset::RULES.validate(&set, &cx())),
        Vec::<String>::new()
    );
    let claim = &set["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["kind"], "PersistentVolumeClaim");
    assert_eq!(claim["status"], json!({"phase": "Pending"}));
    assert_eq!(claim["spec"]["volumeMode"], "Filesystem");
}

#[test]
fn tables() {
    let mut object = made(&deployment::RULES, spec());
    object["metadata"]["creationTimestamp"] = json!("2025-12-31T23:59:00Z");
    object["status"] = json!({"readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    assert_eq!(
        deployment::RULES.cells(&object, &cx()),
        [
            json!("d0"),
            json!("1/1"),
            json!(1),
            json!(1),
            json!("60s"),
            json!("c"),
            json!("i"),
            json!("a=b")
        ]
    );
    for (name, strategy) in kinds() {
        let object = made(strategy.as_ref(), spec());
        assert_eq!(
            strategy.cells(&object, &cx()).len(),
            strategy.columns("v1").len(),
            "{name}"
        );
    }
    let revision = json!({"metadata": {"name": "r", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet",
        "name": "s", "controller": true}]}, "revision": 2});
    assert_eq!(
        controllerrevision::RULES.cells(&revision, &cx())[1],
        "statefulset.apps/s"
    );
}
