//! Containers of a pod: ordinary, init and ephemeral ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::spec::Scope;
use super::{check, mount, probe, resources, security, variables};
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::{has, integer, items, text};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// Judges the ordinary containers.
pub(super) fn validate_containers(errors: &mut FieldErrors, path: &str, scope: &Scope<'_>) {
    let containers = items(scope.spec, "containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let here = format!("{path}[{i}]");
        validate_common(errors, &here, container, scope);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{here}.name"), &name.into()));
        }
        probe::validate_all(errors, &here, container, scope.grace, scope.os);
        validate_restart_policy(errors, &here, container);
    }
    host_port_conflicts(errors, path, containers.iter().enumerate());
}

/// Judges the init containers.
pub(super) fn validate_init_containers(errors: &mut FieldErrors, path: &str, scope: &Scope<'_>) {
    let mut names: BTreeSet<&str> = container_names(scope.spec, "containers");
    for (i, container) in items(scope.spec, "initContainers").iter().enumerate() {
        let here = format!("{path}[{i}]");
        validate_common(errors, &here, container, scope);
        validate_restart_policy(errors, &here, container);
        let name = text(container, "name");
        if names.contains(name) {
            errors.push(FieldError::duplicate(format!("{here}.name"), &name.into()));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // Init containers run one by one, so each is held against itself only, and the path counts from there.
        host_port_conflicts(errors, path, std::iter::once((0, container)));
        if text(container, "restartPolicy") == "Always" {
            probe::validate_all(errors, &here, container, scope.grace, scope.os);
            continue;
        }
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if has(container, field) {
                errors.push(FieldError::forbidden(
                    format!("{here}.{field}"),
                    "may not be set for init containers without restartPolicy=Always",
                ));
            }
        }
        for (j, policy) in items(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                errors.push(FieldError::invalid_str(
                    format!("{here}.resizePolicy[{j}].restartPolicy"),
                    "RestartContainer",
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                ));
            }
        }
    }
}

/// Judges the ephemeral containers.
pub(super) fn validate_ephemeral(errors: &mut FieldErrors, path: &str, scope: &Scope<'_>) {
    let mut others = container_names(scope.spec, "containers");
    others.extend(container_names(scope.spec, "initContainers"));
    let mut names = others.clone();
    for (i, container) in items(scope.spec, "ephemeralContainers").iter().enumerate() {
        let here = format!("{path}[{i}]");
        validate_common(errors, &here, container, scope);
        validate_image_spaces(errors, &here, container);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(FieldError::duplicate(format!("{here}.name"), &name.into()));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            let at = format!("{here}.targetContainerName");
            errors.push(FieldError::not_found(at, &target.into()));
        }
        let unset = |v: &Value| v.is_null() || v == &serde_json::json!({});
        for field in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            if container.get(field).is_some_and(|v| !unset(v)) {
                errors.push(FieldError::forbidden(
                    format!("{here}.{field}"),
                    "cannot be set for an Ephemeral Container",
                ));
            }
        }
        for (j, mount) in items(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    errors.push(FieldError::forbidden(
                        format!("{here}.volumeMounts[{j}].{field}"),
                        "cannot be set for an Ephemeral Container",
                    ));
                }
            }
        }
    }
}

/// Images of pods, unlike those of templates, must not begin or end with space.
pub(super) fn validate_image_spaces(errors: &mut FieldErrors, path: &str, container: &Value) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.push(FieldError::invalid_str(
            format!("{path}.image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
}

fn container_names<'a>(spec: &'a Value, list: &str) -> BTreeSet<&'a str> {
    items(spec, list).iter().map(|c| text(c, "name")).collect()
}

