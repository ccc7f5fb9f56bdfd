//! Flux's `Kustomization`: what is applied, and whether it is healthy.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fleet::LocalReference;

/// The API group.
pub const GROUP: &str = "kustomize.toolkit.fluxcd.io";
/// The version.
pub const VERSION: &str = "v1";
/// The kind's name.
pub const KIND: &str = "Kustomization";

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// How often it is applied again.
    pub interval: String,
    /// How long after a failure it is tried again.
    pub retry_interval: String,
    /// How long it may take.
    pub timeout: String,
    /// Whether it waits until all is healthy.
    pub wait: bool,
    /// Whether what is no longer in it is deleted.
    pub prune: bool,
    /// The source.
    pub source_ref: SourceReference,
    /// The folder in it.
    pub path: String,
    /// The namespace of what names none.
    pub target_namespace: String,
    /// The service account by whose rights it is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The cluster that it is applied to, if it is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,
    /// Values for `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_build: Option<PostBuild>,
}

impl KustomizationSpec {
    /// Whether all that this asks for is asked for by what is stored. Others may ask for more, as policies do; but where it is applied
    /// is nobody else's business.
    pub fn is_within(&self, stored: &Self) -> bool {
        let Self {
            interval,
            retry_interval,
            timeout,
            wait,
            prune,
            source_ref,
            path,
            target_namespace,
            service_account_name,
            kube_config,
            post_build,
        } = self;
        let is_how = *interval == stored.interval
            && *retry_interval == stored.retry_interval
            && *timeout == stored.timeout
            && (*wait, *prune) == (stored.wait, stored.prune);
        let is_what = *source_ref == stored.source_ref
            && *path == stored.path
            && *target_namespace == stored.target_namespace
            && *kube_config == stored.kube_config;
        let is_by_whom =
            service_account_name.is_none() || *service_account_name == stored.service_account_name;
        let is_built = post_build.as_ref().is_none_or(|ours| {
            let stored = stored.post_build.as_ref();
            stored.is_some_and(|stored| ours.is_within(stored))
        });
        is_how && is_what && is_by_whom && is_built
    }
}

impl PostBuild {
    fn is_within(&self, stored: &Self) -> bool {
        let mut values = self.substitute.iter();
        let mut from = self.substitute_from.iter();
        values.all(|(name, value)| stored.substitute.get(name) == Some(value))
            && from.all(|one| stored.substitute_from.contains(one))
    }
}

/// A source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReference {
    /// `GitRepository`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Where a kubeconfig is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfig {
    /// A Secret, with the kubeconfig under `value`.
    pub secret_ref: LocalReference,
}

/// Values for `${NAME}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostBuild {
    /// Those that anybody may see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub substitute: BTreeMap<String, String>,
    /// Where others are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitute_from: Vec<SubstituteFrom>,
}

/// An object whose data are values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubstituteFrom {
    /// Secret or `ConfigMap`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether it may be missing. The API fills it in, so it is always written: else what is stored never is what is wanted.
    #[serde(default)]
    pub optional: bool,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KustomizationStatus {
    /// The generation that was applied last. After a failure it stays old.
    pub observed_generation: i64,
    /// The condition `Ready`. Its own generation is that of the object when it was written: what it says may be of an attempt
    /// that began before.
    pub ready: Option<Condition>,
    /// Whether an attempt failed, and another one will be made.
    pub is_retrying: bool,
    /// The source's revision that was applied last.
    pub applied: Option<String>,
    /// The source's revision that was tried last.
    pub attempted: Option<String>,
    /// What was applied, as `namespace_name_group_kind` and version.
    pub inventory: Vec<(String, String)>,
}

impl KustomizationStatus {
    /// Reads that of an object.
    pub fn of(object: &Value) -> Self {
        let entries = object.pointer("/status/inventory/entries");
        let entries = entries.and_then(Value::as_array).into_iter().flatten();
        let inventory = entries.filter_map(|entry| {
            let part = |name| Some(entry.get(name)?.as_str()?.to_owned());
            Some((part("id")?, part("v")?))
        });
        Self {
            observed_generation: super::integer(object, "/status/observedGeneration"),
            ready: super::condition(object, "Ready"),
            is_retrying: super::condition(object, "Reconciling")
                .is_some_and(|said| said.reason == "ProgressingWithRetry"),
            applied: super::text(object, "/status/lastAppliedRevision"),
            attempted: super::text(object, "/status/lastAttemptedRevision"),
            inventory: inventory.collect(),
        }
    }

    /// The namespace, group and version of an applied object of this kind and name. None if there is none, or several: a name
    /// has to mean one object.
    pub fn find(&self, kind: &str, name: &str) -> Option<Applied> {
        let mut found = self.inventory.iter().filter_map(|(id, version)| {
            // Names have dots and dashes, but no underscores.
            let mut parts = id.split('_');
            let (namespace, named) = (parts.next()?, parts.next()?);
            let (group, of) = (parts.next()?, parts.next()?);
            let is_meant = of == kind && named == name && parts.next().is_none();
            is_meant.then(|| Applied {
                namespace: namespace.to_owned(),
                group: group.to_owned(),
                version: version.clone(),
            })
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

/// An object that a Kustomization applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its API group; empty for the core.
    pub group: String,
    /// Its version.
    pub version: String,
}
