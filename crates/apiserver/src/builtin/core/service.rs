//! Services.
//!
//! Cluster IPs and node ports are shared by the cluster: [`allocate`] hands them out, and must be called before the
//! strategy prepares and judges a write, as in the real server.

pub mod allocate;
mod families;
mod validate;
mod validate_ips;

pub(in crate::builtin) use validate::hostname as validate_hostname;

use serde_json::{Value, json};

use crate::builtin::cells;
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::resource::{Context, Part};
use crate::value;

/// The rules of services.
pub const RULES: Rules = Rules {
    status: true,
    default,
    prepare_create: |object, _| value::put(object, "status", json!({"loadBalancer": {}})),
    prepare_update,
    validate: |object, _| validate::service(object, None),
    validate_update: |part, object, old, _| match part {
        Part::Status => validate::status(object, old),
        _ => validate::update(object, old),
    },
    warnings,
    selectable: &[
        ("spec.clusterIP", |o| {
            value::text(o, "spec.clusterIP").to_owned()
        }),
        ("spec.type", |o| value::text(o, "spec.type").to_owned()),
    ],
    name: names::service_name,
    create_on_update: true,
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        ("Age", "string", 0),
        ("Selector", "string", 1),
    ],
    cells,
    ..PLAIN
};

/// The type, as text.
pub(super) fn kind(service: &Value) -> &str {
    value::text(service, "spec.type")
}

/// `clusterIPs` is exactly `None`.
pub(super) fn is_headless(service: &Value) -> bool {
    match value::items(service, "spec.clusterIPs") {
        [only] => only == "None",
        _ => false,
    }
}

fn externally_accessible(service: &Value) -> bool {
    match kind(service) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !value::items(service, "spec.externalIPs").is_empty(),
        _ => false,
    }
}

/// A load balancer that keeps traffic local needs a port for health checks.
fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && value::text(service, "spec.externalTrafficPolicy") == "Local"
}

