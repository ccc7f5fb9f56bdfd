//! Kinds that come with a definition: what of them is looked at, and the definition itself, as far as anybody here cares.

use serde_json::{Value, json};

/// Declares such a kind as a type that can be watched: its spec, its status, its group, version and plural.
macro_rules! custom {
    ($(#[$doc:meta])* $name:ident($kind:literal), $spec:ty, $status:ty, $group:literal, $version:literal, $plural:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name {
            #[serde(default)]
            pub(crate) metadata: kube::api::ObjectMeta,
            #[serde(default)]
            pub(crate) spec: $spec,
            #[serde(default)]
            pub(crate) status: $status,
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = kube::core::NamespaceResourceScope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &kube::api::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use custom;

/// What a kind is defined by.
pub(crate) struct Defined<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
    /// The schema of the whole object.
    pub(crate) schema: Value,
    /// Whether the status is written apart.
    pub(crate) has_status: bool,
}

/// Its definition.
pub(crate) fn definition(of: &Defined<'_>) -> Value {
    let (group, kind, plural) = (of.group, of.kind, of.plural);
    let subresources = if of.has_status {
        json!({"status": {}})
    } else {
        json!({})
    };
    // Groups of Kubernetes itself are protected: their definitions say who has approved them, or that nobody has.
    let approval = json!({"api-approved.kubernetes.io": "unapproved, played in a simulation"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": approval},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase(),
            },
            "versions": [{
                "name": of.version, "served": true, "storage": true,
                "subresources": subresources,
                "schema": {"openAPIV3Schema": of.schema},
            }],
        },
    })
}
