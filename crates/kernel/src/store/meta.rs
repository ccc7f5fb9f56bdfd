//! What every object has: who it is, and which version of it this is.

use serde_json::Value;

/// Namespace and name.
pub type Name = (String, String);

/// What is kept of every object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Its generation; 0 where the kind has none.
    pub generation: i64,
}

impl Meta {
    /// Reads an object's metadata.
    pub fn of(object: &Value) -> Self {
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
            generation: object
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        }
    }

    /// Its namespace and name.
    pub fn key(&self) -> Name {
        (self.namespace.clone(), self.name.clone())
    }
}

/// A resourceVersion as a number, which it is on every API server that keeps its objects in etcd.
pub fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
