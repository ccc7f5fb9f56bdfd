//! The `certificates.k8s.io` kinds: certificate signing requests.
//!
//! A request must be a PEM block of a PKCS#10 request; its signature and the content of an issued certificate are not
//! judged. Approving (`approval`) and issuing (`status`) are writes of their own, each to its part of the status.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::cells;
use super::checks::{invalid_texts, one_of};
use super::describe::resource;
use super::names;
use super::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part, Resource};
use crate::table;
use crate::value;

const CONDITIONS: &str = "status.conditions";

/// What a certificate may be for.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const RULES: Rules = Rules {
    prepare_create,
    prepare_update,
    validate: |object, _| validate(object),
    validate_update: |part, object, old, _| {
        let mut errors = validate(object);
        errors.extend(kept_conditions(object, old));
        if part == Part::Status {
            errors.extend(same_approval(object, old));
            errors.extend(issued_once(object, old));
        }
        errors
    },
    reset: |part| match part {
        Part::Status => vec!["spec", CONDITIONS],
        Part::Main | Part::Scale => vec!["spec", "status"],
    },
    selectable: &[("spec.signerName", |object| {
        value::text(object, "spec.signerName").to_owned()
    })],
    name: |_, _| Vec::new(),
    columns: &[
        ("Name", "string", 0),
        ("Age", "string", 0),
        ("SignerName", "string", 0),
        ("Requestor", "string", 0),
        ("RequestedDuration", "string", 0),
        ("Condition", "string", 0),
    ],
    cells: |object, cx| {
        let start = jiff::Timestamp::UNIX_EPOCH;
        let end = value::integer(object, "spec.expirationSeconds")
            .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        vec![
            cells::name(object),
            cells::age(object, cx),
            cells::text_or(object, "spec.signerName", "<none>"),
            value::text(object, "spec.username").into(),
            end.map_or_else(|| "<none>".to_owned(), |end| table::age(start, end))
                .into(),
            state(object).into(),
        ]
    },
    ..PLAIN
};

/// Who asks is written down by the server; nothing is approved at birth.
fn prepare_create(object: &mut Value, cx: &Context<'_>) {
    for field in ["username", "uid", "groups", "extra"] {
        value::take(object, &format!("spec.{field}"));
    }
    if let Some(user) = cx.user {
        value::put(object, "spec.username", user.name.clone());
        if !user.uid.is_empty() {
            value::put(object, "spec.uid", user.uid.clone());
        }
        if !user.groups.is_empty() {
            value::put(object, "spec.groups", user.groups.clone());
        }
        if !user.extra.is_empty() {
            value::put(object, "spec.extra", json!(user.extra));
        }
    }
    value::put(object, "status", json!({}));
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, cx: &Context<'_>) {
    value::copy(object, old, "spec");
    if part == Part::Status {
        keep_approval(object, old);
        stamp(object, old, cx);
    } else {
        value::copy(object, old, "status");
    }
}

/// Before a write to `approval`: only conditions may change.
pub(crate) fn prepare_approval(object: &mut Value, old: &Value, cx: &Context<'_>) {
    stamp(object, old, cx);
    let conditions = value::take(object, CONDITIONS);
    value::copy(object, old, "spec");
    value::copy(object, old, "status");
    value::take(object, CONDITIONS);
    if let Some(conditions) = conditions {
        value::put(object, CONDITIONS, conditions);
    }
}

/// Judges a write to `approval`.
pub(crate) fn validate_approval(object: &Value, old: &Value) -> FieldErrors {
    let mut errors = validate(object);
    errors.extend(kept_conditions(object, old));
    errors
}

fn of_type<'a>(object: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    value::items(object, CONDITIONS)
        .iter()
        .filter(move |condition| value::text(condition, "type") == kind)
}

/// Approvals that are still there stay as they were.
fn keep_approval(object: &mut Value, old: &Value) {
    for kind in ["Approved", "Denied"] {
        let before: Vec<Value> = of_type(old, kind).cloned().collect();
        if of_type(object, kind).count() != before.len() {
            continue;
        }
        let now = value::items_mut(object, CONDITIONS)
            .iter_mut()
            .filter(|condition| value::text(condition, "type") == kind);
        for (condition, before) in now.zip(before) {
            *condition = before;
        }
    }
}

