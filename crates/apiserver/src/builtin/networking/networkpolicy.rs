//! Network policies.

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::checks::{self, Network, child, each, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules, spec_changed};
use crate::field::{FieldError, FieldErrors};
use crate::value;

pub(super) const RULES: Rules = Rules {
    default,
    validate: |object, _| validate(object),
    validate_update: |_, object, _, _| validate(object),
    warnings: |object, _| warnings(object),
    generation: Some(spec_changed),
    columns: &[
        ("Name", "string", 0),
        ("Pod-Selector", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            cells::selector(object, "spec.podSelector").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

/// The two directions: the list of rules and, in each, the list of peers.
const DIRECTIONS: [(&str, &str); 2] = [("spec.ingress", "from"), ("spec.egress", "to")];

fn default(object: &mut Value) {
    for (rules, _) in DIRECTIONS {
        for rule in value::items_mut(object, rules) {
            for port in value::items_mut(rule, "ports") {
                value::put_default(port, "protocol", "TCP");
            }
        }
    }
    if value::items(object, "spec.policyTypes").is_empty() {
        let types = if value::items(object, "spec.egress").is_empty() {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        value::put(object, "spec.policyTypes", types);
    }
}

fn validate(object: &Value) -> FieldErrors {
    let selector = value::at(object, "spec.podSelector");
    let mut errors = checks::label_selector("spec.podSelector", selector);
    for (rules, peers) in DIRECTIONS {
        for (at, rule) in each(object, "", rules) {
            for (at, port) in each(rule, &at, "ports") {
                errors.extend(validate_port(&at, port));
            }
            for (at, peer) in each(rule, &at, peers) {
                errors.extend(validate_peer(&at, peer));
            }
        }
    }
    let types = value::items(object, "spec.policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        let shown = types.to_vec().into();
        errors.push(FieldError::invalid("spec.policyTypes", &shown, detail));
        return errors;
    }
    for (at, kind) in each(object, "", "spec.policyTypes") {
        let supported = ["Ingress", "Egress"];
        if !supported.contains(&kind.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(at, kind, &supported));
        }
    }
    errors
}

fn validate_port(at: &str, port: &Value) -> FieldErrors {
    let protocol = value::text(port, "protocol");
    let protocols = ["TCP", "UDP", "SCTP"];
    let mut errors = checks::optional_one_of(&child(at, "protocol"), protocol, &protocols);
    let path = child(at, "endPort");
    let end = value::integer(port, "endPort");
    let refuse_end =
        |number: i64, detail: &str| FieldError::invalid(path.as_str(), &number.into(), detail);
    match value::at(port, "port") {
        None | Some(Value::Null) => {
            errors.extend(
                end.map(|end| refuse_end(end, "may not be specified when `port` is not specified")),
            );
        }
        Some(Value::String(name)) => {
            errors.extend(
                end.map(|end| refuse_end(end, "may not be specified when `port` is non-numeric")),
            );
            let path = child(at, "port");
            errors.extend(invalid_texts(&path, name, names::port_name(name)));
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or_default();
            errors.extend(checks::port(&child(at, "port"), number));
            if let Some(end) = end {
                if end < number {
                    errors.push(refuse_end(
                        number,
                        "must be greater than or equal to `port`",
                    ));
                }
                errors.extend(checks::port(&path, end));
            }
        }
    }
    errors
}

fn validate_peer(at: &str, peer: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let mut kinds = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if value::has(peer, field) {
            kinds += 1;
            let selector = value::at(peer, field);
            errors.extend(checks::label_selector(&child(at, field), selector));
        }
    }
    let block = value::at(peer, "ipBlock").filter(|b| !b.is_null());
    if let Some(block) = block {
        kinds += 1;
        errors.extend(validate_block(&child(at, "ipBlock"), block));
    }
    if kinds == 0 {
        errors.push(FieldError::required(at, "must specify a peer"));
    } else if kinds > 1 && block.is_some() {
        let detail = "may not specify both ipBlock and another peer";
        errors.push(FieldError::forbidden(at, detail));
    }
    errors
}

fn validate_block(at: &str, block: &Value) -> FieldErrors {
    let path = child(at, "cidr");
    let cidr = value::text(block, "cidr");
    if cidr.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = checks::cidr(&path, cidr);
    let Some(network) = Network::parse(cidr) else {
        return errors;
    };
    for (at, except) in each(block, at, "except") {
        let text = except.as_str().unwrap_or_default();
        errors.extend(checks::cidr(&at, text));
        if Network::parse(text).is_some_and(|except| !network.strictly_contains(except)) {
            let detail = "must be a strict subset of `cidr`";
            errors.push(FieldError::invalid_str(at, text, detail));
        }
    }
    errors
}

fn warnings(object: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for (rules, peers) in DIRECTIONS {
        for (at, rule) in each(object, "", rules) {
            for (at, peer) in each(rule, &at, peers) {
                let path = child(&at, "ipBlock.cidr");
                let cidr = value::text(peer, "ipBlock.cidr");
                out.extend(names::cidr_warnings(&path, cidr));
                for (at, except) in each(peer, &at, "ipBlock.except") {
                    let except = except.as_str().unwrap_or_default();
                    out.extend(names::cidr_warnings(&at, except));
                }
            }
        }
    }
    out
}
