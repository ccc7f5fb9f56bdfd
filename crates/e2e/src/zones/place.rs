//! A namespace as the original is installed in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::documents::documents;
use crate::install::printed;
use crate::operator::Operator;
use crate::ports::Port;

/// The rollout group of all zones here.
pub const GROUP: &str = "mock";
/// The zones, in the order in which they roll.
pub const ZONES: [&str; 3] = ["mock-zone-a", "mock-zone-b", "mock-zone-c"];

const MANIFESTS: &str = include_str!("../../tests/zones/manifests/upstream.yaml");
const WEBHOOKS: &str = include_str!("../../tests/zones/manifests/webhooks.yaml");
/// How long something that should happen at once may take on a loaded machine.
const SOON: Duration = Duration::from_mins(1);

/// A namespace with the original's service account and roles; it goes with this value, and so do its webhooks.
pub struct Place<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The namespace.
    pub name: String,
    /// A kubeconfig with no more rights than the original has.
    pub account: PathBuf,
    /// The port that webhooks are reached by.
    pub port: Port,
}

impl<'a> Place<'a> {
    /// Makes the namespace.
    pub fn new(cluster: &'a Cluster, name: &str) -> Result<Self> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let manifests = MANIFESTS.replace("NAMESPACE", name);
        cluster.apply(&format!("{}---\n{manifests}", documents([&namespace])))?;
        Ok(Self {
            cluster,
            name: name.to_owned(),
            account: cluster.service_account(name, "rollout-operator")?,
            port: Port::draw()?,
        })
    }

