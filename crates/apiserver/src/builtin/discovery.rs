//! The `discovery.k8s.io` kinds: endpoint slices.

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::{self, PROTOCOLS, child, each, invalid_texts};
use super::describe::resource;
use super::names;
use super::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::Resource;
use crate::value;

const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| drop_topology(object),
    prepare_update: |_, object, old, _| {
        if value::at(object, "endpoints") != value::at(old, "endpoints") {
            drop_topology(object);
        }
    },
    validate: |object, _| validate(object, None),
    validate_update: |_, object, old, _| {
        let mut errors = validate(object, Some(old));
        errors.extend(checks::immutable(object, old, "addressType"));
        errors
    },
    warnings,
    generation: Some(|object, old| {
        ["addressType", "endpoints", "ports", "metadata.labels"]
            .iter()
            .any(|path| value::at(object, path) != value::at(old, path))
    }),
    columns: &[
        ("Name", "string", 0),
        ("AddressType", "string", 0),
        ("Ports", "string", 0),
        ("Endpoints", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "addressType").into(),
            ports_cell(object).into(),
            endpoints_cell(object).into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;

fn default(object: &mut Value) {
    for port in value::items_mut(object, "ports") {
        value::put_default(port, "name", "");
        value::put_default(port, "protocol", "TCP");
    }
}

fn drop_topology(object: &mut Value) {
    for endpoint in value::items_mut(object, "endpoints") {
        value::take(endpoint, "deprecatedTopology");
    }
}

fn validate(object: &Value, old: Option<&Value>) -> FieldErrors {
    let kind = value::text(object, "addressType");
    let mut errors = checks::one_of("addressType", kind, &["FQDN", "IPv4", "IPv6"]);
    errors.extend(validate_ports(object));
    let unchanged =
        old.is_some_and(|o| value::at(o, "endpoints") == value::at(object, "endpoints"));
    if !unchanged {
        errors.extend(validate_endpoints(object, kind));
    }
    errors
}

fn validate_ports(object: &Value) -> FieldErrors {
    let count = value::items(object, "ports").len();
    if count > MAX_PORTS {
        return vec![FieldError::too_many("ports", count, MAX_PORTS)];
    }
    let mut errors = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (at, port) in each(object, "", "ports") {
        let name = value::text(port, "name");
        if !name.is_empty() {
            let wrong = names::label(name);
            errors.extend(invalid_texts(&child(&at, "name"), name, wrong));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(child(&at, "name"), &name.into()));
        }
        let protocol = value::text(port, "protocol");
        errors.extend(checks::one_of(
            &child(&at, "protocol"),
            protocol,
            &PROTOCOLS,
        ));
        if value::has(port, "appProtocol") {
            let app = value::text(port, "appProtocol");
            let wrong = names::label_key(app);
            errors.extend(invalid_texts(&child(&at, "appProtocol"), app, wrong));
        }
    }
    errors
}

fn validate_endpoints(object: &Value, kind: &str) -> FieldErrors {
    let count = value::items(object, "endpoints").len();
    if count > MAX_ENDPOINTS {
        return vec![FieldError::too_many("endpoints", count, MAX_ENDPOINTS)];
    }
    let mut errors = Vec::new();
    for (at, endpoint) in each(object, "", "endpoints") {
        let path = child(&at, "addresses");
        let count = value::items(endpoint, "addresses").len();
        if count == 0 {
            let detail = "must contain at least 1 address";
            errors.push(FieldError::required(path.as_str(), detail));
        } else if count > MAX_ADDRESSES {
            errors.push(FieldError::too_many(path.as_str(), count, MAX_ADDRESSES));
        }
        for (at, address) in each(endpoint, &at, "addresses") {
            let address = address.as_str().unwrap_or_default();
            errors.extend(validate_address(&path, &at, address, kind));
        }
        for (field, judge) in [
            ("nodeName", names::subdomain as fn(&str) -> Vec<String>),
            ("hostname", names::label),
        ] {
            if value::has(endpoint, field) {
                let text = value::text(endpoint, field);
                errors.extend(invalid_texts(&child(&at, field), text, judge(text)));
            }
        }
        errors.extend(validate_hints(&child(&at, "hints"), endpoint));
    }
    errors
}

