//! Gateway API: weights of an `HTTPRoute`'s backends.
//!
//! Either a route of ours, named after the apex and made of `spec.service` (`gatewayRefs` are its parents); or, with
//! `routeRef`, a person's own route, in which only the rules change that send to the apex: the target stands beside it for
//! as long as it has a share. Weights of a rule are multiplied while it does and divided again at the end, so that the rule
//! is then what it was, whatever else a person has changed meanwhile.

use serde_json::{Value, json};
use slipway_api::foreign::gateway;
use slipway_kernel::Kind;
use slipway_kernel::fields::{integer, list, text};

use super::gateway_rules::{rules, translated};
use super::kubernetes::OF_PODS;
use super::parts::{apply, is_ours, percent, understood};
use super::{Abilities, CannotRoute, Objects, Route, Router, Write};
use crate::engine::{Routing, Weights};

pub(crate) static ROUTER: Router = Router {
    names: &[
        ("gatewayapi:v1", "v1"),
        ("gatewayapi", "v1"),
        ("gatewayapi:v1beta1", "v1beta1"),
    ],
    can: Abilities::ALL,
    divides: false,
    acknowledges: true,
    kinds: |version| vec![kind(version)],
    seen: |route, objects| Ok(seen(route, objects)),
    writes,
    retreat,
    check_match: |written| {
        let read = understood(written)?;
        translated(&read)
            .map(drop)
            .map_err(|error| error.to_string())
    },
    borrows: |route, _| route.route.is_some(),
    restore,
    measures: OF_PODS,
};

/// The largest weight of a person's backend that can still be multiplied by a hundred.
const MAX_WEIGHT: i64 = 10_000;

fn kind(version: &'static str) -> Kind {
    Kind::namespaced(
        gateway::GROUP,
        version,
        gateway::HTTP_ROUTE,
        gateway::HTTP_ROUTES,
    )
}

/// The weights of the route, and whether its parents have taken it.
fn seen(route: &Route, objects: &Objects) -> Routing {
    let name = route.route.as_deref().unwrap_or(&route.apex);
    let Some(object) = objects.get(gateway::HTTP_ROUTE, name) else {
        return Routing::default();
    };
    Routing {
        weights: weights(route, object),
        pending: pending(object),
    }
}

fn weights(route: &Route, object: &Value) -> Option<Weights> {
    let source = source_of(route);
    let mut found = None;
    for rule in list(object, "/spec/rules") {
        let weight = |name: &str| weight_of(rule, name);
        match (weight(source), weight(&route.target)) {
            (Some(source), Some(target)) => {
                let mirrored = is_mirrored(route, rule);
                // A rule without any weight sends nothing anywhere.
                let Some(target) = percent(target, source) else {
                    continue;
                };
                return Some(Weights { target, mirrored });
            }
            (Some(_), None) if route.route.is_some() => {
                found = Some(Weights {
                    target: 0,
                    mirrored: is_mirrored(route, rule),
                });
            }
            _ => {}
        }
    }
    found
}

/// The Service that the source is reached by: in a person's own route that is the apex, which clients know.
fn source_of(route: &Route) -> &str {
    if route.route.is_some() {
        &route.apex
    } else {
        &route.source
    }
}

fn weight_of(rule: &Value, name: &str) -> Option<i64> {
    let mut backends = list(rule, "/backendRefs");
    let backend = backends.find(|one| is_service(one, name))?;
    Some(integer(backend, "/weight").unwrap_or(1))
}

fn is_service(backend: &Value, name: &str) -> bool {
    let is_kind = text(backend, "/kind").is_none_or(|kind| kind == "Service");
    is_kind && text(backend, "/name") == Some(name)
}

fn is_mirror(route: &Route, filter: &Value) -> bool {
    text(filter, "/type") == Some(gateway::REQUEST_MIRROR)
        && text(filter, "/requestMirror/backendRef/name") == Some(route.target.as_str())
}

fn is_mirrored(route: &Route, rule: &Value) -> bool {
    list(rule, "/filters").any(|filter| is_mirror(route, filter))
}

