//! Strategic merge patch: a merge patch that knows which lists are merged by which key, with directives.

use std::mem;

use serde_json::{Map, Value};

use super::go;
use super::lookup::{lookup, lookup_list, without_directives, without_nulls_and_directives};
use super::ordering::{Elements, interleave, partition};
use crate::schema::{PatchStrategy, View};
use crate::status::Status;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Why a patch does not apply.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    /// The patch has not the form of a strategic merge patch: a 400.
    Form(&'static str),
    /// Lists of lists: a 422 that does not say why.
    ListOfLists,
    /// Everything else is an error of the server, with this text.
    Other(String),
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Form(what) => Self::bad_request(format!("invalid patch format of {what}")),
            Refusal::ListOfLists => *super::rejected(),
            Refusal::Other(text) => Self::failure(500, "", text),
        }
    }
}

pub(super) type Merged<T> = Result<T, Refusal>;

type Object = Map<String, Value>;

pub(super) fn patch(view: View<'_>, doc: &Value, patch: &Value) -> Merged<Value> {
    let changes = match patch {
        Value::Object(changes) => changes.clone(),
        _ => Object::new(),
    };
    let original = doc.as_object().cloned().unwrap_or_default();
    merge_map(original, changes, view).map(Value::Object)
}

pub(super) fn bad_type(expected: &str, found: &Value) -> Refusal {
    let found = go::type_name(found);
    Refusal::Other(format!("expected a {expected}, but received a {found}"))
}

pub(super) fn no_merge_key(map: &Object, key: &str) -> Refusal {
    let shown = go::print(&Value::Object(map.clone()));
    Refusal::Other(format!(
        "map: {shown} does not contain declared merge key: {key}"
    ))
}

fn unknown_directive(directive: &Value, map: &Object) -> Refusal {
    let shown = go::print(&Value::Object(map.clone()));
    let directive = go::print_as_text(directive);
    Refusal::Other(format!("unknown patch type: {directive} in map: {shown}"))
}

fn merge_map(mut original: Object, mut patch: Object, view: View<'_>) -> Merged<Object> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, view)?;
    for (key, change) in patch {
        let (key, deletes) = if key.starts_with(DELETE_FROM_LIST) {
            (list_key(&key, DELETE_FROM_LIST, "primitive list")?, true)
        } else {
            (key, false)
        };
        if change.is_null() {
            original.remove(&key);
            continue;
        }
        let Some(current) = original.get_mut(&key) else {
            if !deletes {
                original.extend(without_nulls_and_directives(change).map(|new| (key, new)));
            }
            continue;
        };
        let merged = match (mem::take(current), change) {
            (Value::Object(current), Value::Object(change)) => {
                let (strategy, child) = lookup(view, &key)?;
                if strategy.replace {
                    Value::Object(change)
                } else {
                    Value::Object(merge_map(current, change, child)?)
                }
            }
            (Value::Array(current), Value::Array(change)) => {
                let (strategy, items) = lookup_list(view, &key)?;
                Value::Array(merge_list(current, change, items, strategy, deletes)?.merged)
            }
            (current, _) if deletes => current,
            (_, change) => {
                let Some(new) = without_nulls_and_directives(change) else {
                    original.remove(&key);
                    continue;
                };
                new
            }
        };
        original.insert(key, merged);
    }
    Ok(original)
}

/// `$retainKeys`: what it does not list goes, and the patch sets nothing that it does not list.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Merged<()> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(kept) = directive else {
        return Err(Refusal::Form("retainKeys"));
    };
    let is_kept = |key: &str| kept.iter().any(|k| k == key);
    for (key, value) in patch.iter() {
        let is_directive = key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
        if !(value.is_null() || is_directive || is_kept(key)) {
            return Err(Refusal::Form("retainKeys"));
        }
    }
    original.retain(|key, _| is_kept(key));
    Ok(())
}

/// `$setElementOrder/…`: merges the list it names and orders the outcome by it.
fn merge_ordered_lists(original: &mut Object, patch: &mut Object, view: View<'_>) -> Merged<()> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type("[]interface {}", &other.unwrap_or(Value::Null))),
        };
        let key = list_key(&directive, ELEMENT_ORDER, "setElementOrder list")?;
        let current = list_at(original.get(&key))?;
        let change = list_at(patch.get(&key))?;
        let (strategy, items) = lookup_list(view, &key)?;
        let merge_key = &*strategy.merge_key;
        check_order(change.unwrap_or_default(), &order, merge_key)?;
        let (merged, before) = match (current, change) {
            (None, None) => continue,
            (Some(current), None) => (current.to_vec(), current.to_vec()),
            (None, Some(change)) => {
                let new = change.iter().cloned().filter_map(without_directives);
                (new.collect(), Vec::new())
            }
            (Some(current), Some(change)) => {
                let list = merge_list(current.to_vec(), change.to_vec(), items, strategy, false)?;
                (list.merged, list.before)
            }
        };
        let (ours, theirs) = partition(merged, &order, merge_key)?;
        let lists = [current.unwrap_or_default(), change.unwrap_or_default()];
        let elements = Elements::of(&lists)?;
        let ordered = interleave(ours, theirs, &order, &before, merge_key, elements)?;
        patch.remove(&key);
        original.insert(key, Value::Array(ordered));
    }
    Ok(())
}

fn list_at(value: Option<&Value>) -> Merged<Option<&[Value]>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(bad_type("[]interface {}", other)),
    }
}

