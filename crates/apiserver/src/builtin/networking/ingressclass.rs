//! Ingress classes.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{immutable, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules, spec_changed};
use crate::field::{FieldError, FieldErrors};
use crate::resource::Context;
use crate::value;

pub(super) const RULES: Rules = Rules {
    default: |object| {
        if value::has(object, "spec.parameters") {
            value::put_default(object, "spec.parameters.scope", "Cluster");
        }
    },
    validate: |object, _| validate(object),
    validate_update: |_, object, old, _| {
        let mut errors = immutable(object, old, "spec.controller");
        errors.extend(validate(object));
        errors
    },
    generation: Some(spec_changed),
    columns: &[
        ("Name", "string", 0),
        ("Controller", "string", 0),
        ("Parameters", "string", 0),
        ("Age", "string", 0),
    ],
    cells,
    ..PLAIN
};

const CONTROLLER_MAX: usize = 250;

fn validate(object: &Value) -> FieldErrors {
    let path = "spec.controller";
    let controller = value::text(object, path);
    let mut errors = Vec::new();
    if controller.len() > CONTROLLER_MAX {
        errors.push(FieldError::too_long(path, CONTROLLER_MAX));
    }
    match controller.split_once('/') {
        _ if controller.is_empty() => errors.push(FieldError::required(path, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            errors.extend(invalid_texts(path, host, names::subdomain(host)));
            errors.extend(invalid_texts(path, rest, names::http_path(rest)));
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid_str(path, controller, detail));
        }
    }
    if value::has(object, "spec.parameters") {
        errors.extend(parameters(object));
    }
    errors
}

fn parameters(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let at = |field: &str| format!("spec.parameters.{field}");
    let group = value::text(object, &at("apiGroup"));
    if value::has(object, &at("apiGroup")) {
        let wrong = names::subdomain(group);
        errors.extend(invalid_texts(&at("apiGroup"), group, wrong));
    }
    for field in ["kind", "name"] {
        let text = value::text(object, &at(field));
        if text.is_empty() {
            errors.push(FieldError::required(at(field), ""));
        } else {
            let wrong = names::path_segment(text, false);
            errors.extend(invalid_texts(&at(field), text, wrong));
        }
    }
    let namespace = at("namespace");
    match value::text(object, &at("scope")) {
        "" => errors.push(FieldError::required(at("scope"), "")),
        "Namespace" if value::has(object, &namespace) => {
            let name = value::text(object, &namespace);
            errors.extend(invalid_texts(&namespace, name, names::label(name)));
        }
        "Namespace" => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(FieldError::required(namespace, detail));
        }
        "Cluster" if value::has(object, &namespace) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            errors.push(FieldError::forbidden(namespace, detail));
        }
        "Cluster" => (),
        other => {
            let supported = ["Cluster", "Namespace"];
            errors.push(FieldError::not_supported_text(
                at("scope"),
                &other.into(),
                &supported,
            ));
        }
    }
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let is_default = value::map(object, "metadata.annotations")
        .and_then(|a| a.get("ingressclass.kubernetes.io/is-default-class"))
        .is_some_and(|v| v == "true");
    let mut name = value::text(object, "metadata.name").to_owned();
    if is_default {
        name.push_str(" (default)");
    }
    let parameters = match value::at(object, "spec.parameters").filter(|p| !p.is_null()) {
        None => "<none>".to_owned(),
        Some(parameters) => {
            let mut kind = value::text(parameters, "kind").to_owned();
            if value::has(parameters, "apiGroup") {
                kind = format!("{kind}.{}", value::text(parameters, "apiGroup"));
            }
            format!("{kind}/{}", value::text(parameters, "name"))
        }
    };
    vec![
        name.into(),
        value::text(object, "spec.controller").into(),
        parameters.into(),
        cells::age(object, cx),
    ]
}
