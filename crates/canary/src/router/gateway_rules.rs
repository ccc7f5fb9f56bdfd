//! The rules of an `HTTPRoute` of ours, out of `spec.service` and `spec.analysis`.

use serde_json::{Map, Value, json};
use slipway_api::canary::SessionAffinity;
use slipway_api::foreign::gateway::{REQUEST_MIRROR, RESPONSE_HEADERS};
use slipway_api::foreign::istio::{HttpMatch, StringMatch};
use slipway_kernel::fields::list;

use super::{Affinity, CannotRoute, Route};
use crate::engine::Weights;

/// How long a cookie is kept, where nobody says.
const DAY: i64 = 86_400;

/// All rules, the most particular first.
pub(super) fn rules(route: &Route, weights: Weights) -> Result<Vec<Value>, CannotRoute> {
    let matches = service_matches(route)?;
    if route.is_matching() {
        let particular: Result<Vec<Value>, CannotRoute> =
            route.matching.iter().map(translated).collect();
        let merged = product(&particular?, &matches);
        return Ok(vec![
            rule(route, &merged, &both(route, weights), weights.mirrored)?,
            rule(
                route,
                &matches,
                &[backend(route, &route.source, 100)],
                false,
            )?,
        ]);
    }
    let Some(affinity) = &route.affinity else {
        let backends = both(route, weights);
        return Ok(vec![rule(route, &matches, &backends, weights.mirrored)?]);
    };
    sticky(route, affinity, &matches, weights)
}

fn rule(
    route: &Route,
    matches: &[Value],
    backends: &[Value],
    mirrored: bool,
) -> Result<Value, CannotRoute> {
    let mut filters = filters(route)?;
    if mirrored {
        let to = json!({"group": "", "kind": "Service", "name": route.target, "port": route.service.port});
        filters.push(json!({"type": REQUEST_MIRROR, "requestMirror": {"backendRef": to}}));
    }
    let mut rule = Map::new();
    rule.insert("matches".to_owned(), json!(matches));
    if !filters.is_empty() {
        rule.insert("filters".to_owned(), json!(filters));
    }
    rule.insert("backendRefs".to_owned(), json!(backends));
    let mut timeouts = Map::new();
    let service = &route.service;
    for (name, value) in [
        ("request", &service.timeout),
        ("backendRequest", &service.backend_timeout),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            timeouts.insert(name.to_owned(), json!(value));
        }
    }
    if !timeouts.is_empty() {
        rule.insert("timeouts".to_owned(), Value::Object(timeouts));
    }
    Ok(Value::Object(rule))
}

fn backend(route: &Route, name: &str, weight: u8) -> Value {
    json!({"group": "", "kind": "Service", "name": name, "port": route.service.port, "weight": weight})
}

fn both(route: &Route, weights: Weights) -> [Value; 2] {
    [
        backend(route, &route.source, weights.source()),
        backend(route, &route.target, weights.target),
    ]
}

/// Those who have seen the target are sent there again; afterwards they are told to forget it.
fn sticky(
    route: &Route,
    affinity: &Affinity,
    matches: &[Value],
    weights: Weights,
) -> Result<Vec<Value>, CannotRoute> {
    let mut all = Vec::new();
    let [mut source, mut target] = both(route, weights);
    if weights.target > 0 {
        if let Some(cookie) = &affinity.cookie {
            let kept = cookie_text(cookie, &affinity.rules, None);
            add_filter(&mut target, &set_cookie(&kept));
            let seen = product(&[cookie_match(cookie)], matches);
            all.push(rule(
                route,
                &seen,
                &[backend(route, &route.target, 100)],
                false,
            )?);
        }
        if let Some((cookie, seconds)) = &affinity.primary {
            let kept = i64::try_from(*seconds).unwrap_or(DAY);
            let kept = cookie_text(cookie, &affinity.rules, Some(kept));
            add_filter(&mut source, &set_cookie(&kept));
            let seen = product(&[cookie_match(cookie)], matches);
            all.push(rule(
                route,
                &seen,
                &[backend(route, &route.source, 100)],
                false,
            )?);
        }
    } else if let Some(previous) = &affinity.previous {
        let mut to = backend(route, &route.source, 100);
        let over = cookie_text(previous, &affinity.rules, Some(-1));
        add_filter(&mut to, &set_cookie(&over));
        let seen = product(&[cookie_match(previous)], matches);
        all.push(rule(route, &seen, &[to], false)?);
    }
    all.push(rule(route, matches, &[source, target], weights.mirrored)?);
    Ok(all)
}

fn add_filter(backend: &mut Value, filter: &Value) {
    if let Some(fields) = backend.as_object_mut() {
        fields.insert("filters".to_owned(), json!([filter]));
    }
}

fn set_cookie(value: &str) -> Value {
    json!({"type": RESPONSE_HEADERS,
        "responseHeaderModifier": {"add": [{"name": "Set-Cookie", "value": value}]}})
}

fn cookie_match(cookie: &str) -> Value {
    json!({"headers": [{"type": "RegularExpression", "name": "Cookie", "value": format!(".*{cookie}.*")}]})
}

/// A cookie with its attributes, as a response sets it.
pub(super) fn cookie_text(cookie: &str, rules: &SessionAffinity, age: Option<i64>) -> String {
    let age = age.unwrap_or_else(|| rules.max_age.filter(|age| *age > 0).unwrap_or(DAY));
    let mut text = format!("{cookie}; Max-Age={age}");
    for (name, value) in [
        ("Domain", &rules.domain),
        ("Path", &rules.path),
        ("SameSite", &rules.same_site),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            text = format!("{text}; {name}={value}");
        }
    }
    for (name, is_set) in [
        ("HttpOnly", rules.http_only),
        ("Partitioned", rules.partitioned),
        ("Secure", rules.secure),
    ] {
        if is_set == Some(true) {
            text.push_str("; ");
            text.push_str(name);
        }
    }
    text
}

