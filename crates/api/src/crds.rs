//! All definitions that `slipway crds` prints and the chart carries.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use serde_json::json;

/// The definitions, by capability.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        crate::flipper::definition(),
        crate::replica_template::definition(),
        crate::zpdb::definition(),
        crate::alert_provider::definition(),
        crate::canary::definition(),
        crate::metric_template::definition(),
    ];
    all.extend(crate::fleet::definitions());
    all
}

/// A definition with a description, which accepts an object without a spec as the original's does.
pub(crate) fn lenient(
    mut definition: CustomResourceDefinition,
    description: &str,
) -> CustomResourceDefinition {
    for schema in schemas(&mut definition) {
        schema.description = Some(description.to_owned());
        schema.required = None;
    }
    definition
}

/// Told to Flux: this stays when what it was applied with goes.
pub const NOT_PRUNED: (&str, &str) = ("kustomize.toolkit.fluxcd.io/prune", "disabled");

/// A definition with a description, of whose objects a new one is not up to date by accident: kstatus compares what is
/// observed with the generation.
pub(crate) fn observed(
    mut definition: CustomResourceDefinition,
    description: &str,
) -> CustomResourceDefinition {
    for schema in schemas(&mut definition) {
        schema.description = Some(description.to_owned());
        let fields = schema.properties.as_mut();
        if let Some(status) = fields.and_then(|all| all.get_mut("status")) {
            status.default = Some(JSON(json!({"observedGeneration": -1})));
        }
    }
    definition
}

/// The same, which Flux does not prune: with a definition go all its objects, and with these what clusters have.
pub(crate) fn kept(
    definition: CustomResourceDefinition,
    description: &str,
) -> CustomResourceDefinition {
    let mut definition = observed(definition, description);
    let (name, value) = NOT_PRUNED;
    let annotations = definition.metadata.annotations.get_or_insert_default();
    annotations.insert(name.to_owned(), value.to_owned());
    definition
}

fn schemas(
    definition: &mut CustomResourceDefinition,
) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = definition.spec.versions.iter_mut();
    versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut())
}
