//! All definitions that `slipway crds` prints and the chart carries.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The definitions, ordered by name.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        crate::flipper::definition(),
        crate::replica_template::definition(),
        crate::zpdb::definition(),
    ]
}
