//! Values on their way into a cluster.
//!
//! What anybody may see travels as literals, in which every `$` is escaped: so it is expanded to itself there, exactly once.
//! What is secret travels in a Secret, to which the binding refers.

use std::collections::BTreeMap;

use slipway_api::fleet::binding::{Binding, Literal, ObjectFieldRef};

use crate::expand::escape;
use crate::pointer::Pointer;
use crate::revision::digest;
use crate::value::Text;

/// Values as bindings, in the order of their names, and what has to be in the Secret that some refer to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Export {
    /// The bindings.
    pub bindings: Vec<Binding>,
    /// The Secret's data by key; empty where no Secret is needed.
    pub secret: BTreeMap<String, Text>,
}

/// Makes bindings of values. Secret ones refer to the Secret of this name.
pub fn export(values: &BTreeMap<String, Text>, secret: &str) -> Export {
    let mut made = Export::default();
    for (name, text) in values {
        let binding = Binding {
            name: name.clone(),
            ..Binding::default()
        };
        made.bindings.push(if let Some(shown) = text.shown() {
            Binding {
                value: Some(Literal::Text(escape(shown))),
                ..binding
            }
        } else {
            let key = key(name);
            let path = Pointer::to(["data", &key]).to_string();
            made.secret.insert(key, text.clone());
            Binding {
                object_field_ref: Some(ObjectFieldRef {
                    api_version: Some("v1".to_owned()),
                    kind: "Secret".to_owned(),
                    name: secret.to_owned(),
                    field_path: Some(path),
                    path: None,
                }),
                ..binding
            }
        });
    }
    made
}

/// The key of a name in a Secret: itself, or where it cannot be one, its hash. Names are no secrets.
pub fn key(name: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_key = !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(is_plain)
        && name != "."
        && !name.starts_with("..")
        // What hashes look like.
        && !name.starts_with("name-");
    if is_key {
        return name.to_owned();
    }
    format!("name-{}", digest(name, 32))
}
