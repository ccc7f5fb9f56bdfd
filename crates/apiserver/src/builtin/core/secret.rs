//! Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::configmap::{MAX_BYTES, decoded_len, frozen};
use crate::builtin::cells;
use crate::builtin::checks::{immutable, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::decode::{self, Media};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// The rules of secrets. A TLS secret whose key does not fit its certificate gives no warning, unlike in a real
/// server.
pub const RULES: Rules = Rules {
    default,
    prepare_update: |_, object, old, _| {
        if value::text(object, "type").is_empty() {
            value::copy(object, old, "type");
        }
    },
    validate: |object, _| validate(object),
    validate_update,
    selectable: &[("type", |o| value::text(o, "type").to_owned())],
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "type").into(),
            cells::count(object, "data").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

/// `stringData` becomes part of `data`; the type is `Opaque` unless given.
fn default(object: &mut Value) {
    if let Some(Value::Object(texts)) = value::take(object, "stringData") {
        let encoded: Vec<(String, String)> = texts
            .iter()
            .map(|(key, text)| {
                (
                    key.clone(),
                    STANDARD.encode(text.as_str().unwrap_or_default()),
                )
            })
            .collect();
        if !encoded.is_empty()
            && let Some(data) = value::slot(object, "data")
        {
            if !data.is_object() {
                *data = json!({});
            }
            if let Some(data) = data.as_object_mut() {
                data.extend(encoded.into_iter().map(|(k, v)| (k, Value::String(v))));
            }
        }
    }
    if value::text(object, "type").is_empty() {
        value::put(object, "type", "Opaque");
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, bytes) in value::map(object, "data").into_iter().flatten() {
        errors.extend(invalid_texts(
            &format!("data[{key}]"),
            key,
            names::config_map_key(key),
        ));
        size += bytes.as_str().map_or(0, decoded_len);
    }
    if size > MAX_BYTES {
        errors.push(FieldError::too_long("data", MAX_BYTES));
    }
    errors.extend(validate_type(object));
    errors
}

fn validate_type(object: &Value) -> FieldErrors {
    let entry = |key: &str| value::map(object, "data").and_then(|data| data.get(key));
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    match value::text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let account = value::map(object, "metadata.annotations")
                .and_then(|a| a.get(ACCOUNT_NAME))
                .and_then(Value::as_str)
                .unwrap_or_default();
            if account.is_empty() {
                let path = format!("metadata.annotations[{ACCOUNT_NAME}]");
                return vec![FieldError::required(path, "")];
            }
        }
        "kubernetes.io/dockercfg" => return docker_config(".dockercfg", entry(".dockercfg")),
        "kubernetes.io/dockerconfigjson" => {
            return docker_config(".dockerconfigjson", entry(".dockerconfigjson"));
        }
        "kubernetes.io/basic-auth"
            if entry("username").is_none() && entry("password").is_none() =>
        {
            return vec![required("username"), required("password")];
        }
        "kubernetes.io/ssh-auth" => {
            let key = entry("ssh-privatekey").and_then(Value::as_str);
            if key.unwrap_or_default().is_empty() {
                return vec![required("ssh-privatekey")];
            }
        }
        "kubernetes.io/tls" => {
            return ["tls.crt", "tls.key"]
                .into_iter()
                .filter(|key| entry(key).is_none())
                .map(required)
                .collect();
        }
        _ => (),
    }
    Vec::new()
}

fn docker_config(key: &str, entry: Option<&Value>) -> FieldErrors {
    let path = format!("data[{key}]");
    let Some(entry) = entry else {
        return vec![FieldError::required(path, "")];
    };
    let bytes = STANDARD
        .decode(entry.as_str().unwrap_or_default())
        .unwrap_or_default();
    match not_a_json_object(&bytes) {
        None => Vec::new(),
        Some(why) => vec![FieldError::invalid_str(
            path,
            "<secret contents redacted>",
            why,
        )],
    }
}

/// Why `bytes` are no JSON object, in the words of Go's decoder.
fn not_a_json_object(bytes: &[u8]) -> Option<String> {
    let kind = match decode::parse(bytes, Media::Json).map(|parsed| parsed.value) {
        Err(error) => return Some(error.to_string()),
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(Value::Array(_)) => "array",
        Ok(Value::String(_)) => "string",
        Ok(Value::Bool(_)) => "bool",
        Ok(Value::Number(_)) => "number",
    };
    Some(format!(
        "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    ))
}

fn validate_update(_part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = immutable(object, old, "type");
    errors.extend(frozen(object, old, &["data"]));
    errors.extend(validate(object));
    errors
}
