//! Groups of the Kubernetes community (`*.k8s.io`) need an approval; conversion webhooks need a readable CA.

use base64::Engine;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::value;

const ANNOTATION: &str = "api-approved.kubernetes.io";

/// What the approval annotation of a definition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// Whether definitions of this group need an approval.
pub(crate) fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")))
}

fn annotation(crd: &Value) -> &str {
    value::map(crd, "metadata.annotations")
        .and_then(|a| a.get(ANNOTATION))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The state of the approval, and why.
pub(crate) fn state(crd: &Value) -> (State, String) {
    let text = annotation(crd);
    let quoted = crate::field::quote(ANNOTATION);
    let pull = "see https://github.com/kubernetes/enhancements/pull/1111";
    if text.is_empty() {
        let why = format!("protected groups must have approval annotation {quoted}, {pull}");
        return (State::Missing, why);
    }
    if text.starts_with("unapproved") {
        return (
            State::Bypassed,
            format!("not approved: {}", crate::field::quote(text)),
        );
    }
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.trim_start_matches('/').is_empty() && !rest.starts_with('/')
    });
    if is_url {
        return (State::Approved, format!("approved in {text}"));
    }
    let why = format!(
        "protected groups must have approval annotation {quoted} with either a URL or a reason starting with \"unapproved\", {pull}"
    );
    (State::Invalid, why)
}

/// Judges the approval of a definition; on update only a change of its state is judged.
pub(super) fn validate(crd: &Value, old: Option<&Value>) -> FieldErrors {
    if !is_protected(value::text(crd, "spec.group")) {
        return FieldErrors::new();
    }
    let (now, why) = state(crd);
    if old.is_some_and(|old| state(old).0 == now) {
        return FieldErrors::new();
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    match now {
        State::Invalid => vec![FieldError::invalid_str(path, annotation(crd), why)],
        State::Missing => vec![FieldError::required(path, why)],
        State::Approved | State::Bypassed => FieldErrors::new(),
    }
}

/// Whether a base64 text holds PEM certificates.
pub(crate) fn is_ca_bundle(base64_text: &str) -> bool {
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(base64_text) else {
        return false;
    };
    let certificates: Result<Vec<_>, _> =
        rustls_pki_types::CertificateDer::pem_slice_iter(&bytes).collect();
    certificates.is_ok_and(|found| !found.is_empty())
}
