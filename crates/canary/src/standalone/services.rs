//! The three Services: the apex that clients know, and one for each side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_api::canary::{CustomMetadata, IntOrText, Service};
use slipway_api::flagger::{FLUX_DRIFT, FLUX_RECONCILE};
use slipway_kernel::fields::{integer, list, strings, text};

use super::{Names, PodLabel};

/// All that Services are made of.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// What is asked for.
    pub service: &'a Service,
    /// What things are called.
    pub names: &'a Names,
    /// The label by which pods are known.
    pub label: &'a PodLabel,
    /// The workload, whose ports may be found.
    pub target: &'a Value,
    /// The Canary, as an owner.
    pub owner: &'a Value,
    /// Whether the apex leads to where it has to already: who divides traffic by it sees to that.
    pub is_led: bool,
}

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// What clients know; it selects what serves.
    Apex,
    /// What serves.
    Primary,
    /// What is new.
    Canary,
}

impl Which {
    /// All of them, in the order in which they are made: the apex is turned when the others are there.
    pub const ALL: [Self; 3] = [Self::Canary, Self::Primary, Self::Apex];
}

/// The name of one.
pub fn name(names: &Names, which: Which) -> &str {
    match which {
        Which::Apex => &names.apex,
        Which::Primary => &names.apex_primary,
        Which::Canary => &names.apex_canary,
    }
}

/// One of the Services as it is to be; `seen` is what is there. A person's own apex keeps all that is not about where
/// requests go.
pub fn service(recipe: &Recipe<'_>, which: Which, seen: Option<&Value>) -> Value {
    let name = name(recipe.names, which);
    let is_theirs = seen.is_some_and(|seen| !is_owned(recipe, seen));
    let value = match which {
        Which::Canary => recipe.label.value.clone(),
        Which::Apex | Which::Primary => recipe.label.primary(),
    };
    let mut spec = json!({"ports": ports(recipe, seen)});
    let is_led = which == Which::Apex && seen.is_some() && recipe.is_led;
    if !is_led && let Some(fields) = spec.as_object_mut() {
        let selector = BTreeMap::from([(recipe.label.key.clone(), value)]);
        fields.insert("selector".to_owned(), json!(selector));
    }
    if !is_theirs && let Some(fields) = spec.as_object_mut() {
        fields.insert("type".to_owned(), json!("ClusterIP"));
        if recipe.service.headless == Some(true) {
            fields.insert("clusterIP".to_owned(), json!("None"));
        }
        if let Some(how) = &recipe.service.traffic_distribution {
            fields.insert("trafficDistribution".to_owned(), json!(how));
        }
    }
    let mut metadata = json!({"name": name, "namespace": recipe.namespace});
    if !is_theirs && let Some(fields) = metadata.as_object_mut() {
        let (labels, annotations) = described(recipe, which, name);
        fields.insert("labels".to_owned(), json!(labels));
        fields.insert("annotations".to_owned(), json!(annotations));
        fields.insert("ownerReferences".to_owned(), json!([recipe.owner]));
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

/// How the apex is given back: it selects the workload's pods again.
pub fn give_back(label: &PodLabel) -> Value {
    json!({"spec": {"selector": BTreeMap::from([(label.key.clone(), label.value.clone())])}})
}

/// How the apex is turned: it selects the copy's pods.
pub fn lead(label: &PodLabel) -> Value {
    json!({"spec": {"selector": BTreeMap::from([(label.key.clone(), label.primary())])}})
}

/// Whether a Service leads to the copy. One that leads elsewhere by now is not ours to turn.
pub fn leads_to_copy(there: &Value, label: &PodLabel) -> bool {
    let selector = strings(there, "/spec/selector");
    selector.get(&label.key) == Some(&label.primary())
}

fn is_owned(recipe: &Recipe<'_>, seen: &Value) -> bool {
    let uid = text(recipe.owner, "/uid");
    list(seen, "/metadata/ownerReferences").any(|owner| text(owner, "/uid") == uid)
}

type Texts = BTreeMap<String, String>;

/// Labels and annotations; what a person keeps to themselves is not named, so that it stays as it is.
fn described(recipe: &Recipe<'_>, which: Which, name: &str) -> (Texts, Texts) {
    let service = recipe.service;
    let CustomMetadata {
        mut labels,
        mut annotations,
    } = match which {
        Which::Apex => &service.apex,
        Which::Primary => &service.primary,
        Which::Canary => &service.canary,
    }
    .clone()
    .unwrap_or_default();
    labels
        .entry(recipe.label.key.clone())
        .or_insert_with(|| name.to_owned());
    for (key, value) in [FLUX_RECONCILE, FLUX_DRIFT] {
        annotations.insert(key.to_owned(), value.to_owned());
    }
    let unmanaged = service.unmanaged_metadata.clone().unwrap_or_default();
    labels.retain(|key, _| !unmanaged.labels.contains(key));
    annotations.retain(|key, _| !unmanaged.annotations.contains(key));
    (labels, annotations)
}

/// The ports that are served, with the node ports that they have.
fn ports(recipe: &Recipe<'_>, seen: Option<&Value>) -> Vec<Value> {
    let service = recipe.service;
    let given = service.port_name.as_deref().filter(|name| !name.is_empty());
    let main = given.unwrap_or("http");
    let target = match &service.target_port {
        None => json!(service.port),
        Some(IntOrText::Int(port)) => json!(port),
        Some(IntOrText::Text(name)) => json!(name),
    };
    let mut all =
        vec![json!({"name": main, "protocol": "TCP", "port": service.port, "targetPort": target})];
    if let Some(protocol) = &service.app_protocol
        && let Some(fields) = all.first_mut().and_then(Value::as_object_mut)
    {
        fields.insert("appProtocol".to_owned(), json!(protocol));
    }
    if service.port_discovery == Some(true) {
        all.extend(discovered(recipe, main, &target));
    }
    for port in &mut all {
        let name = text(port, "/name").unwrap_or_default().to_owned();
        let known = seen.and_then(|seen| {
            list(seen, "/spec/ports").find(|one| text(one, "/name") == Some(name.as_str()))
        });
        let node = known.and_then(|one| integer(one, "/nodePort"));
        if let (Some(node), Some(fields)) = (node, port.as_object_mut()) {
            fields.insert("nodePort".to_owned(), json!(node));
        }
    }
    all
}

/// Ports of the containers besides the declared one and those of a mesh's proxy.
fn discovered(recipe: &Recipe<'_>, main: &str, target: &Value) -> Vec<Value> {
    let proxies = ["istio-proxy", "envoy"];
    let containers = list(recipe.target, "/spec/template/spec/containers");
    let own = containers.filter(|one| text(one, "/name").is_none_or(|n| !proxies.contains(&n)));
    let mut taken = BTreeSet::from([main.to_owned()]);
    let mut all = Vec::new();
    for port in own.flat_map(|container| list(container, "/ports")) {
        let Some(number) = integer(port, "/containerPort") else {
            continue;
        };
        let name = text(port, "/name");
        let is_declared =
            json!(number) == *target || name.is_some_and(|name| json!(name) == *target);
        if is_declared || number == recipe.service.port {
            continue;
        }
        let name = name.map_or_else(|| format!("tcp-{main}-{number}"), str::to_owned);
        let name = name
            .get(..15)
            .unwrap_or(&name)
            .trim_end_matches('-')
            .to_owned();
        if taken.insert(name.clone()) {
            let protocol = text(port, "/protocol").unwrap_or("TCP");
            all.push(
                json!({"name": name, "protocol": protocol, "port": number, "targetPort": number}),
            );
        }
    }
    all
}
