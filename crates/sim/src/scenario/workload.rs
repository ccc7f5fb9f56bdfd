//! Workloads in few words.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum WorkloadKind {
    /// apps/v1 Deployment.
    Deployment,
    /// apps/v1 `StatefulSet`.
    StatefulSet,
    /// apps/v1 `DaemonSet`.
    DaemonSet,
}

/// One workload, or several of a kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Workload {
    /// Which kind; a Deployment if nothing is said.
    #[serde(default = "deployment")]
    pub kind: WorkloadKind,
    /// In which namespace.
    #[serde(rename = "in", default = "default")]
    pub namespace: String,
    /// Its name. With `count` the names are numbered: `web-00`, `web-01`, …
    pub name: String,
    /// How many of these.
    #[serde(default)]
    pub count: Option<usize>,
    /// How many pods.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Labels of the workload itself.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the workload itself.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Labels of its pods, besides `app`, which is its name.
    #[serde(default)]
    pub template_labels: BTreeMap<String, String>,
    /// Annotations of its pods.
    #[serde(default)]
    pub template_annotations: BTreeMap<String, String>,
    /// What runs; `NAME:1` if nothing is said.
    #[serde(default)]
    pub image: Option<String>,
    /// More fields of its spec.
    #[serde(default)]
    pub spec: Map<String, Value>,
}

const MOST: usize = 10_000;

fn deployment() -> WorkloadKind {
    WorkloadKind::Deployment
}

fn default() -> String {
    "default".to_owned()
}

fn one() -> u32 {
    1
}

impl Workload {
    pub(super) fn check(&self) -> Result<(), String> {
        match self.count {
            Some(0) => Err("count: leave the workload out instead".to_owned()),
            Some(count) if count > MOST => Err(format!("count: {count} are too many")),
            _ => Ok(()),
        }
    }

    /// Its manifests.
    pub fn manifests(&self) -> Vec<Value> {
        match self.count {
            None => vec![self.manifest(&self.name)],
            Some(count) => (0..count)
                .map(|n| self.manifest(&format!("{}-{n:02}", self.name)))
                .collect(),
        }
    }

    fn manifest(&self, name: &str) -> Value {
        let image = self.image.clone().unwrap_or_else(|| format!("{name}:1"));
        let mut spec = json!({
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        });
        if let Some(labels) = spec.pointer_mut("/template/metadata/labels")
            && let Some(labels) = labels.as_object_mut()
        {
            let more = self.template_labels.iter();
            labels.extend(more.map(|(key, value)| (key.clone(), json!(value))));
        }
        let annotations = &self.template_annotations;
        if let (false, Some(template)) = (
            annotations.is_empty(),
            spec.pointer_mut("/template/metadata"),
        ) && let Some(fields) = template.as_object_mut()
        {
            fields.insert("annotations".to_owned(), json!(annotations));
        }
        if let Some(fields) = spec.as_object_mut() {
            if self.kind != WorkloadKind::DaemonSet {
                fields.insert("replicas".to_owned(), json!(self.replicas));
            }
            if self.kind == WorkloadKind::StatefulSet {
                fields.insert("serviceName".to_owned(), json!(name));
            }
            fields.extend(self.spec.clone());
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": format!("{:?}", self.kind),
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": self.labels,
                "annotations": self.annotations,
            },
            "spec": spec,
        })
    }
}
