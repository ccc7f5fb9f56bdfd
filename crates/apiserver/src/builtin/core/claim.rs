//! Persistent volume claims.

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::checks::{self, child, invalid_texts};
use crate::builtin::names;
use crate::builtin::pod::{difference, internal};
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// Admission puts this finalizer on new claims; a controller takes it off when no pod uses the claim.
pub const PROTECTION: &str = "kubernetes.io/pvc-protection";

const STORAGE: &str = "spec.resources.requests.storage";
const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// The rules of claims.
pub const RULES: Rules = Rules {
    status: true,
    default: |object| {
        if value::text(object, "status.phase").is_empty() {
            value::put(object, "status.phase", "Pending");
        }
        value::put_default(object, "spec.volumeMode", "Filesystem");
    },
    prepare_create: |object, _| {
        value::put(object, "status", json!({"phase": "Pending"}));
        mirror_source(object);
        add_finalizer(object, PROTECTION);
    },
    prepare_update: |part, object, _, _| {
        if part != Part::Status {
            mirror_source(object);
        }
    },
    validate: |object, _| validate(object),
    validate_update,
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells,
    ..PLAIN
};

/// Adds `name` to the finalizers unless it is there.
pub(super) fn add_finalizer(object: &mut Value, name: &str) {
    let mut finalizers = value::items(object, "metadata.finalizers").to_vec();
    if !finalizers.iter().any(|f| f == name) {
        finalizers.push(name.into());
        value::put(object, "metadata.finalizers", finalizers);
    }
}

/// `dataSource` and `dataSourceRef` say the same, whichever of them the client set.
fn mirror_source(object: &mut Value) {
    let (source, reference) = ("spec.dataSource", "spec.dataSourceRef");
    if value::has(object, source) && !value::has(object, reference) {
        let copy = value::at(object, source).cloned().unwrap_or_default();
        value::put(object, reference, copy);
    } else if value::has(object, reference)
        && !value::has(object, source)
        && value::text(object, "spec.dataSourceRef.namespace").is_empty()
    {
        let mut copy = value::at(object, reference).cloned().unwrap_or_default();
        value::take(&mut copy, "namespace");
        value::put(object, source, copy);
    }
}

/// Judges a list of access modes that may not be empty; emptiness has another text for volumes.
pub(super) fn access_modes(object: &Value, path: &str) -> FieldErrors {
    let mut errors = Vec::new();
    let (mut exclusive, mut shared) = (false, false);
    for mode in cells::strings(object, path) {
        let known = ACCESS_MODES.contains(&mode);
        if !known {
            errors.push(FieldError::not_supported(path, &mode.into(), &ACCESS_MODES));
        }
        exclusive |= mode == "ReadWriteOncePod";
        shared |= known && mode != "ReadWriteOncePod";
    }
    if exclusive && shared {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if value::items(object, "spec.accessModes").is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required("spec.accessModes", detail));
    }
    let selector = value::at(object, "spec.selector");
    errors.extend(checks::label_selector("spec.selector", selector));
    errors.extend(access_modes(object, "spec.accessModes"));
    let path = "spec.resources[storage]";
    match value::at(object, STORAGE).map(Quantity::from_value) {
        None => errors.push(FieldError::required(path, "")),
        Some(Ok(amount)) if amount.sign().is_le() => {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid_str(path, &amount.to_string(), detail));
        }
        Some(_) => (),
    }
    let class = |path: &str| {
        let name = value::text(object, path);
        if name.is_empty() {
            Vec::new()
        } else {
            invalid_texts(path, name, names::subdomain(name))
        }
    };
    errors.extend(class("spec.storageClassName"));
    let mode = value::text(object, "spec.volumeMode");
    let modes = ["Block", "Filesystem"];
    errors.extend(checks::optional_one_of("spec.volumeMode", mode, &modes));
    for source in ["spec.dataSource", "spec.dataSourceRef"] {
        errors.extend(data_source(object, source));
    }
    errors.extend(sources_agree(object));
    errors.extend(class("spec.volumeAttributesClassName"));
    errors
}

