//! What the workloads of this group have in common.

use serde_json::{Value, json};

use crate::builtin::pod::check;
use crate::builtin::pod::{labels, template, warnings};
use crate::field::{FieldError, FieldErrors, show};
use crate::value::{has, integer, map, slot, text};

/// What pods' names and hostnames come from is judged more strictly in warnings.
pub(super) const POD_NAMES: &str = "Pod names and hostnames";

/// Fills in what every template and its surroundings get.
pub(super) fn default_template(object: &mut Value) {
    if let Some(template) = slot(object, "spec.template") {
        if template.is_null() {
            *template = json!({});
        }
        crate::builtin::pod::defaults::template(template);
    }
}

/// Judges the selector and, where it is usable, the template against it.
///
/// `kind` is the word in messages; `unusable` what a selector is told that cannot be used.
pub(super) fn validate_selector(
    errors: &mut FieldErrors,
    spec: &Value,
    kind: &str,
    unusable: &str,
) -> bool {
    let selector = spec.get("selector").filter(|s| !s.is_null());
    match selector {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) => {
            labels::validate(errors, "spec.selector", Some(selector), false);
            if labels::is_empty(selector) {
                let detail = format!("empty selector is invalid for {kind}");
                errors.push(check::shown(
                    "spec.selector",
                    labels::render(Some(selector)),
                    &detail,
                ));
            }
        }
    }
    let usable = labels::is_usable(selector);
    if !usable {
        errors.push(check::shown(
            "spec.selector",
            labels::render(selector),
            unusable,
        ));
    }
    usable
}

/// The template's labels must match the selector, unless that selects everything.
pub(super) fn validate_labels(errors: &mut FieldErrors, spec: &Value) {
    let selector = spec.get("selector").filter(|s| !s.is_null());
    if selector.is_some_and(labels::is_empty) {
        return;
    }
    if !labels::matches(selector, map(spec, "template.metadata.labels")) {
        errors.push(mismatch(spec, "spec.template.metadata.labels"));
    }
}

/// The error for a template whose labels do not match.
pub(crate) fn mismatch(spec: &Value, path: &str) -> FieldError {
    let shown = crate::value::at(spec, "template.metadata.labels").unwrap_or(&Value::Null);
    check::shown(
        path,
        show(shown),
        "`selector` does not match template `labels`",
    )
}

/// Judges the template, which must be restarted always and forever.
pub(super) fn validate_template(errors: &mut FieldErrors, spec: &Value, kind: &str) {
    let nothing = Value::Null;
    let own = spec.get("template").unwrap_or(&nothing);
    template::validate(errors, "spec.template", own);
    validate_endless(errors, own, kind);
}

/// The template must be restarted always and forever.
pub(super) fn validate_endless(errors: &mut FieldErrors, template: &Value, kind: &str) {
    let policy = text(template, "spec.restartPolicy");
    check::one_of(
        errors,
        "spec.template.spec.restartPolicy",
        policy,
        &["Always"],
    );
    if has(template, "spec.activeDeadlineSeconds") {
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

/// The selector must be what it was.
pub(super) fn immutable_selector(errors: &mut FieldErrors, object: &Value, old: &Value) {
    let (new, before) = (
        crate::value::at(object, "spec.selector"),
        crate::value::at(old, "spec.selector"),
    );
    if !check::same(new, before) {
        errors.push(check::shown(
            "spec.selector",
            labels::render(new),
            "field is immutable",
        ));
    }
}

/// These counts may not be above the number of replicas.
pub(super) fn within_replicas(errors: &mut FieldErrors, status: &Value, fields: &[&str]) {
    let number = |field: &str| integer(status, field).unwrap_or(0);
    for field in fields {
        if number(field) > number("replicas") {
            errors.push(check::number(
                &format!("status.{field}"),
                number(field),
                "cannot be greater than status.replicas",
            ));
        }
    }
}

/// Not more may be available than ready.
pub(super) fn available_within_ready(errors: &mut FieldErrors, status: &Value, ready: &str) {
    let number = |field: &str| integer(status, field).unwrap_or(0);
    if number("availableReplicas") > number("readyReplicas") {
        errors.push(check::number(
            "status.availableReplicas",
            number("availableReplicas"),
            &format!("cannot be greater than {ready}"),
        ));
    }
}

/// The count of name collisions never falls.
pub(super) fn collisions(errors: &mut FieldErrors, object: &Value, old: &Value) {
    const PATH: &str = "status.collisionCount";
    let number = |o: &Value| integer(o, PATH).unwrap_or(0);
    if integer(old, PATH).is_some() && number(object) < number(old) {
        errors.push(check::number(PATH, number(object), "cannot be decremented"));
    }
}

/// Whether the spec changed.
pub(crate) fn spec_changed(object: &Value, old: &Value) -> bool {
    !check::same(object.get("spec"), old.get("spec"))
}

/// Warnings about name and template: on create, and on changes of the spec.
pub(super) fn warn(object: &Value, old: Option<&Value>, names_matter: bool) -> Vec<String> {
    let mut out = Vec::new();
    match old {
        None if names_matter => out.extend(warnings::name(object, POD_NAMES)),
        Some(old) if !spec_changed(object, old) => return out,
        _ => {}
    }
    if let Some(template) = crate::value::at(object, "spec.template") {
        out.extend(warnings::about(template, "spec.template"));
    }
    out
}