/// The list that a directive such as `$setElementOrder/containers` is about.
fn list_key(directive: &str, prefix: &str, what: &'static str) -> Merged<String> {
    match directive.split_once('/') {
        Some((found, key)) if found == prefix => Ok(key.to_owned()),
        _ => Err(Refusal::Form(what)),
    }
}

/// The items of a patch stand in the order that `$setElementOrder` gives, and all of them are in it.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Merged<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut plain = Vec::with_capacity(patch.len());
    for item in patch {
        let directive = if merge_key.is_empty() {
            None
        } else {
            as_map(item)?.get(DIRECTIVE)
        };
        if directive.and_then(Value::as_str) != Some("delete") {
            plain.push((item, directive.is_some()));
        }
    }
    let mut plain = plain.into_iter().peekable();
    for candidate in order {
        while plain.next_if(|(_, is_directive)| *is_directive).is_some() {}
        if let Some((item, _)) = plain.peek()
            && is_same(item, candidate, merge_key)?
        {
            plain.next();
        }
    }
    if plain.next().is_none() {
        return Ok(());
    }
    Err(Refusal::Other(format!(
        "The order in patch list:\n{}\n doesn't match {ELEMENT_ORDER} list:\n{}\n",
        go::print_list(patch),
        go::print_list(order)
    )))
}

fn is_same(left: &Value, right: &Value, merge_key: &str) -> Merged<bool> {
    if merge_key.is_empty() {
        return Ok(left == right);
    }
    Ok(key_of(as_map(left)?, merge_key)? == key_of(as_map(right)?, merge_key)?)
}

pub(super) fn as_map(value: &Value) -> Merged<&Object> {
    value
        .as_object()
        .ok_or_else(|| bad_type("map[string]interface {}", value))
}

pub(super) fn key_of<'a>(map: &'a Object, merge_key: &str) -> Merged<&'a Value> {
    map.get(merge_key)
        .ok_or_else(|| no_merge_key(map, merge_key))
}

/// A merged list.
struct MergedList {
    merged: Vec<Value>,
    /// The list before the merge, by which what the patch does not name is ordered. The real server deletes from it
    /// and appends to it in place, so that new items stand where deleted ones made room.
    before: Vec<Value>,
}

fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    items: View<'_>,
    strategy: &PatchStrategy,
    deletes: bool,
) -> Merged<MergedList> {
    let done = |merged, before| Ok(MergedList { merged, before });
    if !(strategy.merge || deletes) {
        return done(patch, original);
    }
    if original.is_empty() && patch.is_empty() {
        return done(original, patch);
    }
    let merge_key = &*strategy.merge_key;
    let elements = Elements::of(&[&original, &patch])?;
    match elements {
        Elements::Scalars if deletes => {
            let left = original.iter().filter(|v| !patch.contains(v));
            done(left.cloned().collect(), original)
        }
        Elements::Scalars => {
            let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
            for value in original.iter().chain(&patch) {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
            let (ours, theirs) = partition(merged, &patch, merge_key)?;
            let merged = interleave(ours, theirs, &patch, &original, merge_key, elements)?;
            done(merged, original)
        }
        Elements::Maps if merge_key.is_empty() => {
            let text = "cannot merge lists without merge key for struct";
            Err(Refusal::Other(text.to_owned()))
        }
        Elements::Maps => merge_maps(original, patch, items, merge_key),
    }
}

fn merge_maps(
    original: Vec<Value>,
    patch: Vec<Value>,
    items: View<'_>,
    merge_key: &str,
) -> Merged<MergedList> {
    let length = original.len();
    let Directed {
        mut left,
        plain,
        replaces,
    } = apply_item_directives(original, patch, merge_key)?;
    let (base, patch) = if replaces {
        (plain, Vec::new())
    } else {
        (left.clone(), plain)
    };
    let merged = merge_items(base.clone(), patch.clone(), items, merge_key)?;
    if !replaces {
        let room = length.saturating_sub(left.len());
        left.extend(merged.iter().skip(base.len()).take(room).cloned());
    }
    let (ours, theirs) = partition(merged, &patch, merge_key)?;
    let merged = interleave(ours, theirs, &patch, &base, merge_key, Elements::Maps)?;
    Ok(MergedList {
        merged,
        before: left,
    })
}

/// A list and a patch after the directives of items have been followed.
struct Directed {
    /// What is left of the list.
    left: Vec<Value>,
    /// The items of the patch without directive.
    plain: Vec<Value>,
    /// They replace the list.
    replaces: bool,
}

/// Items with `$patch`: deletes what they name, or lets the rest of the patch replace the list.
fn apply_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Merged<Directed> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replaces = false;
    for item in patch {
        let map = as_map(&item)?;
        let Some(directive) = map.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let key = key_of(map, merge_key)?;
                original.retain(|item| item.get(merge_key) != Some(key));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(Refusal::Other(text.to_owned()));
            }
            _ => return Err(unknown_directive(directive, map)),
        }
    }
    Ok(Directed {
        left: original,
        plain,
        replaces,
    })
}

fn merge_items(
    mut merged: Vec<Value>,
    patch: Vec<Value>,
    view: View<'_>,
    merge_key: &str,
) -> Merged<Vec<Value>> {
    for item in patch {
        let key = key_of(as_map(&item)?, merge_key)?;
        let found = merged
            .iter_mut()
            .find(|have| have.get(merge_key) == Some(key));
        match (found, item) {
            (Some(have), Value::Object(change)) => {
                let current = match mem::take(have) {
                    Value::Object(current) => current,
                    _ => Object::new(),
                };
                *have = Value::Object(merge_map(current, change, view)?);
            }
            (_, item) => merged.push(item),
        }
    }
    Ok(merged)
}
