//! Handing out cluster IPs and node ports.
//!
//! The cluster has one IPv4 range, `10.0.0.0/16`, and node ports 30000 to 32767. What is in use is read off the
//! services themselves ([`Used::add`]), so that there is nothing to leak. Where the real server draws at random,
//! this one starts at a number that the caller draws and takes the next free one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::families::init_families;
use super::{has_node_ports, kind, needs_health_check};
use crate::builtin::checks::parse_ip;
use crate::field::{FieldError, FieldErrors};
use crate::value;

/// The first address of the range of cluster IPs.
const NETWORK: u32 = u32::from_be_bytes([10, 0, 0, 0]);
/// How many addresses the range has.
const ADDRESSES: u32 = 1 << 16;
/// Addresses below this offset are left to services that name theirs, as long as others are free.
const STATIC_BAND: u32 = 256;
/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;

const IPS: &str = "spec.clusterIPs";

/// What services already have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// Cluster IPs.
    pub cluster_ips: BTreeSet<Ipv4Addr>,
    /// Node ports, with those for health checks.
    pub node_ports: BTreeSet<i64>,
}

impl Used {
    /// Counts what `service` has. On update leave out the service itself.
    pub fn add(&mut self, service: &Value) {
        for ip in value::items(service, IPS) {
            self.cluster_ips
                .extend(ip.as_str().and_then(|t| t.parse::<Ipv4Addr>().ok()));
        }
        self.node_ports.extend(super::node_ports(service));
        self.node_ports
            .extend(value::integer(service, "spec.healthCheckNodePort").filter(|p| *p != 0));
    }
}

/// A cluster IP that nobody has; `start` is any number.
pub fn allocate_cluster_ip(used: &BTreeSet<Ipv4Addr>, start: u64) -> Option<Ipv4Addr> {
    let dynamic = u64::from(ADDRESSES - 1 - STATIC_BAND);
    let offset = u32::try_from(start % dynamic).unwrap_or_default();
    let upper = (0..ADDRESSES - 1 - STATIC_BAND)
        .map(|i| STATIC_BAND + (offset + i) % (ADDRESSES - 1 - STATIC_BAND));
    let lower = 1..STATIC_BAND;
    upper
        .chain(lower)
        .map(|offset| Ipv4Addr::from(NETWORK + offset))
        .find(|ip| !used.contains(ip))
}

/// A node port that nobody has; `start` is any number.
pub fn allocate_node_port(used: &BTreeSet<i64>, start: u64) -> Option<i64> {
    let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let offset = i64::try_from(start % u64::try_from(count).ok()?).ok()?;
    (0..count)
        .map(|i| NODE_PORTS.start() + (offset + i) % count)
        .find(|port| !used.contains(port))
}

/// Before create: fills in families, cluster IPs and node ports, or says why it cannot. `start` is any number, the
/// same for the same request.
pub fn on_create(service: &mut Value, used: &Used, start: u64) -> FieldErrors {
    let single = value::text(service, "spec.clusterIP").to_owned();
    if !single.is_empty() && value::items(service, IPS).is_empty() {
        value::put(service, IPS, json!([single]));
    }
    let errors = init_families(service, None);
    if !errors.is_empty() {
        return errors;
    }
    if let Err(error) = take_cluster_ips(service, used, start) {
        return vec![error];
    }
    let mut ports = used.node_ports.clone();
    let mut errors = Vec::new();
    if has_node_ports(service)
        && let Err(error) = take_node_ports(service, &mut ports, &[], start)
    {
        errors.push(error);
    }
    if errors.is_empty() {
        errors.extend(take_health_port(service, &mut ports, start).err());
    }
    errors
}

/// Before update: puts back what the client left out, and fills in what a new type needs. `used` is what the other
/// services have.
pub fn on_update(service: &mut Value, old: &Value, used: &Used, start: u64) -> FieldErrors {
    keep_allocated(service, old);
    normalize(service, old);
    drop_dependent(service, old);
    let errors = init_families(service, Some(old));
    if !errors.is_empty() {
        return errors;
    }
    if kind(old) == "ExternalName"
        && kind(service) != "ExternalName"
        && let Err(error) = take_cluster_ips(service, used, start)
    {
        return vec![error];
    }
    let mut ports = used.node_ports.clone();
    let mut errors = Vec::new();
    if has_node_ports(service)
        && let Err(error) = take_node_ports(service, &mut ports, &super::node_ports(old), start)
    {
        errors.push(error);
    }
    if errors.is_empty() && !needs_health_check(old) {
        errors.extend(take_health_port(service, &mut ports, start).err());
    }
    errors
}

