//! Security contexts of pods and containers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::check;
use crate::field::{FieldError, FieldErrors};
use crate::value::{flag, has, integer, items, text};

const MAX_ID: i64 = 2_147_483_647;
const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

static SYSCTL_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SYSCTL).ok());

/// Judges the pod's security context. `spec` has the host namespaces.
pub(super) fn validate_pod(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let Some(context) = spec.get("securityContext").filter(|v| !v.is_null()) else {
        return;
    };
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(id) = integer(context, field) {
            check::in_range(errors, &format!("{path}.{field}"), id, 0, MAX_ID);
        }
    }
    for (i, group) in items(context, "supplementalGroups").iter().enumerate() {
        let at = format!("{path}.supplementalGroups[{i}]");
        check::in_range(errors, &at, group.as_i64().unwrap_or(0), 0, MAX_ID);
    }
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        errors.push(FieldError::invalid(
            format!("{path}.shareProcessNamespace"),
            &Value::Bool(true),
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    validate_sysctls(errors, &format!("{path}.sysctls"), context, spec);
    let choices: [(&str, &[&str]); 3] = [
        ("fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", &["Merge", "Strict"]),
        ("seLinuxChangePolicy", &["Recursive"]),
    ];
    let choose = |errors: &mut FieldErrors, which: &str| {
        for (field, supported) in choices.iter().filter(|(f, _)| *f == which) {
            let value = text(context, field);
            if !value.is_empty() {
                check::one_of(errors, &format!("{path}.{field}"), value, supported);
            }
        }
    };
    choose(errors, "fsGroupChangePolicy");
    validate_profiles(
        errors,
        path,
        context,
        &["seccompProfile", "appArmorProfile"],
    );
    choose(errors, "supplementalGroupsPolicy");
    choose(errors, "seLinuxChangePolicy");
}

fn validate_profiles(errors: &mut FieldErrors, path: &str, context: &Value, which: &[&str]) {
    for field in which {
        let name = if *field == "seccompProfile" {
            "seccomp"
        } else {
            "AppArmor"
        };
        if let Some(profile) = context.get(*field).filter(|v| !v.is_null()) {
            validate_profile(errors, &format!("{path}.{field}"), field, name, profile);
        }
    }
}

fn validate_profile(
    errors: &mut FieldErrors,
    path: &str,
    field: &str,
    name: &str,
    profile: &Value,
) {
    let kind = text(profile, "type");
    let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
    if kind.is_empty() {
        errors.push(FieldError::required(
            format!("{path}.type"),
            format!("type is required when {field} is set"),
        ));
    } else {
        check::one_of(errors, &format!("{path}.type"), kind, &kinds);
    }
    let at = format!("{path}.localhostProfile");
    let local = profile.get("localhostProfile").and_then(Value::as_str);
    match local {
        None if kind == "Localhost" => errors.push(FieldError::required(
            at,
            format!("must be set when {name} type is Localhost"),
        )),
        Some(local) if kind == "Localhost" => {
            if field == "seccompProfile" {
                check::descending_path(errors, &at, local);
            } else if local.trim() != local {
                errors.push(FieldError::invalid_str(
                    at,
                    local,
                    "must not be padded with whitespace",
                ));
            }
        }
        Some(local) if field == "seccompProfile" || kinds.contains(&kind) => {
            let detail = format!("can only be set when {name} type is Localhost");
            let shown = if field == "seccompProfile" {
                super::internal::render("SeccompProfile", profile)
            } else {
                crate::field::quote(local)
            };
            errors.push(check::shown(&at, shown, &detail));
        }
        _ => {}
    }
}

fn validate_sysctls(errors: &mut FieldErrors, path: &str, context: &Value, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (i, sysctl) in items(context, "sysctls").iter().enumerate() {
        let at = format!("{path}[{i}].name");
        let name = text(sysctl, "name");
        let valid = name.len() <= 253 && SYSCTL_NAME.as_ref().is_some_and(|r| r.is_match(name));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !valid {
            let detail = format!("must have at most 253 characters and match regex {SYSCTL}");
            errors.push(FieldError::invalid_str(&at, name, detail));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&at, &name.into()));
        }
        let dotted = name.replace('/', ".");
        if flag(spec, "hostNetwork") && dotted.starts_with("net.") {
            errors.push(FieldError::invalid_str(
                &at,
                name,
                "may not be specified when 'hostNetwork' is true",
            ));
        } else if flag(spec, "hostIPC")
            && (dotted.starts_with("kernel.shm")
                || dotted.starts_with("kernel.msg")
                || dotted == "kernel.sem"
                || dotted.starts_with("fs.mqueue."))
        {
            errors.push(FieldError::invalid_str(
                &at,
                name,
                "may not be specified when 'hostIPC' is true",
            ));
        }
        seen.insert(name);
    }
}

/// Judges the security context of a container.
pub(super) fn validate_container(
    errors: &mut FieldErrors,
    path: &str,
    context: &Value,
    host_users: bool,
) {
    if flag(context, "privileged") {
        errors.push(FieldError::forbidden(
            format!("{path}.privileged"),
            "disallowed by cluster policy",
        ));
    }
    for field in ["runAsUser", "runAsGroup"] {
        if let Some(id) = integer(context, field) {
            check::in_range(errors, &format!("{path}.{field}"), id, 0, MAX_ID);
        }
    }
    let mount = text(context, "procMount");
    if !mount.is_empty() {
        let at = format!("{path}.procMount");
        check::one_of(errors, &at, mount, &["Default", "Unmasked"]);
        if host_users && mount == "Unmasked" {
            errors.push(FieldError::invalid_str(
                at,
                mount,
                "`hostUsers` must be false to use `Unmasked`",
            ));
        }
    }
    validate_profiles(errors, path, context, &["seccompProfile"]);
    validate_escalation(errors, path, context);
    validate_profiles(errors, path, context, &["appArmorProfile"]);
}

fn validate_escalation(errors: &mut FieldErrors, path: &str, context: &Value) {
    if !has(context, "allowPrivilegeEscalation") || flag(context, "allowPrivilegeEscalation") {
        return;
    }
    let show = || super::internal::render("SecurityContext", context);
    if flag(context, "privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(check::shown(path, show(), detail));
    }
    let admin = |c: &Value| c == "CAP_SYS_ADMIN";
    for _ in items(context, "capabilities.add")
        .iter()
        .filter(|c| admin(c))
    {
        let detail =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(check::shown(path, show(), detail));
    }
}

/// What may not be combined with user namespaces, and with host namespaces.
pub(super) fn validate_host(errors: &mut FieldErrors, path: &str, spec: &Value) {
    if !has(spec, "hostUsers") || flag(spec, "hostUsers") {
        return;
    }
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if flag(spec, field) {
            errors.push(FieldError::forbidden(
                format!("{path}.{shown}"),
                "when `hostUsers` is false",
            ));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (i, container) in items(spec, list).iter().enumerate() {
            if !items(container, "volumeDevices").is_empty() {
                errors.push(FieldError::forbidden(
                    format!("{path}.{list}[{i}].volumeDevices"),
                    "when `hostUsers` is false",
                ));
            }
        }
    }
}
