//! Webhooks: asked by an API server in the process, and over TLS.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Config;
use slipway_apiserver::environment::{Call, InProcess};
use slipway_kernel::Purpose;
use slipway_kernel::action::Action;
use slipway_kernel::admission::{Admission, Admit, Expiry, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Facts, Question, QuestionId, Request as ToApi};
use slipway_kernel::parts::Parts;
use slipway_kernel::store::Stores;
use slipway_runtime::gather::{Dial, Gatherer, Unreached};
use slipway_runtime::{Admissions, Environment, Operator, Settings};

use crate::stage::{Replica, Stage, alone, epoch, virtually};
use crate::toy::Toy;

/// Lets the data of a config map change only if its namespace, as the API knows it, has the label `open`.
pub(crate) struct Guard;

impl Guard {
    fn question(review: &Review) -> Question {
        let id = QuestionId {
            controller: "toy",
            uid: review.uid.clone(),
            purpose: Purpose::new("read-namespace"),
            attempt: 0,
            due: Timestamp::UNIX_EPOCH,
        };
        let request = ToApi::Api {
            method: "GET",
            path: format!("/api/v1/namespaces/{}", review.namespace),
            body: Value::Null,
        };
        Question::new(id, request, Duration::from_secs(5))
    }
}

impl Admit for Guard {
    fn path(&self) -> &'static str {
        "/admission/guard"
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
        let question = Self::question(review);
        let Some((_, answer)) = facts.answers.get(&question.id) else {
            let needs = vec![Action::Ask(question)];
            return (Admission::Need(needs), Remarks::default());
        };
        let open = match answer {
            Answer::Said { code: 200, body } => body.contains("\"open\""),
            _ => false,
        };
        let verdict = if open {
            Verdict::warned("the door is open")
        } else {
            Verdict::refused(403, "the door is shut")
        };
        let decided = Admission::Decide(verdict, Vec::new());
        (decided, Remarks::default())
    }

    fn expire(&self, _: &Review, _: &Stores, _: &Facts, _: Timestamp) -> Expiry {
        Expiry {
            verdict: Verdict::denied("too slow"),
            undo: Vec::new(),
        }
    }
}

/// No pods.
pub(crate) struct NoPods;

impl Dial for NoPods {
    fn call(
        &self,
        _: Request<Bytes>,
    ) -> futures::future::BoxFuture<'static, Result<http::Response<Bytes>, Unreached>> {
        Box::pin(async { Err(Unreached::Refused("no pods".to_owned())) })
    }
}

/// A replica that guards config maps of this cluster.
pub(crate) fn guard(stage: &Stage, environment: Environment) -> Operator {
    let operator = Operator::new(environment, stage.client("one"), alone());
    let gatherer = Gatherer::new(operator.client(), Arc::new(NoPods));
    operator
        .gathering(Arc::new(gatherer))
        .admitting(vec![Arc::new(Guard)])
}

/// A replica that plans and guards, and what asks it.
pub(crate) fn guarding(client: Client, settings: Settings) -> (Replica, Asked) {
    let environment = Environment::virtual_from(epoch(), 7);
    let operator = Operator::new(environment, client, settings);
    let gatherer = Gatherer::new(operator.client(), Arc::new(NoPods));
    let operator = operator
        .with(Arc::new(Toy::default()))
        .gathering(Arc::new(gatherer))
        .admitting(vec![Arc::new(Guard)]);
    let asked = Asked(operator.admissions());
    (Replica::run(operator), asked)
}

/// Asks a replica's guard as an API server would.
pub(crate) struct Asked(Admissions);

impl Asked {
    /// Whether it gives its verdict, which takes a read of the API: as nobody has opened the door, that it is shut.
    pub(crate) async fn is_answered(&self) -> bool {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "asked", "operation": "UPDATE", "name": "m", "namespace": "default",
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": map, "oldObject": map,
        }});
        let request = Request::post("/admission/guard?timeout=5s")
            .header("content-type", "application/json")
            .body(Bytes::from(review.to_string()))
            .unwrap();
        let answer = self.0.answer(request).await;
        let said: Value = serde_json::from_slice(answer.body()).unwrap();
        said["response"]["status"]["message"] == "the door is shut"
    }
}

/// Has the API server ask before a config map is changed.
pub(crate) async fn configure(stage: &Stage, ca: &str) {
    use base64::Engine;
    let bundle = base64::engine::general_purpose::STANDARD.encode(ca);
    let service = json!({"metadata": {"name": "slipway", "namespace": "slipway-system"}, "spec": {"ports": [{"port": 443}]}});
    stage
        .create("/api/v1/namespaces/slipway-system/services", &service)
        .await;
    let configuration = json!({
        "metadata": {"name": "guard"},
        "webhooks": [{
            "name": "guard.slipway.dev",
            "clientConfig": {
                "service": {"name": "slipway", "namespace": "slipway-system", "path": "/admission/guard"},
                "caBundle": bundle,
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5, "failurePolicy": "Fail",
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    stage.create(path, &configuration).await;
}

/// Changes a config map; gives why that was refused.
pub(crate) async fn change(stage: &Stage, to: &str) -> Result<(), (u16, String)> {
    let body = json!({"data": {"a": to}}).to_string().into_bytes();
    let request = Request::patch("/api/v1/namespaces/default/configmaps/m")
        .header("content-type", "application/merge-patch+json")
        .body(body)
        .unwrap();
    match stage.client("test").request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn open(stage: &Stage) {
    let body = json!({"metadata": {"labels": {"open": "yes"}}});
    stage
        .send("PATCH", "/api/v1/namespaces/default", &body)
        .await;
}

/// Answers the API server's calls by these webhooks, and notes their addresses.
fn connect(services: &InProcess, admissions: Admissions, urls: &Arc<Mutex<Vec<String>>>) {
    let urls = urls.clone();
    let peer = move |call: Call| -> futures::future::BoxFuture<'static, _> {
        let admissions = admissions.clone();
        urls.lock().unwrap().push(call.url.clone());
        Box::pin(async move {
            let uri: Uri = call.url.parse().unwrap();
            let request = Request::builder()
                .method(Method::POST)
                .uri(uri)
                .header("content-type", "application/json")
                .body(call.body)
                .unwrap();
            let response = admissions.answer(request).await;
            Ok((response.status().as_u16(), response.into_body()))
        })
    };
    services.register("https://slipway.slipway-system.svc", Arc::new(peer));
}

#[test]
fn a_request_to_the_api_is_refused_by_a_webhook_that_asks_the_api() {
    virtually(async {
        let services = Arc::new(InProcess::default());
        let stage = Stage::built(Config::seeded("test", 1, services.clone())).await;
        let operator = guard(&stage, Environment::virtual_from(epoch(), 7));
        let urls = Arc::default();
        connect(&services, operator.admissions(), &urls);
        stage.map("m", json!({"a": "1"})).await;
        configure(&stage, "").await;
        let refusal =
            r#"admission webhook "guard.slipway.dev" denied the request: the door is shut"#;
        let refused = change(&stage, "2").await;
        assert_eq!(refused, Err((403, refusal.to_owned())));
        assert_eq!(stage.entry("m", "a").await.as_deref(), Some("1"));
        open(&stage).await;
        assert_eq!(change(&stage, "2").await, Ok(()));
        assert_eq!(stage.entry("m", "a").await.as_deref(), Some("2"));
        let urls: Vec<String> = urls.lock().unwrap().clone();
        assert_eq!(urls.len(), 2);
        assert!(urls[0].contains("timeout=5s"), "{urls:?}");
    });
}
