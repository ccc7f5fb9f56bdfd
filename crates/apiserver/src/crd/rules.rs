//! CEL rules (`x-kubernetes-validations`): compiled once with the definition, run on every write.
//!
//! The engine is `kube-cel` over `cel`. It counts no costs: the real server's limit on what rules cost at run time is
//! not applied; that on what they may cost is, with the definition. It has no macros over index and value (`l.all(i, v, …)`): rules with them are
//! accepted but not run.

pub(crate) mod compile;
pub(crate) mod cost;
pub(crate) mod typecheck;
mod values;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{ExecutionError, Value as Cel};
use serde_json::Value;

use self::compile::Rule;
use super::pair::Pair;
use super::structural::Structural;
use crate::field::{Fault, FieldError, FieldErrors, show};

/// The longest text that a `messageExpression` may give, in bytes.
const MESSAGE_MAX: usize = 5 * 1024;

/// The rules of a schema, in the shape of the schema; parts without rules are left out.
#[derive(Debug, Default)]
pub struct Rules {
    own: Vec<Rule>,
    items: Option<Box<Rules>>,
    values: Option<Box<Rules>>,
    properties: BTreeMap<String, Rules>,
    root: bool,
}

/// What a run found: errors, and what would be errors had the value changed, which become warnings.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Refuse the write.
    pub errors: FieldErrors,
    /// Tolerated because nothing changed.
    pub tolerated: FieldErrors,
}

/// A value and its predecessor, as far as rules may see it, and as far as unchanged values are tolerated.
#[derive(Clone, Copy, Default)]
struct Before<'a> {
    old: Option<&'a Value>,
    pair: Option<Pair<'a>>,
    parent: Option<Pair<'a>>,
}

impl<'a> Before<'a> {
    fn unchanged(self) -> bool {
        self.pair.or(self.parent).is_some_and(Pair::equal)
    }

    /// `old` is what a rule below sees as `oldSelf`.
    fn below(
        self,
        old: Option<&'a Value>,
        step: impl FnOnce(Pair<'a>) -> Option<Pair<'a>>,
    ) -> Self {
        match self.pair {
            Some(pair) => Self {
                old,
                pair: step(pair),
                parent: Some(pair),
            },
            None => Self { old, ..self },
        }
    }
}

impl Rules {
    /// Compiles all rules of a schema; none if it has none. `root` says that it describes a whole object.
    pub fn compile(schema: &Structural, root: bool) -> Option<Self> {
        if !schema.has_rules() {
            return None;
        }
        let items = schema.items.as_deref();
        Some(Self {
            own: schema
                .rules
                .iter()
                .map(|rule| Rule::compile(rule, schema))
                .collect(),
            items: items
                .and_then(|s| Self::compile(s, s.embedded))
                .map(Box::new),
            values: schema
                .values()
                .and_then(|s| Self::compile(s, s.embedded))
                .map(Box::new),
            properties: schema
                .properties
                .iter()
                .filter_map(|(name, s)| Some((name.clone(), Self::compile(s, s.embedded)?)))
                .collect(),
            root,
        })
    }

    /// Runs all rules on a value. `old` is its predecessor on update.
    pub fn run(
        &self,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        path: &str,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let pair = old.map(|old| Pair {
            old,
            new: value,
            schema,
        });
        let before = Before {
            old,
            pair,
            parent: None,
        };
        self.walk(schema, value, before, path, &mut verdict);
        verdict
    }

    fn walk(
        &self,
        schema: &Structural,
        value: &Value,
        before: Before<'_>,
        path: &str,
        verdict: &mut Verdict,
    ) {
        if value.is_null() {
            return;
        }
        self.run_own(schema, value, before, path, verdict);
        match value {
            Value::Array(list) => {
                let (Some(rules), Some(items)) = (&self.items, schema.items.as_deref()) else {
                    return;
                };
                let old = before.old.and_then(Value::as_array);
                for (i, item) in list.iter().enumerate() {
                    let old = old.and_then(|old| schema.matching(old, item));
                    let below = before.below(old, |p| p.index(i));
                    rules.walk(items, item, below, &format!("{path}[{i}]"), verdict);
                }
            }
            Value::Object(map) => self.walk_object(schema, map, before, path, verdict),
            _ => {}
        }
    }

    fn walk_object(
        &self,
        schema: &Structural,
        map: &serde_json::Map<String, Value>,
        before: Before<'_>,
        path: &str,
        verdict: &mut Verdict,
    ) {
        let old = |key: &str| before.old.and_then(|old| old.get(key));
        if let (Some(rules), Some(values)) = (&self.values, schema.values()) {
            for (key, value) in map {
                let below = before.below(old(key), |p| p.key(key));
                rules.walk(values, value, below, &format!("{path}[{key}]"), verdict);
            }
        }
        for (key, value) in map {
            let (Some(rules), Some(child)) = (self.properties.get(key), schema.properties.get(key))
            else {
                continue;
            };
            let at = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            // The old apiVersion is not seen: both sides were converted to the same one.
            let unseen = before.parent.is_none() && matches!(key.as_str(), "apiVersion" | "kind");
            let below = if unseen {
                Before {
                    old: old(key),
                    ..Before::default()
                }
            } else {
                before.below(old(key), |p| p.key(key))
            };
            rules.walk(child, value, below, &at, verdict);
        }
    }

