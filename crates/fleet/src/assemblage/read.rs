//! Flux objects as the API has them.

use serde_json::Value;
use slipway_api::fleet::names::APPLIED;
use slipway_api::foreign::git_repository::GitRepositoryStatus;
use slipway_api::foreign::kustomization::KustomizationStatus;
use slipway_kernel::fields::{integer, list, strings, text};

use super::{KustomizationSeen, SourceSeen};
use crate::kinds;

impl SourceSeen {
    /// Reads a `GitRepository`. A spec that is not as we write it is read as one that is not wanted.
    pub fn of(object: &Value) -> Self {
        let spec = object.get("spec").cloned();
        let spec = spec.and_then(|spec| serde_json::from_value(spec).ok());
        Self {
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            spec: spec.unwrap_or_default(),
            status: GitRepositoryStatus::of(object),
        }
    }
}

impl KustomizationSeen {
    /// Reads a `Kustomization`. A spec that is not as we write it is read as one that is not wanted.
    pub fn of(object: &Value) -> Self {
        let spec = object.get("spec").cloned();
        let spec = spec.and_then(|spec| serde_json::from_value(spec).ok());
        let mut owners = list(object, "/metadata/ownerReferences");
        let owner = owners.find(|owner| {
            let is_controller = owner.get("controller") == Some(&Value::Bool(true));
            is_controller && text(owner, "/kind") == Some(&kinds::ASSEMBLAGE.kind)
        });
        Self {
            owner: owner
                .and_then(|owner| text(owner, "/uid"))
                .map(str::to_owned),
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            revision: strings(object, "/metadata/annotations").remove(APPLIED),
            spec: spec.unwrap_or_default(),
            status: KustomizationStatus::of(object),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            is_suspended: object.pointer("/spec/suspend") == Some(&Value::Bool(true)),
        }
    }
}
