//! Istio: a `VirtualService` named after the apex, and a `DestinationRule` for each side.
//!
//! A `VirtualService` of that name that a person made before is taken over: what it was is kept in an annotation, and put
//! back when the Canary lets go of it.

use serde_json::{Map, Value, json};
use slipway_api::flagger::{LAST_APPLIED, ORIGINAL_CONFIGURATION};
use slipway_api::foreign::istio;
use slipway_kernel::Kind;
use slipway_kernel::fields::{integer, list, text};

use super::gateway_rules::cookie_text;
use super::parts::{apply, controller, covers, is_ours, percent};
use super::{Abilities, Affinity, Builtin, CannotRoute, Objects, Route, Router, Write};
use crate::engine::{Routing, Weights};
use crate::measures::{p99, rate};

pub(crate) static ROUTER: Router = Router {
    names: &[("istio", "")],
    can: Abilities::ALL,
    divides: false,
    acknowledges: false,
    kinds: |_| vec![virtual_service(), destination_rule()],
    seen: |route, objects| Ok(seen(route, objects)),
    writes: |_, route, objects, weights| writes(route, objects, weights),
    retreat: |_, route, objects| retreat(route, objects),
    check_match: |written| {
        let says = written.as_object().is_some_and(|all| !all.is_empty());
        let why = "it says nothing of which requests are meant";
        says.then_some(()).ok_or_else(|| why.to_owned())
    },
    borrows: |route, objects| {
        let found = objects.get(istio::VIRTUAL_SERVICE, &route.apex);
        found.is_some_and(|found| controller(found).is_none())
    },
    restore: |_, route, objects| restore(route, objects),
    measures: Builtin {
        success_rate: || rate("istio_requests_total", WORKLOAD, r#"response_code!~"5.*""#),
        duration: || p99("istio_request_duration_milliseconds_bucket", WORKLOAD, 1),
    },
};

/// A side, as the mesh's proxies name it.
const WORKLOAD: &str = r#"reporter="destination",destination_workload_namespace="{{ namespace }}",destination_workload=~"{{ target }}""#;

fn virtual_service() -> Kind {
    let (group, version) = (istio::GROUP, istio::VERSION);
    let (kind, plural) = (istio::VIRTUAL_SERVICE, istio::VIRTUAL_SERVICES);
    Kind::namespaced(group, version, kind, plural)
}

fn destination_rule() -> Kind {
    let (group, version) = (istio::GROUP, istio::VERSION);
    let (kind, plural) = (istio::DESTINATION_RULE, istio::DESTINATION_RULES);
    Kind::namespaced(group, version, kind, plural)
}

fn is_tcp(route: &Route) -> bool {
    let protocol = route.service.app_protocol.as_deref();
    protocol.is_some_and(|name| name.eq_ignore_ascii_case("tcp"))
}

/// The weights of the `VirtualService`.
fn seen(route: &Route, objects: &Objects) -> Routing {
    let Some(object) = objects.get(istio::VIRTUAL_SERVICE, &route.apex) else {
        return Routing::default();
    };
    let path = if is_tcp(route) {
        "/spec/tcp"
    } else {
        "/spec/http"
    };
    let weights = list(object, path).find_map(|rule| {
        let weight = |host: &str| {
            let mut to = list(rule, "/route");
            let found = to.find(|one| text(one, "/destination/host") == Some(host))?;
            Some(integer(found, "/weight").unwrap_or(100))
        };
        let (source, target) = (weight(&route.source)?, weight(&route.target)?);
        let mirror = text(rule, "/mirror/host");
        Some(Weights {
            target: percent(target, source)?,
            mirrored: mirror == Some(route.target.as_str()),
        })
    });
    Routing {
        weights,
        pending: None,
    }
}

/// All objects as they are to be.
fn writes(route: &Route, objects: &Objects, weights: Weights) -> Result<Vec<Write>, CannotRoute> {
    if route.service.delegation == Some(true) && !route.service.hosts.is_empty() {
        let why = "spec.service.hosts must be empty with spec.service.delegation; remove one";
        return Err(CannotRoute::Spec(why.to_owned()));
    }
    let mut all = Vec::new();
    for side in [&route.source, &route.target] {
        let mut spec = json!({"host": side});
        if let Some(policy) = &route.service.traffic_policy {
            put(&mut spec, "trafficPolicy", policy.clone());
        }
        let kind = destination_rule();
        let called = (&kind, istio::DESTINATION_RULE);
        all.extend(apply(route, objects, called, side, &spec)?);
    }
    all.extend(virtual_services(route, objects, weights)?);
    Ok(all)
}

fn virtual_services(
    route: &Route,
    objects: &Objects,
    weights: Weights,
) -> Result<Option<Write>, CannotRoute> {
    let kind = virtual_service();
    let mut body = route.own(&kind, &route.apex, &spec(route, weights));
    let seen = objects.get(istio::VIRTUAL_SERVICE, &route.apex);
    let Some(seen) = seen else {
        let name = route.apex.clone();
        return Ok(Some(Write::Apply { kind, name, body }));
    };
    if !is_ours(route, seen) {
        return Err(CannotRoute::NotOurs {
            kind: istio::VIRTUAL_SERVICE,
            name: route.apex.clone(),
        });
    }
    if let Some(original) = original(seen)
        && let Some(annotations) = body.pointer_mut("/metadata/annotations")
    {
        put(annotations, ORIGINAL_CONFIGURATION, json!(original));
    }
    if covers(seen, &body) {
        return Ok(None);
    }
    // A person's object stays theirs: it is not to go with the Canary.
    if controller(seen).is_none() {
        let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
        metadata.and_then(|fields| fields.remove("ownerReferences"));
        if covers(seen, &body) {
            return Ok(None);
        }
    }
    let name = route.apex.clone();
    Ok(Some(Write::Apply { kind, name, body }))
}

/// What a person's object was before it was taken over; none where it is ours.
fn original(seen: &Value) -> Option<String> {
    if controller(seen).is_some() {
        return None;
    }
    let annotations = seen.pointer("/metadata/annotations");
    let kept = annotations.and_then(|all| all.get(ORIGINAL_CONFIGURATION)?.as_str());
    if let Some(kept) = kept {
        return Some(kept.to_owned());
    }
    Some(seen.get("spec")?.to_string())
}

/// Takes all traffic from the target in the `VirtualService` that is there.
fn retreat(route: &Route, objects: &Objects) -> Vec<Write> {
    let object = objects.get(istio::VIRTUAL_SERVICE, &route.apex);
    let Some(object) = object.filter(|object| is_ours(route, object)) else {
        return Vec::new();
    };
    let mut spec = Map::new();
    for field in ["http", "tcp"] {
        let before: Vec<&Value> = list(object, &format!("/spec/{field}")).collect();
        let after: Vec<Value> = before.iter().map(|rule| withdrawn(route, rule)).collect();
        if !before.iter().copied().eq(after.iter()) {
            spec.insert(field.to_owned(), json!(after));
        }
    }
    if spec.is_empty() {
        return Vec::new();
    }
    vec![Write::Patch {
        kind: virtual_service(),
        name: route.apex.clone(),
        body: json!({"spec": spec}),
    }]
}

/// A rule in which the source has everything.
fn withdrawn(route: &Route, rule: &Value) -> Value {
    let mut rule = rule.clone();
    let host = |one: &Value| text(one, "/destination/host").map(str::to_owned);
    let (source, target) = (Some(&route.source), Some(&route.target));
    let is_shared = list(&rule, "/route").any(|one| host(one).as_ref() == source);
    let to = rule.get_mut("route").and_then(Value::as_array_mut);
    for one in to.into_iter().flatten() {
        let to = host(one);
        if to.as_ref() == target && is_shared {
            put(one, "weight", json!(0));
        } else if to.as_ref() == target {
            put(one, "destination", json!({"host": route.source}));
        } else if to.as_ref() == source {
            put(one, "weight", json!(100));
        }
    }
    if text(&rule, "/mirror/host") == Some(route.target.as_str())
        && let Some(fields) = rule.as_object_mut()
    {
        fields.remove("mirror");
        fields.remove("mirrorPercentage");
    }
    rule
}

/// Whether a `VirtualService` leads to one of the sides: otherwise it was never taken over.
fn leads_to_sides(route: &Route, seen: &Value) -> bool {
    let rules = ["/spec/http", "/spec/tcp"]
        .into_iter()
        .flat_map(|path| list(seen, path));
    let mut hosts = rules
        .flat_map(|rule| list(rule, "/route"))
        .filter_map(|one| text(one, "/destination/host"));
    hosts.any(|host| host == route.source || host == route.target)
}

/// The person's spec is put back, to the letter.
fn restore(route: &Route, objects: &Objects) -> Vec<Write> {
    let Some(seen) = objects.get(istio::VIRTUAL_SERVICE, &route.apex) else {
        return Vec::new();
    };
    let annotations = seen.pointer("/metadata/annotations");
    let kept = |name: &str| annotations.and_then(|all| all.get(name)?.as_str());
    let applied = || {
        let whole: Value = serde_json::from_str(kept(LAST_APPLIED)?).ok()?;
        whole.get("spec").cloned()
    };
    let original = kept(ORIGINAL_CONFIGURATION).and_then(|text| {
        let read: Value = serde_json::from_str(text).ok()?;
        // The original program keeps the whole object there.
        Some(read.get("spec").cloned().unwrap_or(read))
    });
    let Some(mut spec) = original.or_else(applied) else {
        return Vec::new();
    };
    let is_kept = kept(ORIGINAL_CONFIGURATION).is_some();
    if !is_kept && (seen.get("spec") == Some(&spec) || !leads_to_sides(route, seen)) {
        return Vec::new();
    }
    // What the Canary added is taken away: a merge patch needs to name it.
    if let (Some(now), Some(then)) = (
        seen.get("spec").and_then(Value::as_object),
        spec.as_object_mut(),
    ) {
        for field in now.keys() {
            then.entry(field.clone()).or_insert(Value::Null);
        }
    }
    vec![Write::Patch {
        kind: virtual_service(),
        name: route.apex.clone(),
        body: json!({
            "metadata": {"annotations": {ORIGINAL_CONFIGURATION: null}},
            "spec": spec,
        }),
    }]
}

fn spec(route: &Route, weights: Weights) -> Value {
    let service = &route.service;
    let mut spec = Map::new();
    if service.delegation != Some(true) {
        let mut hosts = service.hosts.clone();
        let is_wild = hosts.iter().any(|host| host == "*");
        if !is_wild && !hosts.contains(&route.apex) {
            hosts.push(route.apex.clone());
        }
        let gateways = if service.gateways.is_empty() {
            vec!["mesh".to_owned()]
        } else {
            service.gateways.clone()
        };
        spec.insert("hosts".to_owned(), json!(hosts));
        spec.insert("gateways".to_owned(), json!(gateways));
    }
    if is_tcp(route) {
        let rule =
            json!({"match": [{"port": service.port}], "route": destinations(route, weights)});
        spec.insert("tcp".to_owned(), json!([rule]));
    } else {
        spec.insert("http".to_owned(), json!(rules(route, weights)));
    }
    Value::Object(spec)
}

fn rules(route: &Route, weights: Weights) -> Vec<Value> {
    let plain = &route.service.matching;
    if route.is_matching() {
        let merged = merged(&route.written, plain);
        let all = json!([{"destination": {"host": route.source}, "weight": 100}]);
        return vec![
            rule(
                route,
                &merged,
                destinations(route, weights),
                weights.mirrored,
            ),
            rule(route, plain, all, false),
        ];
    }
    let weighted = destinations(route, weights);
    let mut main = rule(route, plain, weighted, weights.mirrored);
    let Some(affinity) = &route.affinity else {
        return vec![main];
    };
    let mut all = Vec::new();
    if weights.target > 0 {
        if let Some(cookie) = &affinity.cookie {
            let to = json!([{"destination": {"host": route.target}, "weight": 100}]);
            all.push(rule(route, &merged(&[of_cookie(cookie)], plain), to, false));
            let kept = cookie_text(cookie, &affinity.rules, None);
            set_cookie(&mut main, &route.target, &kept);
        }
        all.extend(of_primary(route, affinity, plain, &mut main));
    } else if let Some(previous) = &affinity.previous {
        let to = json!([{"destination": {"host": route.source}, "weight": 100}]);
        let mut over = rule(route, &merged(&[of_cookie(previous)], plain), to, false);
        let text = cookie_text(previous, &affinity.rules, Some(-1));
        set_cookie(&mut over, &route.source, &text);
        all.push(over);
    }
    all.push(main);
    all
}

/// Those who have seen the source are kept there.
fn of_primary(
    route: &Route,
    affinity: &Affinity,
    plain: &[Value],
    main: &mut Value,
) -> Option<Value> {
    let (cookie, seconds) = affinity.primary.as_ref()?;
    let age = i64::try_from(*seconds).ok();
    set_cookie(
        main,
        &route.source,
        &cookie_text(cookie, &affinity.rules, age),
    );
    let to = json!([{"destination": {"host": route.source}, "weight": 100}]);
    Some(rule(route, &merged(&[of_cookie(cookie)], plain), to, false))
}

fn of_cookie(cookie: &str) -> Value {
    json!({"headers": {"Cookie": {"regex": format!(".*{cookie}.*")}}})
}

/// Responses from this side set a cookie.
fn set_cookie(rule: &mut Value, host: &str, cookie: &str) {
    let to = rule.get_mut("route").and_then(Value::as_array_mut);
    for one in to.into_iter().flatten() {
        if text(one, "/destination/host") == Some(host) {
            let headers = json!({"response": {"add": {"Set-Cookie": cookie}}});
            put(one, "headers", headers);
        }
    }
}

fn destinations(route: &Route, weights: Weights) -> Value {
    json!([
        {"destination": {"host": route.source}, "weight": weights.source()},
        {"destination": {"host": route.target}, "weight": weights.target},
    ])
}

fn rule(route: &Route, matches: &[Value], to: Value, mirrored: bool) -> Value {
    let service = &route.service;
    let mut rule = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            rule.insert(name.to_owned(), value);
        }
    };
    set("match", (!matches.is_empty()).then(|| json!(matches)));
    set("route", Some(to));
    set("timeout", service.timeout.as_ref().map(|text| json!(text)));
    set("retries", service.retries.clone());
    set("headers", service.headers.clone());
    set("corsPolicy", service.cors_policy.clone());
    let rewrite = service.rewrite.as_ref().map(|rewrite| {
        let mut all = Map::new();
        for (name, value) in [("uri", &rewrite.uri), ("authority", &rewrite.authority)] {
            if let Some(value) = value {
                all.insert(name.to_owned(), json!(value));
            }
        }
        Value::Object(all)
    });
    set("rewrite", rewrite);
    if mirrored {
        set("mirror", Some(json!({"host": route.target})));
        let share = route
            .mirror_weight
            .filter(|weight| (1..=100).contains(weight));
        set(
            "mirrorPercentage",
            share.map(|weight| json!({"value": weight})),
        );
    }
    Value::Object(rule)
}

/// Both hold: each of the one with each of the other.
fn merged(particular: &[Value], general: &[Value]) -> Vec<Value> {
    if general.is_empty() {
        return particular.to_vec();
    }
    let mut all = Vec::new();
    for one in particular {
        for other in general {
            let mut both = other.clone();
            slipway_kernel::fields::merge(&mut both, one);
            all.push(both);
        }
    }
    all
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
