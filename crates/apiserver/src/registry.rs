//! Which resources a cluster serves: the built-in ones, shared by all clusters of the process, and its own custom
//! ones.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde_json::Value;

use crate::builtin;
use crate::crd;
use crate::resource::Resource;
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

/// Custom resources by the text of their definition, so that clusters with the same definition share one schema.
static CUSTOM: Mutex<BTreeMap<Vec<u8>, Weak<Resource>>> = Mutex::new(BTreeMap::new());

type Resources = BTreeMap<(String, String), Arc<Resource>>;

fn address(resource: &Resource) -> (String, String) {
    (resource.names.group.clone(), resource.names.plural.clone())
}

/// The resources of one cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    builtin: Arc<Resources>,
    custom: Arc<Resources>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            builtin: BUILTIN.clone(),
            custom: Arc::new(Resources::new()),
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
    pub(crate) fn with_definitions<'a>(
        &self,
        definitions: impl Iterator<Item = &'a Value>,
    ) -> Self {
        let custom = definitions
            .filter(|d| is_established(d))
            .filter_map(shared)
            .map(|r| (address(&r), r))
            .collect();
        Self {
            builtin: self.builtin.clone(),
            custom: Arc::new(custom),
        }
    }
}

fn is_established(definition: &Value) -> bool {
    value::items(definition, "status.conditions")
        .iter()
        .any(|c| value::text(c, "type") == "Established" && value::text(c, "status") == "True")
}

/// The resource of a definition: the one that another cluster already uses, or a new one.
fn shared(definition: &Value) -> Option<Arc<Resource>> {
    // What a resource is made of: the spec, and of the status the names and whether it is going.
    let going = value::items(definition, "status.conditions")
        .iter()
        .any(|c| value::text(c, "type") == "Terminating" && value::text(c, "status") == "True");
    let made_of = (
        definition.get("spec")?,
        value::at(definition, "status.acceptedNames"),
        going,
    );
    let text = serde_json::to_vec(&made_of).ok()?;
    let mut known = CUSTOM.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(resource) = known.get(&text).and_then(Weak::upgrade) {
        return Some(resource);
    }
    known.retain(|_, resource| resource.strong_count() > 0);
    let resource = Arc::new(crd::resource(definition).ok()?);
    known.insert(text, Arc::downgrade(&resource));
    Some(resource)
}
