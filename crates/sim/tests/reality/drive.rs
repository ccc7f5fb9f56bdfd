//! Telling a story on a server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::{Clock, SystemClock};
use slipway_e2e::git;
use slipway_sim::actors::{Actors, Repository, Script};

use crate::bounds;
use crate::masks;
use crate::stage;
use crate::story::{GIT, Step, Story, Target};

/// The kinds that are compared.
pub(crate) const KINDS: [&str; 7] = [
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ControllerRevision",
    "PodDisruptionBudget",
    "Pod",
];

/// On a real server nothing may change for so long before everything counts as at rest.
const QUIET: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_mins(2);

/// How one notices that everything is at rest.
enum Rest {
    Virtual(Arc<Cluster>),
    Real,
}

/// A story on its way.
pub(crate) struct Drive {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    rest: Rest,
    kinds: Vec<&'static str>,
    /// What is in git, where that has to be a real one.
    git: Option<git::Repository>,
}

/// The kinds that are compared of a story.
fn kinds(story: &Story) -> Vec<&'static str> {
    let flux: &[&str] = match story.git {
        Some(_) => &["ConfigMap", "GitRepository", "Kustomization"],
        None => &[],
    };
    KINDS.iter().chain(flux).copied().collect()
}

/// A real repository with the same versions.
fn served(repository: Repository) -> Result<git::Repository, String> {
    let real = git::Repository::start().map_err(|error| error.to_string())?;
    for version in &repository.versions {
        let mut files = BTreeMap::new();
        for (folder, manifests) in repository.manifests(version) {
            let texts: Vec<String> = manifests.iter().map(Value::to_string).collect();
            files.insert(format!("{folder}/all.yaml"), texts.join("\n---\n"));
        }
        let released = real.release(version, &files);
        released.map_err(|error| error.to_string())?;
    }
    Ok(real)
}

/// Tells a story to the embedded server with actors.
pub(crate) fn on_embedded(story: &Story) -> Result<Value, String> {
    let flux = story
        .repository(GIT)
        .map(|repository| json!({"repositories": [repository]}));
    let script = flux.map_or(json!({}), |flux| json!({ "flux": flux }));
    stage::play(1, &script.to_string(), |stage| async move {
        let drive = Drive {
            client: stage.client,
            namespace: format!("reality-{}", story.name),
            rest: Rest::Virtual(stage.cluster),
            kinds: kinds(story),
            git: None,
        };
        drive.tell(story).await
    })
}

async fn connected(kubeconfig: &Path) -> Result<Client, String> {
    let config = kube::config::Kubeconfig::read_from(kubeconfig).map_err(|e| e.to_string())?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    Client::try_from(config.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// What a real control plane says of its version.
pub(crate) fn version(kubeconfig: &Path) -> Result<Value, String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        let said = connected(kubeconfig).await?.request(request).await;
        said.map_err(|error| error.to_string())
    })
}

/// Tells a story to a real control plane. Where it is known how it ends, an end that differs is looked at again when all has come
/// to rest once more: on a busy machine a controller may be silent for longer than [`QUIET`] before it goes on.
pub(crate) fn on_real(
    story: &Story,
    kubeconfig: &Path,
    truth: Option<&Value>,
) -> Result<Value, String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = connected(kubeconfig).await?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let actors = Actors::new(client.clone(), clock, Script::default(), 1);
        actors.provision().await.map_err(|e| e.to_string())?;
        let stamp = std::process::id();
        let drive = Drive {
            client,
            namespace: format!("reality-{}-{stamp}", story.name),
            rest: Rest::Real,
            kinds: kinds(story),
            git: story.repository(GIT).map(served).transpose()?,
        };
        let mut end = drive.tell(story).await;
        let start = Instant::now();
        while let (Ok(told), Some(truth)) = (&end, truth)
            && !masks::differences_of_real(truth, told).is_empty()
            && start.elapsed() < PATIENCE
        {
            end = drive.end().await;
        }
        drive.clean_up().await;
        end
    })
}

