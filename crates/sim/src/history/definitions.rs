//! When definitions were not there.

use jiff::{SignedDuration, Timestamp};

use super::{Change, History};

/// The resource.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

impl History {
    /// For how long a definition that goes at a moment is not there: whoever puts it back may be busy with something else.
    pub(crate) fn absence(&self, name: &str, from: Timestamp) -> SignedDuration {
        let back = self.return_of(name, from).unwrap_or(self.end);
        back.duration_since(from)
    }

    /// The definitions that went at home, by name, each with when: somebody deleted it, or everything was put back to when it was not
    /// there.
    pub(crate) fn lost_definitions(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        let gone = self.definitions().filter(|change| change.after.is_none());
        gone.map(|change| (&*change.object.2, change.at))
    }

    /// Whether a definition that was there is not in the end. Nobody can do then what it takes that kind for, and nobody has promised
    /// to put it back.
    pub fn lacks_definition(&self) -> bool {
        let mut lost = self.lost_definitions();
        lost.any(|(name, at)| self.return_of(name, at).is_none())
    }

    fn return_of(&self, name: &str, from: Timestamp) -> Option<Timestamp> {
        let mut after = self.definitions().filter(|change| change.at > from);
        let back = after.find(|change| &*change.object.2 == name && change.before.is_none());
        back.map(|change| change.at)
    }

    /// What happened to definitions at home.
    fn definitions(&self) -> impl Iterator<Item = &Change> {
        let all = self.changes.iter();
        all.filter(|change| &*change.object.0 == DEFINITIONS)
    }
}
