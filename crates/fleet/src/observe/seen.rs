//! What is kept of objects: those that are worked on whole, of others only what is asked of them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use serde_json::{Value, json};
use slipway_api::fleet::sync::NamedSync;
use slipway_kernel::fields::{list, text};
use slipway_kernel::parts::{Part, Parts};
use slipway_kernel::store::{Projection, Undecodable};

use super::kept::Kept;
use crate::assemblage::{KustomizationSeen, SourceSeen};
use crate::naming;

/// All of an object but for who wrote which field.
const ALL: Parts = Parts::ALL.without(Part::ManagedFields);

/// An object as it is, but for who wrote which field. What is in it may be secret.
#[derive(Clone)]
pub struct Whole(Value);

impl Whole {
    /// The object.
    pub fn object(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
}

impl Projection for Whole {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(object.clone()))
    }
}

/// A `RemoteAssemblage`. What is in it may be secret.
#[derive(Debug, Clone)]
pub struct RemoteSeen(Kept);

impl RemoteSeen {
    /// The object, without its lists.
    pub fn object(&self) -> &Value {
        self.0.object()
    }

    /// All of it.
    pub fn kept(&self) -> &Kept {
        &self.0
    }
}

impl Projection for RemoteSeen {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(Kept::remote(object)))
    }
}

/// An `Assemblage` in a cluster that others administer. What is in it may be secret.
#[derive(Debug, Clone)]
pub struct LeafSeen(Kept);

impl LeafSeen {
    /// The object, without its lists.
    pub fn object(&self) -> &Value {
        self.0.object()
    }

    /// All of it, unless there is too much.
    pub fn kept(&self) -> &Kept {
        &self.0
    }
}

impl Projection for LeafSeen {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(Kept::leaf(object)))
    }
}

/// An object that a binding refers to. What is in it may be secret.
#[derive(Clone)]
pub struct Referred(Value);

impl Referred {
    /// The object.
    pub fn object(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for Referred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that a binding refers to")
    }
}

impl Projection for Referred {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self(object.clone()))
    }
}

/// An object of which only the metadata is kept: nothing of a Secret.
#[derive(Debug, Clone)]
pub struct Bare(Value);

impl Bare {
    /// The object, with nothing but its metadata.
    pub fn object(&self) -> &Value {
        &self.0
    }
}

impl Projection for Bare {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let mut metadata = object.get("metadata").cloned().unwrap_or_default();
        if let Some(fields) = metadata.as_object_mut() {
            fields.retain(|name, _| KEPT.contains(&name.as_str()));
        }
        // What kubectl puts into an annotation may be the whole Secret.
        if let Some(all) = metadata.pointer_mut("/annotations")
            && let Some(all) = all.as_object_mut()
        {
            all.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        Ok(Self(json!({ "metadata": metadata })))
    }
}

const KEPT: [&str; 7] = [
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "deletionTimestamp",
    "ownerReferences",
];

/// The definition of a kind of ours, as somebody has installed it: it may be older than we are.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Whether it is being deleted.
    pub is_going: bool,
    /// The fields of a status that are kept; none where all are.
    told: Option<BTreeSet<String>>,
}

impl Installed {
    /// Whether the API keeps this field of a status.
    pub fn keeps(&self, field: &str) -> bool {
        self.told.as_ref().is_none_or(|told| told.contains(field))
    }
}

impl Projection for Installed {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let is_stored = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
        let stored = list(object, "/spec/versions").find(is_stored);
        let schema = stored.and_then(|version| version.pointer("/schema/openAPIV3Schema"));
        let status = schema.and_then(|schema| schema.pointer("/properties/status"));
        let open = "x-kubernetes-preserve-unknown-fields";
        let is_closed = |status: &&Value| status.get(open) != Some(&Value::Bool(true));
        let fields = status.filter(is_closed);
        let fields = fields.and_then(|status| status.get("properties")?.as_object());
        Ok(Self {
            is_going: text(object, "/metadata/deletionTimestamp").is_some(),
            told: fields.map(|fields| fields.keys().cloned().collect()),
        })
    }
}

/// An assemblage where it is expanded, with what to, which is known only when somebody asks.
#[derive(Clone)]
pub struct Assembled {
    kept: Kept,
    expanded: OnceLock<Expanded>,
}

/// The names of what an assemblage wants.
#[derive(Debug, Clone, Default)]
struct Expanded {
    sources: BTreeSet<String>,
    kustomizations: BTreeSet<String>,
}

impl Assembled {
    /// The object, without its lists.
    pub fn object(&self) -> &Value {
        self.kept.object()
    }

    /// All of it.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Whether some of its syncs name modules: which sources these want is said there.
    pub fn names_modules(&self) -> bool {
        self.kept.names_modules()
    }

