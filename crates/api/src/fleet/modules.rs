//! What `Module` and `BootstrapModule` have in common, which is all but their names and what their syncs may say.

/// Declares a kind of modules: its names, its sync, and what its definition says of it.
macro_rules! module_kind {
    (
        $(#[$about:meta])*
        $Kind:ident($kind:tt, $plural:tt, $singular:tt, $short:tt) as $Spec:ident: $meaning:tt;
        $(#[$assigned:meta])*
        $Sync:ty
    ) => {
        $(#[$about])*
        #[derive(
            kube::CustomResource,
            Debug,
            Clone,
            Default,
            PartialEq,
            Eq,
            serde::Serialize,
            serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[kube(
            group = "fleet.squaremo.dev",
            version = "v1alpha1",
            kind = $kind,
            plural = $plural,
            singular = $singular,
            shortname = $short,
            category = "fleet",
            namespaced,
            status = "ModuleStatus",
            derive = "Default",
            derive = "PartialEq",
            printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
            printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
            printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.summary.total"}"#,
            printcolumn = r#"{"name":"Updating","type":"integer","jsonPath":".status.summary.updating"}"#,
            printcolumn = r#"{"name":"Succeeded","type":"integer","jsonPath":".status.summary.succeeded"}"#,
            printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.summary.failed"}"#,
            printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".status.revision","priority":1}"#,
            printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
        )]
        #[serde(rename_all = "camelCase")]
        #[schemars(extend("x-kubernetes-validations" = [{
            "rule": "!has(oldSelf.immutable) || !oldSelf.immutable || self == oldSelf",
            "message": "this is one revision of a Rollout, and stays as it is: change the Rollout's template",
        }]))]
        pub struct $Spec {
            /// Which clusters it is assigned to, all at once. Absent: none; others may assign it
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub selector: Option<ClusterSelector>,
            /// Names for values, evaluated in the control plane for each cluster
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
            pub control_plane_bindings: Vec<Binding>,
            $(#[$assigned])*
            pub sync: $Sync,
            /// Nothing of this may be changed any more, as for a `ConfigMap`
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub immutable: Option<bool>,
        }

        /// The definition of the kind.
        pub fn definition() -> CustomResourceDefinition {
            crate::crds::kept($Kind::crd(), $meaning)
        }
    };
}

pub(super) use module_kind;
