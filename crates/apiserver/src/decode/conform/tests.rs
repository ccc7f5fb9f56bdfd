//! Every message here was given by kube-apiserver v1.36.3.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use serde_json::{Value, json};

use crate::decode::tests::decode;

fn pod(body: &str) -> String {
    let message = decode("", "Pod", body).unwrap_err().message;
    message
        .strip_prefix("Pod in version \"v1\" cannot be handled as a Pod: ")
        .unwrap_or(&message)
        .to_owned()
}

#[test]
fn wrong_types_are_named_as_go_names_them() {
    for (body, message) in [
        (
            r#"{"spec":"x"}"#,
            "string into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            r#"{"spec":{"containers":{"name":"x"}}}"#,
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"containers":["x"]}}"#,
            "string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            r#"{"spec":{"containers":[{"resources":{"limits":["cpu"]}}]}}"#,
            "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            r#"{"spec":{"volumes":[{"emptyDir":{"medium":1}}]}}"#,
            "number into Go struct field EmptyDirVolumeSource.spec.volumes.VolumeSource.emptyDir.medium of type v1.StorageMedium",
        ),
        (
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":1.5}}}]}}"#,
            "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}"#,
            "bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            r#"{"spec":{"priority":3000000000}}"#,
            "number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            r#"{"spec":{"terminationGracePeriodSeconds":99999999999999999999}}"#,
            "number 99999999999999999999 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            r#"{"metadata":{"generation":1e400}}"#,
            "number 1e400 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            r#"{"metadata":{"generation":1.0}}"#,
            "number 1.0 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            r#"{"metadata":{"uid":1}}"#,
            "number into Go struct field ObjectMeta.metadata.uid of type types.UID",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            r#"{"metadata":{"creationTimestamp":1}}"#,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        // The first in the text, not the first by name.
        (
            r#"{"spec":{"hostNetwork":"x","containers":1}}"#,
            "string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
    ] {
        assert_eq!(
            pod(body),
            format!("json: cannot unmarshal {message}"),
            "{body}"
        );
    }
    assert_eq!(
        pod(r#"{"spec":{"hostNetwork":"x"},"metadata":{"creationTimestamp":"x"}}"#),
        r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#
    );
    assert_eq!(
        pod(r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}"#),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn bytes_are_checked() {
    let secret = |body: &str| decode("", "Secret", body);
    let message = |body: &str| {
        let message = secret(body).unwrap_err().message;
        message.rsplit(": ").next().unwrap().to_owned()
    };
    for (text, at) in [("!!", 0), ("YWJ", 0), ("YWJj!abc", 4), ("YWJjYWJ", 4)] {
        assert_eq!(
            message(&format!(r#"{{"data":{{"a":"{text}"}}}}"#)),
            format!("illegal base64 data at input byte {at}"),
            "{text}"
        );
    }
    let value = secret(r#"{"data":{"a":[1,2],"b":"YW\nJj","c":null,"d":""}}"#)
        .unwrap()
        .value;
    assert_eq!(
        value["data"],
        json!({"a": "AQI=", "b": "YWJj", "c": "", "d": ""})
    );
}

#[test]
fn a_round_trip_leaves_what_go_leaves() {
    let body = json!({
        "metadata": {"name": "x", "labels": {}, "annotations": {"a": null}, "creationTimestamp": null},
        "spec": {
            "replicas": 0,
            "paused": false,
            "minReadySeconds": 0,
            "template": {"spec": {
                "containers": [{"name": "c", "command": [], "env": [{"name": "E", "value": ""}],
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi", "x": "1n"}}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "nodeSelector": {},
            }},
        },
    });
    let value = decode("apps", "Deployment", &body.to_string())
        .unwrap()
        .value;
    assert_eq!(
        value,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "x", "annotations": {"a": ""}},
            "spec": {
                "replicas": 0,
                "selector": null,
                "strategy": {},
                "template": {"metadata": {}, "spec": {
                    "containers": [{"name": "c", "env": [{"name": "E"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "x": "1m"}}}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                }},
            },
            "status": {},
        })
    );
    let again = decode("apps", "Deployment", &value.to_string())
        .unwrap()
        .value;
    assert_eq!(again, value);
}

#[test]
fn empty_lists_without_omitempty_become_null_when_they_are_stored() {
    let mut role = decode(
        "rbac.authorization.k8s.io",
        "ClusterRole",
        r#"{"rules":[]}"#,
    )
    .unwrap();
    assert_eq!(role.value["rules"], json!([]));
    let schema = crate::schema::table::kind("rbac.authorization.k8s.io", "v1", "ClusterRole");
    crate::decode::settle_empty(&schema, &mut role.value);
    assert_eq!(role.value["rules"], Value::Null);
    assert!(role.value.as_object().unwrap().contains_key("rules"));
}

#[test]
fn schemas_in_definitions_are_typed_all_the_way_down() {
    let body = json!({"spec": {"group": "x", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
        "type": "object", "bogus": 1,
        "properties": {"a": {"type": "array", "items": {"type": "string", "bogus": 1, "minLength": 0}},
            "b": {"additionalProperties": true, "default": {"any": [1.0]}}},
    }}}]}});
    let decoded = decode(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &body.to_string(),
    )
    .unwrap();
    assert_eq!(
        decoded.strict,
        ["unknown field \"spec.versions[0].schema.openAPIV3Schema.bogus\""]
    );
    let properties =
        &decoded.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(
        properties["a"],
        json!({"type": "array", "items": {"type": "string", "minLength": 0}})
    );
    assert_eq!(properties["b"]["additionalProperties"], true);
}
