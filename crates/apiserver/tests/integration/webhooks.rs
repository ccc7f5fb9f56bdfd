//! Admission webhooks over real TLS.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams, ResourceExt};
use serde_json::{Value, json};
use slipway_apiserver::https::Https;
use slipway_apiserver::shell::{Body, Core};

use super::outside::{real_cluster, start};
use super::stage::{ADMIN, map, maps, refused, typed};

/// A webhook that does what its path says, and remembers what it was asked.
#[derive(Default, Clone)]
struct Hook(Arc<Mutex<Vec<Value>>>);

impl Core for Hook {
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'static, Option<Response<Body>>> {
        let hook = self.clone();
        Box::pin(async move {
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let uid = &review["request"]["uid"];
            let response = match request.uri().path() {
                "/label" => {
                    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]);
                    let patch = STANDARD.encode(patch.to_string());
                    json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch})
                }
                "/deny" => {
                    let status =
                        json!({"message": "not on a Friday", "reason": "Friday", "code": 418});
                    json!({"uid": uid, "allowed": false, "status": status, "warnings": ["ask again"]})
                }
                "/slow" => {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    json!({"uid": uid, "allowed": true})
                }
                _ => json!({"uid": uid, "allowed": true}),
            };
            let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            hook.0.lock().unwrap().push(review);
            Some(Response::new(Body::Full(answer.to_string().into())))
        })
    }
}

struct Scene {
    client: Client,
    hook: Hook,
    https: Https,
}

impl Scene {
    fn new() -> Self {
        let hook = Hook::default();
        let https = start(Arc::new(hook.clone()));
        let client = Client::new(real_cluster("one").service(ADMIN), "default");
        Self {
            client,
            hook,
            https,
        }
    }

