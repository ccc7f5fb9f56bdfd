#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::address::Url;
use slipway_kernel::admission::Count;
use slipway_kernel::fact::{Answer, Question, QuestionId, Request as Asked, ScaleOf};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::question::{Call, Failure};

use super::{Dial, Gather, Gatherer, Rejection, Sender, Unreached, put};
use crate::{Environment, Operator, Settings};

fn question(request: Asked) -> Question {
    let id = QuestionId {
        controller: "zones",
        uid: "u-1".to_owned(),
        purpose: Purpose::new("prepare"),
        attempt: 3,
        due: Timestamp::UNIX_EPOCH,
    };
    Question::new(id, request, Duration::from_secs(5))
}

fn to_pod(method: &'static str, url: &str) -> Question {
    let url = url.to_owned();
    question(Asked::Pod { method, url })
}

fn to_api(method: &'static str, path: &str, body: Value) -> Question {
    let path = path.to_owned();
    question(Asked::Api { method, path, body })
}

fn scale(group: &str) -> Question {
    question(Asked::Scale(ScaleOf {
        group: group.to_owned(),
        kind: "Widget".to_owned(),
        namespace: "ns".to_owned(),
        name: "w".to_owned(),
    }))
}

/// On whose behalf.
fn whose() -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: "zones",
        namespace: "a".to_owned(),
        name: "group".to_owned(),
    }
}

/// Whom requests are from; a pod that takes none of us says so with 511.
struct Us;

impl Sender for Us {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let name = HeaderName::from_static("x-cluster");
        Some((name, HeaderValue::from_static("mimir")))
    }

    fn rejection(&self, code: u16, body: &str) -> Option<Rejection> {
        let count = Count {
            name: "rejections_total",
            help: "Requests that pods do not take",
            labels: vec![("code", code.to_string())],
        };
        let message = body.to_owned();
        (code == 511).then_some(Rejection { count, message })
    }
}

/// What was sent: method, URL, headers and body.
type Sent = Arc<Mutex<Vec<Request<Bytes>>>>;

