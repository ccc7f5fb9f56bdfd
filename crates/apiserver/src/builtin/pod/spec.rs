//! Pod specs, in pods and in templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::volume::{self, Volumes};
use super::{amount, check, container, resources, scheduling, security, spread};
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, flag, has, integer, items, map, text};

/// What the parts of a spec need to know of the rest.
pub(super) struct Scope<'a> {
    pub(super) spec: &'a Value,
    pub(super) volumes: Volumes<'a>,
    pub(super) claims: BTreeSet<&'a str>,
    pub(super) grace: Option<i64>,
    pub(super) os: &'a str,
    pub(super) host_users: bool,
}

/// Judges a pod spec. `pod` is the pod's name if the spec is a pod's own, and none in a template.
pub fn validate(errors: &mut FieldErrors, path: &str, spec: &Value, pod: Option<&str>) {
    if !has(spec, "terminationGracePeriodSeconds") {
        errors.push(FieldError::required(
            format!("{path}.terminationGracePeriodSeconds"),
            "",
        ));
    }
    let volumes = volume::validate(errors, &format!("{path}.volumes"), spec, pod);
    let claims = items(spec, "resourceClaims")
        .iter()
        .map(|c| text(c, "name"))
        .collect();
    let scope = Scope {
        spec,
        volumes,
        claims,
        grace: integer(spec, "terminationGracePeriodSeconds"),
        os: text(spec, "os.name"),
        host_users: !has(spec, "hostUsers") || flag(spec, "hostUsers"),
    };
    container::validate_containers(errors, &format!("{path}.containers"), &scope);
    container::validate_init_containers(errors, &format!("{path}.initContainers"), &scope);
    container::validate_ephemeral(errors, &format!("{path}.ephemeralContainers"), &scope);
    validate_pod_resources(errors, &format!("{path}.resources"), &scope);
    validate_host_network(errors, path, spec, pod.is_some());
    validate_placement(errors, path, spec);
    validate_names(errors, path, spec);
    validate_rest(errors, path, spec);
}

fn validate_placement(errors: &mut FieldErrors, path: &str, spec: &Value) {
    check::required_one_of(
        errors,
        &format!("{path}.restartPolicy"),
        text(spec, "restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    check::required_one_of(
        errors,
        &format!("{path}.dnsPolicy"),
        text(spec, "dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    check::labels(
        errors,
        &format!("{path}.nodeSelector"),
        spec.get("nodeSelector"),
    );
    security::validate_pod(errors, &format!("{path}.securityContext"), spec);
    if let Some(affinity) = spec.get("affinity").filter(|v| !v.is_null()) {
        scheduling::validate_affinity(errors, &format!("{path}.affinity"), affinity);
    }
    validate_dns(errors, &format!("{path}.dnsConfig"), spec);
    scheduling::validate_gates(errors, path, spec);
    spread::validate(errors, &format!("{path}.topologySpreadConstraints"), spec);
    security::validate_host(errors, path, spec);
    validate_hostname_override(errors, path, spec);
}

fn validate_names(errors: &mut FieldErrors, path: &str, spec: &Value) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            check::dns_subdomain(errors, &format!("{path}.{field}"), name);
        }
    }
    if let Some(seconds) = integer(spec, "activeDeadlineSeconds") {
        let at = format!("{path}.activeDeadlineSeconds");
        check::in_range(errors, &at, seconds, 1, i64::from(i32::MAX));
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, field);
        if !name.is_empty() {
            check::dns_label(errors, &format!("{path}.{field}"), name);
        }
    }
    let tolerations = items(spec, "tolerations");
    scheduling::validate_tolerations(errors, &format!("{path}.tolerations"), tolerations);
    for (i, alias) in items(spec, "hostAliases").iter().enumerate() {
        let here = format!("{path}.hostAliases[{i}]");
        check::ip(errors, &format!("{here}.ip"), text(alias, "ip"));
        for (j, name) in items(alias, "hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            check::dns_subdomain(errors, &format!("{here}.hostnames[{j}]"), name);
        }
    }
    for field in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            check::dns_subdomain(errors, &format!("{path}.{field}"), name);
        }
    }
}

fn validate_rest(errors: &mut FieldErrors, path: &str, spec: &Value) {
    if has(spec, "preemptionPolicy") {
        check::required_one_of(
            errors,
            &format!("{path}.preemptionPolicy"),
            text(spec, "preemptionPolicy"),
            &["PreemptLowerPriority", "Never"],
        );
    }
    if let Some(overhead) = spec.get("overhead").filter(|v| !v.is_null()) {
        let limits = serde_json::json!({"limits": overhead});
        let at = format!("{path}.overhead");
        resources::validate(errors, &at, &limits, &BTreeSet::new(), false);
    }
    if let Some(os) = spec.get("os").filter(|v| !v.is_null()) {
        let at = format!("{path}.os");
        if check::required(errors, os, &at, "name") {
            check::one_of(errors, &at, text(os, "name"), &["linux", "windows"]);
        }
    }
    validate_file_keys(errors, path, spec);
}