    /// A configuration with one webhook at this path; `change` overrides its fields.
    fn configuration(&self, path: &str, change: &Value) -> Value {
        let mut webhook = json!({
            "name": "hook.example.com",
            "clientConfig": {
                "url": format!("{}{path}", self.https.url()),
                "caBundle": STANDARD.encode(self.https.ca_pem())
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 5
        });
        for (key, value) in change.as_object().unwrap() {
            webhook[key] = value.clone();
        }
        json!({"metadata": {"name": "hook"}, "webhooks": [webhook]})
    }

    async fn validate(&self, path: &str, change: Value) {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let configuration = typed(self.configuration(path, &change));
        api.create(&PostParams::default(), &configuration)
            .await
            .unwrap();
    }

    async fn mutate(&self, path: &str) {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let configuration = typed(self.configuration(path, &json!({})));
        api.create(&PostParams::default(), &configuration)
            .await
            .unwrap();
    }

    fn asked(&self) -> Vec<Value> {
        self.hook.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn mutations_are_stored() {
    let scene = Scene::new();
    scene.mutate("/label").await;
    let made = maps(&scene.client)
        .create(&PostParams::default(), &map("a", "1"))
        .await
        .unwrap();
    assert_eq!(made.labels()["seen"], "yes");
    assert_eq!(
        maps(&scene.client).get("a").await.unwrap().labels()["seen"],
        "yes"
    );
    let request = &scene.asked()[0]["request"];
    assert_eq!(
        (&request["operation"], &request["userInfo"]["username"]),
        (&json!("CREATE"), &json!("admin"))
    );
    assert_eq!(request["object"]["data"]["k"], "1");
}

#[tokio::test]
async fn refusals_say_what_the_webhook_says() {
    let scene = Scene::new();
    scene.validate("/deny", json!({})).await;
    let refusal = refused(
        maps(&scene.client)
            .create(&PostParams::default(), &map("a", "1"))
            .await,
    );
    assert_eq!((refusal.code, &*refusal.reason), (418, "Friday"));
    assert_eq!(
        refusal.message,
        "admission webhook \"hook.example.com\" denied the request: not on a Friday"
    );
    assert!(maps(&scene.client).get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn the_failure_policy_decides_when_the_authority_is_another() {
    for (policy, passes) in [("Fail", false), ("Ignore", true)] {
        let scene = Scene::new();
        let other = slipway_apiserver::https::Identity::generate().unwrap();
        let at = json!({"url": format!("{}/ok", scene.https.url()), "caBundle": STANDARD.encode(other.ca_pem())});
        scene
            .validate("/ok", json!({"clientConfig": at, "failurePolicy": policy}))
            .await;
        let result = maps(&scene.client)
            .create(&PostParams::default(), &map("a", "1"))
            .await;
        assert!(scene.asked().is_empty());
        if passes {
            result.unwrap();
            continue;
        }
        let refusal = refused(result);
        assert_eq!((refusal.code, &*refusal.reason), (500, "InternalError"));
        let expected = "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: Post";
        assert!(refusal.message.starts_with(expected), "{}", refusal.message);
        assert!(
            refusal
                .message
                .contains("x509: certificate signed by unknown authority"),
            "{}",
            refusal.message
        );
    }
}

#[tokio::test]
async fn slow_webhooks_time_out() {
    let scene = Scene::new();
    scene.validate("/slow", json!({"timeoutSeconds": 1})).await;
    let start = std::time::Instant::now();
    let refusal = refused(
        maps(&scene.client)
            .create(&PostParams::default(), &map("a", "1"))
            .await,
    );
    assert_eq!(refusal.code, 500);
    assert!(
        refusal.message.ends_with("context deadline exceeded"),
        "{}",
        refusal.message
    );
    assert!(start.elapsed() < Duration::from_secs(9));
}

#[tokio::test]
async fn a_webhook_that_is_not_there_is_refused_as_such() {
    let mut scene = Scene::new();
    scene.validate("/ok", json!({})).await;
    let gone = std::mem::replace(&mut scene.https, start(Arc::new(Hook::default())));
    gone.stop().await;
    let refusal = refused(
        maps(&scene.client)
            .create(&PostParams::default(), &map("a", "1"))
            .await,
    );
    assert!(
        refusal.message.contains("connect: connection refused"),
        "{}",
        refusal.message
    );
}

#[tokio::test]
async fn scaling_does_not_show_the_labels_of_what_is_scaled() {
    let scene = Scene::new();
    let api: Api<Deployment> = Api::default_namespaced(scene.client.clone());
    let deployment = typed(json!({
        "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "a", "image": "a"}]}
            }
        }
    }));
    api.create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["deployments/scale"]}]);
    scene.validate("/ok", json!({"rules": rules})).await;
    let scale = async |replicas: i32| {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch_scale("web", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    scale(3).await;
    let asked = scene.asked();
    let request = &asked[0]["request"];
    assert_eq!(
        (&request["kind"]["kind"], &request["subResource"]),
        (&json!("Scale"), &json!("scale"))
    );
    assert!(request["object"]["metadata"].get("labels").is_none());
    assert_eq!(
        (
            &request["oldObject"]["spec"]["replicas"],
            &request["object"]["spec"]["replicas"]
        ),
        (&json!(1), &json!(3))
    );
    // So a selector for the labels never matches.
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(scene.client.clone());
    configurations
        .delete("hook", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let selector = json!({"matchLabels": {"team": "a"}});
    scene
        .validate("/deny", json!({"rules": rules, "objectSelector": selector}))
        .await;
    scale(4).await;
    assert_eq!(scene.asked().len(), 1);
}

#[tokio::test]
async fn dry_runs_are_told_to_webhooks() {
    let scene = Scene::new();
    scene.validate("/ok", json!({})).await;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    maps(&scene.client)
        .create(&dry, &map("a", "1"))
        .await
        .unwrap();
    assert_eq!(scene.asked()[0]["request"]["dryRun"], true);
    assert!(maps(&scene.client).get_opt("a").await.unwrap().is_none());
    let api: Api<ValidatingWebhookConfiguration> = Api::all(scene.client.clone());
    let with_effects = typed(scene.configuration("/ok", &json!({"sideEffects": "Some"})));
    let refusal = refused(api.create(&PostParams::default(), &with_effects).await);
    assert_eq!(
        refusal.details.unwrap().causes[0].field,
        "webhooks[0].sideEffects"
    );
}
