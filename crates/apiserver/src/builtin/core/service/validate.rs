//! What is wrong with a service, in the order in which the real server says it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::validate_ips::{cluster_ips, cluster_ips_update, families_update};
use super::{externally_accessible, is_headless, kind, needs_health_check};
use crate::builtin::checks::{self, PROTOCOLS, child, each, invalid_texts};
use crate::builtin::names;
use crate::field::{Fault, FieldError, FieldErrors};
use crate::value;

const BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";

pub(super) fn update(object: &Value, old: &Value) -> FieldErrors {
    let mut errors = cluster_ips_update(object, old);
    errors.extend(families_update(object, old));
    errors.extend(balancer_class(object, Some(old)));
    let port = "spec.healthCheckNodePort";
    if needs_health_check(old)
        && needs_health_check(object)
        && value::integer(object, port) != value::integer(old, port)
    {
        errors.push(FieldError::forbidden(port, checks::IMMUTABLE));
    }
    errors.extend(service(object, Some(old)));
    errors
}

pub(super) fn service(object: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = topology(object);
    let ports = value::items(object, "spec.ports");
    if ports.is_empty() && !is_headless(object) && kind(object) != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    errors.extend(by_type(object));
    let mut seen = BTreeSet::new();
    for (at, port) in each(object, "", "spec.ports") {
        errors.extend(service_port(&at, port, ports.len() > 1, &mut seen));
    }
    if let Some(selector) = value::at(object, "spec.selector") {
        errors.extend(crate::meta::validate_labels(selector, "spec.selector"));
    }
    errors.extend(affinity(object));
    errors.extend(cluster_ips(object, old));
    errors.extend(external_ips(object, old));
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    errors.extend(checks::one_of("spec.type", kind(object), &types));
    errors.extend(node_ports(object));
    errors.extend(duplicate_ports(object));
    errors.extend(source_ranges(object));
    if value::has(object, "spec.allocateLoadBalancerNodePorts") && kind(object) != "LoadBalancer" {
        let path = "spec.allocateLoadBalancerNodePorts";
        errors.push(FieldError::forbidden(path, BALANCER_ONLY));
    }
    errors.extend(balancer_class(object, None));
    errors.extend(traffic(object));
    errors
}

fn topology(object: &Value) -> FieldErrors {
    let annotation = |key: &str| {
        value::map(object, "metadata.annotations")
            .and_then(|a| a.get(key))
            .and_then(Value::as_str)
    };
    let hints = "service.kubernetes.io/topology-aware-hints";
    let mode = "service.kubernetes.io/topology-mode";
    match (annotation(hints), annotation(mode)) {
        (Some(a), Some(b)) if a != b => {
            let path = format!("metadata.annotations[{mode}]");
            let detail = format!("must match annotations[{hints}] when both are specified");
            vec![FieldError::invalid_str(path, b, detail)]
        }
        _ => Vec::new(),
    }
}

fn by_type(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    match kind(object) {
        balanced @ ("LoadBalancer" | "NodePort") if is_headless(object) => {
            let detail = format!("may not be set to 'None' for {balanced} services");
            errors.push(FieldError::invalid_str(
                "spec.clusterIPs[0]",
                "None",
                detail,
            ));
        }
        "ExternalName" => {
            let detail = "may not be set for ExternalName services";
            for list in ["spec.clusterIPs", "spec.ipFamilies"] {
                if !value::items(object, list).is_empty() {
                    errors.push(FieldError::forbidden(list, detail));
                }
            }
            if value::has(object, "spec.ipFamilyPolicy") {
                errors.push(FieldError::forbidden("spec.ipFamilyPolicy", detail));
            }
            let name = value::text(object, "spec.externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            let path = "spec.externalName";
            if name.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else {
                errors.extend(invalid_texts(path, name, names::subdomain(name)));
            }
        }
        _ => (),
    }
    errors
}

fn service_port<'a>(
    at: &str,
    port: &'a Value,
    named: bool,
    seen: &mut BTreeSet<&'a str>,
) -> FieldErrors {
    let mut errors = Vec::new();
    let name = value::text(port, "name");
    if named && name.is_empty() {
        errors.push(FieldError::required(child(at, "name"), ""));
    } else if !name.is_empty() {
        let path = child(at, "name");
        errors.extend(invalid_texts(&path, name, names::label(name)));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path, &name.into()));
        }
    }
    let number = value::integer(port, "port").unwrap_or_default();
    errors.extend(checks::port(&child(at, "port"), number));
    let protocol = value::text(port, "protocol");
    errors.extend(checks::one_of(&child(at, "protocol"), protocol, &PROTOCOLS));
    let target = value::at(port, "targetPort").unwrap_or(&Value::Null);
    errors.extend(checks::port_or_name(&child(at, "targetPort"), target));
    if value::has(port, "appProtocol") {
        let app = value::text(port, "appProtocol");
        let wrong = names::label_key(app);
        errors.extend(invalid_texts(&child(at, "appProtocol"), app, wrong));
    }
    errors
}

fn affinity(object: &Value) -> FieldErrors {
    let affinity = value::text(object, "spec.sessionAffinity");
    let mut errors = checks::one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
    if affinity == "ClientIP"
        && let Some(seconds) = value::integer(object, path)
        && !(1..=86400).contains(&seconds)
    {
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(path, &seconds.into(), detail));
    }
    errors
}

fn external_ips(object: &Value, old: Option<&Value>) -> FieldErrors {
    let known = old.map_or(&[][..], |o| value::items(o, "spec.externalIPs"));
    let mut errors = Vec::new();
    for (at, ip) in each(object, "", "spec.externalIPs") {
        let text = ip.as_str().unwrap_or_default();
        let wrong = if known.contains(ip) {
            Vec::new()
        } else {
            checks::ip(&at, text)
        };
        if wrong.is_empty() {
            errors.extend(checks::endpoint_ip(&at, text));
        } else {
            errors.extend(wrong);
        }
    }
    errors
}

