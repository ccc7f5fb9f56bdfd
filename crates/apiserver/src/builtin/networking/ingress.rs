//! Ingresses.

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::checks::{self, child, each, invalid_texts};
use crate::builtin::core::service;
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules, spec_changed};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) const RULES: Rules = Rules {
    status: true,
    prepare_create: |object, _| value::put(object, "status", json!({"loadBalancer": {}})),
    validate: |object, _| {
        let mut errors = validate(object);
        errors.extend(class_annotation(object));
        errors
    },
    validate_update,
    warnings: |object, old| {
        let annotated = annotation(object).is_some();
        if old.is_none() && annotated && !value::has(object, "spec.ingressClassName") {
            vec![format!(
                "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
            )]
        } else {
            Vec::new()
        }
    },
    generation: Some(spec_changed),
    columns: &[
        ("Name", "string", 0),
        ("Class", "string", 0),
        ("Hosts", "string", 0),
        ("Address", "string", 0),
        ("Ports", "string", 0),
        ("Age", "string", 0),
    ],
    cells,
    ..PLAIN
};

fn annotation(object: &Value) -> Option<&str> {
    value::map(object, "metadata.annotations")?
        .get(CLASS_ANNOTATION)?
        .as_str()
}

fn class_annotation(object: &Value) -> FieldErrors {
    let class = value::at(object, "spec.ingressClassName").and_then(Value::as_str);
    match (annotation(object), class) {
        (Some(annotation), Some(class)) if annotation != class => {
            let path = format!("annotations.{CLASS_ANNOTATION}");
            let detail = "must match `ingressClassName` when both are specified";
            vec![FieldError::invalid_str(path, annotation, detail)]
        }
        _ => Vec::new(),
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let rules = value::items(object, "spec.rules");
    let backend = value::at(object, "spec.defaultBackend").filter(|b| !b.is_null());
    if rules.is_empty() && backend.is_none() {
        let shown = value::at(object, "spec.rules").unwrap_or(&Value::Null);
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid("spec", shown, detail));
    }
    if let Some(backend) = backend {
        errors.extend(validate_backend("spec.defaultBackend", backend));
    }
    for (at, rule) in each(object, "", "spec.rules") {
        errors.extend(validate_rule(&at, rule));
    }
    for (at, tls) in each(object, "", "spec.tls") {
        for (at, host) in each(tls, &at, "hosts") {
            errors.extend(host_name(&at, host.as_str().unwrap_or_default()));
        }
        let secret = value::text(tls, "secretName");
        if !secret.is_empty() {
            let wrong = names::subdomain(secret);
            errors.extend(invalid_texts(&child(&at, "secretName"), secret, wrong));
        }
    }
    if value::has(object, "spec.ingressClassName") {
        let class = value::text(object, "spec.ingressClassName");
        let wrong = names::subdomain(class);
        errors.extend(invalid_texts("spec.ingressClassName", class, wrong));
    }
    errors
}

fn host_name(path: &str, host: &str) -> FieldErrors {
    let wrong = if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::subdomain(host)
    };
    invalid_texts(path, host, wrong)
}

fn validate_rule(at: &str, rule: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let host = value::text(rule, "host");
    if !host.is_empty() {
        let path = child(at, "host");
        if checks::parse_ip(host).is_some() {
            let detail = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid_str(path.as_str(), host, detail));
        }
        errors.extend(host_name(&path, host));
    }
    if value::has(rule, "http") {
        if value::items(rule, "http.paths").is_empty() {
            errors.push(FieldError::required(child(at, "http.paths"), ""));
        }
        for (at, path) in each(rule, at, "http.paths") {
            errors.extend(validate_path(&at, path));
        }
    }
    errors
}

fn validate_path(at: &str, rule: &Value) -> FieldErrors {
    if !value::has(rule, "pathType") {
        let detail = "pathType must be specified";
        return vec![FieldError::required(child(at, "pathType"), detail)];
    }
    let mut errors = Vec::new();
    let path = value::text(rule, "path");
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid_str(child(at, "path"), path, detail));
    };
    match value::text(rule, "pathType") {
        "Exact" | "Prefix" => {
            if !path.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.contains(part) {
                    refuse(format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if path.ends_with(end) {
                    refuse(format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !path.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
        }
        other => {
            let supported = ["Exact", "ImplementationSpecific", "Prefix"];
            let path = child(at, "pathType");
            errors.push(FieldError::not_supported(path, &other.into(), &supported));
        }
    }
    let backend = value::at(rule, "backend").unwrap_or(&Value::Null);
    errors.extend(validate_backend(&child(at, "backend"), backend));
    errors
}

fn validate_backend(at: &str, backend: &Value) -> FieldErrors {
    let refuse = |detail: &str| vec![FieldError::invalid_str(at, "", detail)];
    match (
        value::has(backend, "resource"),
        value::has(backend, "service"),
    ) {
        (true, true) => refuse("cannot set both resource and service backends"),
        (true, false) => validate_resource(&child(at, "resource"), backend),
        (false, true) => validate_service(at, backend),
        (false, false) => refuse("resource or service backend is required"),
    }
}

fn validate_resource(at: &str, backend: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    if value::has(backend, "resource.apiGroup") {
        let group = value::text(backend, "resource.apiGroup");
        let wrong = names::subdomain(group);
        errors.extend(invalid_texts(&child(at, "apiGroup"), group, wrong));
    }
    for field in ["kind", "name"] {
        let text = value::text(backend, &format!("resource.{field}"));
        let path = child(at, field);
        if text.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else {
            let wrong = names::path_segment(text, false);
            errors.extend(invalid_texts(&path, text, wrong));
        }
    }
    errors
}

fn validate_service(at: &str, backend: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let path = child(at, "service.name");
    let name = value::text(backend, "service.name");
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        let wrong = names::service_name(name, false);
        errors.extend(invalid_texts(&path, name, wrong));
    }
    let port = value::text(backend, "service.port.name");
    let number = value::integer(backend, "service.port.number").unwrap_or_default();
    match (port, number) {
        ("", 0) => {
            let detail = "port name or number is required";
            errors.push(FieldError::required(at, detail));
        }
        ("", number) => {
            errors.extend(checks::port(&child(at, "service.port.number"), number));
        }
        (port, 0) => {
            let path = child(at, "service.port.name");
            errors.extend(invalid_texts(&path, port, names::port_name(port)));
        }
        _ => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid_str(at, "", detail));
        }
    }
    errors
}

fn validate_update(part: Part, object: &Value, _old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if part != Part::Status {
        return validate(object);
    }
    let mut errors = Vec::new();
    for (at, ingress) in each(object, "", "status.loadBalancer.ingress") {
        let ip = value::text(ingress, "ip");
        if !ip.is_empty() {
            errors.extend(checks::ip(&child(&at, "ip"), ip));
        }
        errors.extend(service::validate_hostname(&at, ingress));
    }
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let ports = if value::items(object, "spec.tls").is_empty() {
        "80"
    } else {
        "80, 443"
    };
    vec![
        cells::name(object),
        cells::text_or(object, "spec.ingressClassName", "<none>"),
        hosts_cell(object).into(),
        cells::load_balancer(object).into(),
        ports.into(),
        cells::age(object, cx),
    ]
}

fn hosts_cell(object: &Value) -> String {
    let rules = value::items(object, "spec.rules");
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == 3;
        let host = value::text(rule, "host");
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    let shown = shown.join(",");
    if shown.is_empty() {
        "*".to_owned()
    } else if more {
        format!("{shown} + {} more...", rules.len() - 3)
    } else {
        shown
    }
}