impl Drive {
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &stage::resource(kind))
    }

    async fn tell(&self, story: &Story) -> Result<Value, String> {
        let namespaces: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &stage::resource("Namespace"));
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let namespace = serde_json::from_value(namespace).unwrap();
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.map_err(|e| e.to_string())?;
        for object in &story.objects {
            self.create(object).await?;
        }
        self.come_to_rest().await?;
        let bounds = story.bounds.map(|bounds| match self.rest {
            Rest::Virtual(_) => bounds,
            Rest::Real => bounds.of_real(),
        });
        let watch = match bounds {
            Some(bounds) => Some(bounds::Watch::start(self, bounds).await?),
            None => None,
        };
        for step in &story.steps {
            self.take(step).await?;
            if !matches!(step, Step::Wait(_)) {
                self.come_to_rest().await?;
            }
        }
        if let Some(watch) = watch {
            watch.verdict()?;
        }
        Ok(masks::normalise(&self.everything().await?))
    }

    /// What is there when all has come to rest.
    async fn end(&self) -> Result<Value, String> {
        self.come_to_rest().await?;
        Ok(masks::normalise(&self.everything().await?))
    }

    async fn take(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Together(steps) => {
                for step in steps {
                    Box::pin(self.take(step)).await?;
                }
                Ok(())
            }
            Step::SetImage(about) => {
                let containers = json!([{"name": "main", "image": about.to}]);
                let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
                self.patch(&about.kind, &about.name, patch).await
            }
            Step::Scale(about) => {
                let patch = json!({"spec": {"replicas": about.to}});
                self.patch(&about.kind, &about.name, patch).await
            }
            Step::Restart(target) => {
                let annotation =
                    json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
                let patch =
                    json!({"spec": {"template": {"metadata": {"annotations": annotation}}}});
                self.patch(&target.kind, &target.name, patch).await
            }
            Step::Patch(about) => self.patch(&about.kind, &about.name, about.to.clone()).await,
            Step::Undo(target) => self.undo(target).await,
            Step::Delete(target) => {
                let api = self.api(&target.kind);
                let deleted = api.delete(&target.name, &DeleteParams::default()).await;
                deleted.map(drop).map_err(|e| e.to_string())
            }
            Step::Orphan(target) => {
                let params = DeleteParams {
                    propagation_policy: Some(PropagationPolicy::Orphan),
                    ..DeleteParams::default()
                };
                let deleted = self.api(&target.kind).delete(&target.name, &params).await;
                deleted.map(drop).map_err(|e| e.to_string())
            }
            Step::DeletePodOf(target) => self.delete_pod_of(target).await,
            Step::Create(object) => self.create(object).await,
            Step::Wait(seconds) => {
                tokio::time::sleep(Duration::from_secs(*seconds)).await;
                Ok(())
            }
        }
    }

    /// A manifest as it is in this namespace and for this repository.
    fn placed(&self, manifest: &Value) -> Value {
        let mut manifest = manifest.clone();
        masks::rename(&mut manifest, "<namespace>", &self.namespace);
        if let Some(git) = &self.git {
            masks::rename(&mut manifest, GIT, &git.url());
        }
        manifest
    }

    async fn create(&self, object: &Value) -> Result<(), String> {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object: DynamicObject = serde_json::from_value(self.placed(object)).unwrap();
        let created = self
            .api(&kind)
            .create(&PostParams::default(), &object)
            .await;
        created.map(drop).map_err(|e| format!("{kind}: {e}"))
    }

    async fn patch(&self, kind: &str, name: &str, patch: Value) -> Result<(), String> {
        let api = self.api(kind);
        let patch = self.placed(&patch);
        let patched = api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.map(drop).map_err(|e| format!("{kind} {name}: {e}"))
    }

    /// Puts the template of the revision before the present one back.
    async fn undo(&self, target: &Target) -> Result<(), String> {
        let revision = |object: &Value| -> i64 {
            let annotations = &object["metadata"]["annotations"];
            let text = annotations["deployment.kubernetes.io/revision"].as_str();
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let mut sets = self.list("ReplicaSet").await?;
        sets.retain(|set| set["metadata"]["ownerReferences"][0]["name"] == target.name.as_str());
        sets.sort_by_key(revision);
        let before = sets.len().checked_sub(2).and_then(|at| sets.get(at));
        let mut template = before.ok_or("nothing to go back to")?["spec"]["template"].clone();
        let labels = template["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove("pod-template-hash");
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{}",
            self.namespace, target.name
        );
        let patch = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        let request = Request::patch(path)
            .header("content-type", "application/json-patch+json")
            .body(patch.to_string().into_bytes())
            .unwrap();
        let patched = self.client.request_text(request).await;
        patched.map(drop).map_err(|e| e.to_string())
    }

    async fn delete_pod_of(&self, target: &Target) -> Result<(), String> {
        let pods = self.list("Pod").await?;
        let owned = pods.iter().find(|pod| {
            let owner = &pod["metadata"]["ownerReferences"][0];
            let name = owner["name"].as_str().unwrap_or_default();
            let by_deployment = owner["kind"] == "ReplicaSet"
                && target.kind == "Deployment"
                && name
                    .rsplit_once('-')
                    .is_some_and(|(start, _)| start == target.name);
            by_deployment || (owner["kind"] == target.kind.as_str() && name == target.name)
        });
        let pod = owned.ok_or("no pod to delete")?["metadata"]["name"].clone();
        let api = self.api("Pod");
        let deleted = api
            .delete(pod.as_str().unwrap(), &DeleteParams::default())
            .await;
        deleted.map(drop).map_err(|e| e.to_string())
    }

    async fn list(&self, kind: &str) -> Result<Vec<Value>, String> {
        let list = self.api(kind).list(&ListParams::default()).await;
        let items = list.map_err(|e| e.to_string())?.items;
        Ok(items
            .iter()
            .map(|o| serde_json::to_value(o).unwrap())
            .collect())
    }

    /// Everything that is compared, by kind.
    async fn everything(&self) -> Result<Value, String> {
        let mut all = serde_json::Map::new();
        for kind in &self.kinds {
            all.insert((*kind).to_owned(), Value::Array(self.list(kind).await?));
        }
        let mut all = Value::Object(all);
        if let Some(git) = &self.git {
            masks::rename(&mut all, &git.url(), GIT);
        }
        masks::rename(&mut all, &self.namespace, "<namespace>");
        Ok(all)
    }

    async fn come_to_rest(&self) -> Result<(), String> {
        match &self.rest {
            Rest::Virtual(cluster) => loop {
                let before = cluster.version();
                tokio::time::sleep(Duration::from_secs(20)).await;
                if cluster.version() == before {
                    return Ok(());
                }
            },
            Rest::Real => {
                let start = Instant::now();
                let mut last = (Value::Null, Instant::now());
                while start.elapsed() < PATIENCE {
                    let everything = self.everything().await?;
                    let now = versions(&everything);
                    if last.0 != now || !is_taken_up(&everything) {
                        last = (now, Instant::now());
                    } else if last.1.elapsed() > QUIET {
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(400)).await;
                }
                Err("it does not come to rest".to_owned())
            }
        }
    }

    async fn clean_up(&self) {
        let namespaces: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &stage::resource("Namespace"));
        let _ = namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await;
    }
}

