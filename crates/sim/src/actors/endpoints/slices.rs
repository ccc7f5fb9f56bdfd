//! The slices of a Service: at most a hundred pods each, and pods stay in the slice that they are in.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use kube::api::ObjectMeta;
use serde_json::json;

use super::super::key::{Key, Kind};
use super::super::world::World;
use super::super::write::{Write, as_json, difference};
use super::super::{owner, pod};
use super::{addresses, families, hostname, labels, ports, reference};

/// The Service that a slice is of.
pub(crate) const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const ZONE: &str = "topology.kubernetes.io/zone";
/// How many endpoints a slice has at most.
const MAX_ENDPOINTS: usize = 100;

/// What a slice is to say.
struct Content {
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// The Service that a slice is of, if we keep it.
pub(crate) fn service(slice: &ObjectMeta) -> Option<Key> {
    let labels = slice.labels.as_ref()?;
    let is_ours = labels.get(MANAGED_BY).is_some_and(|by| by == CONTROLLER);
    let namespace = slice.namespace.as_deref().unwrap_or_default();
    let name = labels.get(SERVICE).filter(|_| is_ours)?;
    Some(Key::new(namespace, name))
}

/// What is to be written about the slices of a Service.
pub(super) fn reconcile(
    world: &World,
    of: &Service,
    spec: &ServiceSpec,
    pods: &[&Arc<Pod>],
) -> Vec<Write> {
    let key = Key::of(&of.metadata);
    let known: Vec<&Arc<EndpointSlice>> = world
        .slices
        .within(&key.namespace)
        .map(|(_, slice)| slice)
        .filter(|slice| service(&slice.metadata).as_ref() == Some(&key))
        .filter(|slice| slice.metadata.deletion_timestamp.is_none())
        .collect();
    let mut labels = labels(of, spec);
    labels.insert(SERVICE.to_owned(), key.name.clone());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    let families = families(spec);
    let mut writes = Vec::new();
    for is_v6 in [false, true] {
        let kind = if is_v6 { "IPv6" } else { "IPv4" };
        let known = known.iter().copied().filter(|s| s.address_type == kind);
        let known: Vec<&Arc<EndpointSlice>> = known.collect();
        if !families.contains(&is_v6) {
            writes.extend(known.into_iter().map(|slice| delete(slice)));
            continue;
        }
        let wanted = wanted(world, of, spec, pods, is_v6);
        let (kept, made, mut unused) = assign(wanted, &known);
        for (slice, content) in kept {
            writes.extend(update(slice, &labels, &content));
        }
        // One that would go is used again.
        unused.reverse();
        for content in made {
            writes.extend(match unused.pop() {
                Some(slice) => update(slice, &labels, &content),
                None => Some(create(of, &labels, kind, &content)),
            });
        }
        writes.extend(unused.into_iter().map(|slice| delete(slice)));
    }
    writes
}

/// What all slices of a family are to say together, by ports.
fn wanted(
    world: &World,
    of: &Service,
    spec: &ServiceSpec,
    pods: &[&Arc<Pod>],
    is_v6: bool,
) -> Vec<Content> {
    let mut by_ports: BTreeMap<Vec<super::Port>, Content> = BTreeMap::new();
    for pod in pods {
        let addresses = addresses(pod, is_v6);
        if addresses.is_empty() {
            continue;
        }
        let ports = ports(spec, pod);
        let shown = ports.iter().map(|port| EndpointPort {
            name: Some(port.name.clone()),
            port: Some(port.number),
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        });
        let shown = shown.collect();
        let content = by_ports.entry(ports).or_insert_with(|| Content {
            ports: shown,
            endpoints: Vec::new(),
        });
        content
            .endpoints
            .push(endpoint(world, of, spec, pod, addresses));
    }
    by_ports.into_values().collect()
}

fn endpoint(
    world: &World,
    of: &Service,
    spec: &ServiceSpec,
    pod: &Pod,
    addresses: Vec<String>,
) -> Endpoint {
    let (serving, terminating) = (pod::is_ready(pod), pod::is_terminating(pod));
    let takes_all = spec.publish_not_ready_addresses == Some(true);
    let node = pod::node(pod);
    let zone = node
        .and_then(|node| world.nodes.get(&Key::new("", node)))
        .and_then(|node| node.metadata.labels.as_ref()?.get(ZONE).cloned());
    Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(takes_all || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(of, pod),
        node_name: node.map(str::to_owned),
        target_ref: Some(reference(pod)),
        zone,
        ..Endpoint::default()
    }
}

type Slices<'a> = Vec<&'a Arc<EndpointSlice>>;
/// Slices that stay, with what they are to say.
type Kept<'a> = Vec<(&'a Arc<EndpointSlice>, Content)>;