    fn run_own(
        &self,
        schema: &Structural,
        value: &Value,
        before: Before<'_>,
        path: &str,
        verdict: &mut Verdict,
    ) {
        if self.own.is_empty() {
            return;
        }
        let old = before.old.filter(|v| !v.is_null());
        let now = values::to_cel(value, schema, self.root);
        let then = self
            .own
            .iter()
            .any(|r| r.uses_old)
            .then(|| old.map(|v| values::to_cel(v, schema, self.root)))
            .flatten();
        for rule in &self.own {
            let Some(program) = &rule.program else {
                continue;
            };
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let then = match (rule.optional_old, &then) {
                (true, Some(v)) => Some(Cel::Opaque(std::sync::Arc::new(OptionalValue::of(
                    v.clone(),
                )))),
                (true, None) => Some(Cel::Opaque(std::sync::Arc::new(OptionalValue::none()))),
                (false, v) => v.clone(),
            };
            let error = match execute(program, &now, then.as_ref()) {
                Ok(Cel::Bool(true)) | Err(None) => continue,
                Ok(_) => failure(rule, schema, value, path, &|p| {
                    execute(p, &now, then.as_ref())
                }),
                Err(Some(why)) => {
                    verdict.errors.push(fault(rule, schema, path, &why));
                    continue;
                }
            };
            if !rule.uses_old && before.unchanged() {
                verdict.tolerated.push(error);
            } else {
                verdict.errors.push(error);
            }
        }
    }
}

/// Runs a program. The error is the text of what went wrong; none if the engine lacks what the rule uses (macros
/// over index and value), in which case the rule cannot be judged. The engine is not trusted with every input: a
/// panic in it counts as an internal failure.
fn execute(program: &Expression, now: &Cel, then: Option<&Cel>) -> Result<Cel, Option<String>> {
    let run = || {
        values::with_functions(|functions| {
            let mut scope = functions.new_inner_scope();
            scope.add_variable_from_value("self", now.clone());
            if let Some(then) = then {
                scope.add_variable_from_value("oldSelf", then.clone());
            }
            scope.resolve(program)
        })
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ExecutionError::UndeclaredReference(_))) => Err(None),
        Ok(Err(error)) => Err(Some(error_text(&error))),
        Err(_) => Err(Some("internal error".to_owned())),
    }
}

/// An error of the engine in the words of cel-go.
fn error_text(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::IndexOutOfBounds(Cel::UInt(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::NotSupportedAsMethod { .. } => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

/// The error for a rule that could not be run.
fn fault(rule: &Rule, schema: &Structural, path: &str, why: &str) -> FieldError {
    let which = rule.name();
    let detail = if why.starts_with("no such overload") {
        format!(
            "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {which}"
        )
    } else {
        format!("{why} evaluating rule: {which}")
    };
    FieldError::invalid_str(path_or_none(path), &schema.kind, detail)
}

/// The error for a rule that said no.
fn failure(
    rule: &Rule,
    schema: &Structural,
    value: &Value,
    path: &str,
    run: &dyn Fn(&Expression) -> Result<Cel, Option<String>>,
) -> FieldError {
    let given = rule
        .message_program
        .as_ref()
        .and_then(|program| message(run(program).ok()?));
    let detail = given.unwrap_or_else(|| rule.default_message());
    let path = match (path.is_empty(), rule.field_path.is_empty()) {
        (_, true) => path_or_none(path),
        (true, false) => rule.field_path.clone(),
        (false, false) => format!("{path}.{}", rule.field_path),
    };
    let whole = matches!(&*schema.kind, "object" | "array");
    let shown = if whole { String::new() } else { show(value) };
    let (fault, shown, detail) = match rule.reason.as_str() {
        "FieldValueForbidden" => (Fault::Forbidden, String::new(), detail),
        "FieldValueRequired" => (Fault::Required, String::new(), detail),
        "FieldValueDuplicate" => (Fault::Duplicate, shown, String::new()),
        _ => (Fault::Invalid, shown, detail),
    };
    FieldError {
        fault,
        path,
        shown,
        detail,
    }
}

fn path_or_none(path: &str) -> String {
    if path.is_empty() {
        super::check::NO_PATH.to_owned()
    } else {
        path.to_owned()
    }
}

/// What a `messageExpression` gave, if it can be used.
fn message(value: Cel) -> Option<String> {
    let Cel::String(text) = value else {
        return None;
    };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
    usable.then(|| text.to_owned())
}
