//! An object in one version, decoded when somebody looks.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use slipway_apiserver::store::Stored;

/// An object in one version.
#[derive(Debug, Default)]
pub struct Image {
    stored: Option<Arc<Stored>>,
    value: OnceLock<Value>,
}

impl Image {
    /// What the server keeps.
    pub fn stored(stored: Arc<Stored>) -> Self {
        Self {
            stored: Some(stored),
            value: OnceLock::new(),
        }
    }

    /// A made-up one.
    pub fn made(value: Value) -> Self {
        Self {
            stored: None,
            value: OnceLock::from(value),
        }
    }

    /// The object, without `apiVersion` and `kind`.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            self.stored
                .as_ref()
                .map_or(Value::Null, |stored| stored.decode())
        })
    }

    /// The value at a JSON pointer.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.value().pointer(pointer)
    }

    /// The text at a JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    /// The number at a JSON pointer; 0 if there is none.
    pub fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    /// An annotation of the object itself.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.at("/metadata/annotations")?.get(name)?.as_str()
    }

    /// An annotation of its pod template.
    pub fn template_annotation(&self, name: &str) -> Option<&str> {
        self.at("/spec/template/metadata/annotations")?
            .get(name)?
            .as_str()
    }

    /// A label of the object itself.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.at("/metadata/labels")?.get(name)?.as_str()
    }
}