    /// The sources that it wants, as far as it says itself.
    pub fn sources(&self) -> &BTreeSet<String> {
        &self.expanded().sources
    }

    /// The Kustomizations that it wants.
    pub fn kustomizations(&self) -> &BTreeSet<String> {
        &self.expanded().kustomizations
    }

    fn expanded(&self) -> &Expanded {
        self.expanded.get_or_init(|| Expanded::of(&self.kept))
    }

    /// The cluster that it names: none if it is about the one that it is in.
    pub fn cluster(&self) -> Option<&str> {
        text(self.object(), "/spec/clusterName")
    }
}

impl fmt::Debug for Assembled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembled")
            .field("sources", self.sources())
            .field("kustomizations", self.kustomizations())
            .finish_non_exhaustive()
    }
}

impl Projection for Assembled {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            kept: Kept::assemblage(object),
            expanded: OnceLock::new(),
        })
    }
}

impl Expanded {
    fn of(assemblage: &Kept) -> Self {
        let name = text(assemblage.object(), "/metadata/name").unwrap_or_default();
        let mut all = Self::default();
        for sync in assemblage.syncs().iter() {
            if let Some(sync) = sync.name() {
                all.kustomizations.insert(naming::kustomization(name, sync));
            }
            let source = sync.read::<NamedSync>().ok().and_then(|sync| sync.source);
            let source = source.map(|source| naming::source(&source));
            all.sources.extend(source);
        }
        all
    }
}

impl Projection for SourceSeen {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self::of(object))
    }
}

impl Projection for KustomizationSeen {
    const READS: Parts = ALL;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self::of(object))
    }
}

/// What a definition says of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defined {
    /// The API group.
    pub group: String,
    /// The kind's name.
    pub kind: String,
    /// Its plural.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The versions that are served.
    pub versions: Vec<String>,
}

impl Projection for Defined {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let part = |path: &str| text(object, path).unwrap_or_default().to_owned();
        let served = list(object, "/spec/versions")
            .filter(|version| version.get("served") == Some(&Value::Bool(true)));
        Ok(Self {
            group: part("/spec/group"),
            kind: part("/spec/names/kind"),
            plural: part("/spec/names/plural"),
            namespaced: part("/spec/scope") == "Namespaced",
            versions: served
                .filter_map(|version| Some(text(version, "/name")?.to_owned()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::json;
    use slipway_kernel::store::Projection;

    use super::{Assembled, Bare, Installed, RemoteSeen, Whole};

    #[test]
    fn nothing_of_a_secret_is_kept_where_only_its_metadata_is_and_nothing_is_shown() {
        let secret = json!({
            "metadata": {
                "name": "a", "labels": {"b": "c"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "d": "e"},
            },
            "data": {"x": "hunter2"},
        });
        let bare = Bare::read(&secret).unwrap();
        assert_eq!(
            bare.object(),
            &json!({"metadata": {"name": "a", "labels": {"b": "c"}, "annotations": {"d": "e"}}})
        );
        let whole = Whole::read(&secret).unwrap();
        assert!(!format!("{whole:?}").contains("hunter2"));
    }

    #[test]
    fn a_definition_says_which_fields_of_a_status_are_kept() {
        let of = |status: serde_json::Value| {
            let schema = json!({"openAPIV3Schema": {"properties": {"status": status}}});
            let versions =
                json!([{"name": "v0"}, {"name": "v1", "storage": true, "schema": schema}]);
            Installed::read(&json!({"metadata": {}, "spec": {"versions": versions}})).unwrap()
        };
        let some = of(json!({"properties": {"run": {}}}));
        assert!(some.keeps("run") && !some.keeps("joined") && !some.is_going);
        for fields in [json!({}), json!({"run": {}})] {
            let open = json!({"properties": fields, "x-kubernetes-preserve-unknown-fields": true});
            assert!(of(open).keeps("joined"));
        }
    }

    /// Whatever has a list that is called as those of assemblages are.
    #[test]
    fn what_is_kept_whole_is_whole() {
        let object = json!({
            "metadata": {"name": "a"}, "spec": {"syncs": [1], "assemblage": {"syncs": [2]}}, "status": {"syncs": [3]},
        });
        assert_eq!(Whole::read(&object).unwrap().object(), &object);
        let remote = RemoteSeen::read(&object).unwrap();
        assert_eq!(remote.object()["spec"]["syncs"], json!([1]));
        assert_eq!(remote.object()["spec"]["assemblage"]["syncs"], json!([]));
        let assembled = Assembled::read(&object).unwrap();
        assert_eq!(assembled.object()["spec"]["syncs"], json!([]));
        assert_eq!(
            assembled.object()["spec"]["assemblage"]["syncs"],
            json!([2])
        );
    }
}
