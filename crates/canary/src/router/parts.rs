//! What routers share.

use serde_json::Value;
use slipway_kernel::Kind;
use slipway_kernel::fields::{list, text};

use super::{CannotRoute, Objects, Route, Write};

/// Whether an object has all that is wanted of it. What an API server adds by itself is no difference: a field that is not
/// wanted may be there. Lists have as many elements as wanted.
pub(crate) fn covers(seen: &Value, wanted: &Value) -> bool {
    match (seen, wanted) {
        (Value::Object(seen), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            let is_nothing =
                wanted.is_null() || wanted.as_object().is_some_and(serde_json::Map::is_empty);
            seen.get(name)
                .map_or(is_nothing, |seen| covers(seen, wanted))
        }),
        (Value::Array(seen), Value::Array(wanted)) => {
            let mut both = seen.iter().zip(wanted);
            seen.len() == wanted.len() && both.all(|(seen, wanted)| covers(seen, wanted))
        }
        (seen, wanted) => seen == wanted,
    }
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

/// An object of ours as it is to be; nothing where it is so. An object that somebody else controls is not touched.
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
        if !is_ours(route, seen) {
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

/// Whether the Canary may write an object: it controls it, or nobody does.
pub(crate) fn is_ours(route: &Route, object: &Value) -> bool {
    let mut owners = list(object, "/metadata/ownerReferences");
    let controller = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    controller.is_none_or(|owner| text(owner, "/uid") == Some(route.uid.as_str()))
}

/// A weight of a hundred, of a list of named weights; none if it is no such thing.
pub(crate) fn percent(target: i64, source: i64) -> Option<u8> {
    let sum = target.checked_add(source).filter(|sum| *sum > 0)?;
    if target < 0 || source < 0 {
        return None;
    }
    u8::try_from(target.checked_mul(100)? / sum).ok()
}
