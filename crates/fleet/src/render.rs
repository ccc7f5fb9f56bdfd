//! Decisions as what is written. Nothing is decided here.
//!
//! All of it is applied from the server's side, by a field manager that says whose it is, and never by force where others may
//! have a say: what somebody else has taken over is refused by the API, and told.

pub mod assignment;
pub mod flux;
pub mod module;
pub mod rollout;

use serde_json::{Value, json};
use slipway_kernel::{Kind, ObjectRef};

/// An object that is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Which object.
    pub object: ObjectRef,
    /// By which field manager.
    pub manager: String,
    /// Whether fields of others are taken over.
    pub force: bool,
    /// All that this manager says about it, with apiVersion, kind and metadata.
    pub body: Value,
}

/// An object of this kind, namespace and name, with what is said of it.
pub(crate) fn object(kind: Kind, namespace: &str, name: &str, rest: &Value) -> (ObjectRef, Value) {
    let mut body = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"namespace": namespace, "name": name},
    });
    slipway_kernel::fields::merge(&mut body, rest);
    (ObjectRef::local(kind, namespace, name), body)
}
