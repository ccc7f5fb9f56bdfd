//! The status of a `CustomResourceDefinition`: whether its names are free, whether it is served, what it once
//! stored, and how its end goes. In the real server controllers write these; here the server does, at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::extensions::approval;
use crate::field;
use crate::meta;
use crate::value;

/// The finalizer that keeps a definition while it has objects.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The status that a definition has once the controllers have seen it. `others` gives the other definitions; those of
/// other groups do not matter. Validation lets only structural schemas in, so there is nothing to say of others.
pub fn establish(crd: &Value, others: &dyn Fn() -> Vec<Value>, now: Timestamp) -> Value {
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    let accepted = crd
        .get("status")
        .map(|s| value::at(s, "acceptedNames").cloned());
    let accepted = accepted.flatten().unwrap_or_else(|| json!({}));
    let spec_names = value::at(crd, "spec.names")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if spec_names != accepted {
        let used = Used::by(value::text(crd, "spec.group"), &others());
        let (names, condition) = accept(&spec_names, &accepted, &used);
        value::put(&mut status, "acceptedNames", names);
        set_condition(&mut status, condition, now);
    }
    if let Some(condition) = approval_condition(crd) {
        set_condition(&mut status, condition, now);
    }
    drop_condition(&mut status, "NonStructuralSchema");
    let established = established(crd, &status);
    if let Some(condition) = established {
        set_condition(&mut status, condition, now);
    }
    store_version(crd, &mut status);
    status
}

/// Whether the server serves the definition's resource.
pub fn is_established(crd: &Value) -> bool {
    is_true(crd.get("status").unwrap_or(&Value::Null), "Established")
}

/// Whether the definition is being deleted.
pub fn is_terminating(crd: &Value) -> bool {
    is_true(crd.get("status").unwrap_or(&Value::Null), "Terminating")
}