/// Why the data plane has not taken the route as it is now.
fn pending(object: &Value) -> Option<String> {
    let generation = integer(object, "/metadata/generation").unwrap_or_default();
    let mut parents = list(object, "/status/parents").peekable();
    if parents.peek().is_none() {
        return Some("no gateway has taken the HTTPRoute yet".to_owned());
    }
    parents.find_map(|parent| {
        let name = text(parent, "/parentRef/name").unwrap_or("unknown");
        let mut conditions = list(parent, "/conditions");
        let accepted = conditions.find(|one| text(one, "/type") == Some(gateway::ACCEPTED));
        let Some(accepted) = accepted else {
            return Some(format!(
                "gateway {name} has not looked at the HTTPRoute yet"
            ));
        };
        let observed = integer(accepted, "/observedGeneration").unwrap_or_default();
        if observed < generation {
            return Some(format!(
                "gateway {name} has not taken generation {generation} yet"
            ));
        }
        (text(accepted, "/status") != Some("True")).then(|| {
            let why = text(accepted, "/message").unwrap_or_default();
            format!("gateway {name} does not accept the HTTPRoute: {why}")
        })
    })
}

/// The route as it is to be.
fn writes(
    version: &'static str,
    route: &Route,
    objects: &Objects,
    weights: Weights,
) -> Result<Vec<Write>, CannotRoute> {
    if let Some(name) = &route.route {
        return in_place(version, route, objects, (name.as_str(), weights));
    }
    if route.service.gateway_refs.is_empty() {
        let why = "spec.service.gatewayRefs is required with provider gatewayapi; name the gateways, or an HTTPRoute in spec.routeRef";
        return Err(CannotRoute::Spec(why.to_owned()));
    }
    let mut spec = json!({
        "parentRefs": route.service.gateway_refs,
        "rules": rules(route, weights)?,
    });
    if !route.service.hosts.is_empty()
        && let Some(fields) = spec.as_object_mut()
    {
        fields.insert("hostnames".to_owned(), json!(route.service.hosts));
    }
    let kind = kind(version);
    let called = (&kind, gateway::HTTP_ROUTE);
    let write = apply(route, objects, called, &route.apex, &spec)?;
    Ok(write.into_iter().collect())
}

/// A person's route, with the target beside the apex.
fn in_place(
    version: &'static str,
    route: &Route,
    objects: &Objects,
    (name, weights): (&str, Weights),
) -> Result<Vec<Write>, CannotRoute> {
    if route.is_matching() || route.affinity.is_some() {
        let why = "spec.analysis.match and sessionAffinity need a route of the Canary's own; use spec.service.gatewayRefs instead of spec.routeRef";
        return Err(CannotRoute::Spec(why.to_owned()));
    }
    let Some(object) = objects.get(gateway::HTTP_ROUTE, name) else {
        return Err(CannotRoute::Missing {
            kind: gateway::HTTP_ROUTE,
            name: name.to_owned(),
        });
    };
    let before: Vec<&Value> = list(object, "/spec/rules").collect();
    let is_known = before
        .iter()
        .any(|rule| weight_of(rule, &route.apex).is_some());
    if !is_known {
        return Err(CannotRoute::NoBackend {
            kind: gateway::HTTP_ROUTE,
            name: name.to_owned(),
            backend: route.apex.clone(),
        });
    }
    let after: Result<Vec<Value>, CannotRoute> = before
        .iter()
        .map(|rule| shared(route, rule, weights))
        .collect();
    let after = after?;
    if before.iter().copied().eq(after.iter()) {
        return Ok(Vec::new());
    }
    Ok(vec![Write::Patch {
        kind: kind(version),
        name: name.to_owned(),
        body: json!({"spec": {"rules": after}}),
    }])
}

/// A rule in which the target has its share of what the apex has. Without a share it is the person's rule.
fn shared(route: &Route, rule: &Value, weights: Weights) -> Result<Value, CannotRoute> {
    // A server adds to it what it takes for granted: it stays as it came back.
    let known = list(rule, "/filters").find(|filter| is_mirror(route, filter));
    let port = json!(route.service.port);
    let known = known.filter(|one| one.pointer("/requestMirror/backendRef/port") == Some(&port));
    let mut rule = unshared(route, rule);
    let Some(whole) = weight_of(&rule, &route.apex) else {
        return Ok(rule);
    };
    if weights.mirrored {
        let backend = json!({"name": route.target, "port": port});
        let filter =
            json!({"type": gateway::REQUEST_MIRROR, "requestMirror": {"backendRef": backend}});
        push(&mut rule, "filters", known.cloned().unwrap_or(filter));
    }
    if weights.target == 0 {
        return Ok(rule);
    }
    let mut target = None;
    for backend in backends(&mut rule) {
        let weight = integer(backend, "/weight").unwrap_or(1);
        if weight > MAX_WEIGHT {
            let why = format!("weight {weight} of a backend is more than {MAX_WEIGHT}");
            return Err(CannotRoute::Spec(why));
        }
        let is_apex = is_service(backend, &route.apex);
        if is_apex {
            let mut copy = backend.clone();
            set(&mut copy, "name", json!(route.target));
            set(
                &mut copy,
                "weight",
                json!(whole * i64::from(weights.target)),
            );
            target = Some(copy);
        }
        let share = if is_apex {
            i64::from(weights.source())
        } else {
            100
        };
        set(backend, "weight", json!(weight * share));
    }
    if let Some(target) = target {
        push(&mut rule, "backendRefs", target);
    }
    Ok(rule)
}

