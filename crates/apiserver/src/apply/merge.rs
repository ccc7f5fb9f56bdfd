//! Merging an applied configuration into an object. Nothing is removed here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::place::{Form, Keys, Place, associative, item_step};
use super::step::Step;

/// The live value with the configuration laid over it.
pub(super) fn merge(place: Place<'_>, live: &Value, config: &Value) -> Value {
    merge_at(place, Some(live), config)
}

fn merge_at(place: Place<'_>, live: Option<&Value>, config: &Value) -> Value {
    match place.form(Some(config)) {
        Form::Map {
            atomic: false,
            place,
        } => {
            let live = live.and_then(Value::as_object);
            let over = config.as_object();
            match (
                live.filter(|m| !m.is_empty()),
                over.filter(|m| !m.is_empty()),
            ) {
                (None, None) => config.clone(),
                (live, over) => merge_fields(place, live, over),
            }
        }
        Form::List { kind, items } => {
            let live = live.and_then(Value::as_array).filter(|l| !l.is_empty());
            let over = config.as_array().filter(|l| !l.is_empty());
            match (associative(kind), live, over) {
                (Some(_), Some(live), None) => Value::Array(live.clone()),
                (Some(keys), live, Some(over)) => {
                    let live = live.map(Vec::as_slice).unwrap_or_default();
                    merge_items(keys, items, live, over)
                }
                _ => config.clone(),
            }
        }
        Form::Map { .. } | Form::Scalar(_) => config.clone(),
    }
}

fn merge_fields(
    place: Place<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Value {
    let is_merged = |name: &String| config.is_some_and(|config| config.contains_key(name));
    let rest = live.into_iter().flatten();
    let rest = rest.filter(|(name, _)| !is_merged(name));
    let mut out: Map<String, Value> = rest.map(|(name, v)| (name.clone(), v.clone())).collect();
    for (name, value) in config.into_iter().flatten() {
        let before = live.and_then(|live| live.get(name));
        out.insert(name.clone(), merge_at(place.child(name), before, value));
    }
    Value::Object(out)
}

/// Items that only the live list has keep their places; items of the configuration keep their order.
fn merge_items(keys: Keys<'_>, items: Place<'_>, live: &[Value], config: &[Value]) -> Value {
    let left = indexed(keys, items, live);
    let right = indexed(keys, items, config);
    let mut known: BTreeMap<&Step, Option<&Value>> = BTreeMap::new();
    for (step, item) in &left {
        // Of items that share a key none can be told apart: the configuration's item replaces them.
        known
            .entry(step)
            .and_modify(|known| *known = None)
            .or_insert(Some(item));
    }
    let wanted: BTreeSet<&Step> = right.iter().map(|(step, _)| step).collect();
    let mut shared = right
        .iter()
        .map(|(step, _)| step)
        .filter(|step| known.contains_key(step))
        .peekable();
    let mut placed: BTreeSet<&Step> = BTreeSet::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut ours, mut theirs) = (left.iter().peekable(), right.iter().peekable());
    loop {
        if let Some((step, item)) = ours.peek() {
            if !wanted.contains(step) {
                out.push((*item).clone());
                ours.next();
                continue;
            }
            match theirs.peek() {
                Some((next, _)) if next == step => {
                    ours.next();
                }
                // Its turn comes later, in the configuration's order.
                Some(_) if shared.peek().is_some_and(|next| *next != step) => {
                    ours.next();
                    continue;
                }
                _ if placed.contains(step) => {
                    ours.next();
                }
                _ => {}
            }
        }
        match theirs.next() {
            Some((step, item)) => {
                placed.insert(step);
                let live = known.get(step).copied().flatten();
                out.push(merge_at(items, live, item));
                if shared.peek() == Some(&step) {
                    shared.next();
                }
            }
            None if ours.peek().is_none() => break,
            None => {}
        }
    }
    Value::Array(out)
}

fn indexed<'v>(keys: Keys<'_>, items: Place<'_>, list: &'v [Value]) -> Vec<(Step, &'v Value)> {
    list.iter()
        .filter_map(|item| Some((item_step(keys, items, item).ok()?, item)))
        .collect()
}
