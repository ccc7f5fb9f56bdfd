//! What is fuzzed: each target makes a case out of a tape and asserts what holds for every case.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use slipway_api::fleet::binding::Binding;
use slipway_bindings::evaluate::{Outcome, Place};
use slipway_bindings::expand::{escape, mentions, pieces};
use slipway_bindings::pointer::Pointer;
use slipway_bindings::{
    Evaluation, Found, Given, Known, MAX_TEXT, Read, evaluate, export, revision,
};
use slipway_kernel::selector::Selector;

use super::tape::Tape;
use super::target::target;
pub(crate) use super::target::{Target, law, told};

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    target("bindings-mentions", 60, 20_000, expressions),
    target("bindings-pointers", 80, 20_000, pointers),
    target("bindings-values", 300, 20_000, values),
    target("bindings-selectors", 120, 20_000, selectors),
];

const WORDS: &[&str] = &[
    "",
    "$",
    "$$",
    "$(",
    ")",
    "$(A)",
    "$(B)",
    "$(C)",
    "$(S)",
    "x",
    "é",
    "/",
    "~",
    "${X}",
    "$(CLUSTER_NAME)",
    "(",
    "\0",
    "secret",
];

fn text(tape: &mut Tape<'_>) -> String {
    let length = tape.below(6);
    (0..length).map(|_| tape.pick(WORDS)).collect()
}

/// Pieces are the text; what is escaped is plain, and is itself.
fn expressions(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let text = text(tape);
    told(|| format!("{text:?}"));
    law();
    assert_eq!(mentions(&escape(&text)).count(), 0, "{text:?}");
    let there = evaluated_alone(&escape(&text));
    assert_eq!(there, Some(text.clone()), "{text:?}");
    assert!(pieces(&text).count() <= text.len() + 1);
}

/// What a text comes to where no name is bound; none if it mentions one.
fn evaluated_alone(text: &str) -> Option<String> {
    let known = Known::new();
    let nothing = evaluate(&[], Place::Workload, &known);
    match nothing.expand("X", text) {
        Outcome::Value(text) => text.shown().map(str::to_owned),
        _ => None,
    }
}

/// A pointer is printed as it is read, and leads where the library's own does, but for what that leaves open.
fn pointers(bytes: &[u8]) {
    const PARTS: &[&str] = &[
        "/", "a", "b", "0", "1", "~0", "~1", "~", "-", "00", "é", "", "+1", "~2", "x",
    ];
    let tape = &mut Tape::new(bytes);
    let length = tape.below(8);
    let text: String = (0..length).map(|_| tape.pick(PARTS)).collect();
    let object = json!({
        "a": {"b": [1, {"a": null, "~": 2, "/": 3}], "0": 4, "": {"x": 5}}, "b": "x", "": 6, "é": [[7]], "0": {"-": 8},
    });
    told(|| format!("{text:?}"));
    law();
    let Ok(pointer) = Pointer::parse(&text) else {
        let is_valid = text.is_empty() || text.starts_with('/');
        assert!(!is_valid || has_loose_tilde(&text), "{text:?} is refused");
        return;
    };
    assert_eq!(pointer.to_string(), text);
    assert_eq!(
        pointer.find(&object).ok(),
        object.pointer(&text),
        "{text:?}"
    );
}

fn has_loose_tilde(text: &str) -> bool {
    let mut after = text.split('~').skip(1);
    after.any(|part| !part.starts_with(['0', '1']))
}

fn binding(tape: &mut Tape<'_>) -> Value {
    let name = tape.pick(&["A", "B", "C", "D", "CLUSTER_NAME"]);
    let kind = tape.pick(&["ConfigMap", "Secret", "Gadget", "$(A)"]);
    let field = |tape: &mut Tape<'_>| json!({"kind": kind, "name": text(tape), "path": tape.pick(&["/data/x", "/data", "", "x", "/data/$(A)"])});
    let mut made = match tape.below(4) {
        0 | 1 => json!({"name": name, "value": text(tape)}),
        2 => json!({"name": name, "objectFieldRef": field(tape)}),
        _ => {
            json!({"name": name, "moduleFieldRef": {"module": text(tape), "kind": kind, "name": "o", "fieldPath": "/data/x"}})
        }
    };
    if tape.once_in(4) {
        made["default"] = text(tape).into();
    }
    made
}

/// What a world answers: the same for the same reference.
fn answer(reference: &slipway_bindings::Reference, tape: &mut Tape<'_>) -> Read {
    let secret = "c2VjcmV0LXRoaW5n";
    let data = if reference.is_secret() {
        secret
    } else {
        "$(A) thing"
    };
    match tape.below(5) {
        0..=2 => Read::Found(Found::new(json!({
            "apiVersion": "v1", "metadata": {"uid": "u", "resourceVersion": tape.byte().to_string()}, "data": {"x": data},
        }))),
        3 => Read::Missing,
        _ => Read::Forbidden,
    }
}

