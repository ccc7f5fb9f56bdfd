//! The `storage.k8s.io` kinds: storage classes, CSI drivers, nodes and capacities, volume attachments and attributes.
//!
//! The CSI kinds and attachments are stored with their defaults; of their rules only the commonest are judged.

mod attributes;
mod capacity;

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::{immutable, invalid_texts, optional_one_of};
use super::describe::{Description, resource};
use super::names;
use super::rules::{BesideStatus, PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Resource};
use crate::value;

const CLASS: Rules = Rules {
    default: |object| {
        value::put_default(object, "reclaimPolicy", "Delete");
        value::put_default(object, "volumeBindingMode", "Immediate");
    },
    validate: |object, _| validate_class(object),
    validate_update: |_, object, old, _| {
        let mut errors = validate_class(object);
        for field in [
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ] {
            errors.extend(immutable(object, old, field));
        }
        errors
    },
    columns: &[
        ("Name", "string", 0),
        ("Provisioner", "string", 0),
        ("ReclaimPolicy", "string", 0),
        ("VolumeBindingMode", "string", 0),
        ("AllowVolumeExpansion", "string", 0),
        ("Age", "string", 0),
    ],
    cells: class_cells,
    ..PLAIN
};

fn validate_class(object: &Value) -> FieldErrors {
    let mut errors = provisioner(object, "provisioner");
    errors.extend(parameters(object));
    let policy = value::text(object, "reclaimPolicy");
    errors.extend(optional_one_of(
        "reclaimPolicy",
        policy,
        &["Delete", "Retain"],
    ));
    let mode = value::text(object, "volumeBindingMode");
    let modes = ["Immediate", "WaitForFirstConsumer"];
    errors.extend(optional_one_of("volumeBindingMode", mode, &modes));
    errors
}

/// The name of a driver at `path`.
fn provisioner(object: &Value, path: &str) -> FieldErrors {
    let name = value::text(object, path).to_lowercase();
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    invalid_texts(path, &name, names::label_key(&name))
}

fn parameters(object: &Value) -> FieldErrors {
    const MOST: usize = 512;
    const BYTES: usize = 256 * 1024;
    let mut errors = Vec::new();
    let all = value::map(object, "parameters");
    if all.is_some_and(|all| all.len() > MOST) {
        return vec![FieldError::too_long("parameters", MOST)];
    }
    let mut size = 0;
    for (key, text) in all.into_iter().flatten() {
        if key.is_empty() {
            let detail = "field can not be empty.";
            errors.push(FieldError::invalid_str("parameters", key, detail));
        }
        size += key.len() + text.as_str().map_or(0, str::len);
    }
    if size > BYTES {
        errors.push(FieldError::too_long("parameters", BYTES));
    }
    errors
}

fn class_cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| {
        value::map(object, "metadata.annotations")
            .and_then(|a| a.get(*key))
            .is_some_and(|v| v == "true")
    });
    let name = value::text(object, "metadata.name");
    let name = if is_default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    };
    vec![
        name.into(),
        value::text(object, "provisioner").into(),
        cells::text_or(object, "reclaimPolicy", "Delete"),
        cells::text_or(object, "volumeBindingMode", "Immediate"),
        value::flag(object, "allowVolumeExpansion").into(),
        cells::age(object, cx),
    ]
}

const DRIVER: Rules = Rules {
    default: |object| {
        value::put_default(object, "spec.attachRequired", true);
        for field in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
        ] {
            value::put_default(object, &format!("spec.{field}"), false);
        }
        value::put_default(object, "spec.fsGroupPolicy", "ReadWriteOnceWithFSType");
        if value::items(object, "spec.volumeLifecycleModes").is_empty() {
            let modes = vec![Value::from("Persistent")];
            value::put(object, "spec.volumeLifecycleModes", modes);
        }
    },
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("AttachRequired", "boolean", 0),
        ("PodInfoOnMount", "boolean", 0),
        ("StorageCapacity", "boolean", 0),
        ("TokenRequests", "string", 0),
        ("RequiresRepublish", "boolean", 0),
        ("Modes", "string", 0),
        ("Age", "string", 0),
    ],
    cells: driver_cells,
    ..PLAIN
};

