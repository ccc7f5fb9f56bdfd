//! Which clusters, by their labels.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which clusters: those whose labels fit all of this. An empty one selects all; where there is none, none is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// These labels, with these values
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub match_labels: BTreeMap<String, String>,
    /// What else is asked of labels
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<Requirement>,
}

/// What is asked of one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
    "message": "In and NotIn need values, Exists and DoesNotExist take none",
}]))]
pub struct Requirement {
    /// The label
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In, `NotIn`, Exists or `DoesNotExist`
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist"]))]
    pub operator: String,
    /// The values, for In and `NotIn`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub values: Vec<String>,
}

/// Why a selector cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokenSelector {
    /// The operator is none.
    #[error("selector: {key}: {operator:?} is none of In, NotIn, Exists and DoesNotExist")]
    UnknownOperator {
        /// Of which label.
        key: String,
        /// What it is.
        operator: String,
    },
    /// Values are missing.
    #[error("selector: {0}: In and NotIn need values")]
    ValuesMissing(String),
    /// There are values where there can be none.
    #[error("selector: {0}: Exists and DoesNotExist take no values")]
    ValuesGiven(String),
}

impl ClusterSelector {
    /// Whether it can be followed. A stored one may be from before the schema said so.
    pub fn check(&self) -> Result<(), BrokenSelector> {
        self.match_expressions
            .iter()
            .try_for_each(Requirement::check)
    }
}

impl Requirement {
    fn check(&self) -> Result<(), BrokenSelector> {
        match (self.operator.as_str(), self.values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => Ok(()),
            ("In" | "NotIn", true) => Err(BrokenSelector::ValuesMissing(self.key.clone())),
            ("Exists" | "DoesNotExist", false) => {
                Err(BrokenSelector::ValuesGiven(self.key.clone()))
            }
            (operator, _) => Err(BrokenSelector::UnknownOperator {
                key: self.key.clone(),
                operator: operator.to_owned(),
            }),
        }
    }
}
