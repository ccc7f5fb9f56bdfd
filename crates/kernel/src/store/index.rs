//! Which objects of a store are found under which value.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Index, Name, Seen, Store};

/// An object among others, by namespace and name. An index holds the objects themselves: whoever walks it looks nothing up,
/// and no name is kept twice.
#[derive(Debug, Clone)]
pub(super) struct Named(pub(super) Arc<Seen>);

impl Named {
    fn name(&self) -> (&str, &str) {
        (&self.0.meta.namespace, &self.0.meta.name)
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(&other.name())
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Named {}

impl Store {
    /// The objects for which an index gave this value, by namespace and name.
    pub(super) fn under(&self, index: &str, value: &str) -> Option<&BTreeSet<Named>> {
        self.by_index.get(index)?.get(value)
    }

    pub(super) fn add_index(&mut self, index: Index) {
        self.indexes.push(index);
        let slots = self.by_index.entry(index.name).or_default();
        for seen in self.objects.values() {
            enter(slots, index, seen);
        }
    }

    pub(super) fn index(&mut self, seen: &Arc<Seen>) {
        for index in &self.indexes {
            enter(self.by_index.entry(index.name).or_default(), *index, seen);
        }
    }

    pub(super) fn unindex(&mut self, name: &Name) {
        let Some(seen) = self.objects.get(name) else {
            return;
        };
        let named = Named(seen.clone());
        for index in &self.indexes {
            let Some(slots) = self.by_index.get_mut(index.name) else {
                continue;
            };
            for value in (index.values)(seen) {
                if let Some(found) = slots.get_mut(&value) {
                    found.remove(&named);
                    if found.is_empty() {
                        slots.remove(&value);
                    }
                }
            }
        }
    }
}

fn enter(slots: &mut BTreeMap<String, BTreeSet<Named>>, index: Index, seen: &Arc<Seen>) {
    for value in (index.values)(seen) {
        // Whatever was there under this name is not what is there now.
        slots.entry(value).or_default().replace(Named(seen.clone()));
    }
}
