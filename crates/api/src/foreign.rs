//! The little of other projects' kinds that we touch: their names, and the fields that are read or written.
//!
//! Whole objects are never modelled: what we do not know in them is kept as it is. They are read leniently, because what
//! they are is not ours to say: what is missing or of another type counts as absent.

pub mod cluster;
pub mod gateway;
pub mod git_repository;
pub mod ingress_nginx;
pub mod istio;
pub mod kustomization;
pub mod smi;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Deserialize;
use serde_json::Value;

/// The condition of a type in the status of any object, if it can be read.
pub fn condition(object: &Value, kind: &str) -> Option<Condition> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let is_meant = |one: &&Value| one.get("type").and_then(Value::as_str) == Some(kind);
    let found = all.iter().find(is_meant)?;
    // Others leave fields out that the API's own conditions must have.
    Loose::deserialize(found).ok().map(Loose::whole)
}

/// A condition as it may come.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Loose {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    observed_generation: Option<i64>,
    #[serde(default)]
    last_transition_time: Option<jiff::Timestamp>,
}

impl Loose {
    fn whole(self) -> Condition {
        let since = self.last_transition_time.unwrap_or_default();
        Condition {
            type_: self.kind,
            status: self.status,
            reason: self.reason,
            message: self.message,
            observed_generation: self.observed_generation,
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since),
        }
    }
}

fn text(object: &Value, path: &str) -> Option<String> {
    object.pointer(path)?.as_str().map(str::to_owned)
}

fn integer(object: &Value, path: &str) -> i64 {
    let number = object.pointer(path).and_then(Value::as_i64);
    number.unwrap_or_default()
}