fn node_ports(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let number = |port: &Value| value::integer(port, "nodePort").unwrap_or_default();
    if kind(object) == "ClusterIP" {
        for (at, port) in each(object, "", "spec.ports") {
            if number(port) != 0 {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.push(FieldError::forbidden(child(&at, "nodePort"), detail));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for (at, port) in each(object, "", "spec.ports") {
        let node = number(port);
        if node != 0 && !seen.insert((value::text(port, "protocol"), node)) {
            let path = child(&at, "nodePort");
            errors.push(FieldError::duplicate(path, &node.into()));
        }
    }
    errors
}

fn duplicate_ports(object: &Value) -> FieldErrors {
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for (at, port) in each(object, "", "spec.ports") {
        let number = value::integer(port, "port").unwrap_or_default();
        let protocol = value::text(port, "protocol");
        if !seen.insert((protocol, number)) {
            // Shown as the server's own struct, with only the two fields that clash.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\
                 \"NodePort\":0}}",
                crate::field::quote(protocol)
            );
            errors.push(FieldError {
                fault: Fault::Duplicate,
                path: at,
                shown,
                detail: String::new(),
            });
        }
    }
    errors
}

fn source_ranges(object: &Value) -> FieldErrors {
    let path = "spec.LoadBalancerSourceRanges";
    let ranges = value::items(object, "spec.loadBalancerSourceRanges");
    let mut errors = Vec::new();
    if ranges.is_empty() {
        return errors;
    }
    if kind(object) != "LoadBalancer" {
        errors.push(FieldError::forbidden(path, BALANCER_ONLY));
    }
    for (i, range) in ranges.iter().enumerate() {
        let text = range.as_str().unwrap_or_default().trim();
        errors.extend(checks::cidr(&format!("{path}[{i}]"), text));
    }
    errors
}

fn balancer_class(object: &Value, old: Option<&Value>) -> FieldErrors {
    let path = "spec.loadBalancerClass";
    let mut errors = Vec::new();
    let class = value::at(object, path).filter(|c| !c.is_null());
    let balanced = kind(object) == "LoadBalancer";
    if let Some(old) = old
        && balanced
        && kind(old) == "LoadBalancer"
        && class != value::at(old, path).filter(|c| !c.is_null())
    {
        let shown = class.unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(path, shown, "may not change once set"));
    }
    match class.and_then(Value::as_str) {
        Some(class) if balanced => {
            errors.extend(invalid_texts(path, class, names::label_key(class)));
        }
        Some(_) => errors.push(FieldError::forbidden(path, BALANCER_ONLY)),
        None => (),
    }
    errors
}

fn traffic(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let path = "spec.externalTrafficPolicy";
    let policy = value::text(object, path);
    if externally_accessible(object) {
        errors.extend(checks::one_of(path, policy, &["Cluster", "Local"]));
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid_str(path, policy, detail));
    }
    let path = "spec.healthCheckNodePort";
    let port = value::integer(object, path).unwrap_or_default();
    if !needs_health_check(object) {
        if port != 0 {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(path, &port.into(), detail));
        }
    } else if port == 0 {
        errors.push(FieldError::required(path, ""));
    } else {
        errors.extend(checks::port(path, port));
    }
    let path = "spec.internalTrafficPolicy";
    if value::has(object, path) {
        let policy = value::text(object, path);
        errors.extend(checks::optional_one_of(path, policy, &["Cluster", "Local"]));
    }
    let path = "spec.trafficDistribution";
    if value::has(object, path) {
        let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        let wanted = value::text(object, path);
        if !supported.contains(&wanted) {
            let wanted = wanted.into();
            errors.push(FieldError::not_supported_text(path, &wanted, &supported));
        }
    }
    errors
}

pub(super) fn status(object: &Value, old: &Value) -> FieldErrors {
    let path = "status.loadBalancer.ingress";
    if kind(object) != "LoadBalancer" && !value::items(object, path).is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden(path, detail)];
    }
    let known: Vec<&str> = value::items(old, path)
        .iter()
        .map(|i| value::text(i, "ip"))
        .collect();
    let mut errors = Vec::new();
    for (at, ingress) in each(object, "", path) {
        let ip = value::text(ingress, "ip");
        if !ip.is_empty() && !known.contains(&ip) {
            errors.extend(checks::ip(&child(&at, "ip"), ip));
        }
        let mode = child(&at, "ipMode");
        if value::has(ingress, "ipMode") {
            if ip.is_empty() {
                let detail = "may not be specified when `ip` is not set";
                errors.push(FieldError::forbidden(mode, detail));
            } else {
                let text = value::text(ingress, "ipMode");
                errors.extend(checks::optional_one_of(&mode, text, &["Proxy", "VIP"]));
            }
        } else if !ip.is_empty() {
            let detail = "must be specified when `ip` is set";
            errors.push(FieldError::required(mode, detail));
        }
        errors.extend(hostname(&at, ingress));
    }
    errors
}

/// The host name of a load balancer's ingress point at `at`.
pub(in crate::builtin) fn hostname(at: &str, ingress: &Value) -> FieldErrors {
    let host = value::text(ingress, "hostname");
    if host.is_empty() {
        return Vec::new();
    }
    let path = child(at, "hostname");
    let mut errors = invalid_texts(&path, host, names::subdomain(host));
    if checks::parse_ip(host).is_some() {
        let detail = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid_str(path, host, detail));
    }
    errors
}