fn driver_cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let flag = |name: &str| value::flag(object, &format!("spec.{name}"));
    let requests = if value::has(object, "spec.tokenRequests") {
        let audiences: Vec<&str> = value::items(object, "spec.tokenRequests")
            .iter()
            .map(|r| value::text(r, "audience"))
            .collect();
        audiences.join(",")
    } else {
        "<unset>".to_owned()
    };
    let modes: Vec<&str> = cells::strings(object, "spec.volumeLifecycleModes").collect();
    let modes = if modes.is_empty() {
        "<none>".to_owned()
    } else {
        modes.join(",")
    };
    let attach = !value::has(object, "spec.attachRequired") || flag("attachRequired");
    vec![
        cells::name(object),
        attach.into(),
        flag("podInfoOnMount").into(),
        flag("storageCapacity").into(),
        requests.into(),
        flag("requiresRepublish").into(),
        modes.into(),
        cells::age(object, cx),
    ]
}

const CSI_NODE: Rules = Rules {
    columns: &[
        ("Name", "string", 0),
        ("Drivers", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            cells::count(object, "spec.drivers").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

const ATTACHMENT: Rules = Rules {
    status: true,
    beside_status: BesideStatus::Nothing,
    // Go has a boolean there, which is never absent.
    default: |object| value::put_default(object, "status.attached", false),
    prepare_create: |object, _| value::put(object, "status.attached", false),
    validate: |object, _| {
        let mut errors = Vec::new();
        if value::text(object, "spec.attacher").is_empty() {
            errors.push(FieldError::required("spec.attacher", ""));
        }
        let source = |field: &str| value::has(object, &format!("spec.source.{field}"));
        if !source("persistentVolumeName") && !source("inlineVolumeSpec") {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::required("spec.source", detail));
        }
        let node = value::text(object, "spec.nodeName");
        errors.extend(invalid_texts("spec.nodeName", node, names::subdomain(node)));
        errors
    },
    validate_update: |_, object, old, _| immutable(object, old, "spec"),
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("Attacher", "name", 0),
        ("PV", "string", 0),
        ("Node", "string", 0),
        ("Attached", "boolean", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "spec.attacher").into(),
            value::text(object, "spec.source.persistentVolumeName").into(),
            value::text(object, "spec.nodeName").into(),
            value::flag(object, "status.attached").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let kind = |kind: &str, plural: &str, rules: Rules| -> Description {
        resource("storage.k8s.io", "v1", kind, plural, Arc::new(rules)).cluster_scoped()
    };
    vec![
        kind("CSIDriver", "csidrivers", DRIVER).build(),
        kind("CSINode", "csinodes", CSI_NODE).build(),
        resource(
            "storage.k8s.io",
            "v1",
            "CSIStorageCapacity",
            "csistoragecapacities",
            Arc::new(capacity::RULES),
        )
        .build(),
        kind("StorageClass", "storageclasses", CLASS)
            .short(&["sc"])
            .returns_deleted()
            .build(),
        kind("VolumeAttachment", "volumeattachments", ATTACHMENT)
            .status()
            .build(),
        kind(
            "VolumeAttributesClass",
            "volumeattributesclasses",
            attributes::RULES,
        )
        .short(&["vac"])
        .returns_deleted()
        .build(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_class_names_its_provisioner() {
        let class = json!({"reclaimPolicy": "X", "volumeBindingMode": "Y"});
        let texts: Vec<String> = validate_class(&class)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "provisioner: Required value",
                "reclaimPolicy: Unsupported value: \"X\": supported values: \"Delete\", \"Retain\"",
                "volumeBindingMode: Unsupported value: \"Y\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
            ]
        );
    }
}
