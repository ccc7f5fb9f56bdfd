//! What routers share.

use serde_json::Value;
use slipway_api::foreign::istio::HttpMatch;
use slipway_kernel::Kind;
use slipway_kernel::fields::{list, text};

use super::{CannotRoute, Objects, Route, Write};

/// What we alone say of rules of routes, and of where these lead: where it is not wanted, it must not be there. Elements of
/// lists have no names by which a part of one could be taken away.
const OURS: [&str; 10] = [
    "corsPolicy",
    "filters",
    "headers",
    "match",
    "mirror",
    "mirrorPercentage",
    "retries",
    "rewrite",
    "timeout",
    "timeouts",
];

/// Whether an object has all that is wanted of it. What an API server adds by itself is no difference: a field that is not
/// wanted may be there. Lists have as many elements as wanted, without what is [`OURS`] and not wanted.
pub(crate) fn covers(seen: &Value, wanted: &Value) -> bool {
    match (seen, wanted) {
        (Value::Object(seen), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            let known = seen.get(name);
            known.map_or(is_nothing(wanted), |seen| covers(seen, wanted))
        }),
        (Value::Array(seen), Value::Array(wanted)) => {
            let mut both = seen.iter().zip(wanted);
            let is_so = |seen: &Value, wanted: &Value| {
                let is_left = |name: &&str| {
                    let known = seen.get(*name).filter(|known| !is_nothing(known));
                    known.is_some() && wanted.get(*name).is_none_or(is_nothing)
                };
                covers(seen, wanted) && !OURS.iter().any(is_left)
            };
            seen.len() == wanted.len() && both.all(|(seen, wanted)| is_so(seen, wanted))
        }
        (seen, wanted) => seen == wanted,
    }
}

/// Whether it says nothing.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// A match as it was written, if all of it is understood, and it says something.
pub(crate) fn understood(written: &Value) -> Result<HttpMatch, String> {
    let read: HttpMatch =
        serde_json::from_value(written.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&read).unwrap_or_default();
    if is_nothing(&again) {
        return Err("it says nothing of which requests are meant".to_owned());
    }
    if again != *written {
        return Err(format!("of it only {again} is understood"));
    }
    Ok(read)
}

/// The merge patch by which an object comes to cover what is wanted of it.
pub(crate) fn lacking(seen: &Value, wanted: &Value) -> Value {
    let (Value::Object(seen), Value::Object(wanted)) = (seen, wanted) else {
        return wanted.clone();
    };
    let fields = wanted.iter().filter_map(|(name, wanted)| {
        let lacks = match seen.get(name) {
            Some(seen) if covers(seen, wanted) => return None,
            Some(seen) => lacking(seen, wanted),
            None if wanted.is_null() => return None,
            None => wanted.clone(),
        };
        Some((name.clone(), lacks))
    });
    Value::Object(fields.collect())
}

/// An object of ours as it is to be; nothing where it is so. An object that is somebody else's is not touched.
pub(crate) fn apply(
    route: &Route,
    objects: &Objects,
    (kind, called): (&Kind, &'static str),
    name: &str,
    spec: &Value,
) -> Result<Option<Write>, CannotRoute> {
    let body = route.own(kind, name, spec);
    let seen = objects.get(called, name);
    if let Some(seen) = seen {
        if !is_taken(route, seen, &body) {
            return Err(CannotRoute::NotOurs {
                kind: called,
                name: name.to_owned(),
            });
        }
        if covers(seen, &body) {
            return Ok(None);
        }
    }
    Ok(Some(Write::Apply {
        kind: kind.clone(),
        name: name.to_owned(),
        body,
    }))
}

/// Who controls an object, as its owners say.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    let mut owners = list(object, "/metadata/ownerReferences");
    owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// Whether this controller is the Canary of a route.
fn is_it(route: &Route, controller: &Value) -> bool {
    text(controller, "/uid") == Some(route.uid.as_str())
}

/// Whether the Canary may make an object be what is wanted of it: it controls it; or nobody does, and it says the same already, but
/// for weights. All else is a person's own, and would be lost.
pub(crate) fn is_taken(route: &Route, seen: &Value, wanted: &Value) -> bool {
    let spec = |object: &Value| unweighted(object.get("spec").unwrap_or(&Value::Null));
    let is_free = is_ours(route, seen);
    is_controlled(route, seen) || (is_free && covers(&spec(seen), &spec(wanted)))
}

/// The same without weights.
fn unweighted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "weight");
            let kept = kept.map(|(name, value)| (name.clone(), unweighted(value)));
            Value::Object(kept.collect())
        }
        Value::Array(all) => Value::Array(all.iter().map(unweighted).collect()),
        other => other.clone(),
    }
}

/// Whether the Canary may write an object: it controls it, or nobody does.
pub(crate) fn is_ours(route: &Route, object: &Value) -> bool {
    controller(object).is_none_or(|one| is_it(route, one))
}

/// Whether the Canary controls an object.
pub(crate) fn is_controlled(route: &Route, object: &Value) -> bool {
    controller(object).is_some_and(|one| is_it(route, one))
}

/// Whether a Canary controls an object, whichever.
pub(crate) fn has_canary(object: &Value) -> bool {
    let kind = controller(object).and_then(|one| text(one, "/kind"));
    kind == Some(slipway_api::canary::KIND)
}

/// A weight of a hundred, of a list of named weights; none if it is no such thing.
pub(crate) fn percent(target: i64, source: i64) -> Option<u8> {
    let sum = target.checked_add(source).filter(|sum| *sum > 0)?;
    if target < 0 || source < 0 {
        return None;
    }
    u8::try_from(target.checked_mul(100)? / sum).ok()
}
