//! What the types make of what was stored.

#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::binding::Binding;
use super::selector::{BrokenSelector, ClusterSelector};
use super::sync::{Kustomize, NoSubstitutions};

fn substitutions(substitute: Value) -> Result<Vec<(String, String)>, NoSubstitutions> {
    let kustomize = Kustomize {
        substitute: Some(substitute),
        ..Kustomize::default()
    };
    Ok(kustomize.substitutions()?.into_iter().collect())
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    all.iter().map(owned).collect()
}

#[test]
fn substitutions_are_the_same_in_every_form() {
    let expected = pairs(&[("A", "$(A)"), ("B", "x$(A)"), ("C", "7")]);
    for form in [
        json!({"A": "$(A)", "B": "x$(A)", "C": 7}),
        json!([{"A": "$(A)"}, {"B": "x$(A)"}, {"C": 7}]),
        json!([{"name": "A"}, {"name": "B", "value": "x$(A)"}, {"C": "7"}]),
    ] {
        assert_eq!(substitutions(form.clone()), Ok(expected.clone()), "{form}");
    }
    assert_eq!(substitutions(Value::Null), Ok(Vec::new()));
    // A variable called `name` needs the map: in a list it is the short form.
    assert_eq!(
        substitutions(json!([{"name": "a"}])),
        Ok(pairs(&[("a", "$(a)")]))
    );
    assert_eq!(
        substitutions(json!({"name": "a"})),
        Ok(pairs(&[("name", "a")]))
    );
}

#[test]
fn substitutions_that_are_none_are_told_apart() {
    for (form, told) in [
        (json!("A=a"), NoSubstitutions::NeitherMapNorList),
        (json!([{"A": "a"}, "B"]), NoSubstitutions::Element(1)),
        (json!([{"A": "a", "B": "b"}]), NoSubstitutions::Element(0)),
        (json!([{}]), NoSubstitutions::Element(0)),
        (
            json!({"A": true}),
            NoSubstitutions::NotALiteral("A".to_owned()),
        ),
        (
            json!({"A": ["a"]}),
            NoSubstitutions::NotALiteral("A".to_owned()),
        ),
        (
            json!([{"A": "a"}, {"name": "A"}]),
            NoSubstitutions::Twice("A".to_owned()),
        ),
        (
            json!({"cluster.name": "a"}),
            NoSubstitutions::NotAVariable("cluster.name".to_owned()),
        ),
        (
            json!({"1A": "a"}),
            NoSubstitutions::NotAVariable("1A".to_owned()),
        ),
        (
            json!({"": "a"}),
            NoSubstitutions::NotAVariable(String::new()),
        ),
    ] {
        assert_eq!(substitutions(form.clone()), Err(told), "{form}");
    }
}

#[test]
fn a_binding_is_read_and_written_alike() {
    for form in [
        json!({"name": "A", "value": "a"}),
        json!({"name": "A", "value": 3030}),
        json!({"name": "A", "value": ""}),
        json!({"name": "A", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/a"}}),
        json!({"name": "A", "optional": true, "default": 0,
               "moduleFieldRef": {"module": "m", "kind": "Service", "name": "s", "fieldPath": "/spec"}}),
    ] {
        let read: Binding = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), form);
    }
    let number: Binding = serde_json::from_value(json!({"name": "A", "value": 3030})).unwrap();
    assert_eq!(number.value.unwrap().text(), "3030");
}

#[test]
fn a_selector_that_was_stored_before_the_schema_is_told_to_be_broken() {
    let check = |expression: Value| {
        let selector: ClusterSelector =
            serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
        selector.check()
    };
    assert_eq!(check(json!({"key": "a", "operator": "Exists"})), Ok(()));
    assert_eq!(
        check(json!({"key": "a", "operator": "In", "values": ["b"]})),
        Ok(())
    );
    let told = check(json!({"key": "a", "operator": "In"}));
    assert_eq!(told, Err(BrokenSelector::ValuesMissing("a".to_owned())));
    let told = check(json!({"key": "a", "operator": "DoesNotExist", "values": ["b"]}));
    assert_eq!(told, Err(BrokenSelector::ValuesGiven("a".to_owned())));
    let told = check(json!({"key": "a", "operator": "Is", "values": ["b"]}));
    assert!(matches!(told, Err(BrokenSelector::UnknownOperator { .. })));
}
