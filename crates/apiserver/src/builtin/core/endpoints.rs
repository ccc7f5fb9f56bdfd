//! Endpoints.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{self, PROTOCOLS, child, each, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value;

/// The rules of endpoints.
pub const RULES: Rules = Rules {
    default,
    validate: |object, _| validate(object),
    validate_update,
    warnings: |object, _| ip_warnings(object),
    create_on_update: true,
    columns: &[
        ("Name", "string", 0),
        ("Endpoints", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            summary(object).into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

fn default(object: &mut Value) {
    for subset in value::items_mut(object, "subsets") {
        for port in value::items_mut(subset, "ports") {
            if value::text(port, "protocol").is_empty() {
                value::put(port, "protocol", "TCP");
            }
        }
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    for (at, subset) in each(object, "", "subsets") {
        let none = |list: &str| value::items(subset, list).is_empty();
        if none("addresses") && none("notReadyAddresses") {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(at.as_str(), detail));
        }
        for list in ["addresses", "notReadyAddresses"] {
            for (at, address) in each(subset, &at, list) {
                errors.extend(validate_address(&at, address));
            }
        }
        let named = value::items(subset, "ports").len() > 1;
        for (at, port) in each(subset, &at, "ports") {
            errors.extend(validate_port(&at, port, named));
        }
    }
    errors
}

fn validate_address(at: &str, address: &Value) -> FieldErrors {
    let ip = value::text(address, "ip");
    let mut errors = checks::ip(&child(at, "ip"), ip);
    let hostname = value::text(address, "hostname");
    if !hostname.is_empty() {
        let wrong = names::label(hostname);
        errors.extend(invalid_texts(&child(at, "hostname"), hostname, wrong));
    }
    if value::has(address, "nodeName") {
        let node = value::text(address, "nodeName");
        let wrong = names::subdomain(node);
        errors.extend(invalid_texts(&child(at, "nodeName"), node, wrong));
    }
    errors.extend(checks::endpoint_ip(&child(at, "ip"), ip));
    errors
}

fn validate_port(at: &str, port: &Value, named: bool) -> FieldErrors {
    let mut errors = Vec::new();
    let name = value::text(port, "name");
    if named && name.is_empty() {
        errors.push(FieldError::required(child(at, "name"), ""));
    } else if !name.is_empty() {
        let wrong = names::label(name);
        errors.extend(invalid_texts(&child(at, "name"), name, wrong));
    }
    let number = value::integer(port, "port").unwrap_or_default();
    errors.extend(checks::port(&child(at, "port"), number));
    let protocol = value::text(port, "protocol");
    errors.extend(checks::one_of(&child(at, "protocol"), protocol, &PROTOCOLS));
    if value::has(port, "appProtocol") {
        let app = value::text(port, "appProtocol");
        let wrong = names::label_key(app);
        errors.extend(invalid_texts(&child(at, "appProtocol"), app, wrong));
    }
    errors
}

fn validate_update(_part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    if value::at(object, "subsets") == value::at(old, "subsets") {
        Vec::new()
    } else {
        validate(object)
    }
}

fn summary(object: &Value) -> String {
    let subsets = value::items(object, "subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = || value::items(subset, "addresses").iter();
        let ports = value::items(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses().map(|a| value::text(a, "ip").to_owned()));
        }
        for port in ports {
            let number = value::integer(port, "port").unwrap_or_default();
            all.extend(addresses().map(|a| host_port(value::text(a, "ip"), number)));
        }
    }
    cells::first_three(&all)
}

fn host_port(host: &str, port: i64) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn ip_warnings(object: &Value) -> Vec<String> {
    let managed = value::map(object, "metadata.labels")
        .and_then(|labels| labels.get("endpoints.kubernetes.io/managed-by"));
    if managed.is_some_and(|by| by == "endpoint-controller") {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (at, subset) in each(object, "", "subsets") {
        for list in ["addresses", "notReadyAddresses"] {
            for (at, address) in each(subset, &at, list) {
                let ip = value::text(address, "ip");
                warnings.extend(names::ip_warnings(&child(&at, "ip"), ip));
            }
        }
    }
    warnings
}
