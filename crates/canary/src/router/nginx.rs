//! ingress-nginx: beside a person's Ingress stands one of ours, `NAME-canary`, whose annotations say what it gets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use slipway_api::foreign::ingress_nginx as names;
use slipway_api::foreign::istio::StringMatch;
use slipway_kernel::Kind;
use slipway_kernel::fields::{strings, text};

use super::parts::{covers, is_ours, is_taken, understood};
use super::{Abilities, Builtin, CannotRoute, Objects, Route, Router, Write};
use crate::engine::{Routing, Weights};
use crate::measures::{rate, rated};

pub(crate) static ROUTER: Router = Router {
    names: &[("nginx", "")],
    can: Abilities {
        shift: true,
        match_requests: true,
        ..Abilities::NONE
    },
    divides: false,
    acknowledges: false,
    kinds: |_| vec![kind()],
    seen,
    writes: |_, route, objects, weights| writes(route, objects, weights),
    retreat: |_, route, objects| retreat(route, objects).into_iter().collect(),
    check_match,
    borrows: |_, _| false,
    restore: |_, _, _| Vec::new(),
    measures: Builtin {
        success_rate: || {
            let series = "nginx_ingress_controller_requests";
            rate(series, INGRESS, r#"status!~"5.*""#)
        },
        duration: || {
            let series = "nginx_ingress_controller_ingress_upstream_latency_seconds";
            let each = |what: &str| rated(&format!("{series}_{what}"), INGRESS);
            format!("1000 * {} / {}", each("sum"), each("count"))
        },
    },
};

/// What goes to the new version, as ingress-nginx counts it.
const INGRESS: &str = r#"namespace="{{ namespace }}",ingress="{{ ingress }}",canary!="""#;

const KIND: &str = "Ingress";

fn kind() -> Kind {
    Kind::namespaced("networking.k8s.io", "v1", KIND, "ingresses")
}

/// What the canary Ingress is called.
pub(crate) fn name(theirs: &str) -> String {
    format!("{theirs}-canary")
}

fn names_of(route: &Route) -> Result<(&str, String), CannotRoute> {
    let missing = || {
        let why = "spec.ingressRef is required with provider nginx; name the Ingress";
        CannotRoute::Spec(why.to_owned())
    };
    let name = route.ingress.as_deref().filter(|name| !name.is_empty());
    let name = name.ok_or_else(missing)?;
    Ok((name, self::name(name)))
}

fn annotation(route: &Route, name: &str) -> String {
    let prefix = if route.prefix.is_empty() {
        names::PREFIX
    } else {
        &route.prefix
    };
    format!("{prefix}/{name}")
}

/// What the canary Ingress gets.
fn seen(route: &Route, objects: &Objects) -> Result<Routing, CannotRoute> {
    let (_, name) = names_of(route)?;
    let Some(ingress) = objects.get(KIND, &name) else {
        return Ok(Routing::default());
    };
    if !is_ours(route, ingress) {
        // Its weights are of another Canary's version.
        return Err(CannotRoute::NotOurs { kind: KIND, name });
    }
    let annotations = strings(ingress, "/metadata/annotations");
    let get = |name: &str| annotations.get(&annotation(route, name));
    let decides = [names::BY_HEADER, names::BY_COOKIE];
    let weight = if route.is_matching() && decides.iter().any(|name| get(name).is_some()) {
        Some(100)
    } else {
        let weight = get(names::WEIGHT).map_or(Ok(0), |text| text.parse::<u8>());
        weight.ok().filter(|weight| *weight <= 100)
    };
    Ok(Routing {
        weights: weight.map(Weights::to_target),
        pending: None,
    })
}

/// The canary Ingress as it is to be: the person's, with the target in the place of the apex.
fn writes(route: &Route, objects: &Objects, weights: Weights) -> Result<Vec<Write>, CannotRoute> {
    let (theirs, name) = names_of(route)?;
    let Some(ingress) = objects.get(KIND, theirs) else {
        return Err(CannotRoute::Missing {
            kind: KIND,
            name: theirs.to_owned(),
        });
    };
    let spec = retargeted(route, ingress).ok_or_else(|| CannotRoute::NoBackend {
        kind: KIND,
        name: theirs.to_owned(),
        backend: route.apex.clone(),
    })?;
    let kind = kind();
    let mut body = route.own(&kind, &name, &spec);
    let seen = objects.get(KIND, &name);
    let mut wanted = json!(annotations(route, ingress, weights));
    if let (Some(_), Some(wanted)) = (seen, wanted.as_object_mut()) {
        // What decided before and does not any more goes.
        for name in names::ALL {
            wanted.entry(annotation(route, name)).or_insert(Value::Null);
        }
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert(
            "labels".to_owned(),
            json!(strings(ingress, "/metadata/labels")),
        );
        metadata.insert("annotations".to_owned(), wanted);
    }
    if seen.is_some_and(|seen| !is_taken(route, seen, &body)) {
        return Err(CannotRoute::NotOurs { kind: KIND, name });
    }
    if seen.is_some_and(|seen| covers(seen, &body)) {
        return Ok(Vec::new());
    }
    Ok(vec![Write::Apply { kind, name, body }])
}

/// Takes all traffic from the target in the Ingress that is there.
fn retreat(route: &Route, objects: &Objects) -> Option<Write> {
    let (_, name) = names_of(route).ok()?;
    let seen = objects.get(KIND, &name)?;
    let mut wanted = Map::new();
    for one in names::ALL {
        let is_weight = one == names::WEIGHT;
        let value = if is_weight { json!("0") } else { Value::Null };
        wanted.insert(annotation(route, one), value);
    }
    let body = json!({"metadata": {"annotations": wanted}});
    let is_so = !is_ours(route, seen) || covers(seen, &body);
    (!is_so).then(|| Write::Patch {
        kind: kind(),
        name,
        body,
    })
}

/// The person's rules with the target in the place of the apex; none if the apex is in none of them.
fn retargeted(route: &Route, ingress: &Value) -> Option<Value> {
    let mut spec = ingress.get("spec")?.clone();
    let mut found = false;
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let paths = rule
            .pointer_mut("/http/paths")
            .and_then(Value::as_array_mut);
        for path in paths.into_iter().flatten() {
            if text(path, "/backend/service/name") != Some(route.apex.as_str()) {
                continue;
            }
            if let Some(name) = path.pointer_mut("/backend/service/name") {
                *name = json!(route.target);
                found = true;
            }
        }
    }
    found.then_some(spec)
}

