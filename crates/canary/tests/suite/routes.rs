//! What routers have in common for their tests: a Canary of a shop, and objects that writes are done to.

use serde_json::{Value, json};
use slipway_api::canary::Service;
use slipway_canary::engine::Weights;
use slipway_canary::provider::Provider;
use slipway_canary::router::{CannotRoute, Ensured, Objects, Route, Write, ensure, restore, seen};
use slipway_kernel::fields::merge;

/// A route of the Canary `web` in `shop`.
pub(crate) fn route(service: Value) -> Route {
    let mut with_port = json!({"port": 80});
    merge(&mut with_port, &service);
    Route {
        namespace: "shop".to_owned(),
        canary: "web".to_owned(),
        uid: "u1".to_owned(),
        apex: "web".to_owned(),
        source: "web-primary".to_owned(),
        target: "web-canary".to_owned(),
        service: serde_json::from_value::<Service>(with_port).unwrap(),
        ..Route::default()
    }
}

/// With A/B by these matches.
pub(crate) fn matching(mut route: Route, matches: Value) -> Route {
    route.written.clone_from(matches.as_array().unwrap());
    route.matching = serde_json::from_value(matches).unwrap();
    route
}

/// Objects by their own kind and name.
pub(crate) fn objects(all: &[Value]) -> Objects {
    let key = |one: &Value| {
        let text = |path: &str| one.pointer(path).unwrap().as_str().unwrap().to_owned();
        (text("/kind"), text("/metadata/name"))
    };
    Objects(all.iter().map(|one| (key(one), one.clone())).collect())
}

/// Does writes as the API does; what we apply is merged, lists are replaced.
pub(crate) fn done(objects: &mut Objects, writes: &[Write]) {
    for write in writes {
        let (kind, name, body) = match write {
            Write::Apply { kind, name, body } | Write::Patch { kind, name, body } => {
                (kind, name, body)
            }
        };
        let key = (kind.kind.to_string(), name.clone());
        let known = objects.0.get(&key).cloned();
        let mut object = known.clone().unwrap_or_else(|| json!({}));
        merge(&mut object, body);
        let generation = known.map_or(0, |known| {
            known
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default()
        });
        merge(
            &mut object,
            &json!({"metadata": {"generation": generation + 1}}),
        );
        objects.0.insert(key, object);
    }
}

/// Brings traffic to these weights, and checks the contract: after the writes there are no others, and what is seen is what
/// was asked for.
pub(crate) fn shift(
    provider: Provider,
    route: &Route,
    objects: &mut Objects,
    weights: Weights,
) -> Result<Vec<Write>, CannotRoute> {
    let writes = match ensure(provider, route, objects, weights)? {
        Ensured::Pending { writes, .. } => writes,
        Ensured::Converged => Vec::new(),
    };
    done(objects, &writes);
    let again = ensure(provider, route, objects, weights)?;
    let rest = match &again {
        Ensured::Pending { writes, .. } => writes.clone(),
        Ensured::Converged => Vec::new(),
    };
    assert!(rest.is_empty(), "a second time writes again: {rest:?}");
    assert_eq!(seen(provider, route, objects)?.weights, Some(weights));
    Ok(writes)
}

/// Puts back what was changed; a second time does nothing more.
pub(crate) fn give_back(provider: Provider, route: &Route, objects: &mut Objects) {
    let writes = restore(provider, route, objects);
    done(objects, &writes);
    let again = restore(provider, route, objects);
    assert!(again.is_empty(), "a second time puts back again: {again:?}");
}

/// The provider of this name.
pub(crate) fn named(name: &str) -> Provider {
    Provider::of(name).unwrap()
}
