#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use crate::admission::Verdict;
use crate::parts::Parts;
use serde_json::json;

use super::{Version, parse, render};

fn refusal(body: &str, content_type: &str) -> (u16, String) {
    let refusal = parse(body.as_bytes(), content_type, Parts::NONE).unwrap_err();
    (refusal.code, refusal.text)
}

#[test]
fn a_review_of_both_versions_is_read() {
    for (api_version, expected) in [
        ("admission.k8s.io/v1", Version::V1),
        ("admission.k8s.io/v1beta1", Version::V1Beta1),
    ] {
        let body = json!({"apiVersion": api_version, "kind": "AdmissionReview", "request": {
            "uid": "u-1", "operation": "UPDATE", "name": "zone-a", "namespace": "mimir", "subResource": "scale",
            "resource": {"group": "apps", "version": "v1", "resource": "statefulsets"},
            "userInfo": {"username": "me"}, "dryRun": true,
            "object": {"spec": {"replicas": 1}}, "oldObject": {"spec": {"replicas": 2}},
        }});
        let (version, review) =
            parse(body.to_string().as_bytes(), "application/json", Parts::NONE).unwrap();
        assert_eq!(version, expected);
        assert_eq!(review.uid, "u-1");
        assert_eq!(review.subresource, "scale");
        assert_eq!(review.resource, "statefulsets");
        assert_eq!(review.group, "apps");
        assert_eq!(review.old, json!({"spec": {"replicas": 2}}));
        assert!(review.is_dry_run);
    }
}

#[test]
fn what_no_webhook_looks_at_is_not_kept() {
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"object": {
        "kind": "StatefulSet", "status": {"replicas": 3},
        "metadata": {"labels": {"a": "b"}, "managedFields": [{"manager": "x"}]},
        "spec": {"replicas": 3, "list": [1, "x", null, 1.5], "volumeClaimTemplates": [],
            "template": {"metadata": {"labels": {"name": "x"}}, "spec": {"containers": []}}},
    }}});
    let (_, review) = parse(body.to_string().as_bytes(), "application/json", Parts::NONE).unwrap();
    assert_eq!(
        review.object,
        json!({
            "kind": "StatefulSet",
            "metadata": {"labels": {"a": "b"}},
            "spec": {"replicas": 3, "list": [1, "x", null, 1.5], "template": {"metadata": {"labels": {"name": "x"}}}},
        })
    );
    assert_eq!(review.old, json!(null));
}

#[test]
fn only_the_exact_content_type_is_taken() {
    for content_type in ["", "text/plain", "application/json; charset=utf-8"] {
        assert_eq!(
            refusal("{}", content_type),
            (400, "wrong content type".to_owned())
        );
    }
}

#[test]
fn other_kinds_and_broken_bodies_are_refused() {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","request":5}"#;
    assert_eq!(
        refusal(pod, "application/json"),
        (
            400,
            "Unsupported group version kind: /v1, Kind=Pod".to_owned()
        )
    );
    for body in ["", "{", "[]", "5", "{}", r#"{"kind":7}"#] {
        let (code, text) = refusal(body, "application/json");
        assert_eq!(code, 400);
        assert!(text.starts_with("Request could not be decoded: "), "{text}");
    }
}

/// D7: the original's handler dies of both.
#[test]
fn d7_a_review_without_request_or_dry_run_is_no_panic() {
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#;
    let (code, text) = refusal(body, "application/json");
    assert_eq!(code, 400);
    assert_eq!(
        text,
        "Request could not be decoded: the review has no request"
    );
    let body =
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}"#;
    let (_, review) = parse(body.as_bytes(), "application/json", Parts::NONE).unwrap();
    assert!(!review.is_dry_run);
}

#[test]
fn answers_are_written_as_go_writes_them() {
    let allowed = render(Version::V1, "u", &Verdict::allowed());
    assert_eq!(
        allowed,
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}"#
    );
    let warned = render(
        Version::V1Beta1,
        "u",
        &Verdict::warned("pod is <not> ready & \"x\""),
    );
    assert_eq!(
        warned,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"response\":{\"uid\":\"u\",\
         \"allowed\":true,\"warnings\":[\"pod is \\u003cnot\\u003e ready \\u0026 \\\"x\\\"\"]}}"
    );
    let denied = render(Version::V1, "u", &Verdict::denied("no"));
    assert!(
        denied.ends_with(
            r#""response":{"uid":"u","allowed":false,"status":{"metadata":{},"message":"no"}}}"#
        ),
        "{denied}"
    );
    let refused = render(Version::V1, "u", &Verdict::refused(429, "no"));
    assert!(
        refused.ends_with(r#""status":{"metadata":{},"message":"no","code":429}}}"#),
        "{refused}"
    );
}
