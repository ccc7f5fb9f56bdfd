#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::environment::{Call, CallError, InProcess, SeededEntropy};
use crate::value;

/// Webhooks in the process, and what they were sent.
struct Stage {
    dial: InProcess,
    entropy: SeededEntropy,
    seen: Arc<Mutex<Vec<Value>>>,
    namespace: Value,
    user: User,
}

impl Stage {
    fn new() -> Self {
        Self {
            dial: InProcess::default(),
            entropy: SeededEntropy::new(1),
            seen: Arc::default(),
            namespace: json!({"metadata": {"name": "x", "labels": {"team": "a"}}}),
            user: User::new("alice", &["dev"]),
        }
    }

    fn gate(&self) -> Gate<'_> {
        Gate {
            dial: &self.dial,
            entropy: &self.entropy,
            shapes: &AnyShape,
            namespace: Some(&self.namespace),
        }
    }

    /// Registers a webhook that answers with the fields of `answer(object)` besides uid.
    fn serve(&self, name: &str, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        let seen = self.seen.clone();
        self.raw(name, move |call| {
            let review: Value = serde_json::from_slice(&call.body).unwrap();
            seen.lock().unwrap().push(review.clone());
            let mut response = answer(&review["request"]["object"]);
            response["uid"] = review["request"]["uid"].clone();
            let body =
                json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
            Ok((200, body.to_string().into()))
        });
    }

    fn raw(
        &self,
        name: &str,
        answer: impl Fn(Call) -> Result<(u16, bytes::Bytes), CallError> + Send + Sync + 'static,
    ) {
        let answer = Arc::new(answer);
        self.dial.register(
            format!("https://{name}.x.svc:443/"),
            Arc::new(move |call| {
                let answer = answer.clone();
                Box::pin(async move { answer(call) })
            }),
        );
    }

    fn request(&self) -> AdmissionRequest<'_> {
        AdmissionRequest {
            operation: Operation::Create,
            kind: Gvk::new("", "v1", "ConfigMap"),
            resource: Gvr::new("", "v1", "configmaps"),
            subresource: "",
            namespace: "x",
            name: "c",
            object: Some(json!({"metadata": {"name": "c", "labels": {"l": "m"}}})),
            old_object: None,
            options: json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
            dry_run: false,
            user: &self.user,
        }
    }

    async fn mutate(&self, hooks: &[Value]) -> Outcome<Value> {
        let mut request = self.request();
        let mut warnings = Vec::new();
        mutate(&self.gate(), hooks, &mut request, &mut warnings).await?;
        Ok(request.object.unwrap())
    }

    async fn validate(&self, hooks: &[Value]) -> Outcome<Vec<String>> {
        let mut warnings = Vec::new();
        validate(&self.gate(), hooks, &self.request(), &mut warnings).await?;
        Ok(warnings)
    }

    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn configuration(name: &str, changes: &Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.io"),
        "clientConfig": {"service": {"name": name, "namespace": "x"}},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchPolicy": "Equivalent",
    });
    for (key, content) in changes.as_object().unwrap() {
        hook[key] = content.clone();
    }
    json!({"metadata": {"name": name}, "webhooks": [hook]})
}

fn patch(operations: &Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

async fn message(stage: &Stage, changes: Value) -> String {
    let hooks = [configuration("h", &changes)];
    stage.validate(&hooks).await.unwrap_err().message
}

#[tokio::test]
async fn the_review_has_the_shape_of_the_real_one() {
    let stage = Stage::new();
    stage.serve(
        "h",
        |_| json!({"allowed": true, "warnings": ["careful", "", "careful"]}),
    );
    let warnings = stage
        .validate(&[configuration("h", &json!({}))])
        .await
        .unwrap();
    assert_eq!(warnings, ["careful"]);
    let mut review = stage.seen.lock().unwrap()[0].clone();
    let uid = value::take(&mut review, "request.uid").unwrap();
    assert_eq!(uid.as_str().unwrap().len(), 36);
    assert_eq!(
        review,
        json!({
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
                "name": "c",
                "namespace": "x",
                "operation": "CREATE",
                "userInfo": {"username": "alice", "groups": ["dev"]},
                "object": {"metadata": {"name": "c", "labels": {"l": "m"}}},
                "oldObject": null,
                "dryRun": false,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        })
    );
}

#[tokio::test]
async fn denials() {
    for (status, code, text) in [
        (json!(null), 400, " without explanation"),
        (json!({"message": "no"}), 400, ": no"),
        (json!({"reason": "Because"}), 400, ": Because"),
        (json!({"message": "m", "code": 403}), 403, ": m"),
    ] {
        let stage = Stage::new();
        stage.serve("h", move |_| json!({"allowed": false, "status": status}));
        let refusal = stage
            .validate(&[configuration("h", &json!({"failurePolicy": "Ignore"}))])
            .await
            .unwrap_err();
        let expected = format!("admission webhook \"h.io\" denied the request{text}");
        assert_eq!((refusal.code, refusal.message), (code, expected));
    }
    let stage = Stage::new();
    stage.serve("h", |_| {
        json!({"allowed": false, "status": {"message": "busy", "code": 429, "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": 7, "causes": [{"message": "c", "field": "f", "reason": "r"}]}}})
    });
    let refusal = stage.mutate(&[configuration("h", &json!({}))]).await;
    let refusal = refusal.unwrap_err();
    assert_eq!((refusal.code, &*refusal.reason), (429, "TooManyRequests"));
    let details = refusal.details.unwrap();
    assert_eq!(details.retry_after_seconds, Some(7));
    assert_eq!(details.causes.len(), 1);
}

