//! Whether a value fits a schema closely enough to be merged by it. The texts are the API's.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::quote;
use crate::schema::ListKind;

use super::place::{Form, Keys, Place, Scalar, associative, has_step, item_step};
use super::step::{Step, path_text, shown_number};

/// Whether an associative list may hold several items with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// Checks a value; the error is the text about everything that is wrong.
pub(super) fn check(place: Place<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut walk = Walk {
        duplicates,
        path: Vec::new(),
        faults: Vec::new(),
    };
    walk.visit(place, value);
    match walk.faults.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// A step on the way to a value. It becomes a [`Step`] where something is wrong, which is seldom: all objects are checked
/// with every write.
#[derive(Clone, Copy)]
enum Crumb<'a> {
    Field(&'a str),
    Item(Keys<'a>, Place<'a>, &'a Value),
    Index(usize),
}

impl Crumb<'_> {
    fn step(self) -> Step {
        match self {
            Self::Field(name) => Step::field(name),
            // What is on the way has a step.
            Self::Item(keys, items, item) => item_step(keys, items, item).unwrap_or(Step::Index(0)),
            Self::Index(index) => Step::Index(i64::try_from(index).unwrap_or(i64::MAX)),
        }
    }
}

struct Walk<'a> {
    duplicates: Duplicates,
    path: Vec<Crumb<'a>>,
    faults: Vec<String>,
}

impl<'a> Walk<'a> {
    fn fault(&mut self, text: &str) {
        let path: Vec<Step> = self.path.iter().map(|crumb| crumb.step()).collect();
        let path = path_text(&path);
        self.faults.push(if path.is_empty() {
            text.to_owned()
        } else {
            format!("{path}: {text}")
        });
    }

    fn visit(&mut self, place: Place<'a>, value: &'a Value) {
        if value.is_null() {
            return;
        }
        match place.form(Some(value)) {
            Form::Scalar(scalar) => {
                if let Some(text) = scalar_fault(scalar, value) {
                    self.fault(&text);
                }
            }
            Form::List { kind, items } => match value {
                Value::Array(list) => self.visit_list(kind, items, list),
                other => self.fault(&format!("expected list, got &{{{}}}", shown(other))),
            },
            Form::Map { place, .. } => match value {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        self.path.push(Crumb::Field(name));
                        let undeclared = match place.child(name) {
                            Place::Undeclared => true,
                            child => {
                                self.visit(child, value);
                                false
                            }
                        };
                        if undeclared {
                            self.fault("field not declared in schema");
                        }
                        self.path.pop();
                        if undeclared {
                            return;
                        }
                    }
                }
                other => self.fault(&format!("expected map, got &{{{}}}", shown(other))),
            },
        }
    }

    fn visit_list(&mut self, kind: &'a ListKind, items: Place<'a>, list: &'a [Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in list.iter().enumerate() {
            let crumb = match associative(kind) {
                None => Crumb::Index(index),
                Some(keys) => {
                    if let Err(text) = has_step(keys, items, item) {
                        self.fault(&format!("element {index}: {text}"));
                        return;
                    }
                    Crumb::Item(keys, items, item)
                }
            };
            if self.duplicates == Duplicates::Refused {
                let step = crumb.step();
                if seen.contains(&step) {
                    self.fault(&format!("duplicate entries for key {step}"));
                }
                seen.insert(step);
            }
            self.path.push(crumb);
            self.visit(items, item);
            self.path.pop();
        }
    }
}

fn scalar_fault(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, _) => Some(format!(
            "expected numeric (int or float), got {}",
            type_name(value)
        )),
        (Scalar::String, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            syntax(value)
        )),
        (Scalar::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", shown(value))),
        (Scalar::Untyped, _) => Some(format!("expected any scalar, got &{{{}}}", shown(value))),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(_) => "float64",
        Value::Null => "<nil>",
    }
}

/// Go's `%v`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => shown_number(number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}:{}", shown(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Bool(flag) => flag.to_string(),
        Value::Null => "<nil>".to_owned(),
    }
}

/// Go's `%#v`.
fn syntax(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", quote(name), syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        other => shown(other),
    }
}
