//! Somebody who stands in for Flux: sources are fetched after a while, and what is in them is applied or fails.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::Server;

/// How long it takes until something is fetched, and until something is healthy.
pub(crate) const FETCHING: Duration = Duration::from_secs(1);
pub(crate) const HEALTHY: Duration = Duration::from_secs(3);

const SOURCES: &str = "/apis/source.toolkit.fluxcd.io/v1";
const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1";

/// Works on a cluster until it is dropped.
pub(crate) fn run(server: &Server) -> tokio::task::JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move {
        let mut flux = Flux { server };
        loop {
            flux.look().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}

struct Flux {
    server: Server,
}

impl Flux {
    async fn look(&mut self) {
        for source in self.all(&format!("{SOURCES}/gitrepositories")).await {
            if is_behind(&source) && self.is_old(&source, FETCHING).await {
                self.fetch(&source).await;
            }
        }
        for kustomization in self.all(&format!("{KUSTOMIZATIONS}/kustomizations")).await {
            if is_behind(&kustomization) && self.is_old(&kustomization, HEALTHY).await {
                self.apply(&kustomization).await;
            }
        }
    }

    async fn all(&self, path: &str) -> Vec<Value> {
        let found = self.server.get(path).await;
        found["items"].as_array().cloned().unwrap_or_default()
    }

    /// Whether so long has gone by since its spec was changed, as far as this one knows: it notes that on the object.
    async fn is_old(&self, object: &Value, after: Duration) -> bool {
        let generation = &object["metadata"]["generation"];
        let noted = &object["status"]["noted"];
        let now = self.server.elapsed().as_millis();
        if noted["generation"] != *generation {
            let at = u64::try_from(now).unwrap();
            let status = json!({"noted": {"generation": generation, "at": at}});
            self.tell(object, &status).await;
            return false;
        }
        let at = u128::from(noted["at"].as_u64().unwrap());
        now - at >= after.as_millis()
    }

    async fn fetch(&self, source: &Value) {
        let generation = source["metadata"]["generation"].clone();
        let reference = &source["spec"]["ref"];
        let version = reference["tag"].as_str().or(reference["commit"].as_str());
        let version = version.unwrap();
        let status = if version == "missing" {
            json!({"conditions": [ready(&generation, "False", "GitOperationFailed", "couldn't find the tag")]})
        } else {
            json!({
                "observedGeneration": generation,
                "artifact": {"revision": format!("{version}@sha1:0")},
                "conditions": [ready(&generation, "True", "Succeeded", "stored artifact")],
            })
        };
        self.tell(source, &status).await;
    }

    async fn apply(&self, kustomization: &Value) {
        let generation = kustomization["metadata"]["generation"].clone();
        let name = kustomization["spec"]["sourceRef"]["name"].as_str().unwrap();
        let namespace = kustomization["metadata"]["namespace"].as_str().unwrap();
        let path = format!("{SOURCES}/namespaces/{namespace}/gitrepositories/{name}");
        let source = self.server.find(&path).await;
        let revision = source.and_then(|source| {
            let revision = source["status"]["artifact"]["revision"].as_str();
            revision.map(str::to_owned)
        });
        let Some(revision) = revision else {
            let status = json!({"conditions": [ready(&generation, "False", "ArtifactFailed", "no such source")]});
            self.tell(kustomization, &status).await;
            return;
        };
        let status = if revision.starts_with("bad") {
            json!({
                "lastAttemptedRevision": revision,
                "conditions": [ready(&generation, "False", "HealthCheckFailed", "timeout waiting for: Deployment/web")],
            })
        } else {
            json!({
                "observedGeneration": generation, "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
                "inventory": {"entries": [{"id": format!("{namespace}_made_{}_ConfigMap", ""), "v": "v1"}]},
                "conditions": [ready(&generation, "True", "ReconciliationSucceeded", "applied")],
            })
        };
        self.tell(kustomization, &status).await;
    }

    async fn tell(&self, object: &Value, status: &Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap();
        let is_source = object["spec"].get("url").is_some();
        let root = if is_source { SOURCES } else { KUSTOMIZATIONS };
        let plural = if is_source {
            "gitrepositories"
        } else {
            "kustomizations"
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let path = format!("{root}/namespaces/{namespace}/{plural}/{name}/status");
        self.server.patch(&path, &json!({ "status": status })).await;
    }
}

fn is_behind(object: &Value) -> bool {
    let generation = &object["metadata"]["generation"];
    let ready = &object["status"]["conditions"][0];
    ready["observedGeneration"] != *generation
}

fn ready(generation: &Value, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}
