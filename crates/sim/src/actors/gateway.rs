//! A gateway: it takes objects that divide traffic, each some time after somebody wrote it, and from then on divides traffic so.
//!
//! What it has taken is written down beside the object ([`Taken`]), rule by rule with the share of each Service, and what is wanted
//! and not taken yet is nobody's traffic. Of an `HTTPRoute` it says in its status which generation it has taken, as gateways do;
//! of the other kinds nobody can know.
//!
//! Played: `HTTPRoute`, `VirtualService`, `TrafficSplit`, and Ingresses as ingress-nginx takes them. Not played: Gateways, hosts,
//! what is refused, requests themselves.

pub(crate) mod definitions;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::networking::v1::Ingress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use slipway_api::foreign::gateway::ACCEPTED;

use super::custom::custom;
use super::hash;
use super::key::{Key, Kind};
use super::pod;
use super::scheduler::after;
use super::script::Scene;
use super::world::{Watched, World};
use super::write::{Step, Write, as_json, difference};
use crate::routes::{self, Rule};

/// How the gateway behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Gateway {
    /// How long it takes at most until an object is taken; how long it takes in fact is drawn, from the seed and the object.
    pub within: SignedDuration,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            within: SignedDuration::from_secs(5),
        }
    }
}

custom!(
    /// How requests of a host are divided, by Gateway API.
    HttpRoute("HTTPRoute"),
    Value,
    Value,
    "gateway.networking.k8s.io",
    "v1",
    "httproutes"
);

custom!(
    /// The same, by Istio.
    VirtualService("VirtualService"),
    Value,
    Value,
    "networking.istio.io",
    "v1beta1",
    "virtualservices"
);

custom!(
    /// The same, by SMI.
    TrafficSplit("TrafficSplit"),
    Value,
    Value,
    "split.smi-spec.io",
    "v1alpha2",
    "trafficsplits"
);

custom!(
    /// How the gateway divides them, by which object.
    Taken("Taken"),
    Value,
    Value,
    "dataplane.sim.slipway.dev",
    "v1",
    "taken"
);

/// The kinds that it takes, each with the resource's name in histories.
const KINDS: [(Kind, &str); 4] = [
    (Kind::HttpRoute, routes::HTTP_ROUTES),
    (Kind::VirtualService, routes::VIRTUAL_SERVICES),
    (Kind::TrafficSplit, routes::TRAFFIC_SPLITS),
    (Kind::Ingress, routes::INGRESSES),
];

fn resource(kind: Kind) -> &'static str {
    let mut all = KINDS.iter();
    all.find(|(known, _)| *known == kind)
        .map_or("", |(_, resource)| *resource)
}

/// What is written down about an object is called so.
fn beside(kind: Kind, key: &Key) -> Key {
    let plural = resource(kind).rsplit('/').next().unwrap_or_default();
    Key::new(&key.namespace, &format!("{plural}.{}", key.name))
}

/// What something that was written down is about.
pub(crate) fn about(taken: &Key) -> Option<(Kind, Key)> {
    let (plural, name) = taken.name.split_once('.')?;
    let mut all = KINDS.iter();
    let (kind, _) = all.find(|(_, resource)| resource.rsplit('/').next() == Some(plural))?;
    Some((*kind, Key::new(&taken.namespace, name)))
}

/// What the gateway does about one object.
pub(crate) fn reconcile(
    world: &mut World,
    scene: Scene<'_>,
    (kind, key): (Kind, &Key),
    now: Timestamp,
) -> Step {
    let mut step = Step::default();
    let Some(gateway) = &scene.script.gateway else {
        return step;
    };
    let mut writes: Vec<Write> = take(world, kind, key).into_iter().collect();
    if kind == Kind::HttpRoute {
        writes.extend(acknowledge(world, key, now));
    }
    let place = (kind, key.clone());
    if writes.is_empty() {
        world.takes.remove(&place);
        return step;
    }
    let due = *world.takes.entry(place.clone()).or_insert_with(|| {
        let delay = delay(gateway, scene.seed, (kind, key), now);
        after(now, delay)
    });
    if due > now {
        step.wake_at(due);
        return step;
    }
    world.takes.remove(&place);
    step.writes = writes;
    step
}

