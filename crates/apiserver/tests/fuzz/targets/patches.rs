//! JSON patches and merge patches.

use serde_json::{Map, Value, json};
use slipway_apiserver::patch;

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::{any_json, damage, disturb, key, leaf, size};
use crate::fuzz::tape::Tape;

/// An object of moderate size to patch.
fn document(tape: &mut Tape<'_>) -> Value {
    let document = tape.pick_ref(&corpus().objects).value.clone();
    if size(&document) < 120 {
        document
    } else {
        json!({"a": {"b": [1, {"c": null}], "": 0, "~/": "x"}, "l": [[], {}, "s"], "metadata": {"name": "a"}})
    }
}

/// Patches in a row are one patch, and each operation does what the RFC says of it.
pub(super) fn json(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let doc = document(tape);
    let operations: Vec<Value> = (0..tape.below(7)).map(|_| operation(tape, &doc)).collect();
    told(|| format!("{doc}\n  {}", Value::from(operations.clone())));
    let apply = |doc: &Value, operations: &[Value]| {
        let result = patch::json(doc, Value::from(operations.to_vec()).to_string().as_bytes());
        result.map_err(|status| {
            assert!(matches!(status.code, 400 | 413 | 422), "{status:?}");
            status.message
        })
    };
    assert_eq!(apply(&doc, &[]).as_ref(), Ok(&doc));
    let whole = apply(&doc, &operations);
    let cut = tape.below(operations.len() + 1);
    // In between there may be something that is no object, which only the end must not be.
    if let Ok(middle) = apply(&doc, &operations[..cut]) {
        assert_eq!(apply(&middle, &operations[cut..]), whole, "in two parts");
    } else if !operations[..cut].iter().any(|o| o["path"] == "") {
        assert!(whole.is_err(), "the first part fails, the whole does not");
    }
    for one in &operations {
        judge_operation(&doc, one, &|doc, patch| apply(doc, patch));
    }

    let mut body = Value::from(operations).to_string().into_bytes();
    damage(
        tape,
        &mut body,
        &[
            "{",
            "}",
            "\"op\"",
            "null",
            "~1",
            "~2",
            "/",
            "-1",
            "\"path\":1,",
        ],
        4,
    );
    if let Err(status) = patch::json(&doc, &body) {
        assert!(matches!(status.code, 400 | 413 | 422), "{status:?}");
    }
}

type Apply<'a> = &'a dyn Fn(&Value, &[Value]) -> Result<Value, String>;

fn judge_operation(doc: &Value, one: &Value, apply: Apply<'_>) {
    let Ok(after) = apply(doc, std::slice::from_ref(one)) else {
        return;
    };
    let path = one["path"].as_str().unwrap_or_default();
    if !path.starts_with('/') {
        // What stands before the first slash is not looked at, in the real server either.
        return;
    }
    law();
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_new = doc.pointer(path).is_none();
    // Places counted from the end move when something is added.
    let moves = last == "-" || last.starts_with('-');
    let test = |value: &Value| json!({"op": "test", "path": path, "value": value});
    match one["op"].as_str().unwrap_or_default() {
        "test" => assert_eq!(&after, doc, "a test changes nothing"),
        "add" | "replace" if !moves => {
            let value = one.get("value").unwrap_or(&Value::Null);
            assert!(
                apply(&after, &[test(value)]).is_ok(),
                "what was added is not there"
            );
            if is_new && one["op"] == "add" {
                let back = apply(&after, &[json!({"op": "remove", "path": path})]);
                assert_eq!(back.as_ref(), Ok(doc), "added and removed");
            }
        }
        "move" => {
            let from = &one["from"];
            if let (Some(found), false) = (from.as_str().and_then(|from| doc.pointer(from)), moves)
            {
                let parts = [
                    json!({"op": "remove", "path": from}),
                    json!({"op": "add", "path": path, "value": found}),
                ];
                assert_eq!(apply(doc, &parts), Ok(after), "moved is removed and added");
            }
        }
        _ => {}
    }
}

