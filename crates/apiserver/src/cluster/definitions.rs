//! The end of a definition: its objects go first.

use serde_json::Value;

use super::Cluster;
use crate::crd;
use crate::resource::Resource;
use crate::value;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

impl Cluster {
    /// Removes the objects of a definition that is being deleted and then lets it go, in the steps in which the real
    /// server's own controller does: each is a write that watches see.
    pub(crate) fn clean_up_definition(&self, name: &str) {
        let registry = self.registry();
        let Some(resource) = registry.find(GROUP, PLURAL) else {
            return;
        };
        let Some(definition) = self.store.get(&resource.bucket(), "", name) else {
            return;
        };
        let definition = definition.decode();
        let now = self.now();
        self.change_definition(resource, name, |object| {
            crd::deleting_instances(object, now);
        });
        let instances = registry.find(
            value::text(&definition, "spec.group"),
            value::text(&definition, "spec.names.plural"),
        );
        let left = instances.is_some_and(|instances| self.remove_instances(instances));
        if !left {
            self.change_definition(resource, name, |object| crd::finish_delete(object, now));
        }
        self.written(resource);
    }

    /// Deletes all objects of a resource; true if finalizers keep some.
    fn remove_instances(&self, resource: &Resource) -> bool {
        let mut left = false;
        for stored in self.store.list(&resource.bucket(), "", &|_| true).objects {
            let (namespace, name) = (&stored.header.namespace, &stored.header.name);
            let mut object = stored.decode();
            if value::items(&object, "metadata.finalizers").is_empty() {
                let _ = self
                    .store
                    .delete(&resource.bucket(), namespace, name, stored.version);
                continue;
            }
            left = true;
            if !stored.header.deleting {
                value::put(
                    &mut object,
                    "metadata.deletionTimestamp",
                    crate::meta::timestamp(self.now()),
                );
                value::put(&mut object, "metadata.deletionGracePeriodSeconds", 0);
                if let Some(generation) =
                    value::integer(&object, "metadata.generation").filter(|g| *g > 0)
                {
                    value::put(&mut object, "metadata.generation", generation + 1);
                }
                let _ = self.store.update(
                    &resource.bucket(),
                    namespace,
                    name,
                    stored.version,
                    |version| Self::encode(resource, &object, version),
                );
            }
        }
        left
    }

    fn change_definition(&self, resource: &Resource, name: &str, change: impl FnOnce(&mut Value)) {
        let Some(stored) = self.store.get(&resource.bucket(), "", name) else {
            return;
        };
        let mut object = stored.decode();
        change(&mut object);
        let finished = value::items(&object, "metadata.finalizers").is_empty();
        let _ = if finished {
            self.store
                .delete(&resource.bucket(), "", name, stored.version)
        } else {
            self.store
                .update(&resource.bucket(), "", name, stored.version, |v| {
                    Self::encode(resource, &object, v)
                })
        };
    }
}