#[tokio::test]
async fn failed_calls() {
    let answers: [(u16, &str, &str); 7] = [
        (
            500,
            "boom",
            "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        (
            404,
            "",
            "failed to call webhook: the server could not find the requested resource",
        ),
        (
            403,
            r#"{"kind":"Status","message":"status msg"}"#,
            "failed to call webhook: status msg",
        ),
        (
            200,
            "",
            "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
        ),
        (
            200,
            "{}",
            "received invalid webhook response: webhook response was absent",
        ),
        (
            200,
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":"yes"}}"#,
            "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
        (
            200,
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{}}"#,
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
    ];
    for (code, body, text) in answers {
        let stage = Stage::new();
        stage.raw("h", move |_| Ok((code, body.into())));
        assert_eq!(
            message(&stage, json!({})).await,
            format!("Internal error occurred: failed calling webhook \"h.io\": {text}")
        );
        let ignored = configuration("h", &json!({"failurePolicy": "Ignore"}));
        assert!(stage.validate(&[ignored]).await.is_ok());
    }
    let stage = Stage::new();
    assert_eq!(
        message(&stage, json!({"timeoutSeconds": 3})).await,
        "Internal error occurred: failed calling webhook \"h.io\": failed to call webhook: Post \"https://h.x.svc:443/?timeout=3s\": context deadline exceeded"
    );
    stage.raw("h", |_| {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "x", "allowed": true}});
        Ok((200, body.to_string().into()))
    });
    assert!(message(&stage, json!({})).await.ends_with(", got \"x\""));
}

#[tokio::test]
async fn dry_run_and_side_effects() {
    let stage = Stage::new();
    stage.serve("h", |_| json!({"allowed": true}));
    let hooks = [configuration(
        "h",
        &json!({"sideEffects": "Unknown", "failurePolicy": "Ignore"}),
    )];
    let mut request = stage.request();
    request.dry_run = true;
    let refusal = mutate(&stage.gate(), &hooks, &mut request, &mut Vec::new()).await;
    let refusal = refusal.unwrap_err();
    assert_eq!(
        (refusal.code, &*refusal.message),
        (400, "admission webhook \"h.io\" does not support dry run")
    );
    let hooks = [configuration("h", &json!({"sideEffects": "NoneOnDryRun"}))];
    let outcome = mutate(&stage.gate(), &hooks, &mut request, &mut Vec::new()).await;
    assert!(outcome.is_ok());
    assert_eq!(stage.seen.lock().unwrap()[0]["request"]["dryRun"], true);
}

#[tokio::test]
async fn who_is_asked() {
    let stage = Stage::new();
    stage.serve("h", |_| json!({"allowed": true}));
    let rule = |changes: Value| {
        let mut rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
        for (key, content) in changes.as_object().unwrap() {
            rule[key] = content.clone();
        }
        json!({"rules": [rule]})
    };
    for (expected, changes) in [
        (true, rule(json!({}))),
        (true, rule(json!({"resources": ["*"]}))),
        (true, rule(json!({"resources": ["configmaps/*"]}))),
        (false, rule(json!({"resources": ["*/scale"]}))),
        (false, rule(json!({"operations": ["UPDATE"]}))),
        (false, rule(json!({"apiGroups": ["apps"]}))),
        (false, rule(json!({"apiVersions": ["v2"]}))),
        (true, rule(json!({"scope": "Namespaced"}))),
        (false, rule(json!({"scope": "Cluster"}))),
        (
            true,
            json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}),
        ),
        (
            false,
            json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}),
        ),
        (
            true,
            json!({"objectSelector": {"matchExpressions": [{"key": "l", "operator": "Exists"}]}}),
        ),
        (
            false,
            json!({"objectSelector": {"matchLabels": {"l": "other"}}}),
        ),
        (
            true,
            json!({"matchConditions": [{"name": "a", "expression": "request.operation == 'CREATE' && object.metadata.labels.l == 'm'"}]}),
        ),
        (
            false,
            json!({"matchConditions": [{"name": "a", "expression": "object.nope == 1"}, {"name": "b", "expression": "oldObject != null"}]}),
        ),
        (
            false,
            json!({"failurePolicy": "Ignore", "matchConditions": [{"name": "a", "expression": "object.nope == 1"}]}),
        ),
    ] {
        let before = stage.calls();
        let hooks = [configuration("h", &changes)];
        stage.validate(&hooks).await.unwrap();
        assert_eq!(stage.calls() > before, expected, "{changes}");
    }
    assert_eq!(
        message(
            &stage,
            json!({"matchConditions": [{"name": "a", "expression": "object.metadata.foo == 1"}]})
        )
        .await,
        "configmaps \"c\" is forbidden: expression 'object.metadata.foo == 1' resulted in error: no such key: foo"
    );
}