fn operation(tape: &mut Tape<'_>, doc: &Value) -> Value {
    let mut operation = json!({"op": tape.pick(&["add", "remove", "replace", "move", "copy", "test"]), "path": pointer(tape, doc)});
    if tape.once_in(2) || operation["op"] == "move" || operation["op"] == "copy" {
        operation["from"] = json!(pointer(tape, doc));
    }
    operation["value"] = match (operation["op"].as_str(), tape.below(3)) {
        (Some("test"), 0 | 1) => {
            let path = operation["path"].as_str().unwrap_or_default();
            doc.pointer(path).cloned().unwrap_or_default()
        }
        (_, 0) => leaf(tape),
        _ => any_json(tape, 2),
    };
    if tape.once_in(12) {
        disturb(tape, &mut operation, 2);
    }
    operation
}

/// Mostly the path of something that is there.
fn pointer(tape: &mut Tape<'_>, doc: &Value) -> String {
    let mut path = String::new();
    let mut here = doc;
    while !tape.is_at_end() && !tape.once_in(5) {
        let step = match here {
            Value::Object(map) if !map.is_empty() && !tape.once_in(8) => {
                let (name, below) = map.iter().nth(tape.below(map.len())).unwrap();
                here = below;
                name.replace('~', "~0").replace('/', "~1")
            }
            Value::Array(items) if !items.is_empty() && !tape.once_in(6) => {
                let at = tape.below(items.len());
                here = &items[at];
                at.to_string()
            }
            Value::Array(_) => tape
                .pick(&["-", "-1", "0", "1", "00", "99", "+1", "x", ""])
                .to_owned(),
            Value::Object(_) => key(tape),
            _ => break,
        };
        path.push('/');
        path.push_str(&step);
    }
    path
}

/// What RFC 7386 says, applying twice is applying once, and nothing is a patch that changes nothing.
pub(super) fn merge(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let doc = document(tape);
    let mut changes = if tape.once_in(2) {
        any_json(tape, 4)
    } else {
        document(tape)
    };
    disturb(tape, &mut changes, 4);
    told(|| format!("{doc}\n  {changes}"));
    assert_eq!(patch::merge(&doc, b"{}").unwrap(), doc);
    match patch::merge(&doc, changes.to_string().as_bytes()) {
        Err(status) => assert!(!changes.is_object() && status.code == 400, "{status:?}"),
        Ok(once) if has_nulls_in_lists(&changes) => {
            // There the real server's library takes them out, or does not, depending on what was there before.
            let _ = patch::merge(&once, changes.to_string().as_bytes()).unwrap();
        }
        Ok(once) => {
            law();
            assert!(changes.is_object());
            assert_eq!(once, rfc_7386(Some(doc), &changes));
            let twice = patch::merge(&once, changes.to_string().as_bytes()).unwrap();
            assert_eq!(twice, once, "twice");
        }
    }
    let mut body = changes.to_string().into_bytes();
    damage(tape, &mut body, &["{", "}", "null", "[", "\"\":"], 3);
    if let Err(status) = patch::merge(&document(tape), &body) {
        assert_eq!(status.code, 400, "{status:?}");
    }
}

fn rfc_7386(target: Option<Value>, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut map = match target {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    for (name, change) in changes {
        let before = map.remove(name);
        if !change.is_null() {
            map.insert(name.clone(), rfc_7386(before, change));
        }
    }
    Value::Object(map)
}

/// Whether an object inside a list has a field that is null.
fn has_nulls_in_lists(value: &Value) -> bool {
    fn has_null_field(value: &Value) -> bool {
        match value {
            Value::Object(map) => map.values().any(|v| v.is_null() || has_null_field(v)),
            Value::Array(items) => items.iter().any(has_null_field),
            _ => false,
        }
    }
    match value {
        Value::Object(map) => map.values().any(has_nulls_in_lists),
        Value::Array(items) => items.iter().any(has_null_field),
        _ => false,
    }
}
