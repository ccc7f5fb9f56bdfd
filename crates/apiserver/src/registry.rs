//! Which resources a cluster serves: the built-in ones, shared by all clusters of the process, and its own custom
//! ones.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::builtin;
use crate::crd;
use crate::resource::Resource;
use crate::shelf::{Kept, Shelf};
use crate::store::{Piece, Stored};
use crate::value;

/// The built-in resources, made once in a process.
static BUILTIN: LazyLock<Arc<Resources>> = LazyLock::new(|| {
    Arc::new(
        builtin::resources()
            .into_iter()
            .map(|r| (address(&r), Arc::new(r)))
            .collect(),
    )
});

/// Custom resources by what they are made of, so that clusters with the same definition share all of it.
static CUSTOM: Shelf<MadeOf, Option<Arc<Resource>>> = Shelf::new();

/// The text of a definition's spec, the accepted names, and whether it is going.
type MadeOf = (Piece, Option<String>, bool);

/// What came of a definition: nothing, where it is not established.
type Came = Option<Arc<Kept<MadeOf, Option<Arc<Resource>>>>>;

/// What came of a definition in a version.
type Made = (u64, Came);

type Resources = BTreeMap<(String, String), Arc<Resource>>;

fn address(resource: &Resource) -> (String, String) {
    (resource.names.group.clone(), resource.names.plural.clone())
}

/// The resources of one cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    builtin: Arc<Resources>,
    custom: Arc<Resources>,
    /// By the name of the definition.
    made: Arc<BTreeMap<Box<str>, Made>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            builtin: BUILTIN.clone(),
            custom: Arc::default(),
            made: Arc::default(),
        }
    }
}

impl Registry {
    /// The resource of this group and plural.
    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        let address = (group.to_owned(), plural.to_owned());
        self.builtin
            .get(&address)
            .or_else(|| self.custom.get(&address))
    }

    /// The resource whose objects have this kind, as owner references name it.
    pub(crate) fn by_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.iter()
            .find(|r| r.names.group == group && r.names.kind == kind)
    }

    /// All resources, by group and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.values().chain(self.custom.values())
    }

    /// The same with the custom resources that these definitions establish.
    #[must_use]
    pub(crate) fn with_definitions(&self, definitions: &[Arc<Stored>]) -> Self {
        let made = |stored: &Arc<Stored>| {
            let known = self.made.get(&stored.header.name);
            match known.filter(|(version, _)| *version == stored.version) {
                Some((_, came)) => came.clone(),
                None => shared(stored),
            }
        };
        let made: BTreeMap<Box<str>, Made> = definitions
            .iter()
            .map(|stored| (stored.header.name.clone(), (stored.version, made(stored))))
            .collect();
        let custom = made.values().filter_map(|(_, came)| {
            let kept = came.as_deref()?;
            Option::clone(kept)
        });
        Self {
            builtin: self.builtin.clone(),
            custom: Arc::new(custom.map(|r| (address(&r), r)).collect()),
            made: Arc::new(made),
        }
    }
}

/// The resource of a definition, if it is established: the one that another cluster already uses, or a new one.
fn shared(definition: &Stored) -> Came {
    let (spec, mut rest) = definition.split("spec");
    if !value::at(&rest, "status").is_some_and(Value::is_object) {
        rest = definition.decode();
    }
    if !crd::is_established(&rest) {
        return None;
    }
    // What a resource is made of: the spec, and of the status the names and whether it is going.
    let names = value::at(&rest, "status.acceptedNames").map(ToString::to_string);
    let made_of = (spec, names, crd::is_terminating(&rest));
    Some(CUSTOM.get(&made_of, || {
        let resource = crd::resource(&definition.decode());
        (made_of.clone(), resource.ok().map(Arc::new))
    }))
}

#[cfg(test)]
mod tests;
