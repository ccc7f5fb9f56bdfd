//! All definitions that `slipway crds` prints and the chart carries.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The definitions, those of each capability ordered by name.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        crate::flipper::definition(),
        crate::replica_template::definition(),
        crate::zpdb::definition(),
        crate::alert_provider::definition(),
        crate::canary::definition(),
        crate::metric_template::definition(),
    ]
}

/// A definition with a description, which accepts an object without a spec as the original's does.
pub(crate) fn lenient(
    mut definition: CustomResourceDefinition,
    description: &str,
) -> CustomResourceDefinition {
    let versions = definition.spec.versions.iter_mut();
    let schemas =
        versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        schema.description = Some(description.to_owned());
        schema.required = None;
    }
    definition
}