#[tokio::test]
async fn configurations_are_never_intercepted() {
    let stage = Stage::new();
    stage.serve("h", |_| json!({"allowed": false}));
    let mut request = stage.request();
    request.kind = Gvk::new(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    let hooks = [configuration("h", &json!({}))];
    let outcome = validate(&stage.gate(), &hooks, &request, &mut Vec::new()).await;
    assert!(outcome.is_ok());
}

#[tokio::test]
async fn a_missing_namespace_is_404_where_it_matters() {
    let stage = Stage::new();
    let gate = Gate {
        namespace: None,
        ..stage.gate()
    };
    let selector = json!({"matchLabels": {"team": "a"}});
    let hooks = [configuration("h", &json!({"namespaceSelector": selector}))];
    let refusal = validate(&gate, &hooks, &stage.request(), &mut Vec::new()).await;
    assert_eq!(refusal.unwrap_err().message, "namespaces \"x\" not found");
    let hooks = [configuration(
        "h",
        &json!({"namespaceSelector": selector, "rules": []}),
    )];
    let outcome = validate(&gate, &hooks, &stage.request(), &mut Vec::new()).await;
    assert!(outcome.is_ok());
}

#[tokio::test]
async fn patches_are_applied_in_order() {
    let stage = Stage::new();
    stage.serve("b", |object| {
        assert_eq!(object["data"], json!({"a": "1"}));
        patch(&json!([{"op": "add", "path": "/data/b", "value": "2"}]))
    });
    stage.serve("a", |_| {
        patch(&json!([{"op": "add", "path": "/data", "value": {"a": "1"}}]))
    });
    let hooks = [
        configuration("b", &json!({})),
        configuration("a", &json!({"admissionReviewVersions": ["v1beta1", "v1"]})),
    ];
    let object = stage.mutate(&hooks).await.unwrap();
    assert_eq!(object["data"], json!({"a": "1", "b": "2"}));
    assert_eq!(stage.calls(), 2);
}

#[tokio::test]
async fn reinvocation_of_those_who_came_before_a_change() {
    let stage = Stage::new();
    let count = |object: &Value| {
        let n = object["n"].as_i64().unwrap_or_default() + 1;
        patch(&json!([{"op": "add", "path": "/n", "value": n}]))
    };
    stage.serve("a", count);
    stage.serve("b", |object| {
        if object["b"].is_null() {
            patch(&json!([{"op": "add", "path": "/b", "value": true}]))
        } else {
            json!({"allowed": true})
        }
    });
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = [configuration("a", &again), configuration("b", &json!({}))];
    let object = stage.mutate(&hooks).await.unwrap();
    assert_eq!(object["n"], 2);
    assert_eq!(stage.calls(), 3);

    let hooks = [configuration("a", &json!({})), configuration("b", &again)];
    let object = stage.mutate(&hooks).await.unwrap();
    assert_eq!(object["n"], 1, "the last one to change is not asked again");
}

#[tokio::test]
async fn bad_patches() {
    for (response, text) in [
        (
            json!({"allowed": true, "patch": STANDARD.encode("[{}]")}),
            "failed calling webhook \"h.io\": received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            json!({"allowed": true, "patchType": "JSONPatch"}),
            "failed calling webhook \"h.io\": received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        (
            json!({"allowed": true, "patchType": "Merge", "patch": STANDARD.encode("[{}]")}),
            "failed calling webhook \"h.io\": unsupported patch type \"Merge\"",
        ),
        (
            json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode("{}")}),
            "failed calling webhook \"h.io\": received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
    ] {
        let stage = Stage::new();
        stage.serve("h", move |_| response.clone());
        let refusal = stage.mutate(&[configuration("h", &json!({}))]).await;
        assert_eq!(
            refusal.unwrap_err().message,
            format!("Internal error occurred: {text}")
        );
    }
    let stage = Stage::new();
    stage.serve("h", |_| patch(&json!([{"op": "remove", "path": "/nope"}])));
    let hooks = [configuration("h", &json!({"failurePolicy": "Ignore"}))];
    let refusal = stage.mutate(&hooks).await.unwrap_err();
    assert_eq!(
        refusal.message,
        "Internal error occurred: error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value"
    );
    let mut request = stage.request();
    request.operation = Operation::Delete;
    request.object = None;
    let refusal = mutate(&stage.gate(), &hooks, &mut request, &mut Vec::new()).await;
    assert!(
        refusal
            .unwrap_err()
            .message
            .contains("attempted to modify the object")
    );
}

