//! What bindings refer to, and what was read of it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::value::Stamp;

/// An object that a binding refers to. In which cluster and namespace it is, the place of the binding says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// An object of the namespace, or of none if its kind is in none.
    Object {
        /// Its apiVersion; where there is none, see [`Reference::version`].
        api_version: Option<String>,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An object that another module made.
    Module {
        /// The name of the other module's sync.
        module: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// How the version of an object is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version<'a> {
    /// It is this one.
    Is(&'a str),
    /// It is that of Cluster API, as far as installed.
    ClusterApi,
    /// It is that of the only kind of this name that there is.
    Discovered,
    /// The other module's inventory has it.
    Inventory,
}

impl Reference {
    /// Its kind.
    pub fn kind(&self) -> &str {
        match self {
            Self::Object { kind, .. } | Self::Module { kind, .. } => kind,
        }
    }

    /// How its version is known.
    pub fn version(&self) -> Version<'_> {
        match self {
            Self::Module { .. } => Version::Inventory,
            Self::Object {
                api_version: Some(version),
                ..
            } => Version::Is(version),
            Self::Object { kind, .. } => match kind.as_str() {
                "ConfigMap" | "Secret" => Version::Is("v1"),
                "Cluster" => Version::ClusterApi,
                _ => Version::Discovered,
            },
        }
    }

    /// Whether all that is read of it is secret: that of a Secret of whatever group.
    pub fn is_secret(&self) -> bool {
        self.kind() == "Secret"
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object {
                api_version: Some(version),
                kind,
                name,
            } => write!(f, "{kind} {name} ({version})"),
            Self::Object { kind, name, .. } => write!(f, "{kind} {name}"),
            Self::Module { module, kind, name } => write!(f, "{kind} {name} of module {module}"),
        }
    }
}

/// What came of reading an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// It is there.
    Found(Found),
    /// It is not there.
    Missing,
    /// We have no right to see it.
    Forbidden,
    /// There is no such kind.
    NoSuchKind,
    /// There are several such kinds: their apiVersions.
    SeveralKinds(Vec<String>),
    /// The other module is not there, or has not been applied yet.
    NoSuchModule,
    /// The other module has several objects of this kind and name.
    SeveralObjects,
}

/// An object that was read.
#[derive(Clone, PartialEq)]
pub struct Found {
    object: Value,
}

impl Found {
    /// An object, whole.
    pub fn new(object: Value) -> Self {
        Self { object }
    }

    /// The object.
    pub(crate) fn object(&self) -> &Value {
        &self.object
    }

    /// Which it is, at which time.
    pub(crate) fn stamp(&self) -> Stamp {
        let text = |path: &str| {
            let text = self.object.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Stamp {
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
        }
    }
}

/// What is in it may be secret.
impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.stamp())
    }
}

/// All that was read.
pub type Known = BTreeMap<Reference, Read>;
