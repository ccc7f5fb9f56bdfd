//! G15: whose objects are written.

use serde_json::Value;

use super::specifics::is_own_name;
use super::{Case, Findings};
use crate::history::Request;
use crate::stage::NAMESPACE;

/// Whether a write that was tried, done or not, is to something that can be anybody's: then its name says that it is ours.
fn is_ours(case: &Case<'_>, request: &Request) -> Option<bool> {
    let path = request.path();
    let home = path.contains(&format!("/namespaces/{NAMESPACE}/"));
    let created = request
        .body
        .pointer("/metadata/name")
        .and_then(Value::as_str);
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = if request.method == "POST" {
        created.unwrap_or_default()
    } else {
        last
    };
    if path.contains("/leases") {
        return Some(home && case.specifics.iter().any(|one| one.lease == name));
    }
    let mut copies = case.specifics.iter().flat_map(|one| one.copies);
    let is_copy = copies.any(|end| name.ends_with(end));
    if path.contains("/configmaps") {
        let is_own = is_own_name(case, name) || is_copy;
        return Some(is_own || home && name.starts_with("slipway-"));
    }
    if path.contains("/secrets") {
        let mut specifics = case.specifics.iter();
        return Some(home || is_copy || specifics.any(|one| (one.has_secret)(request)));
    }
    // A certificate is put into the cluster's registrations by who installs, as far as is simulated.
    let is_registration = path.contains("/validatingwebhookconfigurations")
        || path.contains("/mutatingwebhookconfigurations");
    is_registration.then_some(false)
}

/// G15.
pub(super) fn own_names(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let writes = case.history.requests.iter().filter(|r| r.is_write());
    for request in writes {
        let Some(ours) = is_ours(case, request) else {
            continue;
        };
        findings.check(request.at, ours, || {
            format!("{} {} is not one of our names", request.method, request.uri)
        });
    }
    findings
}
