//! The large parts of objects: nobody is given one without having declared that it is read.
//!
//! Most of an object is of no use to whoever looks at it, and some of that is most of the object. A projection and a
//! webhook declare which of these parts they read; every way to them leaves out the others: a watch and the body of a
//! review while they are parsed, a [`Store`](crate::store::Store) before it projects, whoever fed it. So what is read and
//! not declared is missing everywhere, in tests as well as in a running operator.

mod read;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use read::Read;

/// A part of an object that is left out unless it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// `metadata.managedFields`: who wrote which field, and when.
    ManagedFields = 1,
    /// `status`.
    Status = 2,
    /// `spec.template.spec`: the pods of a workload, but not their metadata.
    PodSpec = 4,
    /// `spec.volumeClaimTemplates`.
    ClaimTemplates = 8,
}

/// Some of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts(u8);

impl Parts {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them: an object as it is.
    pub const ALL: Self = Self(
        Part::ManagedFields as u8
            | Part::Status as u8
            | Part::PodSpec as u8
            | Part::ClaimTemplates as u8,
    );

    /// These, and the given one.
    #[must_use]
    pub const fn and(self, part: Part) -> Self {
        Self(self.0 | part as u8)
    }

    /// These, but not the given one.
    #[must_use]
    pub const fn without(self, part: Part) -> Self {
        Self(self.0 & !(part as u8))
    }

    /// All that are in one or the other.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Them as a number, for types that are made for them.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the part is among them.
    pub const fn has(self, part: Part) -> bool {
        self.0 & part as u8 != 0
    }

    /// An object without the other parts; it is copied only where it has one.
    pub fn of(self, object: &Value) -> Cow<'_, Value> {
        if self.leaves_out(Place::Object, object) {
            Cow::Owned(self.copy(Place::Object, object))
        } else {
            Cow::Borrowed(object)
        }
    }

    fn leaves_out(self, place: Place, value: &Value) -> bool {
        let Value::Object(fields) = value else {
            return false;
        };
        fields.iter().any(|(name, value)| {
            self.skips(place, name)
                || place
                    .inner(name)
                    .is_some_and(|place| self.leaves_out(place, value))
        })
    }

    fn copy(self, place: Place, value: &Value) -> Value {
        let Value::Object(fields) = value else {
            return value.clone();
        };
        let mut copy = Map::new();
        for (name, value) in fields {
            if self.skips(place, name) {
                continue;
            }
            let value = match place.inner(name) {
                Some(place) => self.copy(place, value),
                None => value.clone(),
            };
            copy.insert(name.clone(), value);
        }
        Value::Object(copy)
    }

    /// Takes the other parts out of an object.
    pub fn keep(self, object: &mut Value) {
        self.keep_at(Place::Object, object);
    }

    fn keep_at(self, place: Place, value: &mut Value) {
        let Value::Object(fields) = value else {
            return;
        };
        fields.retain(|name, _| !self.skips(place, name));
        for (name, value) in fields {
            if let Some(place) = place.inner(name) {
                self.keep_at(place, value);
            }
        }
    }

    fn skips(self, place: Place, name: &str) -> bool {
        place.part(name).is_some_and(|part| !self.has(part))
    }
}

/// Where in an object something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Spec,
    Template,
}

impl Place {
    /// The part that the field of this name is here.
    fn part(self, name: &str) -> Option<Part> {
        match (self, name) {
            (Self::Object, "status") => Some(Part::Status),
            (Self::Metadata, "managedFields") => Some(Part::ManagedFields),
            (Self::Spec, "volumeClaimTemplates") => Some(Part::ClaimTemplates),
            (Self::Template, "spec") => Some(Part::PodSpec),
            _ => None,
        }
    }

    /// The place inside the field of this name, if there are parts in it.
    fn inner(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Object, "spec") => Some(Self::Spec),
            (Self::Spec, "template") => Some(Self::Template),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