/// Which slice says what: those that stay with what they are to say, what new ones are to say, and those without use.
fn assign<'a>(
    wanted: Vec<Content>,
    known: &[&'a Arc<EndpointSlice>],
) -> (Kept<'a>, Vec<Content>, Slices<'a>) {
    let (mut kept, mut made) = (Vec::new(), Vec::new());
    let mut unused: Slices<'a> = known.to_vec();
    for Content { ports, endpoints } in wanted {
        let mut left: BTreeMap<String, Endpoint> =
            endpoints.into_iter().map(|one| (uid(&one), one)).collect();
        let is_like =
            |slice: &&Arc<EndpointSlice>| slice.ports.as_deref().unwrap_or_default() == ports;
        let (like, other): (Slices<'a>, Slices<'a>) = unused.into_iter().partition(is_like);
        unused = other;
        let mut filled: Vec<_> = like
            .into_iter()
            .map(|slice| {
                let stay = slice.endpoints.iter();
                let stay = stay.filter_map(|one| left.remove(&uid(one))).collect();
                (slice, stay)
            })
            .collect::<Vec<(_, Vec<Endpoint>)>>();
        // By name, as they come from here on.
        let mut new: Vec<Endpoint> = left.into_values().collect();
        new.sort_by(|a, b| name(a).cmp(&name(b)));
        let mut new = new.into_iter();
        for (slice, mut endpoints) in filled.drain(..) {
            let room = MAX_ENDPOINTS.saturating_sub(endpoints.len());
            endpoints.extend(new.by_ref().take(room));
            if endpoints.is_empty() {
                unused.push(slice);
                continue;
            }
            let ports = ports.clone();
            kept.push((slice, Content { ports, endpoints }));
        }
        let new: Vec<Endpoint> = new.collect();
        made.extend(new.chunks(MAX_ENDPOINTS).map(|chunk| Content {
            ports: ports.clone(),
            endpoints: chunk.to_vec(),
        }));
    }
    if kept.is_empty() && made.is_empty() {
        // Whoever looks for slices finds one that says: nobody.
        made.push(Content {
            ports: Vec::new(),
            endpoints: Vec::new(),
        });
    }
    (kept, made, unused)
}

fn uid(endpoint: &Endpoint) -> String {
    let reference = endpoint.target_ref.as_ref();
    let uid = reference.and_then(|reference| reference.uid.clone());
    uid.unwrap_or_default()
}

fn name(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.name.as_deref()
}

fn create(of: &Service, labels: &BTreeMap<String, String>, kind: &str, content: &Content) -> Write {
    let meta = &of.metadata;
    let slice = EndpointSlice {
        address_type: kind.to_owned(),
        endpoints: content.endpoints.clone(),
        metadata: ObjectMeta {
            generate_name: meta.name.as_deref().map(pod::prefix),
            namespace: meta.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: Some(vec![owner::reference("v1", "Service", meta)]),
            ..ObjectMeta::default()
        },
        ports: Some(content.ports.clone()),
    };
    Write::Create {
        kind: Kind::Slice,
        body: as_json(&slice),
    }
}

fn delete(slice: &EndpointSlice) -> Write {
    Write::Delete {
        kind: Kind::Slice,
        key: Key::of(&slice.metadata),
        uid: slice.metadata.uid.clone().unwrap_or_default(),
        grace: None,
    }
}

fn update(
    slice: &EndpointSlice,
    labels: &BTreeMap<String, String>,
    content: &Content,
) -> Option<Write> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let is_same = slice.metadata.labels.as_ref() == Some(labels)
        && slice.endpoints == content.endpoints
        && ports == content.ports;
    if is_same {
        return None;
    }
    let before = as_json(&slice.metadata.labels);
    let labels = difference(&before, &as_json(labels)).unwrap_or_else(|| json!({}));
    let version = &slice.metadata.resource_version;
    Some(Write::Patch {
        kind: Kind::Slice,
        key: Key::of(&slice.metadata),
        subresource: "",
        body: json!({
            "metadata": {"resourceVersion": version, "labels": labels},
            "endpoints": content.endpoints, "ports": content.ports,
        }),
    })
}