/// Conditions without times get them.
fn stamp(object: &mut Value, old: &Value, cx: &Context<'_>) {
    let now = cx.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for condition in value::items_mut(object, CONDITIONS) {
        value::put_default(condition, "lastUpdateTime", now.clone());
        let same = of_type(old, value::text(condition, "type"))
            .find(|before| value::text(before, "status") == value::text(condition, "status"))
            .map(|before| value::text(before, "lastTransitionTime"))
            .filter(|time| !time.is_empty())
            .unwrap_or(&now)
            .to_owned();
        value::put_default(condition, "lastTransitionTime", same);
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let request = value::text(object, "spec.request");
    if !is_request(request) {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(FieldError::invalid_str("spec.request", request, detail));
    }
    errors.extend(usages(object));
    errors.extend(signer(value::text(object, "spec.signerName")));
    let path = "spec.expirationSeconds";
    if let Some(seconds) = value::integer(object, path).filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(path, &seconds.into(), detail));
    }
    errors.extend(conditions(object));
    errors
}

fn is_request(encoded: &str) -> bool {
    STANDARD.decode(encoded).is_ok_and(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        text.contains("-----BEGIN CERTIFICATE REQUEST-----")
            && text.contains("-----END CERTIFICATE REQUEST-----")
    })
}

fn usages(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let all: Vec<&str> = cells::strings(object, "spec.usages").collect();
    if all.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    for (index, usage) in all.iter().enumerate() {
        errors.extend(one_of(&format!("spec.usages[{index}]"), usage, &USAGES));
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in all.iter().enumerate() {
        if !seen.insert(*usage) {
            let path = format!("spec.usages[{index}]");
            errors.push(FieldError::duplicate(path, &(*usage).into()));
        }
    }
    errors
}

fn signer(name: &str) -> FieldErrors {
    let path = "spec.signerName";
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        return vec![FieldError::invalid_str(path, name, detail)];
    }
    match name.split_once('/') {
        Some((domain, rest)) if !rest.is_empty() && !rest.contains('/') => {
            let mut errors = invalid_texts(path, domain, names::subdomain(domain));
            errors.extend(invalid_texts(path, rest, names::subdomain(rest)));
            errors
        }
        _ => {
            let detail =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            vec![FieldError::invalid_str(path, name, detail)]
        }
    }
}

fn conditions(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, condition) in value::items(object, CONDITIONS).iter().enumerate() {
        let at = |field: &str| format!("{CONDITIONS}[{index}].{field}");
        let (kind, status) = (
            value::text(condition, "type"),
            value::text(condition, "status"),
        );
        if kind.is_empty() {
            errors.push(FieldError::required(at("type"), ""));
        }
        let allowed: &[&str] = if matches!(kind, "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        if status.is_empty() {
            errors.push(FieldError::required(at("status"), ""));
        } else {
            errors.extend(one_of(&at("status"), status, allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid_str(CONDITIONS, kind, detail));
        }
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(at("type"), &kind.into()));
        }
    }
    errors
}

fn kept_conditions(object: &Value, old: &Value) -> FieldErrors {
    ["Approved", "Denied", "Failed"]
        .into_iter()
        .filter(|kind| of_type(object, kind).count() < of_type(old, kind).count())
        .map(|kind| {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            FieldError::forbidden(CONDITIONS, detail)
        })
        .collect()
}

fn same_approval(object: &Value, old: &Value) -> FieldErrors {
    ["Approved", "Denied"]
        .into_iter()
        .filter(|kind| of_type(object, kind).count() > of_type(old, kind).count())
        .map(|kind| {
            let detail = format!("updates may not add a condition of type \"{kind}\"");
            FieldError::forbidden(CONDITIONS, detail)
        })
        .collect()
}

fn issued_once(object: &Value, old: &Value) -> FieldErrors {
    let path = "status.certificate";
    let before = value::text(old, path);
    if before.is_empty() || before == value::text(object, path) {
        return Vec::new();
    }
    let detail = "updates may not modify existing certificate content";
    vec![FieldError::forbidden(path, detail)]
}

fn state(object: &Value) -> String {
    let has = |kind: &str| of_type(object, kind).next().is_some();
    let mut state = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !value::text(object, "status.certificate").is_empty() {
        state.push_str(",Issued");
    }
    state
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let request = resource(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        Arc::new(RULES),
    );
    vec![
        request
            .cluster_scoped()
            .short(&["csr"])
            .status()
            .subresource("approval")
            .build(),
    ]
}

#[cfg(test)]
#[path = "certificates/tests.rs"]
mod tests;
