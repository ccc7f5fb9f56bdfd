//! `spec.service`: the Services that are made, and how traffic comes to them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema;

/// The Services that are made, and how traffic comes to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// The apex Service; `-primary` and `-canary` are put behind it. Absent means the target's name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub name: Option<String>,
    /// The port that is served
    pub port: i64,
    /// Its name. Absent means http
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub port_name: Option<String>,
    /// The containers' port, by number or name. Absent means the port
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::number_or_text")]
    pub target_port: Option<IntOrText>,
    /// What is spoken on the port
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub app_protocol: Option<String>,
    /// Which endpoints are preferred
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub traffic_distribution: Option<String>,
    /// Serve all ports of the containers
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub port_discovery: Option<bool>,
    /// Make Services without an address of their own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub headless: Option<bool>,
    /// How long a request may take
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub timeout: Option<String>,
    /// How long a request to a backend may take; of Gateway API only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub backend_timeout: Option<String>,
    /// Gateways of Istio
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Gateways of Gateway API, as parents of the route
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::parents")]
    pub gateway_refs: Vec<Value>,
    /// Host names
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Make a `VirtualService` that another one delegates to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::boolean")]
    pub delegation: Option<bool>,
    /// The traffic policy of Istio's `DestinationRules`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub traffic_policy: Option<Value>,
    /// Which requests are meant
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::open_list")]
    pub matching: Vec<Value>,
    /// How paths and hosts are rewritten
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<Rewrite>")]
    pub rewrite: Option<Rewrite>,
    /// How often a request is tried again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub retries: Option<Value>,
    /// Headers that are set, added and removed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub headers: Option<Value>,
    /// Where requests are copied to
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::mirrors")]
    pub mirror: Vec<Value>,
    /// Which other origins may ask
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub cors_policy: Option<Value>,
    /// The mesh; of App Mesh only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub mesh_name: Option<String>,
    /// Backends; of App Mesh only
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// What is put on the apex Service and on the route
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<CustomMetadata>")]
    pub apex: Option<CustomMetadata>,
    /// What is put on the primary's Service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<CustomMetadata>")]
    pub primary: Option<CustomMetadata>,
    /// What is put on the canary's Service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<CustomMetadata>")]
    pub canary: Option<CustomMetadata>,
    /// Labels and annotations of Services that are left as they are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::plain::<UnmanagedMetadata>")]
    pub unmanaged_metadata: Option<UnmanagedMetadata>,
}

/// Labels and annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMetadata {
    /// Labels
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Names of labels and annotations that are somebody else's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedMetadata {
    /// Names of labels
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Names of annotations
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<String>,
}

/// How paths and hosts are rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rewrite {
    /// The path
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub uri: Option<String>,
    /// The host
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub authority: Option<String>,
    /// `ReplaceFullPath` or `ReplacePrefixMatch`; of Gateway API only
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub kind: Option<String>,
}

/// A port by number or name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrText {
    /// By number.
    Int(i64),
    /// By name.
    Text(String),
}
