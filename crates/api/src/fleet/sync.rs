//! Syncs: a versioned source, what of it is applied, and how it is specialised.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::LocalReference;
use super::binding::{Binding, Literal};

/// Configuration at an exact version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sync {
    /// Where it is
    pub source: Source,
    /// What of it is applied, and how. Absent: the kustomization at its root
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"kustomize": {"path": "."}}))]
    pub package: Option<Package>,
}

/// Configuration at an exact version, with bindings that are evaluated in the workload cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoundSync {
    /// Names for values of the workload cluster; values of the control plane can be mentioned in them
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub bindings: Vec<Binding>,
    /// Where it is
    pub source: Source,
    /// What of it is applied, and how. Absent: the kustomization at its root
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"kustomize": {"path": "."}}))]
    pub package: Option<Package>,
}

/// One configuration that is assigned to a cluster.
///
/// Who changes one writes it as a whole: its source, its package and its bindings each have one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.source) != has(self.module)",
    "message": "set source, or the module that has it, but not both",
}]))]
pub struct NamedSync {
    /// What it is called for as long as it is there, whatever its version: what is made for it has this name
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Which revision this is: of the template, and of the values from other objects. Whoever looks whether a cluster has it
    /// compares this with the status
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub revision: Option<String>,
    /// Who assigned it: `Rollout/name`. What has another name here, or none, is not touched by it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub assigned_by: Option<String>,
    /// Instead of source, package and bindings: the module that has them, in the same namespace
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub module: Option<ModuleReference>,
    /// Names for values: those of the control plane are literals by now, others are evaluated in the workload cluster
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub bindings: Vec<Binding>,
    /// Where it is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub source: Option<Source>,
    /// What of it is applied, and how. Absent: the kustomization at its root
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub package: Option<Package>,
}

impl NamedSync {
    /// How it is applied, where nothing is said as a package without anything means.
    pub fn kustomize(&self) -> Kustomize {
        let package = self.package.clone().unwrap_or_default();
        package.kustomize.unwrap_or_default()
    }
}

/// A module in the same namespace.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct ModuleReference {
    /// Its name
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The revision that it must be of. Absent: whatever it is of
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub revision: Option<String>,
}

/// Where configuration is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// A git repository
    pub git: GitSource,
}

/// A git repository at an exact version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Its URL: `https://…`, `http://…` or `ssh://…`
    #[schemars(
        length(min = 1, max = 2048),
        regex(pattern = "^(http|https|ssh)://.*$")
    )]
    pub url: String,
    /// A tag or a commit; branches are not versions
    pub version: GitVersion,
    /// A Secret with credentials, where the source is read
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
    /// Read the submodules as well
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurse_submodules: Option<bool>,
}

/// An exact version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.tag) || has(self.revision)",
    "message": "set a tag or a revision",
}]))]
pub struct GitVersion {
    /// A tag; it counts where both are given
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tag: Option<String>,
    /// A commit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub revision: Option<String>,
}

impl GitVersion {
    /// The tag, or else the commit.
    pub fn name(&self) -> Option<&str> {
        self.tag.as_deref().or(self.revision.as_deref())
    }
}

/// What is applied of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// A kustomization, or a folder of manifests. Absent: that at the root of the source
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Kustomize>,
}

impl Default for Package {
    fn default() -> Self {
        Self {
            kustomize: Some(Kustomize::default()),
        }
    }
}

/// How a kustomization is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kustomize {
    /// Its folder in the source. Absent: the root
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), extend("default" = "."))]
    pub path: Option<String>,
    /// Values for `${NAME}` in the manifests, in which bindings can be mentioned as `$(name)`: a map, a list of maps with
    /// one key, or a list of `{name, value}`, where a missing value means the binding of that name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub substitute: Option<Value>,
    /// The namespace of what names none; made where it is missing. Absent: `default`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub target_namespace: Option<String>,
    /// The service account by whose rights it is applied
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// How often it is applied again although nothing changed. Absent: 10m
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub interval: Option<String>,
    /// How long after a failure it is tried again. Absent: 1m
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub retry_interval: Option<String>,
    /// How long it may take until all is healthy. Absent: 5m
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Whether it counts as applied only when all is healthy. Absent: true
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// Whether what is no longer in it is deleted. Absent: true
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
}

/// Why a `substitute` cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSubstitutions {
    /// It is neither a map nor a list.
    #[error("substitute is neither a map nor a list of maps")]
    NeitherMapNorList,
    /// An element is neither a map with one key nor `{name, value}`.
    #[error("substitute[{0}] is neither a map with one key nor {{name, value}}")]
    Element(usize),
    /// A value is neither a text nor a number.
    #[error("the value of {0} in substitute is neither a text nor an integer; put it in quotes")]
    NotALiteral(String),
    /// A name is there twice.
    #[error("{0} is there twice in substitute")]
    Twice(String),
    /// A name cannot be a variable.
    #[error(
        "{0} in substitute cannot be a variable of a manifest: letters, digits and _ only, no digit first"
    )]
    NotAVariable(String),
}

impl Kustomize {
    /// The values for `${NAME}`, by name, with mentions of bindings in them: from whichever form they were given in.
    pub fn substitutions(&self) -> Result<BTreeMap<String, String>, NoSubstitutions> {
        let mut all = BTreeMap::new();
        match &self.substitute {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (name, value) in map {
                    put(&mut all, name, literal(name, value)?)?;
                }
            }
            Some(Value::Array(list)) => {
                for (place, element) in list.iter().enumerate() {
                    let (name, value) = one(place, element)?;
                    put(&mut all, &name, value)?;
                }
            }
            Some(_) => return Err(NoSubstitutions::NeitherMapNorList),
        }
        Ok(all)
    }
}

/// One element of a list: `{name}`, `{name, value}` or `{NAME: value}`. A variable called `name` needs the map.
fn one(place: usize, element: &Value) -> Result<(String, String), NoSubstitutions> {
    let wrong = || NoSubstitutions::Element(place);
    let map = element.as_object().ok_or_else(wrong)?;
    let named = map.get("name").and_then(Value::as_str);
    match (named, map.get("value"), map.len()) {
        (Some(name), Some(value), 2) => Ok((name.to_owned(), literal(name, value)?)),
        (Some(name), None, 1) => Ok((name.to_owned(), format!("$({name})"))),
        (_, _, 1) => {
            let (name, value) = map.iter().next().ok_or_else(wrong)?;
            Ok((name.clone(), literal(name, value)?))
        }
        _ => Err(wrong()),
    }
}

fn literal(name: &str, value: &Value) -> Result<String, NoSubstitutions> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(Literal::Number(number.clone()).text()),
        _ => Err(NoSubstitutions::NotALiteral(name.to_owned())),
    }
}

fn put(
    all: &mut BTreeMap<String, String>,
    name: &str,
    value: String,
) -> Result<(), NoSubstitutions> {
    if !is_variable(name) {
        return Err(NoSubstitutions::NotAVariable(name.to_owned()));
    }
    match all.insert(name.to_owned(), value) {
        Some(_) => Err(NoSubstitutions::Twice(name.to_owned())),
        None => Ok(()),
    }
}

/// What can stand in `${NAME}`.
fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    let is_first = |c: char| c == '_' || c.is_ascii_alphabetic();
    letters.next().is_some_and(is_first) && letters.all(|c| is_first(c) || c.is_ascii_digit())
}

/// A value of any type: what it has to be is said where it is read.
fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A duration as Flux reads it.
fn duration(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "maxLength": 32,
        "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$",
    })
}
