//! Volumes of a pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{amount, check, projection, variables};
use crate::field::{FieldError, FieldErrors};
use crate::value::{has, items, text};

/// The volumes that passed, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// The kinds of volumes in the order in which they are judged, with the path that a second one is told about.
const KINDS: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// Judges all volumes. `pod` is the pod's name where there is a pod, for the claims it will make.
pub(super) fn validate<'a>(
    errors: &mut FieldErrors,
    path: &str,
    spec: &'a Value,
    pod: Option<&str>,
) -> Volumes<'a> {
    let volumes = items(spec, "volumes");
    let made: BTreeSet<String> = pod
        .filter(|name| !name.is_empty())
        .map(|pod| {
            let ephemeral = volumes.iter().filter(|v| has(v, "ephemeral"));
            ephemeral
                .map(|v| format!("{pod}-{}", text(v, "name")))
                .collect()
        })
        .unwrap_or_default();
    let mut good = Volumes::new();
    for (i, volume) in volumes.iter().enumerate() {
        let here = format!("{path}[{i}]");
        let name = text(volume, "name");
        let mut found = FieldErrors::new();
        validate_source(&mut found, &here, volume, pod);
        let name_path = format!("{here}.name");
        if check::required(&mut found, volume, &here, "name") {
            check::dns_label(&mut found, &name_path, name);
        }
        if good.contains_key(name) {
            found.push(FieldError::duplicate(name_path, &name.into()));
        }
        if found.is_empty() {
            good.insert(name, volume);
        } else {
            errors.extend(found);
        }
        let claim = text(volume, "persistentVolumeClaim.claimName");
        if made.contains(claim) {
            errors.push(FieldError::invalid_str(
                format!("{here}.persistentVolumeClaim.claimName"),
                claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            ));
        }
    }
    good
}

