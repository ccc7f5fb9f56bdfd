//! People who use the cluster: they apply, patch, delete, restart, label and evict, as kubectl does.

use kube::Client;
use serde_json::{Value, json};
use slipway_api::names::RESTARTED_AT;
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use std::sync::Arc;

use crate::scenario::{Deed, Named};

/// The name that people's requests go by.
pub const AGENT: &str = "user";

/// A person with all rights.
#[derive(Clone)]
pub struct User {
    client: Client,
    clock: Arc<dyn Clock>,
    dry_run: bool,
}

/// Why a deed was not done.
#[derive(Debug, thiserror::Error)]
pub enum Undone {
    /// The API refused it.
    #[error("{what}: {source}")]
    Refused {
        /// What was to be done.
        what: String,
        /// Why not.
        source: kube::Error,
    },
    /// It makes no sense.
    #[error("{0}")]
    Nonsense(String),
}

impl Undone {
    /// Whether the API refused it: a webhook of ours did, or could not be asked. Nothing else stands in people's way.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl User {
    /// A person at this cluster; `token` is an administrator's.
    pub fn new(cluster: &Arc<Cluster>, token: &str, clock: Arc<dyn Clock>) -> Self {
        let service = cluster.service(token).with_agent(AGENT);
        Self {
            client: Client::new(service, "default"),
            clock,
            dry_run: false,
        }
    }

    /// The same one, who only tries things out.
    #[must_use]
    pub fn trying(&self, dry_run: bool) -> Self {
        Self {
            dry_run,
            ..self.clone()
        }
    }

    /// Does what an action says; what happens to replicas is not for people to do.
    pub async fn carry_out(&self, deed: Deed<'_>) -> Result<String, Undone> {
        match deed {
            Deed::Apply(manifest) => self.apply(manifest).await,
            Deed::Patch(change) => self.patch(&change.object, &change.body).await,
            Deed::Delete(object) => self.send("DELETE", &object.path(), None, "").await,
            Deed::Scale(scale) => {
                let body = json!({"spec": {"replicas": scale.replicas}});
                if !scale.is_by_subresource {
                    return self.patch(&scale.workload, &body).await;
                }
                let path = format!("{}/scale?fieldManager=user", scale.workload.path());
                let media = "application/merge-patch+json";
                self.send("PATCH", &path, Some(&body), media).await?;
                Ok(format!("scales {} to {}", scale.workload, scale.replicas))
            }
            Deed::Restart(workload) => {
                let now = self.clock.now();
                let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
                let annotations = json!({RESTARTED_AT: now.to_string()});
                let template = json!({"metadata": {"annotations": annotations}});
                self.patch(workload, &json!({"spec": {"template": template}}))
                    .await
            }
            Deed::SetImage(set) => self.set_image(&set.workload, &set.image).await,
            Deed::Label(marks) => {
                let body = json!({"metadata": {"labels": marks.set}});
                self.patch(&marks.object, &body).await
            }
            Deed::Annotate(marks) => {
                let body = json!({"metadata": {"annotations": marks.set}});
                self.patch(&marks.object, &body).await
            }
            Deed::Evict(app) => self.evict(app).await,
            Deed::Drain(pods) => Ok(self.drain(pods).await),
            Deed::Note
            | Deed::Confirm(_)
            | Deed::Crash(_)
            | Deed::Pause(_)
            | Deed::Partition(_)
            | Deed::Skew(_) => Ok(String::new()),
        }
    }

    /// As `kubectl apply --server-side --force-conflicts`.
    pub async fn apply(&self, manifest: &Value) -> Result<String, Undone> {
        let object = Named::of(manifest).map_err(|error| Undone::Nonsense(error.to_string()))?;
        let path = format!("{}?fieldManager=user&force=true", object.path());
        let media = "application/apply-patch+yaml";
        self.send("PATCH", &path, Some(manifest), media).await?;
        Ok(format!("applies {object}"))
    }

    async fn patch(&self, object: &Named, body: &Value) -> Result<String, Undone> {
        let path = format!("{}?fieldManager=user", object.path());
        let media = "application/merge-patch+json";
        self.send("PATCH", &path, Some(body), media).await?;
        Ok(format!("changes {object}: {body}"))
    }

    async fn set_image(&self, workload: &Named, image: &str) -> Result<String, Undone> {
        let path = format!("{}?fieldManager=user", workload.path());
        let body = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
        let media = "application/json-patch+json";
        self.send("PATCH", &path, Some(&body), media).await?;
        Ok(format!("sets the image of {workload} to {image}"))
    }

    async fn evict(&self, app: &str) -> Result<String, Undone> {
        if let Ok(Named(pod)) = app.parse::<Named>() {
            return self.evict_pod(&pod.namespace, &pod.name).await;
        }
        let nonsense = || Undone::Nonsense(format!("evict: {app:?} is not `namespace/app`"));
        let (namespace, label) = app.split_once('/').ok_or_else(nonsense)?;
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{label}");
        let text = self.send("GET", &path, None, "").await?;
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        let name = list.pointer("/items/0/metadata/name");
        let Some(name) = name.and_then(Value::as_str) else {
            return Err(Undone::Nonsense(format!("evict: no pod of {app}")));
        };
        self.evict_pod(namespace, name).await
    }

    async fn evict_pod(&self, namespace: &str, name: &str) -> Result<String, Undone> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        });
        self.send("POST", &path, Some(&body), "application/json")
            .await?;
        Ok(format!("evicts pod {namespace}/{name}"))
    }

    /// Evicts all at once; whoever is refused stays.
    async fn drain(&self, pods: &[Named]) -> String {
        let all = pods.iter().map(|Named(pod)| async move {
            let came = self.evict_pod(&pod.namespace, &pod.name).await;
            came.unwrap_or_else(|error| error.to_string())
        });
        futures::future::join_all(all).await.join("; ")
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        media: &str,
    ) -> Result<String, Undone> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let tried = format!("{path}{separator}dryRun=All");
        let path = if self.dry_run && method != "GET" {
            &tried
        } else {
            path
        };
        let what = || format!("{method} {path}");
        let bytes = body.map(|body| body.to_string().into_bytes());
        let mut request = http::Request::builder().method(method).uri(path);
        if !media.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, media);
        }
        let request = request
            .body(bytes.unwrap_or_default())
            .map_err(|error| Undone::Nonsense(format!("{}: {error}", what())))?;
        let answer = self.client.request_text(request).await;
        let text = answer.map_err(|source| Undone::Refused {
            what: what(),
            source,
        })?;
        Ok(if method == "GET" { text } else { what() })
    }
}
