//! Flux: a source-controller for `GitRepository` and a kustomize-controller for `Kustomization`.
//!
//! What they say of their objects, in which order and of which generation, is as Flux 1.9 was seen to do it; stories that are
//! told to both hold it to that. What a repository holds, how long things take and what fails is the script's ([`script`]).
//!
//! Not played: other sources, Helm, decryption, dependencies, patches, impersonation, notifications, `status.history`. What is
//! applied to another cluster counts as healthy when it is applied.

mod build;
pub(crate) mod conditions;
pub(crate) mod definitions;
mod health;
pub(crate) mod kustomize;
pub(super) mod script;
pub(crate) mod source;
mod substitute;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::custom::custom;
use super::key::{Key, Kind};
use super::write::Write;

/// On both kinds: nothing goes before it has been cleaned up.
const FINALIZER: &str = "finalizers.fluxcd.io";
/// On all that is applied: by which Kustomization.
pub(crate) const APPLIED_BY: &str = "kustomize.toolkit.fluxcd.io/name";
/// On all that is applied: the namespace of that.
pub(crate) const APPLIED_FROM: &str = "kustomize.toolkit.fluxcd.io/namespace";

custom!(
    /// Where configuration is read from.
    GitRepository("GitRepository"),
    SourceSpec,
    SourceStatus,
    "source.toolkit.fluxcd.io",
    "v1",
    "gitrepositories"
);

custom!(
    /// What of it is applied.
    Kustomization("Kustomization"),
    KustomizationSpec,
    KustomizationStatus,
    "kustomize.toolkit.fluxcd.io",
    "v1",
    "kustomizations"
);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceSpec {
    pub(crate) url: String,
    interval: String,
    #[serde(rename = "ref")]
    reference: Reference,
    suspend: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    tag: Option<String>,
    commit: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceStatus {
    observed_generation: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<Artifact>,
}

/// What was fetched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Artifact {
    revision: String,
    digest: String,
    path: String,
    url: String,
    size: i64,
    last_update_time: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KustomizationSpec {
    interval: String,
    retry_interval: Option<String>,
    timeout: Option<String>,
    wait: bool,
    prune: bool,
    suspend: bool,
    pub(crate) source_ref: SourceReference,
    path: String,
    target_namespace: Option<String>,
    kube_config: Option<KubeConfig>,
    post_build: Option<PostBuild>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceReference {
    kind: String,
    pub(crate) name: String,
    namespace: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KubeConfig {
    secret_ref: SecretReference,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecretReference {
    name: String,
    key: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PostBuild {
    substitute: BTreeMap<String, String>,
    substitute_from: Vec<SubstituteFrom>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SubstituteFrom {
    kind: String,
    name: String,
    optional: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KustomizationStatus {
    observed_generation: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempted_revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_applied_revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inventory: Option<Inventory>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Inventory {
    entries: Vec<Entry>,
}

/// Something that was applied: `namespace_name_group_kind`, and the version.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    id: String,
    v: String,
}

/// A patch that adds or removes the finalizer; none if it is as wanted.
fn finalizer(kind: Kind, meta: &ObjectMeta, wanted: bool) -> Option<Write> {
    let all = meta.finalizers.clone().unwrap_or_default();
    if all.iter().any(|one| one == FINALIZER) == wanted {
        return None;
    }
    let mut all: Vec<String> = all.into_iter().filter(|one| one != FINALIZER).collect();
    if wanted {
        all.push(FINALIZER.to_owned());
    }
    Some(Write::Patch {
        kind,
        key: Key::of(meta),
        subresource: "",
        body: json!({"metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid, "finalizers": all}}),
    })
}

/// A time as Flux's objects have it; the default if it cannot be read.
fn length(text: Option<&str>, default: SignedDuration) -> SignedDuration {
    let parsed = text.and_then(|text| slipway_kernel::duration::parse(text).ok());
    let parsed = parsed.and_then(|time| SignedDuration::try_from(time).ok());
    parsed.unwrap_or(default)
}

/// Whether so long has passed.
fn is_over(since: Timestamp, lasts: SignedDuration, now: Timestamp) -> bool {
    super::scheduler::after(since, lasts) <= now
}
