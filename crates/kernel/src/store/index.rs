//! Which objects of a store are found under which value.

use super::{Index, Name, Seen, Store};

impl Store {
    pub(super) fn add_index(&mut self, index: Index) {
        self.indexes.push(index);
        for (name, seen) in &self.objects {
            for value in (index.values)(seen) {
                let slot = self.by_index.entry((index.name, value)).or_default();
                slot.insert(name.clone());
            }
        }
    }

    pub(super) fn index(&mut self, name: &Name, seen: &Seen) {
        for index in &self.indexes {
            for value in (index.values)(seen) {
                self.by_index
                    .entry((index.name, value))
                    .or_default()
                    .insert(name.clone());
            }
        }
    }

    pub(super) fn unindex(&mut self, name: &Name) {
        let Some(seen) = self.objects.get(name).cloned() else {
            return;
        };
        for index in &self.indexes {
            for value in (index.values)(&seen) {
                let slot = (index.name, value);
                if let Some(names) = self.by_index.get_mut(&slot) {
                    names.remove(name);
                    if names.is_empty() {
                        self.by_index.remove(&slot);
                    }
                }
            }
        }
    }
}
