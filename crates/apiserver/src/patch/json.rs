//! JSON patch, by the rules of the library that the real server uses.

use serde_json::{Map, Value};

use super::{MAX_COPIED_BYTES, MAX_OPERATIONS, Patched, Reading, go, object_only, rejected};
use crate::decode::{self, MAX_DEPTH, Media};
use crate::field::quote;
use crate::status::{Outcome, Status};

pub(super) fn patch(doc: &Value, body: &[u8], reading: Reading) -> Outcome<Patched> {
    let strict = reading == Reading::Strict;
    let prefix = if strict { "error decoding patch: " } else { "" };
    let refuse = |why: String| Status::bad_request(format!("{prefix}{why}"));
    let parsed = decode::parse(body, Media::Json).map_err(|error| refuse(error.to_string()))?;
    let operations = operations(parsed.value, strict).map_err(refuse)?;
    let mut noticed = parsed.duplicates;
    noticed.extend(unknown_fields(&operations));
    if operations.len() > MAX_OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(too_many(&message));
    }
    let mut state = State {
        doc: doc.clone(),
        copied: 0,
    };
    for operation in &operations {
        state.apply(operation).ok_or_else(rejected)?;
    }
    Ok(Patched {
        object: object_only(state.doc)?,
        complaints: noticed
            .iter()
            .map(|text| format!("json patch {text}"))
            .collect(),
        shown: None,
    })
}

fn too_many(message: &str) -> Box<Status> {
    Box::new(Status::too_large(format!(
        "Request entity too large: {message}"
    )))
}

type Operation = Map<String, Value>;

/// The operations, with the complaints of Go's decoder about their types.
fn operations(patch: Value, strict: bool) -> Result<Vec<Operation>, String> {
    let (list, item) = if strict {
        ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
    } else {
        ("jsonpatch.Patch", "jsonpatch.Operation")
    };
    let mismatch = |value: &Value, wanted: &str| {
        let found = go::json_type(value);
        format!("json: cannot unmarshal {found} into Go value of type {wanted}")
    };
    let items = match patch {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => return Err(mismatch(&other, list)),
    };
    let mut operations = Vec::with_capacity(items.len());
    for value in items {
        match value {
            Value::Object(operation) => operations.push(operation),
            Value::Null => operations.push(Operation::new()),
            other => return Err(mismatch(&other, item)),
        }
    }
    if strict {
        for operation in &operations {
            for field in ["op", "path", "from"] {
                if let Some(value) = operation
                    .get(field)
                    .filter(|v| !v.is_string() && !v.is_null())
                {
                    let found = go::json_type(value);
                    return Err(format!(
                        "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{field} of type string"
                    ));
                }
            }
        }
    }
    Ok(operations)
}

fn unknown_fields(operations: &[Operation]) -> Vec<String> {
    let mut unknown = Vec::new();
    for (i, operation) in operations.iter().enumerate() {
        for key in operation.keys() {
            if !["op", "path", "from", "value"].contains(&key.as_str()) {
                unknown.push(format!("unknown field {}", quote(&format!("[{i}].{key}"))));
            }
        }
    }
    unknown
}

struct State {
    doc: Value,
    copied: usize,
}

/// None means that the patch does not apply; why, the real server keeps to itself.
impl State {
    fn apply(&mut self, operation: &Operation) -> Option<()> {
        let get = |field: &str| operation.get(field).and_then(Value::as_str);
        let value = || operation.get("value").cloned().unwrap_or(Value::Null);
        let path = get("path")?;
        match get("op")? {
            "add" => self.add(path, value()),
            "remove" => self.remove(path).map(drop),
            "replace" => self.replace(path, value()),
            "move" => {
                let moved = self.remove(get("from")?)?;
                self.add(path, moved)
            }
            "copy" => {
                let copy = self.at(get("from")?)?.clone();
                self.copied += copy.to_string().len();
                if self.copied > MAX_COPIED_BYTES {
                    return None;
                }
                self.add(path, copy)
            }
            "test" => self.test(path, operation.get("value")),
            _ => None,
        }
    }

    /// The object or list that holds what `path` names, and the last step.
    fn container(&mut self, path: &str) -> Option<(&mut Value, String)> {
        let (parents, last) = path.rsplit_once('/')?;
        let mut here = &mut self.doc;
        // What stands before the first slash is ignored.
        for step in parents.split('/').skip(1) {
            let step = unescape(step);
            here = match here {
                Value::Object(map) => map.get_mut(&step)?,
                Value::Array(items) => {
                    let index = index(&step, items.len())?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
        (here.is_object() || here.is_array()).then(|| (here, unescape(last)))
    }

    /// What `path` names; a key that an object lacks counts as `null`.
    fn at(&mut self, path: &str) -> Option<&Value> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                items.get(index)
            }
            container => Some(container.get(&key).unwrap_or(&Value::Null)),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Option<()> {
        within_depth(path, &value)?;
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) => {
                let at = if key == "-" {
                    items.len()
                } else {
                    index(&key, items.len() + 1)?
                };
                items.insert(at, value);
            }
            _ => return None,
        }
        Some(())
    }

    fn remove(&mut self, path: &str) -> Option<Value> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => map.remove(&key),
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                Some(items.remove(index))
            }
            _ => None,
        }
    }

    /// The last step need not be there if it is a key of an object.
    fn replace(&mut self, path: &str, value: Value) -> Option<()> {
        within_depth(path, &value)?;
        if path.is_empty() {
            self.doc = Some(value).filter(|v| v.is_object() || v.is_array())?;
            return Some(());
        }
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                *items.get_mut(index)? = value;
            }
            _ => return None,
        }
        Some(())
    }

    fn test(&mut self, path: &str, wanted: Option<&Value>) -> Option<()> {
        let wanted = wanted.unwrap_or(&Value::Null);
        let found = if path.is_empty() {
            &self.doc
        } else {
            self.at(path)?
        };
        (found == wanted).then_some(())
    }
}

/// The place that a step names in a list with `length` places; negative ones count from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let index = if number < 0 {
        length.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(number).ok()?
    };
    (index < length).then_some(index)
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// `copy` nests things into themselves, and what walks an object recurses.
fn within_depth(path: &str, value: &Value) -> Option<()> {
    (path.matches('/').count() + depth(value) <= MAX_DEPTH).then_some(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
