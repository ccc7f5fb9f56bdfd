//! What a fresh cluster has: namespaces, roles, the service of the API itself.

use serde_json::Value;

use super::Cluster;
use crate::builtin::bootstrap;
use crate::resource::{Context, Resource};
use crate::value;

impl Cluster {
    /// Creates the objects of a fresh cluster.
    pub(super) fn bootstrap(&self) {
        let registry = self.registry();
        for (group, kind, object) in bootstrap::objects() {
            if let Some(resource) = registry.by_kind(&group, &kind) {
                self.seed(resource, object);
            }
        }
        // Nobody has seen anything older, and a real cluster does not keep its first versions either.
        self.store.compact();
    }

    /// Creates an object without asking anybody: defaults and what the server sets are filled in.
    fn seed(&self, resource: &Resource, mut object: Value) {
        let now = self.now();
        let Some(version) = resource.versions.first() else {
            return;
        };
        let cx = Context {
            version: &version.name,
            now,
            user: "system:apiserver",
        };
        let strategy = &resource.strategy;
        strategy.default(&mut object, &cx);
        crate::meta::prepare_create(&mut object, &self.uid(), now);
        strategy.prepare_create(&mut object, &cx);
        if strategy.has_generation() {
            value::put(&mut object, "metadata.generation", 1);
        }
        let (namespace, name) = (
            value::text(&object, "metadata.namespace").to_owned(),
            value::text(&object, "metadata.name").to_owned(),
        );
        // Already there means that a caller seeded it before.
        let _ = self
            .store
            .create(&resource.bucket(), &namespace, &name, |v| {
                Self::encode(resource, &object, v)
            });
        self.written(resource);
    }
}
