//! Sets of field paths: what a manager owns, and what a change touched.
//!
//! A set is a tree. A path is in it if its last step is marked as a member; a step can have paths below it without
//! being a member itself. The wire form is `FieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::step::Step;

/// A set of field paths. The empty path is never in it: nobody owns a whole object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set(BTreeMap<Step, Branch>);

/// What a set holds at and below one step. Never neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Branch {
    member: bool,
    below: Set,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

static EMPTY: Set = Set(BTreeMap::new());

impl Set {
    /// The set of these dotted paths.
    pub(super) fn of_paths<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let mut set = Self::default();
        for path in paths {
            let steps: Vec<Step> = path.split('.').map(Step::field).collect();
            set.insert(&steps);
        }
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path.
    pub(super) fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => self.branch(last).member = true,
            [first, rest @ ..] => self.branch(first).below.insert(rest),
        }
    }

    fn branch(&mut self, step: &Step) -> &mut Branch {
        self.0.entry(step.clone()).or_default()
    }

    /// Whether the path is in the set.
    pub(super) fn has(&self, path: &[Step]) -> bool {
        match path {
            [] => false,
            [last] => self.has_step(last),
            [first, rest @ ..] => self.below(first).has(rest),
        }
    }

    /// Whether the path of this one step is in the set.
    pub(super) fn has_step(&self, step: &Step) -> bool {
        self.0.get(step).is_some_and(|branch| branch.member)
    }

    /// What the set holds below a step.
    pub(super) fn below(&self, step: &Step) -> &Set {
        self.0.get(step).map_or(&EMPTY, |branch| &branch.below)
    }

    /// Every step with whether it is a member and what is below it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Step, bool, &Set)> {
        self.0
            .iter()
            .map(|(step, branch)| (step, branch.member, &branch.below))
    }

    /// Adds a step with what is below it; nothing if both are empty.
    pub(super) fn put(&mut self, step: &Step, member: bool, below: Set) {
        let branch = Branch { member, below };
        if !branch.is_empty() {
            self.0.insert(step.clone(), branch);
        }
    }

    fn combine(&self, other: &Set, keep: impl Fn(bool, bool) -> bool + Copy) -> Set {
        let mut out = Set::default();
        for (step, member, below) in self.steps() {
            let member = keep(member, other.has_step(step));
            out.put(step, member, below.combine(other.below(step), keep));
        }
        out
    }

    /// What is in either.
    pub(super) fn union(&self, other: &Set) -> Set {
        let mut out = self.clone();
        out.add(other);
        out
    }

    /// Adds all that is in the other.
    pub(super) fn add(&mut self, other: &Set) {
        for (step, member, below) in other.steps() {
            let branch = self.branch(step);
            branch.member |= member;
            branch.below.add(below);
        }
    }

    /// Whether there is a path in both.
    pub(super) fn meets(&self, other: &Set) -> bool {
        other.steps().any(|(step, member, below)| {
            let branch = self.0.get(step);
            branch.is_some_and(|branch| member && branch.member || branch.below.meets(below))
        })
    }

    /// Whether all that is in this set is in the other.
    pub(super) fn is_within(&self, other: &Set) -> bool {
        self.steps().all(|(step, member, below)| {
            let has_it = !member || other.has_step(step);
            has_it && below.is_within(other.below(step))
        })
    }

    /// Takes out what is in the other; paths below a path of the other stay.
    pub(super) fn remove(&mut self, other: &Set) {
        if self.meets(other) {
            *self = self.difference(other);
        }
    }

    /// What is in both.
    pub(super) fn intersection(&self, other: &Set) -> Set {
        self.combine(other, |a, b| a && b)
    }

    /// What is in this set and not in the other; paths below a path of the other stay.
    pub(super) fn difference(&self, other: &Set) -> Set {
        self.combine(other, |a, b| a && !b)
    }

    /// What is in this set and neither in the other nor below a path of the other.
    pub(super) fn outside(&self, other: &Set) -> Set {
        let mut out = Set::default();
        for (step, member, below) in self.steps() {
            if !other.has_step(step) {
                out.put(step, member, below.outside(other.below(step)));
            }
        }
        out
    }

    /// All paths: those of one step first, then those below, step by step.
    pub(super) fn paths(&self) -> Vec<Vec<Step>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<Step>, out: &mut Vec<Vec<Step>>) {
        for (step, member, _) in self.steps() {
            if member {
                out.push([prefix.as_slice(), std::slice::from_ref(step)].concat());
            }
        }
        for (step, _, below) in self.steps() {
            prefix.push(step.clone());
            below.collect(prefix, out);
            prefix.pop();
        }
    }

    /// The `FieldsV1` form.
    pub(super) fn encode(&self) -> Value {
        self.encode_with(Map::new())
    }

    fn encode_with(&self, mut out: Map<String, Value>) -> Value {
        for (step, member, below) in self.steps() {
            let mut inner = Map::new();
            if member && !below.is_empty() {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(step.encode(), below.encode_with(inner));
        }
        Value::Object(out)
    }

    /// Reads the `FieldsV1` form.
    pub(super) fn decode(fields: &Value) -> Result<Set, String> {
        match fields {
            Value::Null => Ok(Set::default()),
            Value::Object(fields) => {
                let mut out = Set::default();
                for (key, inner) in fields {
                    if key == "." {
                        continue;
                    }
                    if let Some(step) = Step::decode(key)? {
                        let below = Set::decode(inner)?;
                        let member = below.is_empty() || inner.get(".").is_some();
                        out.put(&step, member, below);
                    }
                }
                Ok(out)
            }
            other => Err(format!("expected an object of fields, got {other}")),
        }
    }
}