/// A rule without the target, as the person wrote it.
fn unshared(route: &Route, rule: &Value) -> Value {
    let mut rule = rule.clone();
    let (apex, target) = (
        weight_of(&rule, &route.apex),
        weight_of(&rule, &route.target),
    );
    remove(&mut rule, "filters", |filter| is_mirror(route, filter));
    let (Some(apex), Some(target)) = (apex, target) else {
        return rule;
    };
    remove(&mut rule, "backendRefs", |one| {
        is_service(one, &route.target)
    });
    let whole = apex.saturating_add(target) / 100;
    for backend in backends(&mut rule) {
        let weight = if is_service(backend, &route.apex) {
            whole
        } else {
            integer(backend, "/weight").unwrap_or(1) / 100
        };
        set(backend, "weight", json!(weight));
    }
    rule
}

fn backends(rule: &mut Value) -> impl Iterator<Item = &mut Value> {
    let all = rule.get_mut("backendRefs").and_then(Value::as_array_mut);
    all.into_iter().flatten()
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

fn push(rule: &mut Value, field: &str, value: Value) {
    let Some(fields) = rule.as_object_mut() else {
        return;
    };
    let all = fields.entry(field).or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.push(value);
    }
}

/// Takes elements out of a list, and the list out of the rule where we have emptied it.
fn remove(rule: &mut Value, field: &str, is_meant: impl Fn(&Value) -> bool) {
    let Some(all) = rule.get_mut(field).and_then(Value::as_array_mut) else {
        return;
    };
    let before = all.len();
    all.retain(|one| !is_meant(one));
    let is_emptied = all.is_empty() && before > 0;
    if is_emptied && let Some(fields) = rule.as_object_mut() {
        fields.remove(field);
    }
}

/// Takes all traffic from the target in the route that is there.
fn retreat(version: &'static str, route: &Route, objects: &Objects) -> Vec<Write> {
    let name = route.route.as_deref().unwrap_or(&route.apex);
    let object = objects.get(gateway::HTTP_ROUTE, name);
    let Some(object) = object.filter(|object| is_ours(route, object)) else {
        return Vec::new();
    };
    let without = if route.route.is_some() {
        unshared
    } else {
        withdrawn
    };
    rewritten((version, name), object, |rule| without(route, rule))
}

/// A route with other rules; nothing where they are the same.
fn rewritten(
    (version, name): (&'static str, &str),
    object: &Value,
    each: impl Fn(&Value) -> Value,
) -> Vec<Write> {
    let before: Vec<&Value> = list(object, "/spec/rules").collect();
    let after: Vec<Value> = before.iter().map(|rule| each(rule)).collect();
    if before.iter().copied().eq(after.iter()) {
        return Vec::new();
    }
    vec![Write::Patch {
        kind: kind(version),
        name: name.to_owned(),
        body: json!({"spec": {"rules": after}}),
    }]
}

/// A rule of ours in which the source has everything.
fn withdrawn(route: &Route, rule: &Value) -> Value {
    let mut rule = rule.clone();
    remove(&mut rule, "filters", |filter| is_mirror(route, filter));
    let is_shared = weight_of(&rule, &route.source).is_some();
    for backend in backends(&mut rule) {
        if is_service(backend, &route.target) && is_shared {
            set(backend, "weight", json!(0));
        } else if is_service(backend, &route.target) {
            set(backend, "name", json!(route.source));
        } else if is_service(backend, &route.source) {
            set(backend, "weight", json!(100));
        }
    }
    rule
}

/// A person's route without the target, whatever the Canary says about it by now. A route of ours goes with the Canary.
fn restore(version: &'static str, route: &Route, objects: &Objects) -> Vec<Write> {
    let name = route.route.as_deref();
    let there = name.and_then(|name| Some((name, objects.get(gateway::HTTP_ROUTE, name)?)));
    let restored = there
        .map(|(name, object)| rewritten((version, name), object, |rule| unshared(route, rule)));
    restored.unwrap_or_default()
}
