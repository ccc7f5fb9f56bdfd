//! Whether a body is of the kind that its URL expects.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::field::quote;
use crate::schema::table;
use crate::status::{Outcome, Status};

/// The kind that a URL expects.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its name.
    pub kind: &'a str,
}

/// The group, version and kind that a body names.
struct Named {
    group: String,
    version: String,
    kind: String,
}

const META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Checks the body of a built-in kind, and fills in `apiVersion` and `kind` where they are missing.
pub fn expect_kind(value: &mut Value, body: &[u8], target: &Target<'_>) -> Outcome<()> {
    let mut named = read(value).map_err(|text| Box::new(unrecognized(target.kind, &text, body)))?;
    if named.kind.is_empty() {
        target.kind.clone_into(&mut named.kind);
    }
    if named.version.is_empty() && (named.group.is_empty() || named.group == target.group) {
        target.group.clone_into(&mut named.group);
        target.version.clone_into(&mut named.version);
    }
    if named.version.is_empty() {
        let text = format!(
            "Object 'apiVersion' is missing in '{}'",
            String::from_utf8_lossy(body)
        );
        return Err(Box::new(unrecognized(target.kind, &text, body)));
    }
    let api_version = join(&named.group, &named.version);
    let same = named.group == target.group && named.version == target.version;
    if !same || named.kind != target.kind {
        return Err(Box::new(refuse(&named, &api_version, target)));
    }
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(map) = value {
        map.insert("apiVersion".to_owned(), api_version.into());
        map.insert("kind".to_owned(), named.kind.into());
    }
    Ok(())
}

/// Why another kind than the expected one is refused.
fn refuse(named: &Named, api_version: &str, target: &Target<'_>) -> Status {
    let converts = internal(&named.group, &named.kind) == internal(target.group, target.kind)
        && named.kind == target.kind;
    let text = if !is_registered(named, target) {
        not_registered(named, api_version)
    } else if converts {
        return version_differs(api_version, target);
    } else {
        format!(
            "converting ({}.{}) to ({}): unknown conversion",
            named.version,
            named.kind,
            internal(target.group, target.kind)
        )
    };
    cannot_be_handled(&named.version, &named.kind, target.kind, &text)
}

/// The 400 answer for a body in another version.
fn version_differs(api_version: &str, target: &Target<'_>) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({api_version}) does not match the expected API version ({})",
        join(target.group, target.version)
    ))
}

/// Versions that are served no more but still known to the real server, by group and the kinds they had.
const FORMER: &[(&str, &str, &[&str])] = &[
    (
        "apps",
        "v1beta1",
        &["Deployment", "StatefulSet", "ControllerRevision"],
    ),
    (
        "apps",
        "v1beta2",
        &[
            "Deployment",
            "StatefulSet",
            "ControllerRevision",
            "DaemonSet",
            "ReplicaSet",
        ],
    ),
    ("batch", "v1beta1", &["CronJob"]),
    ("policy", "v1beta1", &["PodDisruptionBudget"]),
    ("events.k8s.io", "v1beta1", &["Event"]),
    ("discovery.k8s.io", "v1beta1", &["EndpointSlice"]),
    ("coordination.k8s.io", "v1beta1", &["Lease"]),
    (
        "rbac.authorization.k8s.io",
        "v1beta1",
        &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"],
    ),
];

fn is_registered(named: &Named, target: &Target<'_>) -> bool {
    let extensions = "apiextensions.k8s.io";
    if (named.group == extensions) != (target.group == extensions) {
        return false;
    }
    let known = |kind: &str| table::knows(&named.group, &named.version, kind);
    known(&named.kind)
        || named.kind.strip_suffix("List").is_some_and(known)
        || FORMER.iter().any(|(group, version, kinds)| {
            *group == named.group
                && *version == named.version
                && kinds.contains(&named.kind.as_str())
        })
}

/// The kind as the server holds it inside: `core.ConfigMap`. Events of both groups are one kind there.
fn internal(group: &str, kind: &str) -> String {
    let package = match group {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("{package}.{kind}")
}

/// Checks the body of a custom resource, in which nothing is filled in. A wrong kind in the right version is left
/// to validation, as in the real server.
pub fn expect_custom_kind(value: &Value, body: &[u8], target: &Target<'_>) -> Outcome<()> {
    let refuse = |text: &str| Box::new(unrecognized(target.kind, text, body));
    let named = read(value).map_err(|text| refuse(&text))?;
    if named.kind.is_empty() {
        let body = String::from_utf8_lossy(body);
        return Err(refuse(&format!("Object 'Kind' is missing in '{body}'")));
    }
    if named.group != target.group || named.version != target.version {
        let found = match value.get("apiVersion") {
            Some(Value::String(text)) => text.as_str(),
            _ => "",
        };
        return Err(Box::new(version_differs(found, target)));
    }
    Ok(())
}

/// Checks a body of options, which may name any group or none. The error is the decoder's text.
pub(super) fn expect_options(value: &mut Value, kind: &str) -> Result<(), String> {
    let named = read(value)?;
    if !named.kind.is_empty() && named.kind != kind {
        let api_version = if named.version.is_empty() {
            "meta.k8s.io/v1".to_owned()
        } else {
            join(&named.group, &named.version)
        };
        return Err(not_registered(&named, &api_version));
    }
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    Ok(())
}

fn read(value: &Value) -> Result<Named, String> {
    let find = |text: String| format!("couldn't get version/kind; json parse error: {text}");
    let found = match value {
        Value::Null | Value::Object(_) => "",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
    };
    if !found.is_empty() {
        return Err(find(format!(
            "json: cannot unmarshal {found} into Go value of type {META}"
        )));
    }
    let text = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                _ => "number",
            };
            Err(find(format!(
                "json: cannot unmarshal {found} into Go struct field .{name} of type string"
            )))
        }
    };
    let api_version = text("apiVersion")?;
    let kind = text("kind")?.to_owned();
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some(("", "")) => ("", ""),
        Some((_, version)) if version.contains('/') => {
            return Err(format!("unexpected GroupVersion string: {api_version}"));
        }
        Some(parts) => parts,
    };
    Ok(Named {
        group: group.to_owned(),
        version: version.to_owned(),
        kind,
    })
}

pub(super) fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn not_registered(named: &Named, api_version: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(&named.kind),
        quote(api_version)
    )
}

/// `Pod in version "v1" cannot be handled as a ConfigMap: …`.
pub(super) fn cannot_be_handled(version: &str, kind: &str, as_kind: &str, text: &str) -> Status {
    Status::bad_request(format!(
        "{kind} in version {} cannot be handled as a {as_kind}: {text}",
        quote(version)
    ))
}

/// `the object provided is unrecognized (must be of type ConfigMap): … (the beginning of the body)`.
pub(super) fn unrecognized(kind: &str, text: &str, body: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {text} ({})",
        summary(body)
    ))
}

/// The beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const LONGEST: usize = 30;
    let shown = body.get(..LONGEST).unwrap_or(body);
    let mut text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
    };
    if shown.len() < body.len() {
        text.push_str(" ...");
    }
    text
}
