//! Flux's `GitRepository`: where configuration is read from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fleet::LocalReference;

/// The API group.
pub const GROUP: &str = "source.toolkit.fluxcd.io";
/// The version.
pub const VERSION: &str = "v1";
/// The kind's name.
pub const KIND: &str = "GitRepository";

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositorySpec {
    /// Where it is.
    pub url: String,
    /// How often it is looked at.
    pub interval: String,
    /// Which version.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// Whether submodules are read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recurse_submodules: bool,
}

/// A version: a tag or a commit, never both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// A tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What is read of its status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GitRepositoryStatus {
    /// The generation that the source controller has looked at.
    pub observed_generation: i64,
    /// The condition `Ready`.
    pub ready: Option<Condition>,
    /// The revision of what was fetched: `v1.2.3@sha1:…`.
    pub revision: Option<String>,
}

impl GitRepositoryStatus {
    /// Reads that of an object.
    pub fn of(object: &Value) -> Self {
        Self {
            observed_generation: super::integer(object, "/status/observedGeneration"),
            ready: super::condition(object, "Ready"),
            revision: super::text(object, "/status/artifact/revision"),
        }
    }

    /// Whether what this generation asks for has been fetched.
    pub fn is_ready_at(&self, generation: i64) -> bool {
        let is_ready = self.ready.as_ref().is_some_and(|c| c.status == "True");
        is_ready && self.observed_generation >= generation && self.revision.is_some()
    }
}