/// Whether somebody has looked at every object: before that, silence is no rest. A source is waited for until it is fetched or
/// has failed; a Kustomization is not, because stories change one while its health is looked at.
fn is_taken_up(everything: &Value) -> bool {
    let objects = |kind: &str| {
        let list = everything[kind].as_array();
        list.into_iter().flatten().cloned().collect::<Vec<Value>>()
    };
    let is_fetched = |source: &Value| {
        let conditions = source["status"]["conditions"].as_array();
        let mut ready = conditions
            .into_iter()
            .flatten()
            .filter(|one| one["type"] == "Ready");
        ready.any(|one| {
            one["status"] != "Unknown"
                && one["observedGeneration"] == source["metadata"]["generation"]
        })
    };
    let is_seen = |object: &Value| {
        let seen = object["status"]["observedGeneration"].as_i64();
        seen.unwrap_or(-1) >= object["metadata"]["generation"].as_i64().unwrap_or(0)
    };
    let is_begun = |object: &Value| object["status"]["conditions"].is_array();
    ["Deployment", "StatefulSet", "DaemonSet"]
        .iter()
        .all(|kind| objects(kind).iter().all(is_seen))
        && objects("GitRepository").iter().all(is_fetched)
        && objects("Kustomization").iter().all(is_begun)
}

/// The names and versions of all objects.
fn versions(everything: &Value) -> Value {
    let objects = everything.as_object().unwrap().values();
    let all = objects.flat_map(|list| list.as_array().unwrap());
    all.map(|o| json!([o["metadata"]["uid"], o["metadata"]["resourceVersion"]]))
        .collect()
}
