//! Persistent volumes. What the volume sources may hold is not judged, except for the commonest of them.

use serde_json::{Value, json};

use super::claim::{access_modes, access_modes_cell, add_finalizer};
use crate::builtin::cells;
use crate::builtin::checks::{self, invalid_texts};
use crate::builtin::names;
use crate::builtin::pod::{difference, internal};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// Admission puts this finalizer on new volumes; a controller takes it off when no claim is bound.
pub const PROTECTION: &str = "kubernetes.io/pv-protection";

/// The rules of persistent volumes.
pub const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create,
    prepare_update,
    validate: |object, _| validate(object),
    validate_update,
    columns: &[
        ("Name", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("Reclaim Policy", "string", 0),
        ("Status", "string", 0),
        ("Claim", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Reason", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells,
    ..PLAIN
};

/// The volume sources, in the order in which the real server looks at them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "azureDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
    "flexVolume",
];

fn default(object: &mut Value) {
    if value::text(object, "status.phase").is_empty() {
        value::put(object, "status.phase", "Pending");
    }
    if value::text(object, "spec.persistentVolumeReclaimPolicy").is_empty() {
        value::put(object, "spec.persistentVolumeReclaimPolicy", "Retain");
    }
    value::put_default(object, "spec.volumeMode", "Filesystem");
    if value::has(object, "spec.hostPath") {
        value::put_default(object, "spec.hostPath.type", "");
    }
}

fn prepare_create(object: &mut Value, cx: &Context<'_>) {
    let status = json!({"phase": "Pending", "lastPhaseTransitionTime": seconds(cx)});
    value::put(object, "status", status);
    add_finalizer(object, PROTECTION);
}

/// `now` as `metav1.Time` writes it.
fn seconds(cx: &Context<'_>) -> String {
    let whole = jiff::Timestamp::from_second(cx.now.as_second()).unwrap_or(cx.now);
    whole.to_string()
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, cx: &Context<'_>) {
    if part != Part::Status {
        return;
    }
    let time = "status.lastPhaseTransitionTime";
    let moved = value::text(object, "status.phase") != value::text(old, "status.phase");
    let unset = !value::has(object, time);
    if !moved && unset {
        value::copy(object, old, time);
    } else if moved && (unset || value::at(object, time) == value::at(old, time)) {
        value::put(object, time, seconds(cx));
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if value::items(object, "spec.accessModes").is_empty() {
        errors.push(FieldError::required("spec.accessModes", ""));
    }
    errors.extend(access_modes(object, "spec.accessModes"));
    errors.extend(capacity(object));
    let policy = value::text(object, "spec.persistentVolumeReclaimPolicy");
    let policies = ["Delete", "Recycle", "Retain"];
    let path = "spec.persistentVolumeReclaimPolicy";
    errors.extend(checks::optional_one_of(path, policy, &policies));
    errors.extend(sources(object));
    if policy == "Recycle" && value::text(object, "spec.hostPath.path") == "/" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(path, detail));
    }
    let class = value::text(object, "spec.storageClassName");
    if !class.is_empty() {
        let path = "spec.storageClassName";
        errors.extend(invalid_texts(path, class, names::subdomain(class)));
    }
    let mode = value::text(object, "spec.volumeMode");
    let modes = ["Block", "Filesystem"];
    errors.extend(checks::optional_one_of("spec.volumeMode", mode, &modes));
    errors
}

fn capacity(object: &Value) -> FieldErrors {
    let path = "spec.capacity";
    let mut errors = Vec::new();
    let amounts = value::map(object, path);
    if amounts.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(path, ""));
    }
    if amounts.is_none_or(|a| !a.contains_key("storage") || a.len() > 1) {
        let shown = value::at(object, path).unwrap_or(&Value::Null);
        errors.push(FieldError::not_supported(path, shown, &["storage"]));
    }
    for (name, quantity) in amounts.into_iter().flatten() {
        let at = format!("{path}[{name}]");
        let Ok(amount) = Quantity::from_value(quantity) else {
            continue;
        };
        if amount.sign().is_lt() {
            let detail = "must be a valid resource quantity";
            errors.push(FieldError::invalid(
                at.as_str(),
                &amount.units().into(),
                detail,
            ));
        }
        if amount.sign().is_le() {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid_str(at, &amount.to_string(), detail));
        }
    }
    errors
}

