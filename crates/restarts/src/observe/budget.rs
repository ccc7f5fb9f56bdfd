//! Pod disruption budgets: whom they protect, and whether they allow a disruption.

use std::collections::BTreeMap;

use serde_json::Value;
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use super::{integer, strings, text};

/// What is kept of a pod disruption budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Whether it has a selector; without, it protects nobody.
    selects: bool,
    labels: BTreeMap<String, String>,
    expressions: Vec<Expression>,
    /// How many pods may be disrupted now.
    pub allowed: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Projection for Budget {
    const READS: Parts = Parts::NONE.and(Part::Status);

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let selector = object.pointer("/spec/selector");
        let expressions = object.pointer("/spec/selector/matchExpressions");
        Ok(Self {
            selects: selector.is_some_and(|selector| !selector.is_null()),
            labels: strings(object, "/spec/selector/matchLabels"),
            expressions: expressions
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(expression)
                .collect(),
            allowed: integer(object, "/status/disruptionsAllowed").unwrap_or_default(),
        })
    }
}

fn expression(value: &Value) -> Expression {
    let values = value.pointer("/values").and_then(Value::as_array);
    Expression {
        key: text(value, "/key").unwrap_or_default().to_owned(),
        operator: text(value, "/operator").unwrap_or_default().to_owned(),
        values: values
            .into_iter()
            .flatten()
            .filter_map(|value| Some(value.as_str()?.to_owned()))
            .collect(),
    }
}

impl Budget {
    /// Whether it protects pods with these labels.
    pub fn protects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selects
            && self.labels.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self.expressions.iter().all(|e| e.fits(labels))
    }
}

impl Expression {
    fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}
