#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "tests"
)]

mod hold;
mod late;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::Value;
use slipway_kernel::admission::{Admission, Count, InFlight, Remarks, Verdict};
use tokio::time::Instant;

use super::Limits;
use stage::{Pods, Toy, allowed, ask, body, operator, post, questions, review, said};

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_the_webhook_of_its_path_and_is_answered_in_its_version() {
    let refuses = Toy::new("/admission/toy", |_, _| {
        (
            Admission::Decide(Verdict::refused(429, "wait"), Vec::new()),
            Remarks::default(),
        )
    });
    let lets = Toy::new("/admission/other", |_, _| allowed());
    let admissions = operator(Pods::silent())
        .admitting(vec![Arc::new(refuses), Arc::new(lets)])
        .admissions();
    let response = admissions.answer(post("/admission/toy", "u-1")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["response"]["uid"], "u-1");
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 429);
    let beta = body(&review("u-2")).replace("k8s.io/v1", "k8s.io/v1beta1");
    let request = post("/admission/other?timeout=5s", "u-2").map(|_| Bytes::from(beta));
    let answer = said(&admissions.answer(request).await);
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(answer["response"]["allowed"], true);
    let response = admissions.answer(post("/admission/none", "u-3")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_review_is_refused_with_the_original_s_words() {
    let toy = Toy::new("/admission/toy", |_, _| allowed());
    let admissions = operator(Pods::silent())
        .limited(Limits {
            body_bytes: 4_096,
            ..Limits::default()
        })
        .admitting(vec![Arc::new(toy)])
        .admissions();
    let send = |kind: &str, body: Vec<u8>| {
        let request = Request::post("/admission/toy").header("content-type", kind);
        let request = request.body(Bytes::from(body)).unwrap();
        let admissions = admissions.clone();
        async move {
            let response = admissions.answer(request).await;
            let text = String::from_utf8_lossy(response.body()).into_owned();
            (response.status().as_u16(), text)
        }
    };
    let good = body(&review("u")).into_bytes();
    assert_eq!(send("application/json", good.clone()).await.0, 200);
    for kind in ["", "text/plain", "application/json; charset=utf-8"] {
        let refused = send(kind, good.clone()).await;
        assert_eq!(refused, (400, "wrong content type\n".to_owned()));
    }
    let (code, text) = send("application/json", b"{".to_vec()).await;
    assert_eq!(code, 400);
    assert!(text.starts_with("Request could not be decoded: "), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    let pod = br#"{"apiVersion":"v1","kind":"Pod"}"#.to_vec();
    let (code, text) = send("application/json", pod).await;
    assert_eq!(code, 400);
    assert_eq!(text, "Unsupported group version kind: /v1, Kind=Pod\n");
    let mut large = good;
    large.resize(4_097, b' ');
    assert_eq!(send("application/json", large).await.0, 413);
    // No method is refused: the original does not look at it.
    let request = post("/admission/toy", "u").map(|body| body);
    let (mut head, body) = request.into_parts();
    head.method = http::Method::PUT;
    let response = admissions.answer(Request::from_parts(head, body)).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_forged_namespace_or_name_does_not_become_a_path_of_the_api() {
    let toy = Toy::new("/admission/toy", |_, _| allowed());
    let admissions = operator(Pods::silent())
        .admitting(vec![Arc::new(toy)])
        .admissions();
    for (field, forged, code) in [
        ("namespace", "mimir/configmaps?", StatusCode::BAD_REQUEST),
        ("namespace", "..", StatusCode::BAD_REQUEST),
        ("name", "zone-a/status", StatusCode::BAD_REQUEST),
        ("name", "zone%2fa", StatusCode::BAD_REQUEST),
        ("name", "system:zone.a-0", StatusCode::OK),
        ("name", "", StatusCode::OK),
    ] {
        let mut review = review("u");
        review["request"][field] = Value::from(forged);
        let request = post("/admission/toy", "u").map(|_| Bytes::from(body(&review)));
        let response = admissions.answer(request).await;
        assert_eq!(response.status(), code, "{field} {forged}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_defect_of_a_webhook_ends_one_request() {
    let toy = Toy::new("/admission/toy", |review, _| {
        assert_ne!(review.uid, "bad", "a defect");
        allowed()
    });
    let admissions = operator(Pods::silent())
        .admitting(vec![Arc::new(toy)])
        .admissions();
    let response = admissions.answer(post("/admission/toy", "bad")).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let response = admissions.answer(post("/admission/toy", "good")).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn at_most_32_questions_are_under_way_and_answers_are_facts_of_one_review() {
    let pods = Pods::answering(Duration::from_secs(1));
    let toy = Toy::new("/admission/toy", |review, facts| {
        assert!(facts.answers.keys().all(|id| id.uid == review.uid));
        if facts.answers.len() == 100 {
            return allowed();
        }
        assert!(facts.answers.is_empty(), "all of them are awaited");
        (
            Admission::Need(questions(review, "ask", 0..100)),
            Remarks::default(),
        )
    });
    let admissions = operator(pods.clone())
        .admitting(vec![Arc::new(toy)])
        .admissions();
    let began = Instant::now();
    let answer = said(&admissions.answer(post("/admission/toy", "a")).await);
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(began.elapsed(), Duration::from_secs(4));
    assert_eq!(pods.most_at_once(), 32);
    // The next one knows nothing of it.
    said(&admissions.answer(post("/admission/toy", "b")).await);
    assert_eq!(pods.heard().len(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_asks_in_circles_is_asked_for_its_last_word() {
    let toy = Toy::new("/admission/toy", |review, _| {
        (
            Admission::Need(vec![ask(review, "ask", 0)]),
            Remarks::default(),
        )
    });
    let pods = Pods::answering(Duration::from_millis(1));
    let admissions = operator(pods.clone())
        .admitting(vec![Arc::new(toy)])
        .admissions();
    let began = Instant::now();
    let answer = said(&admissions.answer(post("/admission/toy", "a")).await);
    assert_eq!(answer["response"]["status"]["message"], "time is up");
    assert_eq!(pods.heard().len(), 1);
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn requests_and_verdicts_are_counted_under_the_names_that_a_webhook_gives() {
    let toy = Toy::new("/admission/pod-eviction", |_, _| {
        let count = Count {
            name: "rollout_operator_zpdb_eviction_requests_total",
            help: "Evictions by how they were judged",
            labels: vec![
                ("reason", "denied".to_owned()),
                ("status", "429".to_owned()),
            ],
        };
        let remarks = Remarks {
            count: Some(count),
            ..Remarks::default()
        };
        let verdict = Verdict::refused(429, "1 pod not ready in zone-a");
        (Admission::Decide(verdict, Vec::new()), remarks)
    });
    let toy = toy.shown(InFlight {
        name: "rollout_operator_zpdb_inflight_eviction_requests",
        help: "Evictions that are being judged",
    });
    let operator = operator(Pods::silent()).admitting(vec![Arc::new(toy)]);
    let (admissions, view) = (operator.admissions(), operator.view());
    for _ in 0..2 {
        said(
            &admissions
                .answer(post("/admission/pod-eviction", "a"))
                .await,
        );
    }
    admissions.answer(post("/nowhere", "a")).await;
    let text = view.metrics();
    for line in [
        r#"rollout_operator_zpdb_eviction_requests_total{reason="denied",status="429"} 2"#,
        r#"slipway_request_duration_seconds_count{method="POST",route="admission_pod_eviction",status_code="200",ws="false"} 2"#,
        r#"slipway_request_duration_seconds_bucket{le="0.005",method="POST",route="admission_pod_eviction",status_code="200",ws="false"} 2"#,
        r#"slipway_request_duration_seconds_count{method="POST",route="other",status_code="404",ws="false"} 1"#,
        r#"slipway_inflight_requests{method="POST",route="admission_pod_eviction"} 0"#,
        r#"slipway_request_message_bytes_count{method="POST",route="admission_pod_eviction"} 2"#,
        r#"slipway_response_message_bytes_count{method="POST",route="admission_pod_eviction"} 2"#,
        "rollout_operator_zpdb_inflight_eviction_requests 0",
    ] {
        assert!(text.contains(&format!("{line}\n")), "no {line} in\n{text}");
    }
}
