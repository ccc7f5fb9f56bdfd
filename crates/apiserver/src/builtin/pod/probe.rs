//! Probes and lifecycle hooks.

use serde_json::Value;

use super::check;
use crate::builtin::names;
use crate::field::{FieldError, FieldErrors};
use crate::value::{at, has, integer, items, text};

/// Judges the probes and hooks of a container that may have them.
pub(super) fn validate_all(
    errors: &mut FieldErrors,
    path: &str,
    container: &Value,
    grace: Option<i64>,
    os: &str,
) {
    if let Some(lifecycle) = container.get("lifecycle").filter(|v| !v.is_null()) {
        validate_lifecycle(errors, &format!("{path}.lifecycle"), lifecycle, grace, os);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(name).filter(|v| !v.is_null()) {
            validate_probe(errors, &format!("{path}.{name}"), name, probe, grace);
        }
    }
}

fn validate_probe(
    errors: &mut FieldErrors,
    path: &str,
    name: &str,
    probe: &Value,
    grace: Option<i64>,
) {
    validate_handler(
        errors,
        path,
        probe,
        &["exec", "httpGet", "tcpSocket", "grpc"],
        grace,
    );
    check::non_negative_fields(
        errors,
        probe,
        path,
        &[
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ],
    );
    let own_grace = integer(probe, "terminationGracePeriodSeconds");
    let at = format!("{path}.terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace.filter(|s| *s <= 0) {
        errors.push(check::number(&at, seconds, "must be greater than 0"));
    }
    if name == "readinessProbe" {
        if let Some(seconds) = own_grace {
            errors.push(check::number(
                &at,
                seconds,
                "must not be set for readinessProbes",
            ));
        }
        return;
    }
    let successes = integer(probe, "successThreshold").unwrap_or(0);
    if successes != 1 {
        let at = format!("{path}.successThreshold");
        errors.push(check::number(&at, successes, "must be 1"));
    }
}

fn validate_lifecycle(
    errors: &mut FieldErrors,
    path: &str,
    lifecycle: &Value,
    grace: Option<i64>,
    os: &str,
) {
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = lifecycle.get(hook).filter(|v| !v.is_null()) {
            let kinds = ["exec", "httpGet", "tcpSocket", "sleep"];
            validate_handler(errors, &format!("{path}.{hook}"), handler, &kinds, grace);
        }
    }
    let signal = text(lifecycle, "stopSignal");
    if signal.is_empty() {
        return;
    }
    let at = format!("{path}.stopSignal");
    if os.is_empty() {
        errors.push(FieldError::forbidden(
            at,
            "may not be set for containers with empty `spec.os.name`",
        ));
    } else if os == "windows" {
        check::one_of(errors, &at, signal, &["SIGKILL", "SIGTERM"]);
    }
}

fn validate_handler(
    errors: &mut FieldErrors,
    path: &str,
    handler: &Value,
    kinds: &[&str],
    grace: Option<i64>,
) {
    let mut count = 0;
    for kind in kinds.iter().filter(|kind| has(handler, kind)) {
        count += 1;
        let here = format!("{path}.{kind}");
        if count > 1 {
            errors.push(FieldError::forbidden(
                here,
                "may not specify more than 1 handler type",
            ));
            continue;
        }
        if let Some(action) = handler.get(*kind) {
            validate_action(errors, &here, kind, action, grace);
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_action(
    errors: &mut FieldErrors,
    path: &str,
    kind: &str,
    action: &Value,
    grace: Option<i64>,
) {
    let port = at(action, "port").cloned().unwrap_or(Value::from(0));
    let port_path = format!("{path}.port");
    match kind {
        "exec" if items(action, "command").is_empty() => {
            errors.push(FieldError::required(format!("{path}.command"), ""));
        }
        "httpGet" => {
            check::required(errors, action, path, "path");
            check::port(errors, &port_path, &port);
            let scheme = text(action, "scheme");
            check::one_of(
                errors,
                &format!("{path}.scheme"),
                scheme,
                &["HTTP", "HTTPS"],
            );
            validate_headers(errors, path, action);
        }
        "tcpSocket" => check::port(errors, &port_path, &port),
        "grpc" => check::port_number(errors, &port_path, port.as_i64().unwrap_or(0)),
        "sleep" => {
            let seconds = integer(action, "seconds").unwrap_or(0);
            if let Some(grace) = grace.filter(|g| seconds < 0 || seconds > *g) {
                let detail = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                );
                errors.push(check::number(path, seconds, &detail));
            }
        }
        _ => {}
    }
}

fn validate_headers(errors: &mut FieldErrors, path: &str, action: &Value) {
    for header in items(action, "httpHeaders") {
        let name = text(header, "name");
        let at = format!("{path}.httpHeaders");
        check::each(errors, &at, name, names::http_header_name(name));
    }
}
