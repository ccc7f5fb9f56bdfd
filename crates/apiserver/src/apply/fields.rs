//! What a value says: the set of its fields, and a value without some of its fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::schema::{Presence, Shape, View};

use super::place::{Form, Keys, Place, associative, item_step};
use super::set::Set;
use super::step::Step;

/// The set of everything that a value mentions: leaves, list items and keys of maps.
pub(super) fn field_set(place: Place<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    extract(place, value, &mut Vec::new(), &mut set);
    set
}

fn extract(place: Place<'_>, value: &Value, path: &mut Vec<Step>, set: &mut Set) {
    match (place.form(Some(value)), value) {
        (Form::Scalar(_) | Form::Map { atomic: true, .. }, _) => set.insert(path),
        (Form::Map { place, .. }, Value::Object(fields)) => {
            for (name, value) in fields {
                path.push(Step::field(name));
                extract(place.child(name), value, path, set);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if empty || !place.declares(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Form::List { kind, items }, value) => match (associative(kind), value) {
            (None, _) => set.insert(path),
            (Some(keys), Value::Array(list)) => extract_items(keys, items, list, path, set),
            (Some(_), _) => {}
        },
        (Form::Map { .. }, _) => {}
    }
}

fn extract_items(
    keys: Keys<'_>,
    items: Place<'_>,
    list: &[Value],
    path: &mut Vec<Step>,
    set: &mut Set,
) {
    let steps: Vec<(Step, &Value)> = list
        .iter()
        .filter_map(|item| Some((item_step(keys, items, item).ok()?, item)))
        .collect();
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<&Step> = steps
        .iter()
        .map(|(step, _)| step)
        .filter(|step| !seen.insert(*step))
        .collect();
    for (step, item) in &steps {
        path.push(step.clone());
        // Of items that share a key only the item as a whole can be owned.
        if !repeated.contains(step) {
            extract(items, item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

/// The set with every declared field that has paths below it made a member.
pub(super) fn with_named_fields(place: Place<'_>, set: &Set) -> Set {
    let mut out = Set::default();
    for (step, member, below) in set.steps() {
        let named = matches!(step, Step::Field(name) if !below.is_empty() && place.declares(name));
        out.put(
            step,
            member || named,
            with_named_fields(place.below(step), below),
        );
    }
    out
}

/// The set as this schema would have recorded it: paths below what is atomic now become that one path. Nothing if it is that
/// set, as it is unless the schema has changed.
pub(super) fn reconciled(place: Place<'_>, set: &Set) -> Option<Set> {
    if is_reconciled(place, set) {
        return None;
    }
    let mut out = Set::default();
    for (step, member, below) in set.steps() {
        match Depth::of(place.below(step), below) {
            Depth::Atomic => out.put(step, true, Set::default()),
            Depth::Settled => out.put(step, member, below.clone()),
            Depth::Open(child) => {
                let below = reconciled(child, below).unwrap_or_else(|| below.clone());
                out.put(step, member, below);
            }
        }
    }
    Some(out)
}

fn is_reconciled(place: Place<'_>, set: &Set) -> bool {
    let mut steps = set.steps();
    steps.all(
        |(step, _, below)| match Depth::of(place.below(step), below) {
            Depth::Atomic => false,
            Depth::Settled => true,
            Depth::Open(child) => is_reconciled(child, below),
        },
    )
}

/// What a schema says of the paths below a step of a set.
enum Depth<'a> {
    /// There are some, and what stands there is one value.
    Atomic,
    /// Whatever they are.
    Settled,
    /// It has to be looked at each.
    Open(Place<'a>),
}

impl<'a> Depth<'a> {
    fn of(child: Place<'a>, below: &Set) -> Self {
        if below.is_empty() {
            return Self::Settled;
        }
        let deduced = match child {
            Place::Typed { view, .. } => view.node.shape == Shape::Any,
            Place::Deduced | Place::Undeclared => true,
            Place::Opaque => false,
        };
        if deduced {
            return Self::Settled;
        }
        let atomic = match child.form(None) {
            Form::Map { atomic, .. } => atomic,
            Form::List { kind, .. } => associative(kind).is_none(),
            Form::Scalar(_) => false,
        };
        if atomic {
            Self::Atomic
        } else {
            Self::Open(child)
        }
    }
}

/// The value without the fields and items of a set; `null` where nothing is left.
pub(super) fn without(place: Place<'_>, value: &Value, set: &Set) -> Value {
    match (place.form(Some(value)), value) {
        (Form::Scalar(_), value) => value.clone(),
        (
            Form::Map {
                atomic: false,
                place,
            },
            Value::Object(fields),
        ) => {
            let mut out = Map::new();
            for (name, value) in fields {
                let step = Step::field(name);
                if !set.has_step(&step) {
                    let left = keep(place.child(name), value, set.below(&step));
                    out.insert(name.clone(), left);
                }
            }
            some_or_null(out.is_empty(), Value::Object(out))
        }
        (Form::List { kind, items }, Value::Array(list)) => {
            let Some(keys) = associative(kind) else {
                return Value::Null;
            };
            let mut out = Vec::with_capacity(list.len());
            for item in list {
                match item_step(keys, items, item) {
                    Ok(step) if set.has_step(&step) => {}
                    Ok(step) => out.push(keep(items, item, set.below(&step))),
                    Err(_) => out.push(item.clone()),
                }
            }
            some_or_null(out.is_empty(), Value::Array(out))
        }
        (Form::Map { .. } | Form::List { .. }, _) => Value::Null,
    }
}

fn keep(place: Place<'_>, value: &Value, set: &Set) -> Value {
    if set.is_empty() {
        value.clone()
    } else {
        without(place, value, set)
    }
}

fn some_or_null(empty: bool, value: Value) -> Value {
    if empty { Value::Null } else { value }
}

/// The object that Go starts from: every field that is always written, with its zero value.
pub(super) fn blank(view: View<'_>) -> Value {
    let mut out = Map::new();
    for (name, field, view) in view.fields() {
        if field.presence != Presence::Always {
            continue;
        }
        let value = match &field.default {
            Some(Value::Object(fields))
                if fields.is_empty() && view.node.shape == Shape::Object =>
            {
                blank(view)
            }
            Some(value) => value.clone(),
            None => Value::Null,
        };
        out.insert(name.to_owned(), value);
    }
    Value::Object(out)
}