fn sources(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut found = false;
    for source in SOURCES {
        let path = format!("spec.{source}");
        if !value::has(object, &path) {
            continue;
        }
        if found {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(path, detail));
            continue;
        }
        found = true;
        let required: &[&str] = match source {
            "hostPath" | "local" => &["path"],
            "nfs" => &["server", "path"],
            "csi" => &["driver", "volumeHandle"],
            _ => &[],
        };
        for field in required {
            let path = format!("{path}.{field}");
            if value::text(object, &path).is_empty() {
                errors.push(FieldError::required(path, ""));
            }
        }
        errors.extend(source_path(object, source));
    }
    if !found {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    errors
}

/// What some sources ask of their path besides being there, and of the rest of the spec.
fn source_path(object: &Value, source: &str) -> FieldErrors {
    let path = format!("spec.{source}.path");
    let text = value::text(object, &path);
    let mut errors = Vec::new();
    if ["hostPath", "local"].contains(&source) && text.split('/').any(|step| step == "..") {
        let detail = "must not contain '..'";
        errors.push(FieldError::invalid_str(path.as_str(), text, detail));
    }
    if source == "nfs" && !text.starts_with('/') {
        let detail = "must be an absolute path";
        errors.push(FieldError::invalid_str(path, text, detail));
    }
    if source == "local" && !value::has(object, "spec.nodeAffinity.required") {
        let detail = "Local volume requires node affinity";
        errors.push(FieldError::required("spec.nodeAffinity", detail));
    }
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part == Part::Status {
        return Vec::new();
    }
    // The real server judges a changed volume twice.
    let mut errors = validate(object);
    errors.extend(validate(object));
    let mut new = value::at(object, "spec").cloned().unwrap_or_default();
    let before = value::at(old, "spec").unwrap_or(&Value::Null);
    if !value::has(before, "csi.controllerExpandSecretRef") {
        value::take(&mut new, "csi.controllerExpandSecretRef");
    }
    let shown = |spec: &Value| internal::render_lines("PersistentVolumeSource", spec);
    let (before, after) = (shown(before), shown(&new));
    if before != after {
        let detail = format!(
            "spec.persistentvolumesource is immutable after creation\n{}",
            difference::unified(&before, &after)
        );
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    if value::at(object, "spec.volumeMode") != value::at(old, "spec.volumeMode") {
        let shown = value::at(object, "spec.volumeMode").unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("volumeMode", shown, checks::IMMUTABLE));
    }
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let phase = if value::has(object, "metadata.deletionTimestamp") {
        "Terminating"
    } else {
        value::text(object, "status.phase")
    };
    let claim = if value::has(object, "spec.claimRef") {
        let part = |name: &str| value::text(object, &format!("spec.claimRef.{name}"));
        format!("{}/{}", part("namespace"), part("name"))
    } else {
        String::new()
    };
    let capacity = value::at(object, "spec.capacity.storage").map(Quantity::from_value);
    let capacity = match capacity {
        Some(Ok(amount)) => amount.to_string(),
        _ => "0".to_owned(),
    };
    vec![
        cells::name(object),
        capacity.into(),
        access_modes_cell(object, "spec.accessModes").into(),
        value::text(object, "spec.persistentVolumeReclaimPolicy").into(),
        phase.into(),
        claim.into(),
        value::text(object, "spec.storageClassName").into(),
        cells::text_or(object, "spec.volumeAttributesClassName", "<unset>"),
        value::text(object, "status.reason").into(),
        cells::age(object, cx),
        cells::text_or(object, "spec.volumeMode", "<unset>"),
    ]
}