/// The person's annotations, without what kubectl keeps there, and with what the target gets.
fn annotations(route: &Route, ingress: &Value, weights: Weights) -> BTreeMap<String, String> {
    let mut all = strings(ingress, "/metadata/annotations");
    all.remove(slipway_api::flagger::LAST_APPLIED);
    for name in names::ALL {
        all.remove(&annotation(route, name));
    }
    let mut set = |name: &str, value: String| all.insert(annotation(route, name), value);
    set(names::CANARY, "true".to_owned());
    if !route.is_matching() {
        set(names::WEIGHT, weights.target.to_string());
        return all;
    }
    set(names::WEIGHT, "0".to_owned());
    if weights.target == 0 {
        return all;
    }
    let headers = route.matching.iter().flat_map(|one| &one.headers);
    for (header, value) in headers {
        if header.eq_ignore_ascii_case("cookie") {
            set(names::BY_COOKIE, exact(value));
            continue;
        }
        set(names::BY_HEADER, header.clone());
        match &value.regex {
            Some(pattern) => set(names::BY_HEADER_PATTERN, pattern.clone()),
            None => set(names::BY_HEADER_VALUE, exact(value)),
        };
    }
    all
}

/// ingress-nginx looks at one header, or one cookie, and nothing else.
fn check_match(written: &Value) -> Result<(), String> {
    let read = understood(written)?;
    let is_headers = read.uri.is_none() && read.method.is_none() && read.query_params.is_empty();
    if !is_headers || !read.source_labels.is_empty() || read.headers.is_empty() {
        return Err("ingress-nginx can go by headers only".to_owned());
    }
    let is_said = |value: &StringMatch| value.exact.is_some() || value.regex.is_some();
    if !read.headers.values().all(is_said) {
        return Err("ingress-nginx can go by exact and regex only".to_owned());
    }
    Ok(())
}

fn exact(value: &StringMatch) -> String {
    value.exact.clone().unwrap_or_default()
}
