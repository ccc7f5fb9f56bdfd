//! Strategic merge patches.

use serde_json::{Value, json};
use slipway_apiserver::decode::{FieldValidation, Target};
use slipway_apiserver::patch::{self, PatchKind};

use super::told;
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{disturb, key, part, size, thinned};
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
    if !changes.to_string().contains("\"$") {
        let twice = patch::strategic(schema, &once, &changes).unwrap_or_else(|status| panic!("again: {}", status.message));
        assert_eq!(twice, once, "twice");
    }
    let target = Target {
        group: &resource.names.group,
        version: &object.version,
        kind: &resource.names.kind,
    };
    let body = changes.to_string();
    let patched = patch::patch(PatchKind::Strategic, schema, &doc, body.as_bytes(), FieldValidation::Warn);
    let settled = patch::settle(patched.unwrap(), schema, &target, FieldValidation::Warn);
    if let Err(status) = settled {
        assert!(matches!(status.code, 400 | 422), "{status:?}");
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
        1 => ("$patch".to_owned(), json!(tape.pick(&["replace", "merge", "", "x"]))),
        2 => ("$retainKeys".to_owned(), Value::from(words())),
        3 => (format!("$deleteFromPrimitiveList/{name}"), map.get(&name).cloned().unwrap_or_default()),
        4 => (format!("$setElementOrder/{name}"), map.get(&name).cloned().unwrap_or_default()),
        _ => (format!("$setElementOrder/{name}"), json!([{"name": "a"}, {"name": "b"}])),
    };
    map.insert(directive, value);
}
