//! What changed between two values, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::place::{Form, Keys, Place, associative, forms, item_step};
use super::set::Set;
use super::step::{Step, same};

/// The fields in which two values differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// In the new value only.
    pub(super) added: Set,
    /// In both, but different.
    pub(super) modified: Set,
    /// In the old value only.
    pub(super) removed: Set,
}

impl Comparison {
    /// The comparison without what stands at or below the paths of `reset`.
    pub(super) fn outside(&self, reset: &Set) -> Self {
        Self {
            added: self.added.outside(reset),
            modified: self.modified.outside(reset),
            removed: self.removed.outside(reset),
        }
    }
}

/// Compares an old value with a new one.
pub(super) fn compare(place: Place<'_>, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk::default();
    walk.visit(place, Some(old), Some(new));
    walk.out
}

#[derive(Default)]
struct Walk {
    path: Vec<Step>,
    out: Comparison,
}

/// Whether a visit took the two values as one leaf, or went on below.
type IsLeaf = bool;

impl Walk {
    fn visit(&mut self, place: Place<'_>, old: Option<&Value>, new: Option<&Value>) {
        // Most of an object is as it was, and nothing of it is different.
        if old.is_some() && old == new {
            return;
        }
        let (other, form) = forms(place, old, new);
        if let Some(other) = other {
            self.visit_as(other, old, new);
        }
        if !self.visit_as(form, old, new) {
            match (old, new) {
                (None, _) => self.out.added.insert(&self.path),
                (_, None) => self.out.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    fn visit_as(&mut self, form: Form<'_>, old: Option<&Value>, new: Option<&Value>) -> IsLeaf {
        match form {
            Form::Scalar(_) | Form::Map { atomic: true, .. } => self.leaf(old, new),
            Form::Map { place, .. } => {
                let (left, right) = (entries(old), entries(new));
                if left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty) {
                    return self.leaf(old, new);
                }
                self.fields(place, left, right);
                false
            }
            Form::List { kind, items } => {
                let (left, right) = (list(old), list(new));
                match associative(kind) {
                    Some(keys) if !(left.is_empty() && right.is_empty()) => {
                        self.items(keys, items, left, right);
                        false
                    }
                    _ => self.leaf(old, new),
                }
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> IsLeaf {
        match (old, new) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.out.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn below(&mut self, step: Step, place: Place<'_>, old: Option<&Value>, new: Option<&Value>) {
        self.path.push(step);
        self.visit(place, old, new);
        self.path.pop();
    }

    fn fields(
        &mut self,
        place: Place<'_>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) {
        for (name, value) in old.into_iter().flatten() {
            let other = new.and_then(|new| new.get(name));
            self.below(Step::field(name), place.child(name), Some(value), other);
        }
        for (name, value) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.below(Step::field(name), place.child(name), None, Some(value));
            }
        }
    }

    fn items(&mut self, keys: Keys<'_>, items: Place<'_>, old: &[Value], new: &[Value]) {
        let mut groups: BTreeMap<Step, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(step) = item_step(keys, items, item) {
                groups.entry(step).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(step) = item_step(keys, items, item) {
                groups.entry(step).or_default().1.push(item);
            }
        }
        for (step, (left, right)) in groups {
            self.group(step, items, &left, &right);
        }
    }

    /// Items with one key: usually one on each side. Where there are several they are one value.
    fn group(&mut self, step: Step, items: Place<'_>, old: &[&Value], new: &[&Value]) {
        let path: Vec<Step> = [self.path.as_slice(), std::slice::from_ref(&step)].concat();
        match (old, new) {
            ([] | [_], [] | [_]) => {
                self.below(step, items, old.first().copied(), new.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let unchanged =
                    old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
                if !unchanged {
                    self.out.modified.insert(&path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.below(step, items, None, Some(new));
                }
                self.out.removed.insert(&path);
            }
            (_, [_, _, ..]) => {
                if let Some(old) = old.first() {
                    self.below(step, items, Some(old), None);
                }
                self.out.added.insert(&path);
            }
        }
    }
}

fn entries(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
