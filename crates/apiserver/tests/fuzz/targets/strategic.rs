//! Strategic merge patches.

use serde_json::{Value, json};
use slipway_apiserver::decode::{FieldValidation, Target};
use slipway_apiserver::patch::{self, PatchKind};

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{disturb, has_twins, key, part, size, thinned};
use crate::fuzz::tape::Tape;

/// An empty patch changes nothing, nor does a second one that is the first again.
pub(super) fn strategic(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let object = tape.pick_ref(&corpus().objects);
    let resource = &corpus().resources[object.resource];
    let schema = &resource.version(&object.version).unwrap().schema;
    let mut doc = object.value.clone();
    if size(&doc) > 300 {
        return;
    }
    disturb(tape, &mut doc, 2);
    if !doc.is_object() {
        return;
    }
    let mut changes = thinned(tape, &object.value);
    disturb(tape, &mut changes, 3);
    for _ in 0..tape.below(3) {
        direct(tape, &mut changes);
    }
    told(|| format!("{doc}\n  {changes}"));
    for nothing in [json!({}), Value::Null] {
        assert_eq!(patch::strategic(schema, &doc, &nothing).unwrap(), doc);
    }
    let once = match patch::strategic(schema, &doc, &changes) {
        Ok(once) => once,
        Err(status) => {
            assert!(matches!(status.code, 400 | 422 | 500), "{status:?}");
            return;
        }
    };
    assert!(once.is_object());
    let target = Target {
        group: &resource.names.group,
        version: &object.version,
        kind: &resource.names.kind,
    };
    let body = changes.to_string();
    let patched = patch::patch(
        PatchKind::Strategic,
        schema,
        &doc,
        body.as_bytes(),
        FieldValidation::Warn,
    );
    match patch::settle(patched.unwrap(), schema, &target, FieldValidation::Warn) {
        Err(status) => assert!(matches!(status.code, 400 | 422), "{status:?}"),
        // What is null is taken out, or becomes zero, depending on what was there before. One of two items with the same
        // key finds the first.
        Ok(once)
            if !changes.to_string().contains("\"$")
                && !has_nulls(&changes)
                && !has_twins(&changes, true)
                && !has_twins(&once.object, true) =>
        {
            let twice = patch::patch(
                PatchKind::Strategic,
                schema,
                &once.object,
                body.as_bytes(),
                FieldValidation::Warn,
            );
            let twice = match twice {
                // What has no schema, or no key, can be set, but not merged.
                Err(status)
                    if [
                        "struct RawExtension",
                        "struct JSON",
                        "struct FieldsV1",
                        "does not contain declared merge key",
                        "data type is not struct",
                    ]
                    .iter()
                    .any(|k| status.message.contains(k)) =>
                {
                    return;
                }
                twice => twice.unwrap_or_else(|status| panic!("again: {}", status.message)),
            };
            law();
            let twice = patch::settle(twice, schema, &target, FieldValidation::Warn).unwrap();
            assert_eq!(twice.object, once.object, "twice");
        }
        Ok(_) => {}
    }
}

/// Puts a directive somewhere.
fn direct(tape: &mut Tape<'_>, changes: &mut Value) {
    let here = part(tape, changes);
    let Value::Object(map) = here else {
        return;
    };
    let name = match map.keys().nth(tape.below(map.len().max(1))) {
        Some(name) => name.clone(),
        None => key(tape),
    };
    let words = || -> Vec<Value> { map.keys().map(|name| json!(name)).collect() };
    let (directive, value) = match tape.below(6) {
        0 => ("$patch".to_owned(), json!("delete")),
        1 => (
            "$patch".to_owned(),
            json!(tape.pick(&["replace", "merge", "", "x"])),
        ),
        2 => ("$retainKeys".to_owned(), Value::from(words())),
        3 => (
            format!("$deleteFromPrimitiveList/{name}"),
            map.get(&name).cloned().unwrap_or_default(),
        ),
        4 => (
            format!("$setElementOrder/{name}"),
            map.get(&name).cloned().unwrap_or_default(),
        ),
        _ => (
            format!("$setElementOrder/{name}"),
            json!([{"name": "a"}, {"name": "b"}]),
        ),
    };
    map.insert(directive, value);
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_nulls),
        Value::Array(items) => items.iter().any(has_nulls),
        _ => false,
    }
}