fn has_node_ports(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

fn default(object: &mut Value) {
    default_affinity(object);
    if kind(object).is_empty() {
        value::put(object, "spec.type", "ClusterIP");
    }
    for port in value::items_mut(object, "spec.ports") {
        if value::text(port, "protocol").is_empty() {
            value::put(port, "protocol", "TCP");
        }
        let target = value::at(port, "targetPort");
        let unset = target.is_none_or(|t| t.is_null() || *t == json!(0) || *t == json!(""));
        if unset {
            let number = value::at(port, "port").cloned().unwrap_or(json!(0));
            value::put(port, "targetPort", number);
        }
    }
    if externally_accessible(object) && value::text(object, "spec.externalTrafficPolicy").is_empty()
    {
        value::put(object, "spec.externalTrafficPolicy", "Cluster");
    }
    if matches!(kind(object), "NodePort" | "LoadBalancer" | "ClusterIP") {
        value::put_default(object, "spec.internalTrafficPolicy", "Cluster");
    }
    if kind(object) == "LoadBalancer" {
        value::put_default(object, "spec.allocateLoadBalancerNodePorts", true);
        for ingress in value::items_mut(object, "status.loadBalancer.ingress") {
            if !value::text(ingress, "ip").is_empty() {
                value::put_default(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn default_affinity(object: &mut Value) {
    if value::text(object, "spec.sessionAffinity").is_empty() {
        value::put(object, "spec.sessionAffinity", "None");
    }
    match value::text(object, "spec.sessionAffinity") {
        "None" => {
            value::take(object, "spec.sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            value::put_default(object, seconds, 10800);
        }
        _ => (),
    }
}

fn prepare_update(part: Part, object: &mut Value, old: &Value, _cx: &Context<'_>) {
    if part != Part::Status {
        drop_by_type(object, old);
    }
}

/// When the type changes, values that only made sense for the old type go, unless the client changed them too.
fn drop_by_type(object: &mut Value, old: &Value) {
    let same = |object: &Value, path: &str| value::at(object, path) == value::at(old, path);
    if kind(old) != "ExternalName" && kind(object) == "ExternalName" {
        if same(object, "spec.clusterIP") && same(object, "spec.clusterIPs") {
            value::take(object, "spec.clusterIP");
            value::take(object, "spec.clusterIPs");
        }
        for path in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if same(object, path) {
                value::take(object, path);
            }
        }
    }
    if has_node_ports(old) && !has_node_ports(object) {
        let (before, after) = (node_ports(old), node_ports(object));
        if after.iter().all(|port| before.contains(port)) {
            for port in value::items_mut(object, "spec.ports") {
                value::take(port, "nodePort");
            }
        }
    }
    let unbalanced = kind(old) == "LoadBalancer" && kind(object) != "LoadBalancer";
    let gone = [
        (
            needs_health_check(old) && !needs_health_check(object),
            "spec.healthCheckNodePort",
        ),
        (unbalanced, "spec.allocateLoadBalancerNodePorts"),
        (unbalanced, "spec.loadBalancerClass"),
        (
            externally_accessible(old) && !externally_accessible(object),
            "spec.externalTrafficPolicy",
        ),
    ];
    for (gone, path) in gone {
        if gone && same(object, path) {
            value::take(object, path);
        }
    }
    if kind(object) != "LoadBalancer" {
        value::put(object, "status.loadBalancer", json!({}));
    }
}

/// The node ports that a service names.
pub(super) fn node_ports(service: &Value) -> Vec<i64> {
    value::items(service, "spec.ports")
        .iter()
        .filter_map(|port| value::integer(port, "nodePort"))
        .filter(|number| *number != 0)
        .collect()
}

fn warnings(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |text: &str| out.push(text.to_owned());
    let hints = "service.kubernetes.io/topology-aware-hints";
    if value::map(object, "metadata.annotations").is_some_and(|a| a.contains_key(hints)) {
        say(&format!(
            "annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let external_ips = !value::items(object, "spec.externalIPs").is_empty();
    let external_name = kind(object) == "ExternalName";
    if is_headless(object) {
        if !value::text(object, "spec.loadBalancerIP").is_empty() {
            say("spec.loadBalancerIP is ignored for headless services");
        }
        if external_ips {
            say("spec.externalIPs is ignored for headless services");
        }
        if value::text(object, "spec.sessionAffinity") != "None" {
            say("spec.SessionAffinity is ignored for headless services");
        }
    } else if external_ips && !external_name {
        say("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    if external_name && external_ips {
        say("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if !external_name && !value::text(object, "spec.externalName").is_empty() {
        say("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if value::text(object, "spec.trafficDistribution") == "PreferClose" {
        say("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
    out
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let internal = value::items(object, "spec.clusterIPs").first();
    let ports: Vec<String> = value::items(object, "spec.ports")
        .iter()
        .map(port_cell)
        .collect();
    let ports = if ports.is_empty() {
        "<none>".to_owned()
    } else {
        ports.join(",")
    };
    vec![
        cells::name(object),
        kind(object).into(),
        internal.and_then(Value::as_str).unwrap_or("<none>").into(),
        external_cell(object).into(),
        ports.into(),
        cells::age(object, cx),
        cells::labels(object, "spec.selector").into(),
    ]
}

fn port_cell(port: &Value) -> String {
    let number = |path| value::integer(port, path).unwrap_or_default();
    let protocol = value::text(port, "protocol");
    match number("nodePort") {
        0 => format!("{}/{protocol}", number("port")),
        node => format!("{}:{node}/{protocol}", number("port")),
    }
}

fn external_cell(object: &Value) -> String {
    let external: Vec<&str> = cells::strings(object, "spec.externalIPs").collect();
    match kind(object) {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let balancer = cells::load_balancer(object);
            let all: Vec<&str> = Some(balancer.as_str())
                .filter(|b| !b.is_empty())
                .into_iter()
                .chain(external)
                .collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => value::text(object, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}
