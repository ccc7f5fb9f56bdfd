//! A webhook of our own making, pods that answer as told, and a replica around them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_kernel::Purpose;
use slipway_kernel::action::Action;
use slipway_kernel::admission::{Admission, Admit, Expiry, InFlight, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request as Asked};
use slipway_kernel::identity::Key;
use slipway_kernel::parts::Parts;
use slipway_kernel::store::Stores;

use crate::gather::Gather;
use crate::{Environment, Operator, Settings};

type Judge = Box<dyn Fn(&Review, &Facts) -> (Admission, Remarks) + Send + Sync>;
type Undo = Box<dyn Fn(&Review) -> Vec<Action> + Send + Sync>;

/// A webhook that does as it is told.
pub(super) struct Toy {
    path: &'static str,
    judge: Judge,
    undo: Undo,
    in_flight: Option<InFlight>,
}

impl Toy {
    pub(super) fn new(
        path: &'static str,
        judge: impl Fn(&Review, &Facts) -> (Admission, Remarks) + Send + Sync + 'static,
    ) -> Self {
        Self {
            path,
            judge: Box::new(judge),
            undo: Box::new(|_| Vec::new()),
            in_flight: None,
        }
    }

    /// The same with a gauge of its own.
    pub(super) fn shown(self, in_flight: InFlight) -> Self {
        Self {
            in_flight: Some(in_flight),
            ..self
        }
    }

    pub(super) fn undoing(
        self,
        undo: impl Fn(&Review) -> Vec<Action> + Send + Sync + 'static,
    ) -> Self {
        Self {
            undo: Box::new(undo),
            ..self
        }
    }
}

impl Admit for Toy {
    fn path(&self) -> &'static str {
        self.path
    }

    fn in_flight(&self) -> Option<InFlight> {
        self.in_flight
    }

    fn reads(&self) -> Parts {
        Parts::NONE
    }

    fn judge(
        &self,
        review: &Review,
        _: &Stores,
        facts: &Facts,
        _: Timestamp,
    ) -> (Admission, Remarks) {
        (self.judge)(review, facts)
    }

    fn expire(&self, review: &Review, _: &Stores, _: &Facts, _: Timestamp) -> Expiry {
        Expiry {
            verdict: Verdict::denied("time is up"),
            undo: (self.undo)(review),
        }
    }
}

pub(super) fn allowed() -> (Admission, Remarks) {
    (
        Admission::Decide(Verdict::allowed(), Vec::new()),
        Remarks::default(),
    )
}

pub(super) fn ask(review: &Review, purpose: &'static str, pod: u32) -> Action {
    let id = QuestionId {
        controller: "toy",
        uid: review.uid.clone(),
        purpose: Purpose::new(purpose),
        attempt: pod,
        due: Timestamp::UNIX_EPOCH,
    };
    let request = Asked::Pod {
        method: if purpose == "undo" { "DELETE" } else { "POST" },
        url: format!("http://pod-{pod}/prepare"),
    };
    Action::Ask(Question::new(id, request, Duration::from_secs(5)))
}

pub(super) fn questions(
    review: &Review,
    purpose: &'static str,
    pods: std::ops::Range<u32>,
) -> Vec<Action> {
    pods.map(|pod| ask(review, purpose, pod)).collect()
}

#[derive(Default)]
struct Heard {
    all: Vec<(Duration, String)>,
    at_once: usize,
    most_at_once: usize,
    failures: u32,
}

/// Pods, and the API beside them.
#[derive(Clone)]
pub(super) struct Pods {
    /// How long a POST takes; none if it is never answered.
    takes: Option<Duration>,
    began: tokio::time::Instant,
    heard: Arc<Mutex<Heard>>,
}

impl Pods {
    pub(super) fn answering(takes: Duration) -> Self {
        Self {
            takes: Some(takes),
            ..Self::silent()
        }
    }

    pub(super) fn silent() -> Self {
        Self {
            takes: None,
            began: tokio::time::Instant::now(),
            heard: Arc::default(),
        }
    }

    /// The next deletions fail.
    pub(super) fn failing(self, failures: u32) -> Self {
        self.heard.lock().unwrap().failures = failures;
        self
    }

    /// What they were asked: when, and `POST http://pod-0/prepare`.
    pub(super) fn heard(&self) -> Vec<(Duration, String)> {
        self.heard.lock().unwrap().all.clone()
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.heard.lock().unwrap().most_at_once
    }

    async fn reply(self, question: Question) -> Answer {
        let said = |code| Answer::Said {
            code,
            body: String::new(),
        };
        {
            let mut heard = self.heard.lock().unwrap();
            let what = format!("{} {}", question.method(), question.address());
            heard.all.push((self.began.elapsed(), what));
            if question.method() != "POST" {
                let fails = heard.failures > 0;
                heard.failures = heard.failures.saturating_sub(1);
                return if fails { Answer::timeout() } else { said(200) };
            }
            heard.at_once += 1;
            heard.most_at_once = heard.most_at_once.max(heard.at_once);
        }
        match self.takes {
            Some(takes) => tokio::time::sleep(takes).await,
            None => std::future::pending().await,
        }
        self.heard.lock().unwrap().at_once -= 1;
        said(200)
    }
}

impl Gather for Pods {
    fn gather(&self, _: &Key, question: Question) -> BoxFuture<'static, Answer> {
        Box::pin(self.clone().reply(question))
    }
}

/// A replica without capabilities; its API answers 404 to all.
pub(super) fn operator(pods: Pods) -> Operator {
    let service = tower::service_fn(|_: Request<kube::client::Body>| async {
        let mut response = Response::new(kube::client::Body::empty());
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        Ok::<_, tower::BoxError>(response)
    });
    let client = kube::Client::new(service, "default");
    let settings = Settings {
        election: None,
        ..Settings::default()
    };
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    Operator::new(environment, client, settings).gathering(Arc::new(pods))
}

pub(super) fn review(uid: &str) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "operation": "UPDATE", "name": "zone-a", "namespace": "mimir",
        "resource": {"group": "apps", "version": "v1", "resource": "statefulsets"},
        "object": {"spec": {"replicas": 1}}, "oldObject": {"spec": {"replicas": 2}},
    }})
}

pub(super) fn body(review: &Value) -> String {
    review.to_string()
}

pub(super) fn post(uri: &str, uid: &str) -> Request<Bytes> {
    Request::post(uri)
        .header("content-type", "application/json")
        .body(Bytes::from(body(&review(uid))))
        .unwrap()
}

pub(super) fn said(response: &Response<Bytes>) -> Value {
    assert_eq!(response.status(), http::StatusCode::OK);
    serde_json::from_slice(response.body()).unwrap()
}
