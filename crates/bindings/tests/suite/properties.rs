//! Laws over random bindings.

use std::collections::BTreeMap;

use proptest::prelude::*;
use slipway_api::fleet::binding::{Binding, Literal, ObjectFieldRef};
use slipway_bindings::evaluate::{Outcome, Place};
use slipway_bindings::{Known, Read, Text, evaluate, export};

use crate::objects::{cluster, known};

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[A-F]", Just("CLUSTER_NAME".to_owned())]
}

/// Texts with mentions, escapes and what only looks like one.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[A-F]".prop_map(|name| format!("$({name})")),
        1 => Just("$$".to_owned()),
        1 => Just("$".to_owned()),
        1 => Just("$(".to_owned()),
        3 => "[a-z)é ]{0,4}",
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn binding() -> impl Strategy<Value = Binding> {
    let literal = (name(), text()).prop_map(|(name, text)| Binding {
        name,
        value: Some(Literal::Text(text)),
        ..Binding::default()
    });
    let kind = prop_oneof![Just("ConfigMap"), Just("Secret"), Just("Gadget")];
    let object = prop_oneof![
        Just("m".to_owned()),
        Just("s".to_owned()),
        Just("g".to_owned()),
        text()
    ];
    let path = prop_oneof![
        Just("/data/host"),
        Just("/data/pass"),
        Just("/data/$(A)"),
        Just("x")
    ];
    let field = (name(), kind, object, path, any::<bool>());
    let field = field.prop_map(|(name, kind, object, path, optional)| Binding {
        name,
        object_field_ref: Some(ObjectFieldRef {
            kind: kind.to_owned(),
            name: object,
            path: Some(path.to_owned()),
            ..ObjectFieldRef::default()
        }),
        optional: Some(optional),
        ..Binding::default()
    });
    prop_oneof![3 => literal, 2 => field]
}

/// Reads what is needed until nothing is; what is not in the world is missing.
fn settled(bindings: &[Binding]) -> Known {
    let (given, world) = (cluster(), known());
    let mut so_far = Known::new();
    for _ in 0..=bindings.len() {
        let evaluation = evaluate(bindings, Place::ControlPlane(&given), &so_far);
        for need in evaluation.needs().clone() {
            let read = world.get(&need).cloned().unwrap_or(Read::Missing);
            so_far.insert(need, read);
        }
    }
    so_far
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_bindings_does_not_matter(
        (bindings, turned) in prop::collection::vec(binding(), 0..8)
            .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let (known, given) = (settled(&bindings), cluster());
        let one = evaluate(&bindings, Place::ControlPlane(&given), &known);
        let other = evaluate(&turned, Place::ControlPlane(&given), &known);
        prop_assert_eq!(one.values(), other.values());
        prop_assert_eq!(one.references(), other.references());
    }

    #[test]
    fn reading_what_is_needed_comes_to_an_end(bindings in prop::collection::vec(binding(), 0..8)) {
        let (known, given) = (settled(&bindings), cluster());
        let done = evaluate(&bindings, Place::ControlPlane(&given), &known);
        prop_assert!(done.needs().is_empty(), "{:?}", done.needs());
        prop_assert_ne!(done.values(), Err(None));
        // And nothing was read that nobody referred to.
        prop_assert!(known.keys().all(|reference| done.references().contains(reference)));
    }

    #[test]
    fn what_is_exported_comes_out_as_it_went_in(texts in prop::collection::btree_map("[a-z.]{1,8}", ".{0,20}", 0..6)) {
        let values: BTreeMap<String, Text> =
            texts.iter().map(|(name, text)| (name.clone(), Text::public(text.clone()))).collect();
        let made = export(&values, "s");
        let nothing = Known::new();
        let there = evaluate(&made.bindings, Place::Workload, &nothing);
        prop_assert_eq!(there.values(), Ok(values.clone()));
        // And again: exporting what was exported changes nothing.
        prop_assert_eq!(export(&there.values().unwrap(), "s"), made);
    }

    #[test]
    fn a_text_that_mentions_a_secret_is_one(before in "[a-z]{0,5}", after in "[a-z]{0,5}") {
        let all = crate::objects::bindings(serde_json::json!([
            {"name": "A", "objectFieldRef": {"kind": "Secret", "name": "s", "path": "/data/pass"}},
        ]));
        let known = known();
        let evaluation = evaluate(&all, Place::Workload, &known);
        let text = format!("{before}$(A){after}");
        let Outcome::Value(text) = evaluation.expand("X", &text) else {
            return Err(TestCaseError::fail("no value"));
        };
        prop_assert!(text.is_secret());
        let debug = format!("{text:?}");
        prop_assert!(!debug.contains("hunter2"));
    }
}
