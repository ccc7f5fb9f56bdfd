//! Why something waits, as objects carry it in `status.waitingFor`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many reasons an object carries at most; the oldest are kept.
pub const MAX_WAITING: usize = 8;

/// One reason why nothing happens, and who can change that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// A word that programs can match on.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// What is waited for.
    pub object: WaitingObject,
    /// Since when.
    pub since: Time,
    /// When it ends by itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Who or what can end it before.
    pub unblock: String,
}

/// An object that is waited for.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct WaitingObject {
    /// Its cluster; empty is the one that the operator runs in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}