/// Which requests the route is for.
fn service_matches(route: &Route) -> Result<Vec<Value>, CannotRoute> {
    let mut all = Vec::new();
    for one in &route.service.matching {
        let read: HttpMatch = serde_json::from_value(one.clone()).map_err(|error| {
            CannotRoute::Spec(format!("spec.service.match cannot be read: {error}"))
        })?;
        all.push(translated(&read)?);
    }
    if all.is_empty() {
        all.push(json!({"path": {"type": "PathPrefix", "value": "/"}}));
    }
    Ok(all)
}

/// A match of Istio's grammar in Gateway API's.
pub(super) fn translated(one: &HttpMatch) -> Result<Value, CannotRoute> {
    if !one.source_labels.is_empty() {
        let why = "sourceLabels in a match is of Istio only; use headers";
        return Err(CannotRoute::Spec(why.to_owned()));
    }
    let mut all = Map::new();
    if let Some(uri) = &one.uri {
        all.insert("path".to_owned(), path(uri)?);
    }
    if let Some(method) = &one.method {
        let why = "the method in a match has to be exact with provider gatewayapi";
        let exact = method.exact.as_ref();
        let exact = exact.ok_or_else(|| CannotRoute::Spec(why.to_owned()))?;
        all.insert("method".to_owned(), json!(exact));
    }
    for (field, named) in [
        ("headers", &one.headers),
        ("queryParams", &one.query_params),
    ] {
        let each: Result<Vec<Value>, CannotRoute> = named
            .iter()
            .map(|(name, value)| {
                let (kind, value) = exact_or_regex(value)?;
                Ok(json!({"type": kind, "name": name, "value": value}))
            })
            .collect();
        let each = each?;
        if !each.is_empty() {
            all.insert(field.to_owned(), json!(each));
        }
    }
    Ok(Value::Object(all))
}

fn path(uri: &StringMatch) -> Result<Value, CannotRoute> {
    if let Some(prefix) = &uri.prefix {
        return Ok(json!({"type": "PathPrefix", "value": prefix}));
    }
    let (kind, value) = exact_or_regex(uri)?;
    Ok(json!({"type": kind, "value": value}))
}

fn exact_or_regex(value: &StringMatch) -> Result<(&'static str, String), CannotRoute> {
    if let Some(exact) = &value.exact {
        return Ok(("Exact", exact.clone()));
    }
    if let Some(regex) = &value.regex {
        return Ok(("RegularExpression", regex.clone()));
    }
    if let Some(prefix) = &value.prefix {
        return Ok(("RegularExpression", format!("^{prefix}.*")));
    }
    if let Some(suffix) = &value.suffix {
        return Ok(("RegularExpression", format!(".*{suffix}$")));
    }
    let why = "a match has none of exact, prefix, suffix and regex; add one";
    Err(CannotRoute::Spec(why.to_owned()))
}

/// Both hold: each of the one with each of the other. What both say of the path is the particular one's.
fn product(particular: &[Value], general: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for one in particular {
        for other in general {
            let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
                continue;
            };
            let mut merged = other.clone();
            for (field, value) in one {
                match (merged.get_mut(field), value) {
                    (Some(Value::Array(known)), Value::Array(more)) => {
                        known.extend(more.iter().cloned());
                    }
                    _ => {
                        merged.insert(field.clone(), value.clone());
                    }
                }
            }
            all.push(Value::Object(merged));
        }
    }
    all
}

/// What is done to requests and responses.
fn filters(route: &Route) -> Result<Vec<Value>, CannotRoute> {
    let mut all = Vec::new();
    let service = &route.service;
    for (field, kind, name) in [
        ("/request", "RequestHeaderModifier", "requestHeaderModifier"),
        ("/response", RESPONSE_HEADERS, "responseHeaderModifier"),
    ] {
        let headers = service.headers.as_ref().and_then(|all| all.pointer(field));
        if let Some(headers) = headers {
            all.push(json!({"type": kind, name: modifier(headers)}));
        }
    }
    if let Some(rewrite) = &service.rewrite {
        let mut body = Map::new();
        if let Some(authority) = rewrite.authority.as_deref().filter(|a| !a.is_empty()) {
            body.insert("hostname".to_owned(), json!(authority));
        }
        if let Some(uri) = rewrite.uri.as_deref().filter(|uri| !uri.is_empty()) {
            let path = match rewrite.kind.as_deref() {
                Some("ReplacePrefixMatch") => {
                    json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": uri})
                }
                _ => json!({"type": "ReplaceFullPath", "replaceFullPath": uri}),
            };
            body.insert("path".to_owned(), path);
        }
        all.push(json!({"type": "URLRewrite", "urlRewrite": body}));
    }
    for mirror in &service.mirror {
        all.push(json!({"type": REQUEST_MIRROR, "requestMirror": mirror}));
    }
    if service.cors_policy.is_some() {
        let why = "spec.service.corsPolicy is supported with provider istio only; remove it";
        return Err(CannotRoute::Spec(why.to_owned()));
    }
    Ok(all)
}

/// Headers to set, add and remove, as lists.
fn modifier(headers: &Value) -> Value {
    let mut all = Map::new();
    for field in ["set", "add"] {
        let map = headers.get(field).and_then(Value::as_object);
        let each: Vec<Value> = map
            .into_iter()
            .flatten()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        if !each.is_empty() {
            all.insert(field.to_owned(), json!(each));
        }
    }
    let removed: Vec<&Value> = list(headers, "/remove").collect();
    if !removed.is_empty() {
        all.insert("remove".to_owned(), json!(removed));
    }
    Value::Object(all)
}
