#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use serde_json::{Value, json};

use super::*;

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

fn pod() -> Value {
    let mut pod = json!({"metadata": {"name": "p1"}, "spec": {"nodeName": "n1", "containers": [{"name": "c",
        "image": "nginx", "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}]}});
    Pods.default(&mut pod, &cx());
    Pods.prepare_create(&mut pod, &cx());
    pod
}

#[test]
fn a_new_pod_is_complete() {
    let pod = pod();
    assert_eq!(
        pod["status"],
        json!({"phase": "Pending", "qosClass": "Guaranteed"})
    );
    assert_eq!(pod["spec"]["priority"], 0);
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(texts(&Pods.validate(&pod, &cx())), Vec::<String>::new());
}

#[test]
fn an_empty_spec_is_told_what_is_missing() {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {}, "name": ""}, {"name": "a", "image": "b",
        "volumeMounts": [{"name": "v", "mountPath": "/x"}]}]}});
    Pods.default(&mut pod, &cx());
    assert_eq!(
        texts(&Pods.validate(&pod, &cx())),
        [
            "spec.containers[0].name: Required value",
            "spec.containers[0].image: Required value",
            "spec.containers[1].volumeMounts[0].name: Not found: \"v\"",
        ]
    );
}

#[test]
fn a_forbidden_change_shows_the_difference() {
    let old = pod();
    let mut new = old.clone();
    new["spec"]["containers"][0]["env"][0]["value"] = json!("c");
    new["spec"]["hostNetwork"] = json!(true);
    Pods.default(&mut new, &cx());
    Pods.prepare_update(Part::Main, &mut new, &old, &cx());
    assert_eq!(
        texts(&Pods.validate_update(Part::Main, &new, &old, &cx())),
        [concat!(
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,",
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing ",
            "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n",
            "@@ -11,7 +11,7 @@\n    \"Ports\": [\n     {\n      \"Name\": \"\",\n-     \"HostPort\": 0,\n",
            "+     \"HostPort\": 80,\n      \"ContainerPort\": 80,\n      \"Protocol\": \"TCP\",\n      \"HostIP\": \"\"\n",
            "@@ -21,7 +21,7 @@\n    \"Env\": [\n     {\n      \"Name\": \"A\",\n-     \"Value\": \"b\",\n",
            "+     \"Value\": \"c\",\n      \"ValueFrom\": null\n     }\n    ],\n@@ -64,7 +64,7 @@\n",
            "  \"AutomountServiceAccountToken\": null,\n  \"NodeName\": \"n1\",\n  \"SecurityContext\": {\n",
            "-  \"HostNetwork\": false,\n+  \"HostNetwork\": true,\n   \"HostPID\": false,\n   \"HostIPC\": false,\n",
            "   \"ShareProcessNamespace\": null,\n"
        )]
    );
}

#[test]
fn images_deadlines_and_tolerations_may_change() {
    let old = pod();
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = json!("nginx:2");
    new["spec"]["activeDeadlineSeconds"] = json!(5);
    new["spec"]["tolerations"]
        .as_array_mut()
        .unwrap()
        .push(json!({"key": "x", "operator": "Exists"}));
    assert_eq!(
        texts(&Pods.validate_update(Part::Main, &new, &old, &cx())),
        Vec::<String>::new()
    );
    assert!(Pods.generation_changed(&new, &old));
    new["spec"]["tolerations"] = json!([]);
    assert_eq!(
        texts(&Pods.validate_update(Part::Main, &new, &old, &cx())),
        [
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        ]
    );
}

#[test]
fn a_pod_on_a_node_gets_its_grace() {
    let mut pod = pod();
    assert_eq!(Pods.grace_seconds(&pod, None), 30);
    assert_eq!(Pods.grace_seconds(&pod, Some(0)), 0);
    assert_eq!(Pods.grace_seconds(&pod, Some(-5)), 1);
    pod["status"]["phase"] = json!("Succeeded");
    assert_eq!(Pods.grace_seconds(&pod, None), 0);
    pod["spec"]["nodeName"] = json!("");
    assert_eq!(Pods.grace_seconds(&pod, Some(5)), 0);
}

#[test]
fn binding_is_once() {
    let mut pod = pod();
    let binding = json!({"target": {"kind": "Node", "name": "n2"}});
    let refused = subresource::bind(&mut pod, &binding, cx().now).unwrap_err();
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on pods/binding \"p1\": pod p1 is already assigned to node \"n1\""
    );
    crate::value::take(&mut pod, "spec.nodeName");
    subresource::bind(&mut pod, &binding, cx().now).unwrap();
    assert_eq!(pod["spec"]["nodeName"], "n2");
    assert!(condition::is_true(&pod, "PodScheduled"));
}

#[test]
fn the_status_keeps_its_class_and_its_endings() {
    let mut old = pod();
    old["spec"]["restartPolicy"] = json!("Never");
    old["status"]["containerStatuses"] =
        json!([{"name": "c", "state": {"terminated": {"exitCode": 0}}}]);
    let mut new = old.clone();
    new["spec"]["nodeName"] = json!("other");
    new["status"] =
        json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]});
    Pods.prepare_update(Part::Status, &mut new, &old, &cx());
    assert_eq!(new["spec"]["nodeName"], "n1");
    assert_eq!(new["status"]["qosClass"], "Guaranteed");
    assert_eq!(
        texts(&Pods.validate_update(Part::Status, &new, &old, &cx())),
        [
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
        ]
    );
}