/// Whatever the bindings are: they come to an end, in whichever order, and nothing secret is shown.
fn values(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let count = tape.below(6);
    let made: Vec<Value> = (0..count).map(|_| binding(tape)).collect();
    told(|| json!(made).to_string());
    let bindings: Vec<Binding> = serde_json::from_value(Value::Array(made)).unwrap();
    let given = Given::cluster("ns", "c", &BTreeMap::new(), &BTreeMap::new());
    let place = if tape.once_in(2) {
        Place::Workload
    } else {
        Place::ControlPlane(&given)
    };
    let mut known = Known::new();
    let mut rounds = 0;
    loop {
        let evaluation = evaluate(&bindings, place.clone(), &known);
        let needs = evaluation.needs().clone();
        if needs.is_empty() {
            break;
        }
        assert!(needs.iter().all(|need| !known.contains_key(need)));
        for need in needs {
            let read = answer(&need, tape);
            known.insert(need, read);
        }
        rounds += 1;
        assert!(rounds <= bindings.len(), "it asks for ever");
    }
    let done = evaluate(&bindings, place.clone(), &known);
    let mut turned = bindings.clone();
    turned.reverse();
    let again = evaluate(&turned, place, &known);
    assert_eq!(done.values(), again.values(), "the order counts");
    assert_eq!(done.references(), again.references());
    law();
    look(&done);
}

fn look(done: &Evaluation<'_>) {
    let shown = format!("{:?} {:?}", done.values(), done.references());
    assert!(!shown.contains("secret-thing"), "{shown}");
    let all = match done.values() {
        Ok(all) => all,
        Err(failure) => {
            let failure = failure.unwrap();
            assert!(!failure.to_string().contains("secret-thing"), "{failure}");
            return;
        }
    };
    for (name, text) in &all {
        assert!(text.reveal().len() <= MAX_TEXT);
        assert!(
            text.is_secret() || !text.reveal().contains("secret-thing"),
            "{name}"
        );
    }
    assert_eq!(revision::of_values(&all), revision::of_values(&all.clone()));
    let made = export(&all, "s");
    let bindings = serde_json::to_string(&made.bindings).unwrap();
    assert!(!bindings.contains("secret-thing"), "{bindings}");
    let nothing = Known::new();
    let there = evaluate(&made.bindings, Place::Workload, &nothing);
    for (name, text) in all.iter().filter(|(_, text)| !text.is_secret()) {
        assert_eq!(
            there.get(name),
            Outcome::Value(text.clone()),
            "{name} is expanded twice"
        );
    }
}

/// A selector means what its parts mean together; nothing is made of what it is not.
fn selectors(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let key = |tape: &mut Tape<'_>| tape.pick(&["a", "b", "x.y/z"]).to_owned();
    let value = |tape: &mut Tape<'_>| tape.pick(&["", "1", "2"]).to_owned();
    let labels: BTreeMap<String, String> = (0..tape.below(3))
        .map(|_| (key(tape), value(tape)))
        .collect();
    let expressions: Vec<Value> = (0..tape.below(4))
        .map(|_| {
            let operator = tape.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Is", ""]);
            let values: Vec<String> = (0..tape.below(3)).map(|_| value(tape)).collect();
            json!({"key": key(tape), "operator": operator, "values": values})
        })
        .collect();
    let of: BTreeMap<String, String> = (0..tape.below(4))
        .map(|_| (key(tape), value(tape)))
        .collect();
    let selector = json!({"matchLabels": labels, "matchExpressions": expressions});
    told(|| format!("{selector} on {of:?}"));
    let typed: slipway_api::fleet::selector::ClusterSelector =
        serde_json::from_value(selector.clone()).unwrap();
    law();
    let alone = |part: Value| Selector::read(&part).selects(&of);
    let by_label = labels
        .iter()
        .all(|(key, value)| alone(json!({"matchLabels": {key: value}})));
    let by_expression = expressions
        .iter()
        .all(|one| alone(json!({"matchExpressions": [one]})));
    assert_eq!(
        Selector::read(&selector).selects(&of),
        by_label && by_expression
    );
    // What can be followed means the same in the form that is stored.
    if typed.check().is_ok() {
        let stored = serde_json::to_value(&typed).unwrap();
        assert_eq!(
            Selector::read(&stored).selects(&of),
            by_label && by_expression
        );
        for one in &expressions {
            let mut inverse = one.clone();
            inverse["operator"] = match one["operator"].as_str().unwrap() {
                "In" => "NotIn",
                "NotIn" => "In",
                "Exists" => "DoesNotExist",
                _ => "Exists",
            }
            .into();
            assert_ne!(
                alone(json!({"matchExpressions": [one]})),
                alone(json!({"matchExpressions": [inverse]}))
            );
        }
    }
}
