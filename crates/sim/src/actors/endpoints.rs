//! The endpoints and endpointslice controllers: which pods stand behind a Service, and on which ports.
//!
//! They promise one `Endpoints` and at least one `EndpointSlice` for each Service with a selector, kept up to date with
//! its pods. Not done: the time of the last trigger as an annotation, hints of topology, the cut at 1,000 addresses, and
//! slices of what others write into `Endpoints`.

mod slices;

pub(crate) use slices::service;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod,
    Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::key::{Key, Kind};
use super::pod;
use super::world::World;
use super::write::{Step, Write, as_json, difference};

/// On what belongs to a Service without an address of its own.
const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

/// What the controllers do about one Service.
pub(crate) fn reconcile(world: &World, key: &Key) -> Step {
    let mut step = Step::default();
    let known = world.endpoints.get(key);
    let Some(service) = world.services.get(key) else {
        // Slices go with their owner; Endpoints have none.
        step.writes.extend(known.map(|endpoints| Write::Delete {
            kind: Kind::Endpoints,
            key: key.clone(),
            uid: endpoints.metadata.uid.clone().unwrap_or_default(),
            grace: None,
        }));
        return step;
    };
    let Some(spec) = service.spec.as_ref().filter(|spec| is_served(spec)) else {
        return step;
    };
    if service.metadata.deletion_timestamp.is_some() {
        return step;
    }
    let pods: Vec<&Arc<Pod>> = world
        .pods
        .within(&key.namespace)
        .map(|(_, pod)| pod)
        .filter(|pod| is_selected(spec, pod.metadata.labels.as_ref()) && !pod::is_finished(pod))
        .collect();
    step.writes.extend(endpoints(service, spec, &pods, known));
    step.writes
        .extend(slices::reconcile(world, service, spec, &pods));
    step
}

/// Whether a Service has pods at all: not one that is a name for something else, or whose endpoints somebody writes.
fn is_served(spec: &ServiceSpec) -> bool {
    spec.selector.as_ref().is_some_and(|all| !all.is_empty())
        && spec.type_.as_deref() != Some("ExternalName")
}

/// Whether a Service is about a pod with these labels.
pub(crate) fn is_selected(spec: &ServiceSpec, labels: Option<&BTreeMap<String, String>>) -> bool {
    is_served(spec)
        && spec
            .selector
            .iter()
            .flatten()
            .all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
}

fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ip.as_deref(), None | Some("" | "None"))
}

/// The labels of a Service, as what belongs to it carries them.
fn labels(service: &Service, spec: &ServiceSpec) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if is_headless(spec) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

/// A port of a Service as a pod has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    name: String,
    number: i32,
    protocol: String,
    app_protocol: Option<String>,
}

/// The ports of a Service that a pod has: those that are numbers, and those whose names it knows.
fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<Port> {
    let all = spec.ports.iter().flatten();
    all.filter_map(|port| {
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        Some(Port {
            name: port.name.clone().unwrap_or_default(),
            number: number(port, &protocol, pod)?,
            protocol,
            app_protocol: port.app_protocol.clone(),
        })
    })
    .collect()
}

