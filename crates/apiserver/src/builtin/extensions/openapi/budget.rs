//! What the rules of a definition may cost: each one, and all together.

use std::cmp::Reverse;

use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::value;

/// The most that one rule may cost on a whole object.
const ONE: u64 = 10_000_000;
/// The most that all rules of a schema may cost.
const ALL: u64 = 100_000_000;
/// Errors name so many of the most expensive rules,
const NAMED: usize = 4;
/// if they cost at least this.
const NOTABLE: u64 = ALL / 100;

/// The costs of the rules of one schema.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// A schema that was accepted before is not refused for the cost of one rule.
    pub(super) known: bool,
    total: u64,
    expensive: Vec<(String, u64)>,
}

impl Budget {
    /// Charges the cost of an expression at `path`; `what` names it in the error.
    pub(super) fn charge(&mut self, path: String, what: &str, cost: u64, errors: &mut FieldErrors) {
        if cost > ONE && !self.known {
            errors.push(FieldError::forbidden(&*path, exceeds(what, cost, ONE)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= NOTABLE {
            self.expensive.push((path, cost));
            self.expensive.sort_by_key(|(_, cost)| Reverse(*cost));
            self.expensive.truncate(NAMED);
        }
    }

    /// Judges the sum; `path` leads to the schema.
    pub(super) fn close(self, path: &str) -> FieldErrors {
        if self.total <= ALL {
            return FieldErrors::new();
        }
        let contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let rules = self.expensive.into_iter();
        let mut errors: FieldErrors = rules
            .map(|(at, _)| FieldError::forbidden(at, contributed))
            .collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, exceeds(what, self.total, ALL)));
        errors
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a factor for people, as the real server shows it"
)]
fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// How often values below a schema can stand in one value of it; none if nothing limits that.
pub(super) fn multiplicity(schema: &Value) -> Option<u64> {
    let limit = |key: &str| {
        let limit = schema.get(key).and_then(Value::as_i64);
        limit.map(|n| u64::try_from(n).unwrap_or(0))
    };
    match value::text(schema, "type") {
        "object" if value::has(schema, "additionalProperties") => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}
