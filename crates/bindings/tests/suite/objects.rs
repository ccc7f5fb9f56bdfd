//! Objects that the tests speak of.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::fleet::binding::Binding;
use slipway_bindings::evaluate::Place;
use slipway_bindings::{Failure, Found, Given, Known, Read, Reference, Text, evaluate};

/// Bindings as people write them.
pub(crate) fn bindings(all: Value) -> Vec<Binding> {
    serde_json::from_value(all).unwrap()
}

/// What is known of a cluster.
pub(crate) fn cluster() -> Given {
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    Given::cluster(
        "fleet",
        "berlin",
        &map("zone", "eu-1"),
        &map("owner", "$(ops)"),
    )
}

pub(crate) fn reference(kind: &str, name: &str) -> Reference {
    Reference::Object {
        api_version: None,
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// A `ConfigMap`, a Secret (`pass` is in it) and a Cluster.
pub(crate) fn known() -> Known {
    let found = |object: Value| Read::Found(Found::new(object));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "u1", "resourceVersion": "7"},
        "data": {"pass": "aHVudGVyMg==", "odd": "/w==", "wrong": "?"},
    });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
        "data": {"host": "db", "which": "m", "tricky": "$(CLUSTER_NAME) $$ ${X}"},
    });
    let cluster = json!({
        "kind": "Cluster", "spec": {"port": 6443, "ratio": 1.5, "none": null, "on": true, "list": [1, {"b": 1, "a": "x"}]},
    });
    let module = Reference::Module {
        module: "net".to_owned(),
        kind: "Service".to_owned(),
        name: "gate".to_owned(),
    };
    Known::from([
        (reference("ConfigMap", "m"), found(map)),
        (reference("ConfigMap", "gone"), Read::Missing),
        (reference("ConfigMap", "hidden"), Read::Forbidden),
        (reference("Secret", "s"), found(secret)),
        (reference("Cluster", "berlin"), found(cluster)),
        (reference("Gadget", "g"), Read::NoSuchKind),
        (
            reference("Ingress", "i"),
            Read::SeveralKinds(vec!["a/v1".to_owned(), "b/v1".to_owned()]),
        ),
        (module, found(json!({"spec": {"clusterIP": "10.0.0.7"}}))),
    ])
}

/// What all names come to in the control plane.
pub(crate) fn values(all: Value) -> Result<BTreeMap<String, Text>, Failure> {
    let (bindings, given, known) = (bindings(all), cluster(), known());
    let evaluation = evaluate(&bindings, Place::ControlPlane(&given), &known);
    assert!(evaluation.needs().is_empty(), "{:?}", evaluation.needs());
    evaluation.values().map_err(Option::unwrap)
}

/// What the name `A` comes to, or what is told.
pub(crate) fn value(all: Value) -> Result<String, String> {
    let values = values(all).map_err(|failure| failure.to_string())?;
    Ok(values["A"].reveal().to_owned())
}