#[tokio::test]
async fn scale_requests_carry_no_labels_of_the_parent() {
    let stage = Stage::new();
    stage.serve("h", |_| json!({"allowed": false}));
    let scale = json!({"kind": "Scale", "metadata": {"name": "c"}, "spec": {"replicas": 0}});
    let mut request = stage.request();
    request.operation = Operation::Update;
    request.kind = Gvk::new("autoscaling", "v1", "Scale");
    request.subresource = "scale";
    request.object = Some(scale.clone());
    request.old_object = Some(&scale);
    let with = [configuration(
        "h",
        &json!({"objectSelector": {"matchLabels": {"l": "m"}}}),
    )];
    let outcome = validate(&stage.gate(), &with, &request, &mut Vec::new()).await;
    assert!(outcome.is_ok());
    let without = [configuration("h", &json!({}))];
    let outcome = validate(&stage.gate(), &without, &request, &mut Vec::new()).await;
    assert!(outcome.is_err());
    assert_eq!(
        stage.seen.lock().unwrap()[0]["request"]["subResource"],
        "scale"
    );
}

#[tokio::test]
async fn all_validating_webhooks_are_asked_and_the_first_refusal_counts() {
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        stage.serve(name, move |_| json!({"allowed": name == "a", "status": {"message": name}, "warnings": [name]}));
    }
    let hooks = ["c", "b", "a"].map(|name| configuration(name, &json!({})));
    let mut warnings = Vec::new();
    let refusal = validate(&stage.gate(), &hooks, &stage.request(), &mut warnings).await;
    assert!(refusal.unwrap_err().message.ends_with(": b"));
    assert_eq!(warnings, ["a", "b", "c"]);
}

/// Serves `configmaps` also as `v2`, where `data` is called `content`.
struct TwoVersions;

impl Shapes for TwoVersions {
    fn equivalents(&self, _resource: &Gvr, _subresource: &str) -> Vec<(Gvr, Gvk)> {
        ["v1", "v2"]
            .map(|v| (Gvr::new("", v, "configmaps"), Gvk::new("", v, "ConfigMap")))
            .to_vec()
    }

    fn convert<'a>(&'a self, object: &'a Value, to: &'a Gvk) -> BoxFuture<'a, Outcome<Value>> {
        let (from, into) = if to.version == "v2" {
            ("data", "content")
        } else {
            ("content", "data")
        };
        let mut object = object.clone();
        if let Some(content) = value::take(&mut object, from) {
            value::put(&mut object, into, content);
        }
        Box::pin(async move { Ok(object) })
    }
}

#[tokio::test]
async fn equivalent_versions() {
    let stage = Stage::new();
    stage.serve("h", |_| {
        patch(&json!([{"op": "add", "path": "/content", "value": "z"}]))
    });
    let gate = Gate {
        shapes: &TwoVersions,
        ..stage.gate()
    };
    let rules = json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v2"], "resources": ["configmaps"]}]);
    let mut request = stage.request();
    let exact = [configuration(
        "h",
        &json!({"rules": rules, "matchPolicy": "Exact"}),
    )];
    mutate(&gate, &exact, &mut request, &mut Vec::new())
        .await
        .unwrap();
    assert_eq!(stage.calls(), 0);
    let equivalent = [configuration("h", &json!({"rules": rules}))];
    mutate(&gate, &equivalent, &mut request, &mut Vec::new())
        .await
        .unwrap();
    assert_eq!(request.object.unwrap()["data"], "z");
    let sent = stage.seen.lock().unwrap()[0]["request"].clone();
    assert_eq!(sent["kind"]["version"], "v2");
    assert_eq!(sent["requestKind"]["version"], "v1");
}