fn validate_source(errors: &mut FieldErrors, path: &str, volume: &Value, pod: Option<&str>) {
    let mut count = 0;
    for (kind, second) in KINDS {
        let Some(source) = volume.get(kind).filter(|v| !v.is_null()) else {
            continue;
        };
        count += 1;
        if count > 1 {
            errors.push(FieldError::forbidden(
                format!("{path}.{second}"),
                "may not specify more than 1 volume type",
            ));
            continue;
        }
        validate_kind(errors, &format!("{path}.{kind}"), kind, source, pod);
        if kind == "ephemeral"
            && let Some(pod) = pod.filter(|p| !p.is_empty())
        {
            let claim = format!("{pod}-{}", text(volume, "name"));
            for text_of in crate::builtin::names::dns_subdomain(&claim, false) {
                errors.push(FieldError::invalid_str(
                    format!("{path}.name"),
                    text(volume, "name"),
                    format!("PVC name {}: {text_of}", crate::field::quote(&claim)),
                ));
            }
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn validate_kind(
    errors: &mut FieldErrors,
    path: &str,
    kind: &str,
    source: &Value,
    pod: Option<&str>,
) {
    match kind {
        "emptyDir" if source.get("sizeLimit").is_some_and(amount::is_negative) => {
            errors.push(FieldError::forbidden(
                format!("{path}.sizeLimit"),
                "SizeLimit field must be a valid resource quantity",
            ));
        }
        "hostPath" => validate_host_path(errors, path, source),
        "secret" => {
            check::required(errors, source, path, "secretName");
            validate_keys(errors, path, source);
        }
        "configMap" => {
            check::required(errors, source, path, "name");
            validate_keys(errors, path, source);
        }
        "persistentVolumeClaim" => {
            check::required(errors, source, path, "claimName");
        }
        "nfs" => {
            check::required(errors, source, path, "server");
            check::required(errors, source, path, "path");
            if !text(source, "path").is_empty() && !text(source, "path").starts_with('/') {
                errors.push(FieldError::invalid_str(
                    format!("{path}.path"),
                    text(source, "path"),
                    "must be an absolute path",
                ));
            }
        }
        "downwardAPI" => {
            check::file_mode(errors, source, path, "defaultMode");
            for file in items(source, "items") {
                validate_downward_file(errors, path, file);
            }
        }
        "projected" => projection::validate(errors, path, source),
        "csi" => {
            check::required(errors, source, path, "driver");
        }
        "ephemeral" => validate_ephemeral(errors, path, source),
        "image" => {
            if pod.is_some() {
                check::required(errors, source, path, "reference");
            }
            let policies = ["Always", "IfNotPresent", "Never"];
            let policy = text(source, "pullPolicy");
            check::required_one_of(errors, &format!("{path}.pullPolicy"), policy, &policies);
        }
        _ => {}
    }
}

fn validate_host_path(errors: &mut FieldErrors, path: &str, source: &Value) {
    if !check::required(errors, source, path, "path") {
        return;
    }
    check::no_backsteps(errors, &format!("{path}.path"), text(source, "path"));
    let types = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    check::one_of(
        errors,
        &format!("{path}.type"),
        text(source, "type"),
        &types,
    );
}

fn validate_ephemeral(errors: &mut FieldErrors, path: &str, source: &Value) {
    let Some(template) = source.get("volumeClaimTemplate").filter(|v| !v.is_null()) else {
        errors.push(FieldError::required(
            format!("{path}.volumeClaimTemplate"),
            "",
        ));
        return;
    };
    let empty = Value::Null;
    let spec = template.get("spec").unwrap_or(&empty);
    validate_claim_spec(errors, &format!("{path}.volumeClaimTemplate.spec"), spec);
}

fn validate_keys(errors: &mut FieldErrors, path: &str, source: &Value) {
    check::file_mode(errors, source, path, "defaultMode");
    for (i, item) in items(source, "items").iter().enumerate() {
        validate_key_to_path(errors, &format!("{path}.items[{i}]"), item);
    }
}

/// Judges one `key` → `path` pair.
pub(super) fn validate_key_to_path(errors: &mut FieldErrors, path: &str, item: &Value) {
    check::required(errors, item, path, "key");
    check::required(errors, item, path, "path");
    check::unreserved_path(errors, &format!("{path}.path"), text(item, "path"));
    check::file_mode(errors, item, path, "mode");
}

/// Judges one file of a downward API volume. The path is that of the whole volume, as in the real server.
pub(super) fn validate_downward_file(errors: &mut FieldErrors, path: &str, file: &Value) {
    check::required(errors, file, path, "path");
    check::unreserved_path(errors, &format!("{path}.path"), text(file, "path"));
    let field = file.get("fieldRef").filter(|v| !v.is_null());
    let resource = file.get("resourceFieldRef").filter(|v| !v.is_null());
    match (field, resource) {
        (Some(field), resource) => {
            let at = format!("{path}.fieldRef");
            variables::validate_field(errors, &at, field, &variables::VOLUME_FIELDS);
            if resource.is_some() {
                errors.push(FieldError::invalid_str(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                ));
            }
        }
        (None, Some(resource)) => {
            let at = format!("{path}.resourceFieldRef");
            variables::validate_resource_field(errors, &at, resource, true);
        }
        (None, None) => errors.push(FieldError::required(
            path,
            "one of fieldRef and resourceFieldRef is required",
        )),
    }
    check::file_mode(errors, file, path, "mode");
}

/// Judges the spec of a persistent volume claim template.
pub fn validate_claim_spec(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let modes = items(spec, "accessModes");
    let at = format!("{path}.accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(
            &at,
            "at least 1 access mode is required",
        ));
    }
    super::labels::validate(
        errors,
        &format!("{path}.selector"),
        spec.get("selector"),
        false,
    );
    let supported = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    for mode in modes {
        check::one_of(errors, &at, mode.as_str().unwrap_or_default(), &supported);
    }
    let lone = modes.iter().any(|m| m == "ReadWriteOncePod");
    let shared = modes
        .iter()
        .any(|m| m != "ReadWriteOncePod" && supported.iter().any(|s| m == s));
    if lone && shared {
        errors.push(FieldError::forbidden(
            &at,
            "may not use ReadWriteOncePod with other access modes",
        ));
    }
    let storage_path = format!("{path}.resources[storage]");
    match crate::value::at(spec, "resources.requests.storage") {
        None => errors.push(FieldError::required(storage_path, "")),
        Some(storage) if !amount::is_positive(storage) => errors.push(FieldError::invalid_str(
            storage_path,
            &amount::shown(storage),
            "must be greater than zero",
        )),
        Some(_) => {}
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        check::dns_subdomain(errors, &format!("{path}.storageClassName"), class);
    }
    let mode = text(spec, "volumeMode");
    if !mode.is_empty() {
        let at = format!("{path}.volumeMode");
        check::one_of(errors, &at, mode, &["Block", "Filesystem"]);
    }
}
