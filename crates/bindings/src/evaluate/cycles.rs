//! Names that mention each other in a circle.
//!
//! What a binding mentions can be seen without evaluating it, so circles are known before anything is read, and they are the
//! same whoever asks first.

use std::collections::{BTreeMap, BTreeSet};

use slipway_api::fleet::binding::{Binding, Literal};

use crate::expand::mentions;
use crate::given::Given;

/// What a name mentions.
type Mentions<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// For each name that is in a circle: all names of it, in order.
pub(super) fn circles<'a>(
    bindings: &BTreeMap<&'a str, &'a Binding>,
    given: Option<&Given>,
) -> BTreeMap<&'a str, Vec<String>> {
    let is_given = |name: &str| given.is_some_and(|given| given.reserves(name));
    let bound = bindings.iter().filter(|(name, _)| !is_given(name));
    let graph: Mentions<'a> = bound
        .map(|(name, binding)| {
            let all = texts(binding);
            let mentioned = all.iter().flat_map(|text| mentions(text));
            let known = mentioned.filter_map(|name| Some(*bindings.get_key_value(name)?.0));
            (*name, known.filter(|name| !is_given(name)).collect())
        })
        .collect();
    let reached: Mentions<'a> = graph
        .keys()
        .map(|name| (*name, reach(&graph, name)))
        .collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let in_circle = graph.keys().filter(|name| leads(name, name));
    in_circle
        .map(|name| {
            let together = graph
                .keys()
                .filter(|other| leads(name, other) && leads(other, name));
            (*name, together.map(|other| (*other).to_owned()).collect())
        })
        .collect()
}

/// All names that one leads to.
fn reach<'a>(graph: &Mentions<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(name) = next.pop() {
        for mentioned in graph.get(name).into_iter().flatten() {
            if reached.insert(*mentioned) {
                next.push(mentioned);
            }
        }
    }
    reached
}

/// The texts of a binding in which names can be mentioned.
fn texts(binding: &Binding) -> Vec<String> {
    let mut all: Vec<String> = binding.value.iter().map(Literal::text).collect();
    if let Some(field) = &binding.object_field_ref {
        let version = field.api_version.as_deref();
        let texts = [
            version,
            Some(field.kind.as_str()),
            Some(field.name.as_str()),
            field.pointer(),
        ];
        all.extend(texts.into_iter().flatten().map(str::to_owned));
    }
    if let Some(field) = &binding.module_field_ref {
        let texts = [&field.module, &field.kind, &field.name, &field.field_path];
        all.extend(texts.map(Clone::clone));
    }
    all
}