fn number(port: &ServicePort, protocol: &str, pod: &Pod) -> Option<i32> {
    let name = match &port.target_port {
        None | Some(IntOrString::Int(0)) => return Some(port.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let stays = |c: &&Container| c.restart_policy.as_deref() == Some("Always");
    let helpers = spec.init_containers.iter().flatten().filter(stays);
    let declared = spec.containers.iter().chain(helpers);
    let mut declared = declared.flat_map(|container| container.ports.iter().flatten());
    let found = declared.find(|declared| {
        let of = declared.protocol.as_deref().unwrap_or("TCP");
        declared.name.as_ref() == Some(name) && of == protocol
    });
    found.map(|declared| declared.container_port)
}

/// Whether a pod has to be reached by its Service's name and its own.
fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.as_ref().filter(|name| !name.is_empty())?;
    (spec.subdomain == service.metadata.name).then(|| hostname.clone())
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The addresses of a pod in a family.
fn addresses(pod: &Pod, is_v6: bool) -> Vec<String> {
    let status = pod.status.as_ref();
    let all = status.and_then(|status| status.pod_ips.as_ref());
    let all = all.into_iter().flatten().map(|address| address.ip.clone());
    all.filter(|ip| ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6() == is_v6))
        .collect()
}

/// The families of a Service, the most important first: whether each is IPv6.
fn families(spec: &ServiceSpec) -> Vec<bool> {
    match spec.ip_families.as_deref() {
        None | Some([]) => vec![false],
        Some(families) => families.iter().map(|family| family == "IPv6").collect(),
    }
}

/// What is to be written about the one `Endpoints` of a Service.
fn endpoints(
    service: &Service,
    spec: &ServiceSpec,
    pods: &[&Arc<Pod>],
    known: Option<&Arc<Endpoints>>,
) -> Option<Write> {
    let mut labels = labels(service, spec);
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    let subsets = subsets(service, spec, pods);
    let wanted = json!({
        "metadata": {"labels": labels},
        "subsets": if subsets.is_empty() { Value::Null } else { as_json(&subsets) },
    });
    let Some(known) = known else {
        let mut body = wanted;
        let meta = &service.metadata;
        merge(&mut body, &json!({"apiVersion": "v1", "kind": "Endpoints"}));
        if let Some(own) = body.get_mut("metadata") {
            merge(
                own,
                &json!({"name": meta.name, "namespace": meta.namespace}),
            );
        }
        let kind = Kind::Endpoints;
        return Some(Write::Create { kind, body });
    };
    let is = json!({
        "metadata": {"labels": known.metadata.labels},
        "subsets": known.subsets.as_ref().map_or(Value::Null, as_json),
    });
    let mut body = difference(&is, &wanted)?;
    merge(&mut body, &json!({"metadata": {}}));
    if let Some(meta) = body.get_mut("metadata") {
        let version = &known.metadata.resource_version;
        merge(meta, &json!({"resourceVersion": version}));
    }
    Some(Write::Patch {
        kind: Kind::Endpoints,
        key: Key::of(&service.metadata),
        subresource: "",
        body,
    })
}

/// Adds fields that are not there yet.
fn merge(object: &mut Value, more: &Value) {
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        for (name, value) in more {
            object.entry(name).or_insert_with(|| value.clone());
        }
    }
}

/// The pods by the ports that they have in common.
fn subsets(service: &Service, spec: &ServiceSpec, pods: &[&Arc<Pod>]) -> Vec<EndpointSubset> {
    let is_v6 = families(spec).first().copied().unwrap_or_default();
    let takes_all = spec.publish_not_ready_addresses == Some(true);
    let mut by_ports: BTreeMap<Vec<Port>, EndpointSubset> = BTreeMap::new();
    for pod in pods {
        let Some(ip) = addresses(pod, is_v6).into_iter().next() else {
            continue;
        };
        let ports = ports(spec, pod);
        let may_be_without = is_headless(spec) && spec.ports.iter().flatten().count() == 0;
        if (pod::is_terminating(pod) && !takes_all) || (ports.is_empty() && !may_be_without) {
            continue;
        }
        let shown = ports.iter().map(|port| EndpointPort {
            name: Some(port.name.clone()).filter(|name| !name.is_empty()),
            port: port.number,
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        });
        let shown: Vec<EndpointPort> = shown.collect();
        let subset = by_ports.entry(ports).or_default();
        subset.ports = Some(shown).filter(|ports| !ports.is_empty());
        let list = if takes_all || pod::is_ready(pod) {
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        list.get_or_insert_default().push(EndpointAddress {
            hostname: hostname(service, pod),
            ip,
            node_name: pod::node(pod).map(str::to_owned),
            target_ref: Some(reference(pod)),
        });
    }
    let mut subsets: Vec<EndpointSubset> = by_ports.into_values().collect();
    for subset in &mut subsets {
        for list in [&mut subset.addresses, &mut subset.not_ready_addresses] {
            for all in list.iter_mut() {
                all.sort_by(|a, b| a.ip.cmp(&b.ip));
            }
        }
    }
    subsets
}