/// What the server handed out stays when a client leaves it out.
fn keep_allocated(service: &mut Value, old: &Value) {
    if kind(old) != "ExternalName" && kind(service) != "ExternalName" {
        if value::text(service, "spec.clusterIP").is_empty() {
            value::copy(service, old, "spec.clusterIP");
        }
        if value::items(service, IPS).is_empty() {
            value::copy(service, old, IPS);
        }
    }
    let wants = |s: &Value| match kind(s) {
        "NodePort" => true,
        "LoadBalancer" => {
            value::at(s, "spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
        }
        _ => false,
    };
    if wants(old) && wants(service) {
        let named = super::node_ports(service);
        for port in value::items_mut(service, "spec.ports") {
            if value::integer(port, "nodePort").unwrap_or_default() != 0 {
                continue;
            }
            let name = value::text(port, "name");
            let before = value::items(old, "spec.ports")
                .iter()
                .filter(|p| value::text(p, "name") == name)
                .filter_map(|p| value::integer(p, "nodePort"))
                .next_back();
            if let Some(number) = before.filter(|n| *n != 0 && !named.contains(n)) {
                value::put(port, "nodePort", number);
            }
        }
    }
    if needs_health_check(old)
        && needs_health_check(service)
        && value::integer(service, "spec.healthCheckNodePort").unwrap_or_default() == 0
    {
        value::copy(service, old, "spec.healthCheckNodePort");
    }
}

/// A client that only changes the type does not have to know what goes with the old one.
fn drop_dependent(service: &mut Value, old: &Value) {
    let field = "spec.internalTrafficPolicy";
    if kind(service) == "ExternalName"
        && kind(old) != "ExternalName"
        && value::at(service, field) == value::at(old, field)
    {
        value::take(service, field);
    }
}

/// A client that knows only `clusterIP` may change it and leave `clusterIPs` as it was.
fn normalize(service: &mut Value, old: &Value) {
    let (new, before) = (
        value::text(service, "spec.clusterIP").to_owned(),
        value::text(old, "spec.clusterIP"),
    );
    if new == before || value::at(service, IPS) != value::at(old, IPS) {
        return;
    }
    if new.is_empty() {
        value::take(service, IPS);
    } else {
        value::put(service, IPS, json!([new]));
    }
}

fn take_cluster_ips(service: &mut Value, used: &Used, start: u64) -> Result<(), FieldError> {
    let first = value::items(service, IPS).first();
    if kind(service) == "ExternalName" || first.is_some_and(|ip| ip == "None") {
        return Ok(());
    }
    let asked = first.and_then(Value::as_str).unwrap_or_default().to_owned();
    let shown = value::at(service, IPS).cloned().unwrap_or(json!([""]));
    let failed = |why: String| FieldError::invalid(IPS, &shown, why);
    let ip = if asked.is_empty() {
        allocate_cluster_ip(&used.cluster_ips, start)
            .ok_or_else(|| failed("failed to allocate IP: range is full".to_owned()))?
    } else {
        let Some(std::net::IpAddr::V4(ip)) = parse_ip(&asked) else {
            return Ok(());
        };
        // The first and the last address of the range are nobody's.
        let offset = u32::from(ip).wrapping_sub(NETWORK);
        let why = if offset == 0 || offset >= ADDRESSES - 1 {
            Some("the provided network does not match the current range")
        } else if used.cluster_ips.contains(&ip) {
            Some("provided IP is already allocated")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(failed(format!("failed to allocate IP {asked}: {why}")));
        }
        ip
    };
    value::put(service, "spec.clusterIP", ip.to_string());
    value::put(service, IPS, json!([ip.to_string()]));
    Ok(())
}

fn reserve(ports: &mut BTreeSet<i64>, number: i64) -> Result<(), String> {
    if !NODE_PORTS.contains(&number) {
        return Err(
            "provided port is not in the valid range. The range of valid ports is 30000-32767"
                .to_owned(),
        );
    }
    if ports.insert(number) {
        Ok(())
    } else {
        Err("provided port is already allocated".to_owned())
    }
}

/// `mine` are the ports that the service has already. Ports with the same number (TCP and UDP) share a node port.
fn take_node_ports(
    service: &mut Value,
    used: &mut BTreeSet<i64>,
    mine: &[i64],
    start: u64,
) -> Result<(), FieldError> {
    let dynamic =
        kind(service) == "NodePort" || value::flag(service, "spec.allocateLoadBalancerNodePorts");
    let asked = value::items(service, "spec.ports").to_vec();
    let number_of = |port: &Value| value::integer(port, "nodePort").unwrap_or_default();
    let mut taken: std::collections::BTreeMap<i64, i64> = std::collections::BTreeMap::new();
    let fresh = mine.is_empty();
    used.extend(mine);
    for (i, port) in value::items_mut(service, "spec.ports")
        .iter_mut()
        .enumerate()
    {
        let number = value::integer(port, "port").unwrap_or_default();
        let mut node = number_of(port);
        if node == 0 && fresh {
            let shared = asked
                .iter()
                .filter(|p| value::integer(p, "port") == Some(number))
                .map(number_of)
                .find(|n| *n != 0);
            node = taken.get(&number).copied().or(shared).unwrap_or_default();
        }
        if node == 0 {
            if !dynamic {
                continue;
            }
            node = allocate_node_port(used, start).ok_or_else(|| {
                let path = format!("spec.ports[{i}].nodePort");
                FieldError::invalid(path, &0.into(), "range is full")
            })?;
            used.insert(node);
        } else if !mine.contains(&node) && !taken.values().any(|t| *t == node) {
            reserve(used, node).map_err(|why| {
                let path = format!("spec.ports[{i}].nodePort");
                FieldError::invalid(path, &node.into(), why)
            })?;
        }
        taken.insert(number, node);
        value::put(port, "nodePort", node);
    }
    Ok(())
}

fn take_health_port(
    service: &mut Value,
    used: &mut BTreeSet<i64>,
    start: u64,
) -> Result<(), FieldError> {
    if !needs_health_check(service) {
        return Ok(());
    }
    let path = "spec.healthCheckNodePort";
    let asked = value::integer(service, path).unwrap_or_default();
    if asked != 0 {
        return reserve(used, asked).map_err(|why| FieldError::invalid(path, &asked.into(), why));
    }
    if let Some(port) = allocate_node_port(used, start) {
        used.insert(port);
        value::put(service, path, port);
    }
    Ok(())
}
