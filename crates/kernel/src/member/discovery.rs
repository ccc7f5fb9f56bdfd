//! Which kinds a cluster serves.

use std::collections::BTreeMap;

use crate::identity::Kind;

/// The kinds of a cluster, each in the versions that it serves, the preferred one first. Without subresources.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Discovery(BTreeMap<(String, String), Vec<Kind>>);

impl Discovery {
    /// What a cluster says; versions of a kind are in the order in which they come.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        let mut all: BTreeMap<(String, String), Vec<Kind>> = BTreeMap::new();
        for kind in kinds {
            let slot = (kind.group.to_string(), kind.kind.to_string());
            let versions = all.entry(slot).or_default();
            if versions.iter().all(|known| known.version != kind.version) {
                versions.push(kind);
            }
        }
        Self(all)
    }

    /// The versions of a kind, the preferred one first; none if it is not served.
    pub fn find(&self, group: &str, kind: &str) -> &[Kind] {
        let slot = (group.to_owned(), kind.to_owned());
        self.0.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// Whether a kind is served in this version.
    pub fn serves(&self, kind: &Kind) -> bool {
        let versions = self.find(&kind.group, &kind.kind);
        versions.iter().any(|known| known.version == kind.version)
    }

    /// All kinds, by group and name.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.0.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Discovery;
    use crate::identity::Kind;

    fn kind(version: &str) -> Kind {
        Kind::owned("toy.dev", version, "Gadget", "gadgets", true)
    }

    #[test]
    fn a_kind_is_found_in_its_versions_and_others_are_not_served() {
        let known = Discovery::new([kind("v1"), kind("v1beta1"), kind("v1")]);
        let versions = known.find("toy.dev", "Gadget").iter();
        let versions: Vec<&str> = versions.map(|kind| kind.version.as_ref()).collect();
        assert_eq!(versions, ["v1", "v1beta1"]);
        assert!(known.serves(&kind("v1beta1")));
        assert!(!known.serves(&kind("v2")));
        assert!(known.find("", "Gadget").is_empty());
    }
}
