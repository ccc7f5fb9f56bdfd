//! Flux objects as the API has them.

use serde_json::Value;
use slipway_api::fleet::names::{APPLIED, APPLIED_SPEC, MADE_FOR, PUT_RIGHT};
use slipway_api::foreign::git_repository::GitRepositoryStatus;
use slipway_api::foreign::kustomization::KustomizationStatus;
use slipway_kernel::fields::{integer, strings, text};

use super::insistence::{OPTIONAL, is_nothing};
use super::{KustomizationSeen, SourceSeen};

impl SourceSeen {
    /// Reads a `GitRepository`. A spec that is not as we write it is read as one that is not wanted.
    pub fn of(object: &Value) -> Self {
        let spec = object.get("spec");
        let said = OPTIONAL.into_iter().filter_map(|path| {
            let value = spec?.pointer(path)?;
            (!is_nothing(value)).then(|| (path, value.clone()))
        });
        let said = said.collect();
        let spec = spec.cloned();
        let spec = spec.and_then(|spec| serde_json::from_value(spec).ok());
        Self {
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            spec: spec.unwrap_or_default(),
            said,
            put_right: strings(object, "/metadata/annotations").remove(PUT_RIGHT),
            status: GitRepositoryStatus::of(object),
        }
    }
}

impl KustomizationSeen {
    /// Reads a `Kustomization`. A spec that is not as we write it is read as one that is not wanted.
    pub fn of(object: &Value) -> Self {
        let spec = object.get("spec").cloned();
        let spec = spec.and_then(|spec| serde_json::from_value(spec).ok());
        let mut said = strings(object, "/metadata/annotations");
        Self {
            made_for: said.remove(MADE_FOR),
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            revision: said.remove(APPLIED),
            written: said.remove(APPLIED_SPEC),
            put_right: said.remove(PUT_RIGHT),
            spec: spec.unwrap_or_default(),
            status: KustomizationStatus::of(object),
            is_deleting: text(object, "/metadata/deletionTimestamp").is_some(),
            is_suspended: object.pointer("/spec/suspend") == Some(&Value::Bool(true)),
        }
    }

    /// Whether it was made for the assemblage of this name. What its uid was then does not count: it may have been restored.
    pub(crate) fn is_of(&self, assemblage: &str) -> bool {
        self.made_for.as_deref() == Some(assemblage)
    }
}
