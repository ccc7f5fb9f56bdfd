//! Writes that the server and its controllers make themselves, and who owns the fields of them.

use serde_json::Value;

use super::Cluster;
use crate::apply::{self, Operation, Owner};
use crate::resource::{Part, Resource};

impl Cluster {
    /// Records in `new` what a part of the control plane changed against `old`; both are in the stored form.
    pub(crate) fn own(
        &self,
        resource: &Resource,
        manager: &str,
        subresource: &str,
        old: &Value,
        new: &mut Value,
    ) {
        let Some(version) = resource
            .version(&resource.storage_version)
            .or_else(|| resource.versions.first())
        else {
            return;
        };
        let api_version = resource.api_version(&version.name);
        let owner = Owner {
            manager,
            operation: Operation::Update,
            api_version: &api_version,
            subresource,
            now: self.now(),
        };
        let part = if subresource == "status" {
            Part::Status
        } else {
            Part::Main
        };
        apply::track_update(
            &version.schema,
            Some(old),
            new,
            &owner,
            &resource.strategy.reset_fields(part),
        );
    }
}
