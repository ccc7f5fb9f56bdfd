//! What every object has: who it is, and which version of it this is.

use std::borrow::Borrow;
use std::cmp::Ordering;

use serde_json::Value;

/// Namespace and name.
pub type Name = (String, String);

/// Somebody's namespace and name, whoever owns the text: names are looked up by `(&str, &str)`, without a copy of either.
pub(super) trait Called {
    fn called(&self) -> (&str, &str);
}

impl Called for Name {
    fn called(&self) -> (&str, &str) {
        (&self.0, &self.1)
    }
}

impl Called for (&str, &str) {
    fn called(&self) -> (&str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Called + 'a> for Name {
    fn borrow(&self) -> &(dyn Called + 'a) {
        self
    }
}

impl Ord for dyn Called + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.called().cmp(&other.called())
    }
}

impl PartialOrd for dyn Called + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Called + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.called() == other.called()
    }
}

impl Eq for dyn Called + '_ {}

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
