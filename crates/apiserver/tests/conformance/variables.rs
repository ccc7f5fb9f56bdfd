//! The `{variables}` of a behaviour: its namespace, and what earlier answers gave.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Names and values, of any type.
pub(crate) struct Variables(BTreeMap<String, Value>);

impl Variables {
    /// Only `{ns}`.
    pub(crate) fn new(namespace: &str) -> Self {
        Self(BTreeMap::from([(
            "ns".to_owned(),
            Value::String(namespace.to_owned()),
        )]))
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// A value with the variables filled in; a string that is one variable takes its value, whatever the type.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let name = text
                    .strip_prefix('{')
                    .and_then(|rest| rest.strip_suffix('}'));
                match name.and_then(|name| self.0.get(name)) {
                    Some(value) => value.clone(),
                    None => Value::String(self.text(text)),
                }
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill(item)).collect()),
            Value::Object(object) => {
                let filled = object
                    .iter()
                    .map(|(key, value)| (self.text(key), self.fill(value)));
                Value::Object(filled.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// A text with the variables filled in. Braces around other names stay.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.0 {
            let placeholder = format!("{{{name}}}");
            if text.contains(&placeholder) {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                text = text.replace(&placeholder, &value);
            }
        }
        text
    }
}
