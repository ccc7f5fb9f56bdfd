//! `Canary`: how a workload's new version takes over, step by step, and what sends it back.
//!
//! Group, version, kind, fields, phases and printer columns are those of Flagger's users. What is more (`noData`,
//! `minimumSamples`, `baseline`, `dryRun` and `signing` of a check, `stepPauses`, `status.waitingFor`, `status.run`) is
//! optional, and its absence means what Flagger does.
//!
//! Parts that are only handed on to a router (`trafficPolicy`, `corsPolicy`, …) are taken as they are.

#![allow(
    unreachable_pub,
    reason = "kube's derive repeats the struct inside a function, where it cannot be reached"
)]

mod analysis;
mod schema;
mod service;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use analysis::{
    Alert, Analysis, Baseline, HookType, Metric, MinimumSamples, NoData, ObjectReference,
    SessionAffinity, ThresholdRange, Webhook,
};
pub use service::{CustomMetadata, IntOrText, Rewrite, Service, UnmanagedMetadata};
pub use status::{CanaryCondition, CanaryStatus, CheckStatus, Phase, RunStatus, Untold};

pub(crate) use schema::plain;

/// The kind's name.
pub const KIND: &str = "Canary";

/// How a workload's new version takes over.
#[derive(CustomResource, JsonSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "Canary",
    plural = "canaries",
    singular = "canary",
    category = "all",
    namespaced,
    status = "CanaryStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Weight","type":"string","jsonPath":".status.canaryWeight"}"#,
    printcolumn = r#"{"name":"Suspended","type":"boolean","jsonPath":".spec.suspend","priority":1}"#,
    printcolumn = r#"{"name":"FailedChecks","type":"string","jsonPath":".status.failedChecks","priority":1}"#,
    printcolumn = r#"{"name":"Interval","type":"string","jsonPath":".spec.analysis.interval","priority":1}"#,
    printcolumn = r#"{"name":"Mirror","type":"boolean","jsonPath":".spec.analysis.mirror","priority":1}"#,
    printcolumn = r#"{"name":"StepWeight","type":"string","jsonPath":".spec.analysis.stepWeight","priority":1}"#,
    printcolumn = r#"{"name":"StepWeights","type":"string","jsonPath":".spec.analysis.stepWeights","priority":1}"#,
    printcolumn = r#"{"name":"MaxWeight","type":"string","jsonPath":".spec.analysis.maxWeight","priority":1}"#,
    printcolumn = r#"{"name":"Waiting-For","type":"string","jsonPath":".status.waitingFor[0].reason","priority":1}"#,
    printcolumn = r#"{"name":"LastTransitionTime","type":"string","jsonPath":".status.lastTransitionTime"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CanarySpec {
    /// What shifts the traffic. Absent means what the operator was started with
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub provider: Option<String>,
    /// Where builtin metrics and inline queries are asked. Absent means what the operator was started with
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub metrics_server: Option<String>,
    /// The workload whose changes are rolled out
    pub target_ref: TargetRef,
    /// What scales the workload
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<AutoscalerRef>")]
    pub autoscaler_ref: Option<AutoscalerRef>,
    /// The Ingress whose traffic is shifted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<TargetRef>")]
    pub ingress_ref: Option<TargetRef>,
    /// The route whose traffic is shifted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<TargetRef>")]
    pub route_ref: Option<TargetRef>,
    /// The upstream whose traffic is shifted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub upstream_ref: Option<serde_json::Value>,
    /// The Services that are made, and how traffic comes to them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<Service>")]
    pub service: Option<Service>,
    /// Steps, checks and gates
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<Analysis>")]
    pub analysis: Option<Analysis>,
    /// The former name of `analysis`; followed where there is none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub canary_analysis: Option<serde_json::Value>,
    /// How long a version may take to become ready. Absent means 600
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub progress_deadline_seconds: Option<i64>,
    /// Promote a ready version without analysis
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub skip_analysis: Option<bool>,
    /// Give the workload back as it was when this object is deleted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub revert_on_deletion: Option<bool>,
    /// Do nothing until this is taken back
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub suspend: Option<bool>,
}

/// An object of the Canary's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Its API version
    pub api_version: String,
    /// Its kind
    pub kind: String,
    /// Its name
    pub name: String,
}

/// What scales the workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerRef {
    /// Its API version
    pub api_version: String,
    /// `HorizontalPodAutoscaler`
    pub kind: String,
    /// Its name
    pub name: String,
    /// Queries of the primary's scaler, by trigger; of KEDA only
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primary_scaler_queries: BTreeMap<String, String>,
    /// Replicas of the primary's scaler, where they are not those of the target's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<ScalerReplicas>")]
    pub primary_scaler_replicas: Option<ScalerReplicas>,
}

/// The bounds of an autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalerReplicas {
    /// The least replicas
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub min_replicas: Option<i64>,
    /// The most replicas
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number")]
    pub max_replicas: Option<i64>,
}

impl CanarySpec {
    /// Steps, checks and gates, by whichever name they are written under; none if they cannot be read.
    pub fn analysis(&self) -> Option<Analysis> {
        let former = || serde_json::from_value(self.canary_analysis.clone()?).ok();
        self.analysis.clone().or_else(former)
    }

    /// What the apex Service is called.
    pub fn apex(&self) -> &str {
        let named = self
            .service
            .as_ref()
            .and_then(|service| service.name.as_deref());
        named
            .filter(|name| !name.is_empty())
            .unwrap_or(&self.target_ref.name)
    }
}

/// The definition of the kind.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = Canary::crd();
    let versions = definition.spec.versions.iter_mut();
    let schemas =
        versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        schema.description = Some("How a workload's new version takes over".to_owned());
        let spec = schema
            .properties
            .as_mut()
            .and_then(|all| all.get_mut("spec"));
        let Some(spec) = spec else { continue };
        spec.required = Some(vec!["targetRef".to_owned(), "analysis".to_owned()]);
        let analysis = spec
            .properties
            .as_mut()
            .and_then(|all| all.get_mut("analysis"));
        if let Some(analysis) = analysis {
            analysis.one_of = Some(
                ["iterations", "stepWeight", "stepWeights"]
                    .map(steps)
                    .into(),
            );
        }
    }
    definition
}

/// A way to go on that has the field `how`: exactly one of them has to be there.
fn steps(how: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        required: Some(["interval", "threshold", how].map(str::to_owned).into()),
        ..JSONSchemaProps::default()
    }
}

#[cfg(test)]
mod tests;