/// `list` is where the addresses stand, `at` where this one does.
fn validate_address(list: &str, at: &str, address: &str, kind: &str) -> FieldErrors {
    let mut errors = match kind {
        "IPv4" => checks::ip(at, address),
        "IPv6" => invalid_texts(at, address, names::ip(address)),
        "FQDN" => return domain_name(at, address),
        _ => return Vec::new(),
    };
    if !errors.is_empty() {
        return errors;
    }
    let right = checks::parse_ip(address).is_some_and(|ip| ip.is_ipv4() == (kind == "IPv4"));
    if !right {
        let detail = format!("must be an {kind} address");
        errors.push(FieldError::invalid_str(list, address, detail));
    }
    errors.extend(checks::endpoint_ip(at, address));
    errors
}

fn domain_name(at: &str, name: &str) -> FieldErrors {
    if name.is_empty() {
        return vec![FieldError::required(at, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = names::subdomain(name);
    if !wrong.is_empty() {
        return vec![FieldError::invalid_str(at, name, wrong.join(","))];
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return vec![FieldError::invalid_str(at, name, detail)];
    }
    let bad = name
        .split('.')
        .map(|label| (label, names::label(label)))
        .find(|(_, wrong)| !wrong.is_empty());
    bad.map(|(label, wrong)| FieldError::invalid_str(at, label, wrong.join(",")))
        .into_iter()
        .collect()
}

fn validate_hints(at: &str, endpoint: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let Some(hints) = value::at(endpoint, "hints") else {
        return errors;
    };
    for (list, judge) in [
        ("forZones", names::label_value as fn(&str) -> Vec<String>),
        ("forNodes", names::subdomain),
    ] {
        let count = value::items(hints, list).len();
        if count > MAX_HINTS {
            errors.push(FieldError::too_many(child(at, list), count, MAX_HINTS));
            return errors;
        }
        let mut seen = std::collections::BTreeSet::new();
        for (at, hint) in each(hints, at, list) {
            let name = value::text(hint, "name");
            let path = child(&at, "name");
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(path.as_str(), &name.into()));
            }
            errors.extend(invalid_texts(&path, name, judge(name)));
        }
    }
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if old.is_none() && value::text(object, "addressType") == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let manager = value::map(object, "metadata.labels")
        .and_then(|labels| labels.get("endpointslice.kubernetes.io/managed-by"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let ours = [
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    ];
    if !ours.contains(&manager) {
        for (at, endpoint) in each(object, "", "endpoints") {
            for (at, address) in each(endpoint, &at, "addresses") {
                let address = address.as_str().unwrap_or_default();
                out.extend(names::ip_warnings(&at, address));
            }
        }
    }
    out
}

fn some(all: &[String]) -> String {
    match cells::first_three(all) {
        empty if empty.is_empty() => "<unset>".to_owned(),
        shown => shown,
    }
}

fn ports_cell(object: &Value) -> String {
    let all: Vec<String> = value::items(object, "ports")
        .iter()
        .map(|port| match value::integer(port, "port") {
            Some(number) => number.to_string(),
            None if value::has(port, "name") => value::text(port, "name").to_owned(),
            None => "*".to_owned(),
        })
        .collect();
    some(&all)
}

fn endpoints_cell(object: &Value) -> String {
    let all: Vec<String> = value::items(object, "endpoints")
        .iter()
        .flat_map(|endpoint| cells::strings(endpoint, "addresses"))
        .map(str::to_owned)
        .collect();
    some(&all)
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let slice = resource(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
        Arc::new(RULES),
    );
    vec![slice.build()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_fit_their_type() {
        let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["x", "::1"]}]});
        let texts: Vec<String> = validate(&slice, None)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "endpoints[0].addresses[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address",
                "endpoints[0].addresses[1]: Invalid value: \"::1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ]
        );
    }

    #[test]
    fn tables_show_three_of_each() {
        let slice = json!({"ports": [{"port": 80}, {"name": "a"}],
            "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]}]});
        assert_eq!(ports_cell(&slice), "80,a");
        assert_eq!(
            endpoints_cell(&slice),
            "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more..."
        );
        assert_eq!(endpoints_cell(&json!({})), "<unset>");
    }
}
