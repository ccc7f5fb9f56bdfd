//! Which changes of a pod are allowed.

use serde_json::Value;

use super::{check, container, difference, internal, scheduling, spec, template};
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, at_mut, copy, has, integer, items, items_mut, map, put, take, text};

const ALLOWED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Judges what create and update have in common.
pub(super) fn validate_common(errors: &mut FieldErrors, pod: &Value) {
    let nothing = Value::Null;
    let own = pod.get("spec").unwrap_or(&nothing);
    template::validate_annotations(errors, "metadata.annotations", pod);
    spec::validate(errors, "spec", own, Some(text(pod, "metadata.name")));
    if text(own, "serviceAccountName").is_empty() {
        for (i, volume) in items(own, "volumes").iter().enumerate() {
            for (j, source) in items(volume, "projected.sources").iter().enumerate() {
                if has(source, "serviceAccountToken") {
                    errors.push(FieldError::forbidden(
                        format!("spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"),
                        "must not be specified when serviceAccountName is not set",
                    ));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for (i, one) in items(own, list).iter().enumerate() {
            container::validate_image_spaces(errors, &format!("spec.{list}[{i}]"), one);
        }
    }
}

/// Judges a new pod.
pub(super) fn validate_create(errors: &mut FieldErrors, pod: &Value) {
    validate_common(errors, pod);
    if !items(pod, "spec.ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(
            "spec.ephemeralContainers",
            "cannot be set on create",
        ));
    }
    if has(pod, "spec.nodeName") && !items(pod, "spec.schedulingGates").is_empty() {
        errors.push(FieldError::forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
}

/// Judges a change of a pod's main part.
pub(super) fn validate(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    validate_common(errors, pod);
    validate_annotation_changes(errors, pod, old);
    for list in ["containers", "initContainers"] {
        let path = format!("spec.{list}");
        if items(pod, &path).len() != items(old, &path).len() {
            errors.push(FieldError::forbidden(
                path,
                "pod updates may not add or remove containers",
            ));
            return;
        }
        for (i, one) in items(pod, &path).iter().enumerate() {
            check::required(errors, one, &format!("{path}[{i}]"), "image");
            container::validate_image_spaces(errors, &format!("{path}[{i}]"), one);
        }
    }
    if !validate_deadline(errors, pod, old) {
        return;
    }
    validate_tolerations(errors, pod, old);
    validate_gates(errors, pod, old);
    validate_rest(errors, pod, old);
}

/// Annotations of mirror pods and `AppArmor` do not change.
pub(super) fn validate_annotation_changes(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    let (new, before) = (
        map(pod, "metadata.annotations"),
        map(old, "metadata.annotations"),
    );
    let kinds = |key: &str| {
        if key.starts_with("container.apparmor.security.beta.kubernetes.io/") {
            Some("AppArmor annotations")
        } else if key == "kubernetes.io/config.mirror" {
            Some("mirror pod annotation")
        } else {
            None
        }
    };
    let mut forbid = |key: &str, what: &str| {
        if let Some(kind) = kinds(key) {
            let at = format!("metadata.annotations[{key}]");
            errors.push(FieldError::forbidden(at, format!("may not {what} {kind}")));
        }
    };
    for (key, value) in before.into_iter().flatten() {
        if new.and_then(|n| n.get(key)) != Some(value) {
            forbid(key, "remove or update");
        }
    }
    for (key, _) in new.into_iter().flatten() {
        if before.is_none_or(|b| !b.contains_key(key)) {
            forbid(key, "add");
        }
    }
    template::validate_annotations(errors, "metadata.annotations", pod);
}

fn validate_deadline(errors: &mut FieldErrors, pod: &Value, old: &Value) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let (new, before) = (integer(pod, PATH), integer(old, PATH));
    match (new, before) {
        (Some(new), _) if new < 0 || new > i64::from(i32::MAX) => {
            check::in_range(errors, PATH, new, 0, i64::from(i32::MAX));
            false
        }
        (Some(new), Some(before)) if before < new => {
            errors.push(check::number(
                PATH,
                new,
                "must be less than or equal to previous value",
            ));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(PATH, &Value::Null, detail));
            true
        }
        _ => true,
    }
}

fn validate_tolerations(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    const PATH: &str = "spec.tolerations";
    let bare = |toleration: &Value| {
        let mut toleration = toleration.clone();
        take(&mut toleration, "tolerationSeconds");
        toleration
    };
    let new: Vec<Value> = items(pod, PATH).iter().map(bare).collect();
    if items(old, PATH).iter().any(|t| !new.contains(&bare(t))) {
        errors.push(FieldError::forbidden(
            PATH,
            "existing toleration can not be modified except its tolerationSeconds",
        ));
        return;
    }
    scheduling::validate_tolerations(errors, PATH, items(pod, PATH));
}

fn validate_gates(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    const PATH: &str = "spec.schedulingGates";
    for (i, gate) in items(pod, PATH).iter().enumerate() {
        let name = text(gate, "name");
        if !items(old, PATH).iter().any(|g| text(g, "name") == name) {
            errors.push(FieldError::forbidden(
                format!("{PATH}[{i}].name"),
                format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            ));
        }
    }
}

/// Everything else must be as it was; the answer shows the difference.
fn validate_rest(errors: &mut FieldErrors, pod: &Value, old: &Value) {
    const GRACE: &str = "terminationGracePeriodSeconds";
    let nothing = Value::Null;
    let (new_spec, old_spec) = (
        pod.get("spec").unwrap_or(&nothing),
        old.get("spec").unwrap_or(&nothing),
    );
    if new_spec == old_spec {
        return;
    }
    let mut munged = new_spec.clone();
    for list in ["containers", "initContainers"] {
        for (new, before) in items_mut(&mut munged, list)
            .iter_mut()
            .zip(items(old_spec, list))
        {
            copy(new, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(&mut munged, old_spec, field);
    }
    if integer(old_spec, GRACE).is_some_and(|g| g < 0) && integer(&munged, GRACE) == Some(1) {
        copy(&mut munged, old_spec, GRACE);
    }
    if !items(old_spec, "schedulingGates").is_empty() {
        allow_gated(errors, &mut munged, old_spec);
    }
    if munged != *old_spec {
        let lines = |s: &Value| internal::render_lines("PodSpec", &internal::pod_spec(s));
        let shown = difference::unified(&lines(old_spec), &lines(&munged));
        errors.push(FieldError::forbidden("spec", format!("{ALLOWED}\n{shown}")));
    }
}

/// A pod that is not yet to be scheduled may still be narrowed down.
fn allow_gated(errors: &mut FieldErrors, munged: &mut Value, old: &Value) {
    const AFFINITY: &str = "affinity.nodeAffinity";
    let new = map(munged, "nodeSelector");
    let kept = map(old, "nodeSelector")
        .into_iter()
        .flatten()
        .all(|(key, value)| new.and_then(|n| n.get(key)) == Some(value));
    if !kept {
        let shown = munged.get("nodeSelector").unwrap_or(&Value::Null).clone();
        errors.push(FieldError::invalid(
            "spec.nodeSelector",
            &shown,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ));
    }
    copy(munged, old, "nodeSelector");
    if at(munged, AFFINITY) == at(old, AFFINITY) {
        return;
    }
    validate_terms(errors, munged, old);
    if let Some(before) = at(old, AFFINITY).cloned() {
        put(munged, AFFINITY, before);
    } else {
        take(munged, AFFINITY);
        let empty = at_mut(munged, "affinity")
            .and_then(|a| a.as_object().map(serde_json::Map::is_empty))
            .unwrap_or(false);
        if empty && !has(old, "affinity") {
            take(munged, "affinity");
        }
    }
}

fn validate_terms(errors: &mut FieldErrors, munged: &Value, old: &Value) {
    const TERMS: &str =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (new, before) = (items(munged, TERMS), items(old, TERMS));
    let path = format!("spec.{TERMS}");
    if !before.is_empty() && before.len() != new.len() {
        let list: Vec<String> = new
            .iter()
            .map(|t| internal::render("NodeSelectorTerm", t))
            .collect();
        let shown = if list.is_empty() {
            "null".to_owned()
        } else {
            format!("[{}]", list.join(","))
        };
        errors.push(check::shown(
            &path,
            shown,
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        ));
        return;
    }
    for (i, (term, old_term)) in new.iter().zip(before).enumerate() {
        let grown = ["matchExpressions", "matchFields"].iter().all(|field| {
            let was = items(old_term, field);
            items(term, field).starts_with(was)
        });
        let bare = |t: &Value| {
            items(t, "matchExpressions").is_empty() && items(t, "matchFields").is_empty()
        };
        if !grown || bare(old_term) && !bare(term) {
            errors.push(check::shown(
                &format!("{path}[{i}]"),
                internal::render("NodeSelectorTerm", term),
                "only additions are allowed (no mutations or deletions)",
            ));
        }
    }
}
