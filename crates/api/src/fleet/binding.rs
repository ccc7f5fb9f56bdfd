//! Bindings: names for values that differ from cluster to cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A name for a value: of exactly one of `value`, `objectFieldRef` and `moduleFieldRef`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.value) ? !has(self.objectFieldRef) && !has(self.moduleFieldRef) : has(self.objectFieldRef) != has(self.moduleFieldRef)",
    "message": "set exactly one of value, objectFieldRef and moduleFieldRef",
}]))]
pub struct Binding {
    /// What it is mentioned by: `$(name)`
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[^)]+$"))]
    pub name: String,
    /// A literal, in which other names may be mentioned. An integer needs no quotes; fractions and booleans do, because YAML
    /// would change them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "integer_or_text")]
    pub value: Option<Literal>,
    /// A field of an object in the namespace: in the control plane for `controlPlaneBindings`, else in the workload cluster
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_field_ref: Option<ObjectFieldRef>,
    /// A field of an object that another module made in the same workload cluster
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_field_ref: Option<ModuleFieldRef>,
    /// Go on without it: `default`, or else nothing, where the object or the field is missing or null
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// The value where the object or the field is missing or null; taken as it is, without looking for names in it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "integer_or_text")]
    pub default: Option<Literal>,
}

/// A field of an object. Names may be mentioned in each of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.fieldPath) != has(self.path)", "message": "set fieldPath, or path, which means the same"},
    {"rule": "!has(self.fieldPath) || self.fieldPath == '' || self.fieldPath.startsWith('/') || self.fieldPath.startsWith('$(')",
     "message": "fieldPath is a JSON pointer: write /data/key, not .data.key"},
    {"rule": "!has(self.path) || self.path == '' || self.path.startsWith('/') || self.path.startsWith('$(')",
     "message": "path is a JSON pointer: write /data/key, not .data.key"},
]))]
pub struct ObjectFieldRef {
    /// The object's apiVersion. Absent: v1 for a `ConfigMap` or Secret, the installed one for a Cluster, else the only kind of
    /// that name that there is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_version: Option<String>,
    /// The object's kind
    #[schemars(length(min = 1, max = 253))]
    pub kind: String,
    /// The object's name
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which field, as a JSON pointer: `/spec/controlPlaneEndpoint/host`. What is below `data` of a Secret is decoded
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub field_path: Option<String>,
    /// The same as `fieldPath`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub path: Option<String>,
}

impl ObjectFieldRef {
    /// The JSON pointer, by whichever name it was given.
    pub fn pointer(&self) -> Option<&str> {
        self.field_path.as_deref().or(self.path.as_deref())
    }
}

/// A field of an object that another module made in the same workload cluster: which namespace and version it has, that
/// module's inventory tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleFieldRef {
    /// The name of the other module's sync: that of its Rollout, or of the module itself where it has a selector
    #[schemars(length(min = 1, max = 253))]
    pub module: String,
    /// The object's kind
    #[schemars(length(min = 1, max = 253))]
    pub kind: String,
    /// The object's name
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which field, as a JSON pointer. What is below `data` of a Secret is decoded
    #[schemars(length(max = 1024))]
    pub field_path: String,
}

/// A text, or what YAML makes of one without quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Literal {
    /// A text.
    Text(String),
    /// A number.
    Number(Number),
    /// A boolean; the schema refuses it.
    Truth(bool),
}

impl Literal {
    /// As a text.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }
}

impl From<&str> for Literal {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What the API server takes as an integer or a text.
pub(super) fn integer_or_text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
    })
}