/// The two sources say the same, unless the reference leads into another namespace, where there is only it.
fn sources_agree(object: &Value) -> FieldErrors {
    let (Some(source), Some(reference)) = (
        value::at(object, "spec.dataSource").filter(|s| !s.is_null()),
        value::at(object, "spec.dataSourceRef").filter(|s| !s.is_null()),
    ) else {
        return Vec::new();
    };
    let same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|field| value::text(source, field) == value::text(reference, field));
    let detail = if !value::text(reference, "namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if !same {
        "must match dataSourceRef"
    } else {
        return Vec::new();
    };
    vec![FieldError::invalid("spec", &json!({}), detail)]
}

fn data_source(object: &Value, path: &str) -> FieldErrors {
    let Some(source) = value::at(object, path).filter(|s| !s.is_null()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for field in ["name", "kind"] {
        if value::text(source, field).is_empty() {
            errors.push(FieldError::required(child(path, field), ""));
        }
    }
    let (group, kind) = (value::text(source, "apiGroup"), value::text(source, "kind"));
    if group.is_empty() && !kind.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid_str(path, kind, detail));
    }
    errors
}

fn validate_update(part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part == Part::Status {
        return Vec::new();
    }
    let mut errors = validate(object);
    let shown = |claim: &Value| {
        let spec = value::at(claim, "spec").unwrap_or(&Value::Null);
        internal::render_lines("PersistentVolumeClaimSpec", spec)
    };
    let (before, after) = (shown(old), shown(&tolerated(object, old)));
    if before != after {
        let diff = difference::unified(&before, &after);
        let detail = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{diff}"
        );
        errors.push(FieldError::forbidden("spec", detail));
    }
    let size =
        |o: &Value, path: &str| value::at(o, path).and_then(|q| Quantity::from_value(q).ok());
    if let (Some(new), Some(before)) = (size(object, STORAGE), size(old, STORAGE))
        && new < before
    {
        let capacity = size(old, "status.capacity.storage");
        if capacity.is_some_and(|capacity| new <= capacity) {
            let detail = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden(STORAGE, detail));
        }
    }
    let mode = value::at(object, "spec.volumeMode");
    if mode != value::at(old, "spec.volumeMode") {
        let shown = mode.unwrap_or(&Value::Null);
        errors.push(FieldError::invalid("volumeMode", shown, checks::IMMUTABLE));
    }
    errors
}

/// The new claim with the changes undone that are allowed: naming a volume or class where there was none, and for
/// bound claims the size and the attributes class.
fn tolerated(object: &Value, old: &Value) -> Value {
    let mut new = object.clone();
    if value::text(old, "spec.volumeName").is_empty() {
        value::copy(&mut new, old, "spec.volumeName");
    }
    if !value::has(old, "spec.storageClassName") {
        value::copy(&mut new, old, "spec.storageClassName");
    }
    if value::text(object, "status.phase") == "Bound" {
        value::copy(&mut new, old, STORAGE);
        value::copy(&mut new, old, "spec.volumeAttributesClassName");
    }
    new
}

/// `RWO,ROX` and so on.
pub(super) fn access_modes_cell(object: &Value, path: &str) -> String {
    let modes: Vec<&str> = cells::strings(object, path).collect();
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> = short
        .into_iter()
        .filter(|(mode, _)| modes.contains(mode))
        .map(|(_, short)| short)
        .collect();
    shown.join(",")
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let phase = if value::has(object, "metadata.deletionTimestamp") {
        "Terminating"
    } else {
        value::text(object, "status.phase")
    };
    let volume = value::text(object, "spec.volumeName");
    let (mut capacity, mut modes) = (String::new(), String::new());
    if !volume.is_empty() {
        modes = access_modes_cell(object, "status.accessModes");
        let amount = value::at(object, "status.capacity.storage").map(Quantity::from_value);
        capacity = match amount {
            Some(Ok(amount)) => amount.to_string(),
            _ => "0".to_owned(),
        };
    }
    vec![
        cells::name(object),
        phase.into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        value::text(object, "spec.storageClassName").into(),
        cells::text_or(object, "spec.volumeAttributesClassName", "<unset>"),
        cells::age(object, cx),
        cells::text_or(object, "spec.volumeMode", "<unset>"),
    ]
}