    /// The arguments of the shipped Deployment, and those that an operator outside of the cluster needs for webhooks:
    /// its port, and that the API server knows it as localhost.
    pub fn arguments(&self) -> Result<Vec<String>> {
        let manifests = MANIFESTS.replace("NAMESPACE", &self.name);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&manifests)?;
        let deployment = documents
            .iter()
            .find(|document| document["kind"] == "Deployment")
            .context("no Deployment is shipped")?;
        let arguments = deployment
            .pointer("/spec/template/spec/containers/0/args")
            .cloned()
            .unwrap_or_default();
        let mut all: Vec<String> = serde_json::from_value(arguments)?;
        all.push(format!("-server-tls.port={}", self.port));
        all.push("-server-tls.self-signed-cert.dns-name=localhost".to_owned());
        Ok(all)
    }

    /// An operator with those and these arguments, ready.
    pub fn operator(&self, more: &[&str]) -> Result<Operator> {
        self.operator_by(&self.account, more)
    }

    /// The same, by a kubeconfig that takes another way to the API server.
    pub fn operator_by(&self, kubeconfig: &Path, more: &[&str]) -> Result<Operator> {
        let mut arguments = self.arguments()?;
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let mut operator = Operator::rollout_operator(None, kubeconfig, &arguments, None)?;
        operator.wait_until_ready(SOON)?;
        Ok(operator)
    }

    /// Registers these webhooks as they are shipped, except that they are reached by address: nothing routes to the
    /// address of a Service here.
    pub fn register(&self, names: &[&str]) -> Result<()> {
        for mut document in registrations(&self.name, names)? {
            let path = document["webhooks"][0]["clientConfig"]["service"]["path"].take();
            let path = path.as_str().unwrap_or_default();
            document["webhooks"][0]["clientConfig"] = self.client_config(path);
            self.cluster.create(&document.to_string())?;
        }
        Ok(())
    }

    /// How the API server reaches the operator.
    pub fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://localhost:{}{path}", self.port)})
    }

    /// Waits until the registrations of these webhooks have a CA.
    pub fn trusted(&self, names: &[&str], within: Duration) -> Result<()> {
        for name in names {
            let what = format!("a CA in {name}-{}", self.name);
            self.cluster.at_length(&what, within, |_| {
                Ok((!self.bundle(name)?.is_empty()).then_some(()))
            })?;
        }
        Ok(())
    }

    /// The CA of a registration.
    pub fn bundle(&self, name: &str) -> Result<String> {
        self.cluster.kubectl(&[
            "get",
            kind(name),
            &format!("{name}-{}", self.name),
            "-o",
            "jsonpath={.webhooks[0].clientConfig.caBundle}",
        ])
    }

    /// An operator with TLS and these webhooks, in use.
    pub fn guarded(&self, names: &[&str]) -> Result<Operator> {
        self.register(names)?;
        let operator = self.operator(&[])?;
        self.trusted(names, SOON)?;
        self.reached(&operator, names)?;
        Ok(operator)
    }

    /// Waits until the API server asks an operator about what happens here: it learns of registrations and of their CA
    /// by watches of its own. There must be a zone with a pod.
    pub fn reached(&self, operator: &Operator, names: &[&str]) -> Result<()> {
        for name in names {
            let what = format!("the API server asks {name} about {}", self.name);
            self.cluster.eventually(&what, SOON, |_| {
                self.knock(name)?;
                Ok((operator.answered(name) > 0).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Tries something that a webhook is asked about, and changes nothing. What is said to it is nobody's concern.
    fn knock(&self, name: &str) -> Result<()> {
        match name {
            "pod-eviction" => {
                let pods = self.list("/api/v1/pods")?;
                let pod = pods.first().and_then(|pod| pod.pointer("/metadata/name"));
                let pod = pod.and_then(Value::as_str).context("there is no pod")?;
                let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", self.name);
                let body = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": pod, "namespace": self.name},
                    "deleteOptions": {"dryRun": ["All"]},
                });
                let dry = format!("{path}?dryRun=All");
                let _ = self.cluster.post(&dry, &body.to_string());
            }
            "zpdb-validation" => {
                let budget = json!({
                    "apiVersion": "rollout-operator.grafana.com/v1",
                    "kind": "ZoneAwarePodDisruptionBudget",
                    "metadata": {"name": "knock", "namespace": self.name},
                    "spec": {"selector": {"matchLabels": {"nobody": "here"}}, "maxUnavailable": 1},
                });
                let _ = self.cluster.dry_create(&budget.to_string());
            }
            // Some registrations are about whole objects with a label only, some about their scale whatever its labels.
            _ => {
                let dry = ["annotate", "--dry-run=server", "--overwrite", "-o", "name"];
                let all = ["statefulsets", "--all", "slipway.dev/knock=true"];
                let _ = self.kubectl(&[&dry[..], &all].concat());
                let dry = ["scale", "--dry-run=server", "--replicas=9", "-o", "name"];
                let _ = self.kubectl(&[&dry[..], &["statefulsets", "--all"]].concat());
            }
        }
        Ok(())
    }

    /// kubectl in this namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["-n", self.name.as_str()];
        all.extend(arguments);
        self.cluster.kubectl(&all)
    }

    /// What kubectl says to what is refused.
    pub fn refused(&self, arguments: &[&str]) -> Result<String> {
        match self.kubectl(arguments) {
            Ok(said) => bail!("kubectl {} was not refused: {said}", arguments.join(" ")),
            Err(error) => Ok(format!("{error:#}")),
        }
    }

    /// Creates or changes zones.
    pub fn apply(&self, zones: &[Value]) -> Result<()> {
        let items: Vec<Value> = zones
            .iter()
            .map(|zone| {
                let mut zone = zone.clone();
                zone["metadata"]["namespace"] = json!(self.name);
                zone
            })
            .collect();
        self.cluster.apply(&documents(&items)).map(drop)
    }

    /// A collection of this namespace, as it is.
    pub fn list(&self, path: &str) -> Result<Vec<Value>> {
        let (group, plural) = path.rsplit_once('/').context("no such collection")?;
        let mut list = self
            .cluster
            .raw(&format!("{group}/namespaces/{}/{plural}", self.name))?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Each pod that is ready, with its image.
    pub fn ready(&self) -> Result<Vec<(String, String)>> {
        let pods = self.list("/api/v1/pods")?;
        let mut ready: Vec<(String, String)> = pods
            .iter()
            .filter(|pod| super::trace::is_up(pod))
            .map(|pod| {
                let text = |path: &str| {
                    let value = pod.pointer(path).and_then(Value::as_str);
                    value.unwrap_or_default().to_owned()
                };
                (text("/metadata/name"), text("/spec/containers/0/image"))
            })
            .collect();
        ready.sort();
        Ok(ready)
    }

    /// Waits until so many pods are ready, all with this image, and the zones' own statuses say so too.
    pub fn settled(&self, count: usize, image: &str, within: Duration) -> Result<()> {
        let what = format!("{count} pods of {} are ready with {image}", self.name);
        self.cluster.at_length(&what, within, |_| {
            Ok(self.has_settled(count, image)?.then_some(()))
        })
    }

    /// Whether so many pods are ready, all with this image, and the zones' own statuses say so too.
    pub fn has_settled(&self, count: usize, image: &str) -> Result<bool> {
        let ready = self.ready()?;
        let pods = ready.len() == count && ready.iter().all(|(_, of)| of == image);
        Ok(pods
            && self
                .list("/apis/apps/v1/statefulsets")?
                .iter()
                .all(is_settled))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let role = format!("rollout-operator-{}-webhook-cert-update-role", self.name);
        for (kind, name) in [
            ("validatingwebhookconfiguration", "no-downscale"),
            ("mutatingwebhookconfiguration", "prepare-downscale"),
            ("validatingwebhookconfiguration", "pod-eviction"),
            ("validatingwebhookconfiguration", "zpdb-validation"),
        ] {
            let name = format!("{name}-{}", self.name);
            let _ = self
                .cluster
                .kubectl(&["delete", kind, &name, "--ignore-not-found"]);
        }
        let _ = self
            .cluster
            .kubectl(&["delete", "clusterrole", &role, "--ignore-not-found"]);
        let gone = ["delete", "namespace", &self.name, "--wait=false"];
        let _ = self.cluster.kubectl(&gone);
    }
}

/// The registrations of these webhooks that the original ships, for its Service in a namespace.
pub fn registrations(namespace: &str, names: &[&str]) -> Result<Vec<Value>> {
    let text = WEBHOOKS.replace("NAMESPACE", namespace);
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    documents.retain(|document| {
        let path = document.pointer("/webhooks/0/clientConfig/service/path");
        let path = path.and_then(Value::as_str).unwrap_or_default();
        names.iter().any(|name| path.ends_with(name))
    });
    Ok(documents)
}

/// The kind of a registration.
fn kind(webhook: &str) -> &'static str {
    match webhook {
        "prepare-downscale" => "mutatingwebhookconfiguration",
        _ => "validatingwebhookconfiguration",
    }
}

/// Whether a zone's status says that all is well and up to date.
fn is_settled(zone: &Value) -> bool {
    let number = |path: &str| {
        zone.pointer(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let text = |path: &str| {
        zone.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    number("/status/observedGeneration") >= number("/metadata/generation")
        && number("/status/readyReplicas") == number("/spec/replicas")
        && text("/status/currentRevision") == text("/status/updateRevision")
}

/// A zone with so many replicas of an image, of which so many may be away.
pub fn zone(name: &str, replicas: usize, image: &str, away: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": name,
            "labels": {"rollout-group": GROUP},
            "annotations": {"rollout-max-unavailable": away.to_string()},
        },
        "spec": {
            "replicas": replicas,
            "serviceName": GROUP,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"name": name}},
            "template": {
                "metadata": {"labels": {"name": name, "rollout-group": GROUP}},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
        },
    })
}

/// The definitions of our kinds.
pub fn definitions() -> Result<String> {
    Ok(documents(&printed(&["crds"])?))
}