/// A pod that answers all with one code and body, or not at all.
#[derive(Clone, Default)]
struct Pod {
    answer: Option<(u16, &'static str)>,
    sent: Sent,
}

impl Dial for Pod {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Unreached>> {
        self.sent.lock().unwrap().push(request);
        let answer = self.answer;
        Box::pin(async move {
            let Some((code, body)) = answer else {
                return Err(Unreached::Refused("connection refused".to_owned()));
            };
            let mut response = Response::new(Bytes::from(body));
            *response.status_mut() = code.try_into().unwrap();
            Ok(response)
        })
    }
}

/// An API that answers by path, and all else with 404.
fn api(answers: &[(&'static str, u16, Value)]) -> (kube::Client, Sent) {
    let sent = Sent::default();
    let (heard, answers) = (sent.clone(), answers.to_vec());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (heard, answers) = (heard.clone(), answers.clone());
        async move {
            let (head, body) = request.into_parts();
            let path = head.uri.path().to_owned();
            let body = body.collect().await.unwrap().to_bytes();
            heard.lock().unwrap().push(Request::from_parts(head, body));
            let found = answers.iter().find(|(known, ..)| *known == path);
            let missing = json!({"kind": "Status", "message": format!("no {path}")});
            let (code, body) =
                found.map_or((404, missing), |(_, code, body)| (*code, body.clone()));
            let mut response =
                Response::new(kube::client::Body::from(body.to_string().into_bytes()));
            *response.status_mut() = code.try_into().unwrap();
            Ok::<_, tower::BoxError>(response)
        }
    });
    (kube::Client::new(service, "default"), sent)
}

fn header(request: &Request<Bytes>, name: &str) -> String {
    let value = request.headers().get(name);
    value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn pods_are_sent_what_they_know_from_the_original() {
    let pod = Pod {
        answer: Some((204, "")),
        ..Pod::default()
    };
    let gatherer = Gatherer::new(api(&[]).0, Arc::new(pod.clone())).sent_by(Arc::new(Us));
    let url = "http://zone-a-2.zone-a.mimir.svc.cluster.local.:8080/ingester/prepare";
    for method in ["POST", "DELETE", "GET"] {
        let answer = gatherer.gather(&whose(), to_pod(method, url)).await;
        let body = String::new();
        assert_eq!(answer, Answer::Said { code: 204, body });
    }
    let sent = pod.sent.lock().unwrap();
    for (request, content) in sent
        .iter()
        .zip(["application/json", "application/json", ""])
    {
        assert_eq!(request.uri().to_string(), url);
        assert_eq!(header(request, "content-type"), content);
        assert_eq!(header(request, "x-cluster"), "mimir");
        assert_eq!(
            header(request, "idempotency-key"),
            "zones/u-1/prepare/3/1970-01-01T00:00:00Z"
        );
        assert!(request.body().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_answer() {
    let gatherer = Gatherer::new(api(&[]).0, Arc::new(Pod::default()));
    let answer = gatherer
        .gather(&whose(), to_pod("POST", "http://a/b"))
        .await;
    assert_eq!(answer, Answer::unreachable("connection refused"));
    let url = Url::parse("http://somebody.example/").unwrap();
    let outside = question(Asked::Outside(Box::new(Call::get(url))));
    for asked in [
        to_pod("POST", "http://["),
        to_pod("POST", "no url"),
        outside,
    ] {
        let answer = gatherer.gather(&whose(), asked.clone()).await;
        let is_failure = matches!(answer, Answer::Failed(Failure::Unreachable(_)));
        assert!(is_failure, "{asked:?}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_is_asked_and_its_refusals_are_told_as_they_are() {
    let path = "/api/v1/namespaces/a/configmaps/locks";
    let (client, sent) = api(&[
        (path, 409, json!({"message": "changed"})),
        (
            "/api/v1/namespaces/a/configmaps",
            201,
            json!({"kind": "ConfigMap"}),
        ),
    ]);
    let gatherer = Gatherer::new(client, Arc::new(Pod::default())).sent_by(Arc::new(Us));
    let body = json!({"data": {"a": "b"}});
    for method in ["GET", "PUT", "PATCH"] {
        let answer = gatherer
            .gather(&whose(), to_api(method, path, body.clone()))
            .await;
        let said = r#"{"message":"changed"}"#.to_owned();
        assert_eq!(
            answer,
            Answer::Said {
                code: 409,
                body: said
            }
        );
    }
    let answer = gatherer
        .gather(
            &whose(),
            to_api("POST", "/api/v1/namespaces/a/configmaps", body.clone()),
        )
        .await;
    assert!(matches!(answer, Answer::Said { code: 201, .. }));
    let sent = sent.lock().unwrap();
    let kinds: Vec<String> = sent.iter().map(|r| header(r, "content-type")).collect();
    let json = "application/json";
    assert_eq!(kinds, ["", json, "application/merge-patch+json", json]);
    for request in &sent[1..] {
        assert_eq!(request.uri().query(), Some("fieldManager=slipway"));
        assert_eq!(*request.body(), body.to_string());
        assert_eq!(header(request, "x-cluster"), "mimir");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_found_by_discovery_once() {
    let found = json!({"kind": "Scale", "spec": {"replicas": 3}});
    let (client, sent) = api(&[
        (
            "/apis/example.com",
            200,
            json!({"preferredVersion": {"version": "v2"}, "versions": [{"version": "v1"}, {"version": "v2"}]}),
        ),
        (
            "/apis/example.com/v1",
            200,
            json!({"resources": [{"name": "widgets", "kind": "Widget"}, {"name": "widgets/scale", "kind": "Scale"}]}),
        ),
        (
            "/apis/example.com/v2",
            200,
            json!({"resources": [{"name": "gadgets/x", "kind": "Widget"}, {"name": "widgets", "kind": "Widget"}]}),
        ),
        (
            "/apis/example.com/v1/namespaces/ns/widgets/w/scale",
            200,
            found.clone(),
        ),
    ]);
    let gatherer = Gatherer::new(client, Arc::new(Pod::default()));
    let ask = || gatherer.gather(&whose(), scale("example.com"));
    for _ in 0..2 {
        let Answer::Said { code: 200, body } = ask().await else {
            panic!("no scale");
        };
        let body: Value = serde_json::from_str(&body).unwrap();
        let expected = json!({
            "group": "example.com", "version": "v1", "kind": "Widget", "plural": "widgets", "scale": found,
        });
        assert_eq!(
            body, expected,
            "the preferred version has none, the other one does"
        );
    }
    let paths: Vec<String> = sent
        .lock()
        .unwrap()
        .iter()
        .map(|r| r.uri().path().to_owned())
        .collect();
    let found =
        ["v2", "v1"].map(|v| format!("/apis/example.com/{v}/namespaces/ns/widgets/w/scale"));
    assert_eq!(paths.len(), 7, "{paths:?}");
    assert_eq!(paths[3..5], found);
    assert_eq!(paths[5..7], found, "discovery is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_serves_is_said_and_looked_for_again() {
    let (client, sent) = api(&[("/api/v1", 200, json!({"resources": []}))]);
    let gatherer = Gatherer::new(client, Arc::new(Pod::default()));
    for group in ["", "example.com"] {
        for _ in 0..2 {
            let answer = gatherer.gather(&whose(), scale(group)).await;
            let Answer::Said { code: 404, body } = answer else {
                panic!("{answer:?}");
            };
            assert!(body.starts_with("no matches for kind \"Widget\""), "{body}");
        }
    }
    assert_eq!(sent.lock().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_another_cluster_says_so_and_is_counted() {
    let pod = Pod {
        answer: Some((511, "wrong cluster")),
        ..Pod::default()
    };
    let (client, _) = api(&[]);
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    let operator = Operator::new(environment, client, Settings::default());
    let gatherer = Gatherer::new(operator.client(), Arc::new(pod)).sent_by(Arc::new(Us));
    let asked = to_pod("POST", "http://pod:80/a/b?c=d");
    let answer = put(operator.shared(), &gatherer, &whose(), asked).await;
    let message = "request rejected by the server: wrong cluster".to_owned();
    assert_eq!(
        answer,
        Answer::Failed(Failure::Refused { code: 511, message })
    );
    let read = to_api("GET", "/api/v1/namespaces/a/pods/b", Value::Null);
    gatherer.gather(&whose(), read).await;
    let text = operator.view().metrics();
    for line in [
        r#"rejections_total{code="511"} 1"#,
        r#"slipway_pod_http_client_request_duration_seconds_count{path="/a/b",method="POST",status_code="511"} 1"#,
        r#"slipway_kubernetes_api_client_request_duration_seconds_count{path="core/v1/pods object",method="GET",status_code="404"} 1"#,
    ] {
        assert!(text.contains(&format!("{line}\n")), "no {line} in\n{text}");
    }
}

/// A request to the API without an answer is counted as `error`, and what went wrong is told as it is.
#[tokio::test(start_paused = true)]
async fn an_api_that_cannot_be_reached_is_counted_as_an_error() {
    let service = tower::service_fn(|_: Request<kube::client::Body>| async {
        Err::<Response<kube::client::Body>, _>(tower::BoxError::from("connection reset"))
    });
    let client = kube::Client::new(service, "default");
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    let operator = Operator::new(environment, client, Settings::default());
    let gatherer = Gatherer::new(operator.client(), Arc::new(Pod::default()));
    let path = "/apis/apps/v1/namespaces/a/statefulsets/b";
    let asked = to_api("GET", path, Value::Null);
    let Answer::Failed(Failure::Unreachable(why)) = gatherer.gather(&whose(), asked).await else {
        panic!("it was answered")
    };
    assert!(why.contains("connection reset"), "{why}");
    let line = r#"slipway_kubernetes_api_client_request_duration_seconds_count{path="apps/v1/statefulsets object",method="GET",status_code="error"} 1"#;
    let text = operator.view().metrics();
    assert!(text.contains(&format!("{line}\n")), "no {line} in\n{text}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_in_time_has_timed_out() {
    struct Silent;
    impl Gather for Silent {
        fn gather(&self, _: &Key, _: Question) -> BoxFuture<'static, Answer> {
            Box::pin(std::future::pending())
        }
    }
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    let operator = Operator::new(environment, api(&[]).0, Settings::default());
    let began = tokio::time::Instant::now();
    let asked = to_pod("POST", "http://pod/a");
    let answer = put(operator.shared(), &Silent, &whose(), asked).await;
    assert_eq!(answer, Answer::timeout());
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

/// Whoever was kept from asking does not ask when somebody else may have asked otherwise.
#[tokio::test(start_paused = true)]
async fn what_is_out_of_time_is_not_asked() {
    let pod = Pod {
        answer: Some((200, "")),
        ..Pod::default()
    };
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    let operator = Operator::new(environment, api(&[]).0, Settings::default());
    let gatherer = Gatherer::new(operator.client(), Arc::new(pod.clone()));
    let until = |seconds: i64, pause: u64| {
        let mut asked = to_pod("POST", "http://pod/a");
        asked.until = Timestamp::from_second(seconds).ok();
        asked.pause = Duration::from_secs(pause);
        asked
    };
    let whose = whose();
    let ask = |question| put(operator.shared(), &gatherer, &whose, question);
    // It may take five seconds.
    assert!(matches!(
        ask(until(6, 0)).await,
        Answer::Said { code: 200, .. }
    ));
    assert!(matches!(
        ask(until(4, 0)).await,
        Answer::Failed(Failure::NotAllowed(_))
    ));
    assert!(matches!(
        ask(until(6, 2)).await,
        Answer::Failed(Failure::NotAllowed(_))
    ));
    assert_eq!(pod.sent.lock().unwrap().len(), 1);
    // The clock was set while it paused.
    let paused = ask(until(20, 10));
    let set = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        operator.shared().environment.set_clock_by(60);
    };
    let (answer, ()) = tokio::join!(paused, set);
    assert!(matches!(answer, Answer::Failed(Failure::NotAllowed(_))));
    assert_eq!(pod.sent.lock().unwrap().len(), 1);
}
