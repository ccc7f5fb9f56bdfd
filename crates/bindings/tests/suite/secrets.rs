//! What comes out of a Secret is secret, wherever it goes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_bindings::evaluate::{Outcome, Place};
use slipway_bindings::failure::Why;
use slipway_bindings::{Found, Known, Read, Text, evaluate, export, revision};

use crate::objects::{bindings, known, reference, values};

fn password(name: &str) -> Value {
    json!({"name": name, "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/pass"}})
}

fn literal(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn some() -> BTreeMap<String, Text> {
    let all = json!([
        password("PASS"),
        literal("URL", "pg://$(USER):$(PASS)@db"),
        literal("COPY", "$(URL)"),
        literal("USER", "app"),
    ]);
    values(all).unwrap()
}

#[test]
fn what_is_computed_from_a_secret_is_secret() {
    let values = some();
    let secret: Vec<&str> = values
        .iter()
        .filter(|(_, text)| text.is_secret())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(secret, ["COPY", "PASS", "URL"]);
    assert_eq!(values["COPY"].reveal(), "pg://app:hunter2@db");
    assert_eq!(values["COPY"].shown(), None);
    assert!(!format!("{values:?} {:?}", known()).contains("hunter2"));
    assert!(!format!("{:?}", known()).contains("aHVudGVyMg"));
}

#[test]
fn secrets_travel_in_a_secret_and_are_secret_there_too() {
    let values = some();
    let made = export(&values, "app-values");
    let text = serde_json::to_string(&made.bindings).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(
        made.secret.keys().collect::<Vec<_>>(),
        ["COPY", "PASS", "URL"]
    );
    // What the other side reads.
    let data: BTreeMap<&String, String> = made
        .secret
        .iter()
        .map(|(key, text)| (key, encoded(text.reveal())))
        .collect();
    let copied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"uid": "u9", "resourceVersion": "1"}, "data": data});
    let mut reference = reference("Secret", "app-values");
    if let slipway_bindings::Reference::Object { api_version, .. } = &mut reference {
        *api_version = Some("v1".to_owned());
    }
    let known = Known::from([(reference, Read::Found(Found::new(copied)))]);
    let there = evaluate(&made.bindings, Place::Workload, &known);
    for (name, text) in &values {
        let Outcome::Value(got) = there.get(name) else {
            panic!("{name}: {:?}", there.get(name));
        };
        assert_eq!(
            (got.reveal(), got.is_secret()),
            (text.reveal(), text.is_secret())
        );
    }
}

fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_name_that_can_be_no_key_is_hashed() {
    let all = json!([
        password("a key!"),
        password("..up"),
        password("plain.key_1-a")
    ]);
    let made = export(&values(all).unwrap(), "s");
    let keys: Vec<&String> = made.secret.keys().collect();
    assert!(keys.contains(&&"plain.key_1-a".to_owned()));
    assert!(keys.iter().all(|key| {
        key.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    }));
    assert_eq!(keys.len(), 3);
}

/// Whoever sees a blocker, a watch or a request would see the secret.
#[test]
fn no_object_is_referred_to_by_a_secret() {
    let all = json!([
        password("PASS"),
        {"name": "A", "objectFieldRef": {"kind": "ConfigMap", "name": "m-$(PASS)", "path": "/data/x"}},
    ]);
    let failure = values(all).unwrap_err();
    assert_eq!(failure.why, Why::SecretReference("PASS".to_owned()));
    assert!(!failure.to_string().contains("hunter2"));
}

#[test]
fn the_revision_changes_with_the_secret_and_not_by_what_is_in_it() {
    let of = |uid: &str, version: &str, text: &str| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"uid": uid, "resourceVersion": version},
            "data": {"pass": encoded(text)},
        });
        let known = Known::from([(reference("Secret", "s"), Read::Found(Found::new(secret)))]);
        let all = bindings(json!([password("A")]));
        let evaluation = evaluate(&all, Place::Workload, &known);
        revision::of_values(&evaluation.values().unwrap())
    };
    let first = of("u", "1", "one");
    assert_eq!(first, of("u", "1", "two"), "it is no hash of what is in it");
    assert_ne!(first, of("u", "2", "one"));
    assert_ne!(first, of("v", "1", "one"));
}

#[test]
fn the_revision_of_values_is_theirs_alone() {
    let of = |all: Value| revision::of_values(&values(all).unwrap());
    assert_eq!(of(json!([])), None);
    let first = of(json!([literal("A", "a"), literal("B", "$(A)")]));
    assert_eq!(first, of(json!([literal("B", "a"), literal("A", "a")])));
    assert_ne!(first, of(json!([literal("A", "a"), literal("B", "b")])));
    assert_ne!(first, of(json!([literal("A", "a"), literal("C", "a")])));
    let whole = revision::of_assignment("0123456789", first.as_deref());
    assert_eq!(revision::template_of(&whole), "0123456789");
    assert_eq!(revision::template_of("0123456789"), "0123456789");
}

/// What is around a secret, and which field of it is meant, is part of the revision; what is in it is not.
#[test]
fn what_is_around_a_secret_is_part_of_the_revision() {
    let of = |text: &str, host: &str| {
        let all = json!([
            password("PASS"),
            literal("HOST", host),
            literal("URL", text)
        ]);
        let mut values = values(all).unwrap();
        values.retain(|name, _| name == "URL");
        revision::of_values(&values).unwrap()
    };
    let url = "pg://$(PASS)@$(HOST)";
    assert_eq!(of(url, "a"), of(url, "a"));
    assert_ne!(of(url, "a"), of(url, "b"), "another host");
    assert_ne!(of("$(PASS)", "a"), of("$(PASS)$(PASS)", "a"));
    assert_ne!(of("x$(PASS)", "a"), of("$(PASS)x", "a"));
}

/// However often names mention each other, what is remembered of a text stays small.
#[test]
fn what_is_remembered_of_a_secret_stays_small() {
    let mut all = vec![
        json!({"name": "N0", "objectFieldRef": {"kind": "Secret", "name": "empty", "path": "/data/none"}}),
    ];
    for at in 1..100 {
        let before = at - 1;
        all.push(literal(
            &format!("N{at}"),
            &format!("$(N{before})$(N{before})"),
        ));
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"uid": "e", "resourceVersion": "1"}, "data": {"none": ""},
    });
    let known = Known::from([(
        reference("Secret", "empty"),
        Read::Found(Found::new(secret)),
    )]);
    let bindings = bindings(json!(all));
    let evaluation = evaluate(&bindings, Place::Workload, &known);
    let values = evaluation.values().unwrap();
    assert_eq!(values["N99"].reveal(), "");
    assert!(values["N99"].is_secret() && values["N99"].told().len() == 32);
}