/// What the first delete does: the definition stays, with [`CLEANUP`], until its objects are gone.
pub fn begin_delete(crd: &mut Value, now: Timestamp) {
    if !value::has(crd, "metadata.deletionTimestamp") {
        value::put(crd, "metadata.deletionTimestamp", meta::timestamp(now));
    }
    let mut finalizers = value::items(crd, "metadata.finalizers").to_vec();
    if !finalizers.iter().any(|f| f == CLEANUP) {
        finalizers.push(Value::from(CLEANUP));
    }
    value::put(crd, "metadata.finalizers", finalizers);
    terminating(
        crd,
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
}

/// While the objects go.
pub fn deleting_instances(crd: &mut Value, now: Timestamp) {
    let message = "CustomResource deletion is in progress";
    terminating(crd, "True", "InstanceDeletionInProgress", message, now);
}

/// When the objects are gone: takes [`CLEANUP`] away.
pub fn finish_delete(crd: &mut Value, now: Timestamp) {
    let (reason, message) = if is_established(crd) {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    terminating(crd, "False", reason, message, now);
    let left: Vec<Value> = value::items(crd, "metadata.finalizers")
        .iter()
        .filter(|f| *f != CLEANUP)
        .cloned()
        .collect();
    if left.is_empty() {
        value::take(crd, "metadata.finalizers");
    } else {
        value::put(crd, "metadata.finalizers", left);
    }
}

fn terminating(crd: &mut Value, status: &str, reason: &str, message: &str, now: Timestamp) {
    let condition = condition("Terminating", status, reason, message);
    if let Some(slot) = value::slot(crd, "status") {
        set_condition(slot, condition, now);
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

/// Puts a condition in its place; the time is that of the last change of its status.
fn set_condition(status: &mut Value, mut condition: Value, now: Timestamp) {
    let kind = value::text(&condition, "type").to_owned();
    let mut all = value::items(status, "conditions").to_vec();
    let at = all.iter().position(|c| value::text(c, "type") == kind);
    let time = at
        .and_then(|i| all.get(i))
        .filter(|old| old.get("status") == condition.get("status"))
        .map(|old| value::text(old, "lastTransitionTime").to_owned())
        .filter(|time| !time.is_empty())
        .unwrap_or_else(|| meta::timestamp(now));
    value::put(&mut condition, "lastTransitionTime", time);
    match at.and_then(|i| all.get_mut(i)) {
        Some(slot) => *slot = condition,
        None => all.push(condition),
    }
    value::put(status, "conditions", all);
}

fn drop_condition(status: &mut Value, kind: &str) {
    let all = value::items(status, "conditions");
    if all.iter().any(|c| value::text(c, "type") == kind) {
        let left: Vec<Value> = all
            .iter()
            .filter(|c| value::text(c, "type") != kind)
            .cloned()
            .collect();
        value::put(status, "conditions", left);
    }
}

fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    value::items(status, "conditions")
        .iter()
        .find(|c| value::text(c, "type") == kind)
}

fn is_true(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|c| value::text(c, "status") == "True")
}

/// The names that other definitions of a group hold.
struct Used {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Used {
    fn by(group: &str, others: &[Value]) -> Self {
        let mut used = Self {
            resources: BTreeSet::new(),
            kinds: BTreeSet::new(),
        };
        for other in others
            .iter()
            .filter(|o| value::text(o, "spec.group") == group)
        {
            let name =
                |key: &str| value::text(other, &format!("status.acceptedNames.{key}")).to_owned();
            used.resources.extend([name("plural"), name("singular")]);
            let short = value::items(other, "status.acceptedNames.shortNames");
            used.resources
                .extend(short.iter().filter_map(Value::as_str).map(str::to_owned));
            used.kinds.extend([name("kind"), name("listKind")]);
        }
        used
    }
}

/// The names that are accepted, and the condition that says whether all were.
fn accept(wanted: &Value, held: &Value, used: &Used) -> (Value, Value) {
    let mut names = held.clone();
    let mut conflict: Option<(&str, String)> = None;
    let taken = |name: &str, held: &str, by: &BTreeSet<String>| {
        (name != held && by.contains(name))
            .then(|| format!("{} is already in use", field::quote(name)))
    };
    let mut one = |key: &str,
                   reason: &'static str,
                   by: &BTreeSet<String>,
                   conflict: &mut Option<(&str, String)>| {
        match taken(value::text(wanted, key), value::text(held, key), by) {
            Some(text) => *conflict = Some((reason, text)),
            None => value::copy(&mut names, wanted, key),
        }
    };
    one("plural", "PluralConflict", &used.resources, &mut conflict);
    one(
        "singular",
        "SingularConflict",
        &used.resources,
        &mut conflict,
    );
    let mine = value::items(held, "shortNames");
    let clashes: Vec<String> = value::items(wanted, "shortNames")
        .iter()
        .filter(|name| !mine.contains(name))
        .filter_map(|name| taken(name.as_str().unwrap_or_default(), "", &used.resources))
        .collect();
    if clashes.is_empty() {
        one(
            "shortNames",
            "ShortNamesConflict",
            &BTreeSet::new(),
            &mut conflict,
        );
    } else {
        let text = match clashes.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        conflict = Some(("ShortNamesConflict", text));
    }
    one("kind", "KindConflict", &used.kinds, &mut conflict);
    one("listKind", "ListKindConflict", &used.kinds, &mut conflict);
    one("categories", "", &BTreeSet::new(), &mut conflict);
    let condition = match conflict {
        Some((reason, text)) => condition("NamesAccepted", "False", reason, &text),
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    };
    // A name that stayed unaccepted is shown empty: Go's struct always has plural and kind.
    for key in ["plural", "kind"] {
        value::put_default(&mut names, key, "");
    }
    (names, condition)
}

fn established(crd: &Value, status: &Value) -> Option<Value> {
    if is_true(status, "Established") {
        return None;
    }
    let build = |status: &str, reason: &str, message: &str| {
        Some(condition("Established", status, reason, message))
    };
    if !is_true(status, "NamesAccepted") {
        return match find(status, "Established") {
            Some(_) => None,
            None => build("False", "NotAccepted", "not all names are accepted"),
        };
    }
    let bundle = value::text(crd, "spec.conversion.webhook.clientConfig.caBundle");
    if !bundle.is_empty() && !approval::is_ca_bundle(bundle) {
        return build(
            "False",
            "InvalidCABundle",
            "The conversion webhook CABundle is invalid",
        );
    }
    build(
        "True",
        "InitialNamesAccepted",
        "the initial names have been accepted",
    )
}

fn approval_condition(crd: &Value) -> Option<Value> {
    if !approval::is_protected(value::text(crd, "spec.group")) {
        return None;
    }
    let (state, text) = approval::state(crd);
    let (status, reason) = match state {
        approval::State::Invalid => ("False", "InvalidAnnotation"),
        approval::State::Missing => ("False", "MissingAnnotation"),
        approval::State::Approved => ("True", "ApprovedAnnotation"),
        approval::State::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    Some(condition(
        "KubernetesAPIApprovalPolicyConformant",
        status,
        reason,
        &text,
    ))
}

/// Remembers the storage version among those that were ever stored.
fn store_version(crd: &Value, status: &mut Value) {
    let mut stored = value::items(status, "storedVersions").to_vec();
    let storage = value::items(crd, "spec.versions")
        .iter()
        .find(|v| value::flag(v, "storage"))
        .and_then(|v| v.get("name"));
    if let Some(name) = storage.filter(|name| !stored.contains(name)) {
        stored.push(name.clone());
    }
    value::put(status, "storedVersions", stored);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn crd(plural: &str, kind: &str) -> Value {
        json!({"metadata":{"name":format!("{plural}.x.io")},"spec":{"group":"x.io","scope":"Namespaced",
            "names":{"plural":plural,"singular":kind.to_lowercase(),"kind":kind,"listKind":format!("{kind}List"),"shortNames":["w"]},
            "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})
    }

    #[test]
    fn a_definition_with_free_names_is_established() {
        let now: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        let status = establish(&crd("widgets", "Widget"), &Vec::new, now);
        assert_eq!(
            status,
            json!({
            "conditions":[
                {"type":"NamesAccepted","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"NoConflicts","message":"no conflicts found"},
                {"type":"Established","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],
            "acceptedNames":{"plural":"widgets","singular":"widget","shortNames":["w"],"kind":"Widget","listKind":"WidgetList"},
            "storedVersions":["v1"]})
        );
    }

    #[test]
    fn a_name_in_use_is_refused_and_the_rest_accepted() {
        let now: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        let mut first = crd("widgets", "Widget");
        let status = establish(&first, &Vec::new, now);
        value::put(&mut first, "status", status);
        let status = establish(&crd("gadgets", "Widget"), &|| vec![first.clone()], now);
        let names = find(&status, "NamesAccepted").unwrap();
        assert_eq!(value::text(names, "reason"), "ListKindConflict");
        assert_eq!(
            value::text(names, "message"),
            "\"WidgetList\" is already in use"
        );
        let established = find(&status, "Established").unwrap();
        assert_eq!(value::text(established, "reason"), "NotAccepted");
        assert_eq!(value::text(&status, "acceptedNames.plural"), "gadgets");
        assert_eq!(value::text(&status, "acceptedNames.kind"), "");
    }

    #[test]
    fn a_delete_begins_goes_on_and_ends() {
        let now: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        let mut one = crd("widgets", "Widget");
        begin_delete(&mut one, now);
        assert_eq!(value::items(&one, "metadata.finalizers"), [json!(CLEANUP)]);
        assert_eq!(
            value::text(find(&one["status"], "Terminating").unwrap(), "reason"),
            "InstanceDeletionPending"
        );
        finish_delete(&mut one, now);
        assert!(value::items(&one, "metadata.finalizers").is_empty());
        assert_eq!(
            value::text(find(&one["status"], "Terminating").unwrap(), "reason"),
            "NeverEstablished"
        );
    }
}
