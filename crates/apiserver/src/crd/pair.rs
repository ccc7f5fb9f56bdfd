//! A value of an update together with the old value it replaces, so that what was invalid before and has not
//! changed is tolerated ("ratcheting").

use serde_json::Value;

use super::structural::Structural;

/// A new value, the old value in the same place, and their schema.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Before.
    pub old: &'a Value,
    /// After.
    pub new: &'a Value,
    /// Of both.
    pub schema: &'a Structural,
}

impl<'a> Pair<'a> {
    /// The pair below a field that both sides have and the schema knows.
    pub fn key(self, name: &str) -> Option<Pair<'a>> {
        Some(Pair {
            old: self.old.as_object()?.get(name)?,
            new: self.new.as_object()?.get(name)?,
            schema: self.schema.child(name)?,
        })
    }

    /// The pair at an index of the new list, if the list merges by keys and the old list has the item.
    pub fn index(self, index: usize) -> Option<Pair<'a>> {
        let new = self.new.as_array()?.get(index)?;
        Some(Pair {
            old: self.schema.matching(self.old.as_array()?, new)?,
            new,
            schema: self.schema.items.as_deref()?,
        })
    }

    /// Whether nothing changed, as far as the schema can tell: a field it does not know counts as a change.
    pub fn equal(self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) => {
                old.len() == new.len()
                    && if &*self.schema.list_type == "map" {
                        (0..new.len()).all(|i| self.index(i).is_some_and(Pair::equal))
                    } else {
                        old == new
                    }
            }
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(Pair::equal))
            }
            (old, new) => old == new,
        }
    }
}
