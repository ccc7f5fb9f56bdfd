//! Service accounts. The `token` subresource is the server's.

use serde_json::{Value, json};

use crate::builtin::rules::{PLAIN, Rules};
use crate::value;

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The rules of service accounts.
pub const RULES: Rules = Rules {
    prepare_create: |object, _| keep_secret_names(object),
    prepare_update: |_, object, _, _| keep_secret_names(object),
    warnings,
    ..PLAIN
};

/// Of a reference to a secret only the name is kept.
fn keep_secret_names(object: &mut Value) {
    for secret in value::items_mut(object, "secrets") {
        let name = value::text(secret, "name").to_owned();
        *secret = if name.is_empty() {
            json!({})
        } else {
            json!({"name": name})
        };
    }
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let marked = |o: &Value| {
        value::map(o, "metadata.annotations").is_some_and(|a| a.contains_key(MOUNTABLE))
    };
    if marked(object) && !old.is_some_and(marked) {
        vec![format!(
            "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access \
             to mounted secrets"
        )]
    } else {
        Vec::new()
    }
}
