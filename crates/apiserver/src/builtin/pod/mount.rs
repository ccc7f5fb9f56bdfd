//! How containers use volumes: mounts and block devices.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::check;
use super::volume::Volumes;
use crate::field::{FieldError, FieldErrors};
use crate::value::{flag, has, items, text};

/// Judges `volumeMounts` and `volumeDevices` of a container.
pub(super) fn validate(
    errors: &mut FieldErrors,
    path: &str,
    container: &Value,
    volumes: &Volumes<'_>,
) {
    let devices: BTreeMap<&str, &str> = uses(container, "volumeDevices", "devicePath");
    let mounts: BTreeMap<&str, &str> = uses(container, "volumeMounts", "mountPath");
    let list = format!("{path}.volumeMounts");
    let mut seen = BTreeSet::new();
    for (i, mount) in items(container, "volumeMounts").iter().enumerate() {
        let here = format!("{list}[{i}]");
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        check::required(errors, mount, &here, "name");
        let name_path = format!("{here}.name");
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&name_path, &name.into()));
        }
        check::required(errors, mount, &here, "mountPath");
        let target_path = format!("{here}.mountPath");
        let mut invalid = |at: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid_str(at, value, detail));
        };
        if !seen.insert(target) {
            invalid(&target_path, target, "must be unique");
        }
        if devices.contains_key(name) {
            invalid(&name_path, name, "must not already exist in volumeDevices");
        }
        if devices.values().any(|d| *d == target) {
            invalid(
                &target_path,
                target,
                "must not already exist as a path in volumeDevices",
            );
        }
        validate_mount_options(errors, &list, &here, mount, container);
    }
    validate_devices(
        errors,
        &format!("{path}.volumeDevices"),
        container,
        &mounts,
        volumes,
    );
}

fn uses<'a>(container: &'a Value, list: &str, target: &str) -> BTreeMap<&'a str, &'a str> {
    items(container, list)
        .iter()
        .map(|u| (text(u, "name"), text(u, target)))
        .collect()
}

fn validate_mount_options(
    errors: &mut FieldErrors,
    list: &str,
    here: &str,
    mount: &Value,
    container: &Value,
) {
    let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !sub.is_empty() {
        check::descending_path(errors, &format!("{list}.subPath"), sub);
    }
    if !expression.is_empty() {
        if !sub.is_empty() {
            errors.push(FieldError::invalid_str(
                format!("{here}.subPathExpr"),
                expression,
                "subPathExpr and subPath are mutually exclusive",
            ));
        }
        check::descending_path(errors, &format!("{list}.subPathExpr"), expression);
    }
    let propagation = text(mount, "mountPropagation");
    if !propagation.is_empty() {
        let at = format!("{list}.mountPropagation");
        let modes = ["Bidirectional", "HostToContainer", "None"];
        check::one_of(errors, &at, propagation, &modes);
        if propagation == "Bidirectional" && !flag(container, "securityContext.privileged") {
            errors.push(FieldError::forbidden(
                at,
                "Bidirectional mount propagation is available only to privileged containers",
            ));
        }
    }
    let at = format!("{list}.recursiveReadOnly");
    match text(mount, "recursiveReadOnly") {
        "" | "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !flag(mount, "readOnly") {
                errors.push(FieldError::forbidden(
                    &at,
                    "may only be specified when readOnly is true",
                ));
            }
            if !matches!(propagation, "" | "None") {
                errors.push(FieldError::forbidden(
                    &at,
                    "may only be specified when mountPropagation is None or not specified",
                ));
            }
        }
        other => check::one_of(errors, &at, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn validate_devices(
    errors: &mut FieldErrors,
    list: &str,
    container: &Value,
    mounts: &BTreeMap<&str, &str>,
    volumes: &Volumes<'_>,
) {
    let (mut names, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for (i, device) in items(container, "volumeDevices").iter().enumerate() {
        let here = format!("{list}[{i}]");
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let (name_path, target_path) = (format!("{here}.name"), format!("{here}.devicePath"));
        check::required(errors, device, &here, "name");
        let mut invalid = |at: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid_str(at, value, detail));
        };
        if !name.is_empty() && !names.insert(name) {
            invalid(&name_path, name, "must be unique");
        }
        match volumes.get(name) {
            Some(volume) if !has(volume, "persistentVolumeClaim") && !has(volume, "ephemeral") => {
                invalid(
                    &name_path,
                    name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                );
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(&name_path, &name.into())),
        }
        check::required(errors, device, &here, "devicePath");
        let mut invalid = |at: &str, value: &str, detail: &str| {
            errors.push(FieldError::invalid_str(at, value, detail));
        };
        if targets.contains(target) {
            invalid(&target_path, target, "must be unique");
        }
        if target.split('/').any(|part| part == "..") {
            invalid(&target_path, target, "can not contain backsteps ('..')");
        } else {
            targets.insert(target);
        }
        if mounts.contains_key(name) {
            invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if mounts.values().any(|m| *m == target) {
            invalid(
                &target_path,
                target,
                "must not already exist as a path in volumeMounts",
            );
        }
    }
}
