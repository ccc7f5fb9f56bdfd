//! Pod templates: the metadata and spec that workloads stamp pods from.

use serde_json::Value;

use super::{check, spec};
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, items, map, text};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Judges a pod template.
pub fn validate(errors: &mut FieldErrors, path: &str, template: &Value) {
    let nothing = Value::Null;
    let own_spec = template.get("spec").unwrap_or(&nothing);
    // The real server leaves `metadata` out of these two paths.
    check::labels(
        errors,
        &format!("{path}.labels"),
        at(template, "metadata.labels"),
    );
    let annotations = format!("{path}.annotations");
    check::annotations(errors, &annotations, at(template, "metadata.annotations"));
    validate_annotations(errors, &annotations, template);
    spec::validate(errors, &format!("{path}.spec"), own_spec, None);
    if !items(own_spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(
            format!("{path}.spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// Judges the annotations that mean something to pods; `object` has `metadata` and `spec`.
pub(super) fn validate_annotations(errors: &mut FieldErrors, path: &str, object: &Value) {
    let Some(annotations) = map(object, "metadata.annotations") else {
        return;
    };
    let get = |key: &str| annotations.get(key).and_then(Value::as_str);
    if let Some(value) = get(MIRROR)
        && text(object, "spec.nodeName").is_empty()
    {
        errors.push(FieldError::invalid_str(
            format!("{path}[{MIRROR}]"),
            value,
            "must set spec.nodeName if mirror pod annotation is set",
        ));
    }
    if let Some(cost) = get(DELETION_COST) {
        let odd = cost.starts_with('+') || (cost.len() > 1 && cost.starts_with('0'));
        if odd || cost.parse::<i32>().is_err() {
            errors.push(FieldError::invalid_str(
                format!("{path}[{DELETION_COST}]"),
                cost,
                "must be a 32bit integer",
            ));
        }
    }
}
