//! Environment variables of containers: `env` and `envFrom`.

use serde_json::Value;

use super::{amount, check};
use crate::builtin::names;
use crate::builtin::quantity::Quantity;
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, has, items, text};

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The fields that a downward API volume may show.
pub(super) const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

const KNOWN_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Judges `env` and `envFrom` of a container.
pub(super) fn validate(errors: &mut FieldErrors, path: &str, container: &Value) {
    for (i, variable) in items(container, "env").iter().enumerate() {
        let at = format!("{path}.env[{i}]");
        if check::required(errors, variable, &at, "name") {
            let name = text(variable, "name");
            check::each(
                errors,
                &format!("{at}.name"),
                name,
                names::relaxed_env_var_name(name),
            );
        }
        if has(variable, "valueFrom") {
            validate_source(errors, &format!("{at}.valueFrom"), variable);
        }
    }
    let path = format!("{path}.envFrom");
    for (i, source) in items(container, "envFrom").iter().enumerate() {
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            let at = format!("{path}[{i}].prefix");
            check::each(errors, &at, prefix, names::relaxed_env_var_name(prefix));
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            if let Some(reference) = source.get(kind).filter(|v| !v.is_null()) {
                count += 1;
                let at = format!("{path}[{i}].{kind}");
                if check::required(errors, reference, &at, "name") {
                    let name = text(reference, "name");
                    let found = names::dns_subdomain(name, true);
                    check::each(errors, &format!("{at}.name"), name, found);
                }
            }
        }
        let detail = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid_str(&path, "", detail));
    }
}

fn validate_source(errors: &mut FieldErrors, path: &str, variable: &Value) {
    let mut count = 0;
    let sources = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    for kind in sources {
        let Some(source) = at(variable, "valueFrom")
            .and_then(|v| v.get(kind))
            .filter(|v| !v.is_null())
        else {
            continue;
        };
        count += 1;
        let here = format!("{path}.{kind}");
        match kind {
            "fieldRef" => validate_field(errors, &here, source, &ENV_FIELDS),
            "resourceFieldRef" => validate_resource_field(errors, &here, source, false),
            "fileKeyRef" => validate_file_key(errors, &here, source),
            _ => validate_key(errors, &here, source),
        }
    }
    let detail = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !text(variable, "value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid_str(path, "", detail));
}

/// Judges a reference to a field of the pod.
pub(super) fn validate_field(
    errors: &mut FieldErrors,
    path: &str,
    reference: &Value,
    supported: &[&str],
) {
    let version = text(reference, "apiVersion");
    let field = text(reference, "fieldPath");
    if !check::required(errors, reference, path, "apiVersion")
        || !check::required(errors, reference, path, "fieldPath")
    {
        return;
    }
    let at = format!("{path}.fieldPath");
    let subscript = field
        .strip_suffix("']")
        .and_then(|f| f.split_once("['"))
        .filter(|(f, _)| !f.is_empty());
    let unusable = if version != "v1" {
        Some(format!("unsupported pod version: {version}"))
    } else if let Some((base, _)) = subscript {
        (!matches!(base, "metadata.annotations" | "metadata.labels"))
            .then(|| format!("field label does not support subscript: {field}"))
    } else {
        (field != "spec.host" && !KNOWN_FIELDS.contains(&field))
            .then(|| format!("field label not supported: {field}"))
    };
    if let Some(why) = unusable {
        let detail = format!("error converting fieldPath: {why}");
        errors.push(FieldError::invalid_str(at, field, detail));
        return;
    }
    match subscript {
        Some(("metadata.annotations", key)) => {
            check::qualified_name(errors, path, &key.to_lowercase());
        }
        Some((_, key)) => check::qualified_name(errors, path, key),
        None => {
            let field = if field == "spec.host" {
                "spec.nodeName"
            } else {
                field
            };
            check::one_text_of(errors, &at, field, supported);
        }
    }
}

/// Judges a reference to a container's resources.
pub(super) fn validate_resource_field(
    errors: &mut FieldErrors,
    path: &str,
    reference: &Value,
    volume: bool,
) {
    let resource = text(reference, "resource");
    let huge =
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if volume && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(format!("{path}.containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(format!("{path}.resource"), ""));
    } else if !huge {
        check::one_text_of(
            errors,
            &format!("{path}.resource"),
            resource,
            &RESOURCE_FIELDS,
        );
    }
    let Some(divisor) = reference
        .get("divisor")
        .filter(|d| amount::of(d) != Quantity::ZERO)
    else {
        return;
    };
    let what = match resource {
        "limits.cpu" | "requests.cpu" => {
            if !matches!(divisor.as_str(), Some("1m" | "1")) {
                errors.push(FieldError::invalid_str(
                    format!("{path}.divisor"),
                    resource,
                    "only divisor's values 1m and 1 are supported with the cpu resource",
                ));
            }
            return;
        }
        "limits.memory" | "requests.memory" => "memory",
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => "local ephemeral storage",
        _ if huge => "hugepages",
        _ => return,
    };
    let sizes = [
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];
    if !sizes.contains(&divisor.as_str().unwrap_or_default()) {
        let detail = format!(
            "only divisor's values {} are supported with the {what} resource",
            sizes.join(", ")
        );
        errors.push(FieldError::invalid_str(
            format!("{path}.divisor"),
            resource,
            detail,
        ));
    }
}

fn validate_key(errors: &mut FieldErrors, path: &str, source: &Value) {
    let name = text(source, "name");
    check::dns_subdomain(errors, &format!("{path}.name"), name);
    if check::required(errors, source, path, "key") {
        let key = text(source, "key");
        check::each(
            errors,
            &format!("{path}.key"),
            key,
            names::config_map_key(key),
        );
    }
}

fn validate_file_key(errors: &mut FieldErrors, path: &str, source: &Value) {
    if check::required(errors, source, path, "key") {
        let key = text(source, "key");
        check::each(
            errors,
            &format!("{path}.key"),
            key,
            names::relaxed_env_var_name(key),
        );
    }
    if check::required(errors, source, path, "volumeName") {
        check::dns_label(
            errors,
            &format!("{path}.volumeName"),
            text(source, "volumeName"),
        );
    }
    if check::required(errors, source, path, "path") {
        check::no_backsteps(errors, &format!("{path}.path"), text(source, "path"));
    }
}
