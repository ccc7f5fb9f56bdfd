//! How a built-in resource is written down.

use std::sync::Arc;

use crate::resource::{Names, Resource, Scale, StoredIn, Strategy, Version};
use crate::schema::table;

/// The verbs of an ordinary resource.
pub const ALL_VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// A resource being written down; ends with [`Description::build`].
#[derive(Debug)]
pub struct Description {
    resource: Resource,
}

/// Starts with what every resource has. `version` is the storage version and the first one served.
pub fn resource(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    strategy: Arc<dyn Strategy>,
) -> Description {
    let names = Names {
        group: group.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_ascii_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
    };
    let first = Version {
        name: version.to_owned(),
        schema: table::kind(group, version, kind),
        deprecation: None,
    };
    Description {
        resource: Resource {
            names,
            namespaced: true,
            versions: vec![first],
            storage_version: version.to_owned(),
            verbs: ALL_VERBS.to_vec(),
            status: false,
            scale: None,
            subresources: Vec::new(),
            strategy,
            custom: false,
            returns_deleted: false,
            hashed_as: None,
            stored_in: None,
        },
    }
}

impl Description {
    /// Objects live outside namespaces.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.resource.namespaced = false;
        self
    }

    /// What kubectl also accepts.
    #[must_use]
    pub fn short(mut self, names: &[&str]) -> Self {
        self.resource.names.short_names = names.iter().map(|&n| n.to_owned()).collect();
        self
    }

    /// Such as `all`.
    #[must_use]
    pub fn category(mut self, name: &str) -> Self {
        self.resource.names.categories.push(name.to_owned());
        self
    }

    /// Has a `status` subresource.
    #[must_use]
    pub fn status(mut self) -> Self {
        self.resource.status = true;
        self
    }

    /// Has a `scale` subresource at `.spec.replicas`, `.status.replicas` and this selector.
    #[must_use]
    pub fn scale(mut self, selector: &str) -> Self {
        self.resource.scale = Some(Scale {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            selector: selector.to_owned(),
        });
        self
    }

    /// Has this further subresource.
    #[must_use]
    pub fn subresource(mut self, name: &'static str) -> Self {
        self.resource.subresources.push(name);
        self
    }

    /// Has only these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&'static str]) -> Self {
        self.resource.verbs = verbs.to_vec();
        self
    }

    /// Kept together with the resource of the same plural in another group.
    #[must_use]
    pub fn stored_in(mut self, other: StoredIn) -> Self {
        self.resource.stored_in = Some(other);
        self
    }

    /// Served in a further version, whose form the strategy makes if its fields differ.
    #[must_use]
    pub fn also(mut self, version: &str) -> Self {
        let schema = table::kind(
            &self.resource.names.group,
            version,
            &self.resource.names.kind,
        );
        self.resource.versions.push(Version {
            name: version.to_owned(),
            schema,
            deprecation: None,
        });
        self
    }

    /// Answers carry this warning.
    #[must_use]
    pub fn deprecated(mut self, warning: &str) -> Self {
        for version in &mut self.resource.versions {
            version.deprecation = Some(warning.to_owned());
        }
        self
    }

    /// Deletes answer with the object instead of a `Status`.
    #[must_use]
    pub fn returns_deleted(mut self) -> Self {
        self.resource.returns_deleted = true;
        self
    }

    /// Hashed under the version in which it began.
    #[must_use]
    pub fn hashed_as(mut self, version: &'static str) -> Self {
        self.resource.hashed_as = Some(version);
        self
    }

    /// The finished resource.
    pub fn build(self) -> Resource {
        self.resource
    }
}