fn validate_pod_resources(errors: &mut FieldErrors, path: &str, scope: &Scope<'_>) {
    let Some(requirements) = scope.spec.get("resources").filter(|v| !v.is_null()) else {
        return;
    };
    if scope.os == "windows" {
        errors.push(FieldError::forbidden(
            path,
            "may not be set for a windows pod",
        ));
        return;
    }
    if has(requirements, "claims") {
        errors.push(FieldError::forbidden(
            format!("{path}.claims"),
            "claims may not be set for Resources at pod-level",
        ));
    }
    resources::validate(errors, path, requirements, &scope.claims, true);
    for (name, sum) in amount::container_requests(scope.spec) {
        if let Some(own) = map(requirements, "requests").and_then(|r| r.get(&name))
            && sum > amount::of(own)
        {
            errors.push(FieldError::invalid_str(
                format!("{path}.requests[{name}]"),
                &amount::shown(own),
                format!("must be greater than or equal to aggregate container requests of {sum}"),
            ));
        }
    }
    for (i, container) in items(scope.spec, "containers").iter().enumerate() {
        for (name, limit) in map(container, "resources.limits").into_iter().flatten() {
            if let Some(own) = map(requirements, "limits").and_then(|l| l.get(name))
                && amount::of(limit) > amount::of(own)
            {
                errors.push(FieldError::invalid_str(
                    format!("{path}.containers[{i}][{name}].limits"),
                    &amount::shown(limit),
                    format!(
                        "must be less than or equal to pod limits of {}",
                        amount::shown(own)
                    ),
                ));
            }
        }
    }
}

fn validate_host_network(errors: &mut FieldErrors, path: &str, spec: &Value, is_pod: bool) {
    if !flag(spec, "hostNetwork") {
        return;
    }
    for (i, container) in items(spec, "containers").iter().enumerate() {
        for (j, port) in items(container, "ports").iter().enumerate() {
            let host = integer(port, "hostPort").unwrap_or(0);
            if (is_pod || host != 0) && Some(host) != integer(port, "containerPort") {
                errors.push(check::number(
                    &format!("{path}.containers[{i}].ports[{j}].hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

fn validate_dns(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let config = spec.get("dnsConfig").filter(|v| !v.is_null());
    let servers = items(spec, "dnsConfig.nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_none() {
            errors.push(FieldError::required(
                path,
                "must provide `dnsConfig` when `dnsPolicy` is None",
            ));
            return;
        }
        if servers.is_empty() {
            errors.push(FieldError::required(
                format!("{path}.nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            ));
            return;
        }
    }
    if servers.len() > 3 {
        errors.push(FieldError::invalid(
            format!("{path}.nameservers"),
            at(spec, "dnsConfig.nameservers").unwrap_or(&Value::Null),
            "must not have more than 3 nameservers",
        ));
    }
    for (i, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or_default();
        check::ip(errors, &format!("{path}.nameservers[{i}]"), server);
    }
    validate_searches(errors, path, spec);
}

fn validate_searches(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let searches: Vec<&str> = items(spec, "dnsConfig.searches")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut too_much = |detail: &str| {
        errors.push(FieldError::invalid(
            format!("{path}.searches"),
            at(spec, "dnsConfig.searches").unwrap_or(&Value::Null),
            detail,
        ));
    };
    if searches.len() > 32 {
        too_much("must not have more than 32 search paths");
    }
    if searches.join(" ").len() > 2048 {
        too_much("must not have more than 2048 characters (including spaces) in the search list");
    }
    for (i, search) in searches.iter().enumerate() {
        if *search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            let found = names::subdomain_with_underscore(search);
            check::each(errors, &format!("{path}.searches[{i}]"), search, found);
        }
    }
    for (i, option) in items(spec, "dnsConfig.options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(
                format!("{path}.options[{i}]"),
                "must not be empty",
            ));
        }
    }
}

fn validate_hostname_override(errors: &mut FieldErrors, path: &str, spec: &Value) {
    let Some(name) = spec.get("hostnameOverride").and_then(Value::as_str) else {
        return;
    };
    let at = format!("{path}.hostnameOverride");
    for (field, shown) in [
        ("setHostnameAsFQDN", "setHostnameAsFQDN"),
        ("hostNetwork", "hostNetwork"),
    ] {
        if flag(spec, field) {
            errors.push(FieldError::forbidden(
                &at,
                format!("may not be specified when {shown} is true"),
            ));
        }
    }
    if name.len() > 64 {
        errors.push(FieldError::too_long(&at, 64));
    }
    check::dns_subdomain(errors, &at, name);
}

/// Variables read from files need an `emptyDir` to read them from.
fn validate_file_keys(errors: &mut FieldErrors, path: &str, spec: &Value) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (i, container) in items(spec, list).iter().enumerate() {
            for (j, variable) in items(container, "env").iter().enumerate() {
                if !has(variable, "valueFrom.fileKeyRef") {
                    continue;
                }
                let name = text(variable, "valueFrom.fileKeyRef.volumeName");
                let at = format!("{path}.{list}[{i}].env[{j}].valueFrom.fileKeyRef.volumeName");
                let volume = items(spec, "volumes")
                    .iter()
                    .find(|v| text(v, "name") == name);
                match volume {
                    None => errors.push(FieldError::not_found(at, &name.into())),
                    Some(volume) if !has(volume, "emptyDir") => {
                        let detail = "referenced volume must be of type emptyDir";
                        errors.push(FieldError::invalid_str(at, name, detail));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