fn validate_common(errors: &mut FieldErrors, path: &str, container: &Value, scope: &Scope<'_>) {
    if check::required(errors, container, path, "name") {
        check::dns_label(errors, &format!("{path}.name"), text(container, "name"));
    }
    check::required(errors, container, path, "image");
    check::required_one_of(
        errors,
        &format!("{path}.terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    validate_ports(errors, &format!("{path}.ports"), container);
    variables::validate(errors, path, container);
    mount::validate(errors, path, container, &scope.volumes);
    check::required_one_of(
        errors,
        &format!("{path}.imagePullPolicy"),
        text(container, "imagePullPolicy"),
        &PULL_POLICIES,
    );
    if let Some(requirements) = container.get("resources") {
        let at = format!("{path}.resources");
        resources::validate(errors, &at, requirements, &scope.claims, false);
    }
    validate_resize(errors, &format!("{path}.resizePolicy"), container, scope);
    if let Some(context) = container.get("securityContext").filter(|v| !v.is_null()) {
        let at = format!("{path}.securityContext");
        security::validate_container(errors, &at, context, scope.host_users);
    }
}

fn validate_ports(errors: &mut FieldErrors, path: &str, container: &Value) {
    let mut names = BTreeSet::new();
    for (i, port) in items(container, "ports").iter().enumerate() {
        let here = format!("{path}[{i}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let found = names::port_name(name);
            let at = format!("{here}.name");
            if !found.is_empty() {
                check::each(errors, &at, name, found);
            } else if !names.insert(name) {
                errors.push(FieldError::duplicate(at, &name.into()));
            }
        }
        match integer(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(format!("{here}.containerPort"), "")),
            number => check::port_number(errors, &format!("{here}.containerPort"), number),
        }
        let host = integer(port, "hostPort").unwrap_or(0);
        if host != 0 {
            check::port_number(errors, &format!("{here}.hostPort"), host);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        let protocol = text(port, "protocol");
        check::required_one_of(errors, &format!("{here}.protocol"), protocol, &protocols);
    }
}

fn host_port_conflicts<'a>(
    errors: &mut FieldErrors,
    path: &str,
    containers: impl Iterator<Item = (usize, &'a Value)>,
) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers {
        for (j, port) in items(container, "ports").iter().enumerate() {
            let number = integer(port, "hostPort").unwrap_or(0);
            if number == 0 {
                continue;
            }
            let key = format!(
                "{}/{}/{number}",
                text(port, "protocol"),
                text(port, "hostIP")
            );
            if taken.contains(&key) {
                let at = format!("{path}[{i}].ports[{j}].hostPort");
                errors.push(FieldError::duplicate(at, &Value::String(key)));
            } else {
                taken.insert(key);
            }
        }
    }
}

fn validate_resize(errors: &mut FieldErrors, path: &str, container: &Value, scope: &Scope<'_>) {
    let mut seen = BTreeSet::new();
    let never = text(scope.spec, "restartPolicy") == "Never";
    for (i, policy) in items(container, "resizePolicy").iter().enumerate() {
        let resource = text(policy, "resourceName");
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(
                format!("{path}[{i}]"),
                &resource.into(),
            ));
        }
        check::required_one_of(errors, path, resource, &["cpu", "memory"]);
        let restart = text(policy, "restartPolicy");
        check::required_one_of(errors, path, restart, &["NotRequired", "RestartContainer"]);
        if never && restart != "NotRequired" {
            errors.push(FieldError::invalid_str(
                path,
                restart,
                "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            ));
        }
    }
}

fn validate_restart_policy(errors: &mut FieldErrors, path: &str, container: &Value) {
    let policy = text(container, "restartPolicy");
    let rules = items(container, "restartPolicyRules");
    let at = format!("{path}.restartPolicy");
    if policy.is_empty() {
        if rules.is_empty() {
            return;
        }
        errors.push(FieldError::required(
            at,
            "must specify restartPolicy when restart rules are used",
        ));
    } else {
        check::one_of(errors, &at, policy, &["Always", "Never", "OnFailure"]);
    }
    let list = format!("{path}.restartPolicyRules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&list, rules.len(), 20));
    }
    for (i, rule) in rules.iter().enumerate() {
        let here = format!("{list}[{i}]");
        let actions = ["Restart", "RestartAllContainers"];
        check::one_of(
            errors,
            &format!("{here}.action"),
            text(rule, "action"),
            &actions,
        );
        if !has(rule, "exitCodes") {
            errors.push(FieldError::required(
                format!("{here}.exitCodes"),
                "must be specified",
            ));
            continue;
        }
        let operator = text(rule, "exitCodes.operator");
        let at = format!("{here}.exitCodes.operator");
        check::one_of(errors, &at, operator, &["In", "NotIn"]);
        let values = items(rule, "exitCodes.values").len();
        if values > 255 {
            let at = format!("{here}.exitCodes.values");
            errors.push(FieldError::too_many(at, values, 255));
        }
    }
}