/// How long it takes this time.
fn delay(
    gateway: &Gateway,
    seed: u64,
    (kind, key): (Kind, &Key),
    now: Timestamp,
) -> SignedDuration {
    let most = u64::try_from(gateway.within.as_millis()).unwrap_or(0);
    let mut bytes = seed.to_le_bytes().to_vec();
    bytes.extend(now.as_millisecond().to_le_bytes());
    bytes.extend(format!("{} {key}", resource(kind)).bytes());
    let drawn = hash::number(&bytes).checked_rem(most.saturating_add(1));
    SignedDuration::from_millis(i64::try_from(drawn.unwrap_or(0)).unwrap_or(0))
}

fn object<K: Watched + Serialize>(world: &World, key: &Key) -> Option<Value> {
    let object = K::cache(world).get(key)?;
    let is_going = object.meta().deletion_timestamp.is_some();
    (!is_going).then(|| as_json(object.as_ref()))
}

fn found(world: &World, kind: Kind, key: &Key) -> Option<Value> {
    match kind {
        Kind::HttpRoute => object::<HttpRoute>(world, key),
        Kind::VirtualService => object::<VirtualService>(world, key),
        Kind::TrafficSplit => object::<TrafficSplit>(world, key),
        Kind::Ingress => object::<Ingress>(world, key),
        _ => None,
    }
}

/// What is written down comes to be what the object says; nothing where it is.
fn take(world: &World, kind: Kind, key: &Key) -> Option<Write> {
    let rules = found(world, kind, key).map(|object| routes::rules(resource(kind), &object));
    let key = beside(kind, key);
    let known = world.taken.get(&key);
    let Some(rules) = rules else {
        let known = known?;
        return Some(Write::Delete {
            kind: Kind::Taken,
            uid: known.metadata.uid.clone().unwrap_or_default(),
            key,
            grace: None,
        });
    };
    let spec = json!({"rules": rules.iter().map(shown).collect::<Vec<Value>>()});
    let Some(known) = known else {
        let metadata = json!({"namespace": key.namespace, "name": key.name});
        return Some(Write::Create {
            kind: Kind::Taken,
            body: json!({
                "apiVersion": "dataplane.sim.slipway.dev/v1", "kind": "Taken", "metadata": metadata, "spec": spec,
            }),
        });
    };
    let change = difference(&known.spec, &spec)?;
    Some(Write::Patch {
        kind: Kind::Taken,
        key,
        subresource: "",
        body: json!({"spec": change}),
    })
}

fn shown(rule: &Rule) -> Value {
    let services = rule.weights.keys();
    let shares = services.map(|service| (service.clone(), json!(rule.share(service))));
    let shares: serde_json::Map<String, Value> = shares.collect();
    json!({"particular": rule.is_particular, "shares": shares, "copies": rule.copies})
}

/// Each parent of an `HTTPRoute` says that it has taken this generation; nothing where it has.
fn acknowledge(world: &World, key: &Key, now: Timestamp) -> Option<Write> {
    let route = world.http_routes.get(key)?;
    if route.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let generation = route.metadata.generation.unwrap_or_default();
    let parents = route.spec.get("parentRefs").and_then(Value::as_array);
    let since = route
        .status
        .pointer("/parents/0/conditions/0/lastTransitionTime");
    let since = since.cloned().unwrap_or_else(|| as_json(&pod::stamp(now)));
    let said: Vec<Value> = parents
        .into_iter()
        .flatten()
        .map(|parent| {
            let accepted = json!({
                "type": ACCEPTED, "status": "True", "reason": ACCEPTED, "message": "",
                "observedGeneration": generation, "lastTransitionTime": since,
            });
            json!({"parentRef": parent, "controllerName": "sim.slipway.dev/gateway", "conditions": [accepted]})
        })
        .collect();
    let status = json!({"parents": said});
    let change = difference(&route.status, &status).filter(|_| !said.is_empty())?;
    let version = &route.metadata.resource_version;
    Some(Write::Patch {
        kind: Kind::HttpRoute,
        key: key.clone(),
        subresource: "status",
        body: json!({"metadata": {"resourceVersion": version}, "status": change}),
    })
}
