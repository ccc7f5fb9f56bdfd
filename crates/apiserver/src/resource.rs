//! What the server needs to know of a resource: its names, its verbs, its schema and its rules.
//!
//! Built-in and custom resources are the same thing here. A new built-in kind is a new file under [`crate::builtin`]
//! and one line in its registry.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::authenticate::User;
use crate::field::FieldErrors;
use crate::schema::Schema;
use crate::store::Stored;
use crate::table::Column;

/// Names of a resource, as discovery shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// As in paths.
    pub plural: String,
    /// As kubectl shows one.
    pub singular: String,
    /// As kubectl accepts it.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
}

/// One served version of a resource.
#[derive(Debug, Clone)]
pub struct Version {
    /// `v1`.
    pub name: String,
    /// Its schema.
    pub schema: Schema,
    /// A warning header to send with each answer, for deprecated versions.
    pub deprecation: Option<String>,
}

/// A resource with all served versions.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, as discovery shows it"
)]
pub struct Resource {
    /// Its names.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Served versions, most preferred first. Objects are stored in [`Resource::storage_version`].
    pub versions: Vec<Version>,
    /// The version in which objects are stored, which need not be served.
    pub storage_version: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; reviews have only `create`.
    pub verbs: Vec<&'static str>,
    /// Has a `status` subresource.
    pub status: bool,
    /// Has a `scale` subresource.
    pub scale: Option<Scale>,
    /// Further subresources: `eviction`, `token`, `finalize`, `approval`, `binding`.
    pub subresources: Vec<&'static str>,
    /// Its rules.
    pub strategy: Arc<dyn Strategy>,
    /// It comes from a `CustomResourceDefinition`.
    pub custom: bool,
    /// A delete answers with the object that was deleted rather than with a `Status`.
    pub returns_deleted: bool,
    /// The version that stands for the stored form in `storageVersionHash`, where it is not the one in which objects
    /// are stored.
    pub hashed_as: Option<&'static str>,
    /// The group under which objects are kept, where it is not [`Names::group`] (events live in two groups), and
    /// how they get from there and back.
    pub stored_in: Option<StoredIn>,
}

/// Objects that are kept in the form of another group.
#[derive(Debug, Clone, Copy)]
pub struct StoredIn {
    /// The group.
    pub group: &'static str,
    /// Into the form of that group.
    pub to_storage: fn(&Value) -> Value,
    /// Out of it.
    pub from_storage: fn(&Value) -> Value,
}

/// Under which name the store keeps the objects of a resource.
pub fn bucket(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

/// Where the `scale` subresource finds its values: paths such as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Desired replicas.
    pub spec_replicas: String,
    /// Observed replicas.
    pub status_replicas: String,
    /// A selector in text form, or for built-in kinds a `metav1.LabelSelector` or map; empty for none.
    pub selector: String,
}

impl Resource {
    /// The served version of this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.name == name)
    }

    /// Under which name the store keeps the objects.
    pub fn bucket(&self) -> String {
        bucket(
            self.stored_in
                .map_or(self.names.group.as_str(), |other| other.group),
            &self.names.plural,
        )
    }

    /// Whether the stored form is the one that is served.
    pub fn as_is(&self) -> bool {
        self.stored_in.is_none() && self.strategy.stored_as_is()
    }

    /// Whether an object is served as it is stored: also one that has all that would be filled in.
    pub fn serves_as_is(&self, stored: &Stored) -> bool {
        self.as_is() || (self.stored_in.is_none() && stored.has(self.strategy.defaults()))
    }

    /// The stored form of an object in `version`.
    pub fn to_storage(&self, object: &Value, version: &str) -> Value {
        let mut object = match self.stored_in {
            Some(other) => (other.to_storage)(object),
            None => object.clone(),
        };
        if !self.strategy.stored_as_is() {
            self.strategy.to_storage(&mut object, version);
        }
        object
    }

    /// A stored object, with `apiVersion` and `kind`, in the form of `version`.
    pub fn from_storage(&self, object: Value, version: &str) -> Value {
        let mut object = match self.stored_in {
            Some(other) => {
                let mut object = object;
                let api_version = if other.group.is_empty() {
                    version.to_owned()
                } else {
                    format!("{}/{version}", other.group)
                };
                crate::value::put(&mut object, "apiVersion", api_version);
                (other.from_storage)(&object)
            }
            None => object,
        };
        if !self.strategy.stored_as_is() {
            self.strategy.from_storage(&mut object, version);
        }
        object
    }

    /// `group/version`, or `version` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.names.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.names.group)
        }
    }
}

/// Which part of an object a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The main resource: everything but the status (where there is a status subresource).
    Main,
    /// The `status` subresource: the status and, as in the real server, metadata that is not spec.
    Status,
    /// The `scale` subresource.
    Scale,
}

/// What a strategy may look at besides the object.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The version of the request: the object is in this version.
    pub version: &'a str,
    /// The present moment.
    pub now: Timestamp,
    /// The user who asks; none where objects are only shown.
    pub user: Option<&'a User>,
}

/// What a server derives from stored objects, and makes anew when they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derived {
    /// Nothing.
    Nothing,
    /// Who may do what.
    Policy,
    /// Which resources it serves.
    Registry,
}

/// The rules of a resource. All functions are pure. Metadata that all kinds share (names, labels, annotations,
/// owner references, finalizers, generation, uid, timestamps) is not a strategy's business.
#[allow(
    clippy::wrong_self_convention,
    reason = "conversions depend on the resource, not only on the object"
)]
pub trait Strategy: Debug + Send + Sync {
    /// Fills in defaults, as decoding a request body or reading from storage does. Idempotent.
    fn default(&self, object: &mut Value, cx: &Context<'_>);

    /// Before create: drop what the client may not set (the status), set what the server sets. Generation is
    /// handled outside.
    fn prepare_create(&self, object: &mut Value, cx: &Context<'_>);

    /// Judges a new object.
    fn validate(&self, object: &Value, cx: &Context<'_>) -> FieldErrors;

    /// Before update of `part`: put back from `old` what this part may not change.
    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, cx: &Context<'_>);

    /// Judges an update. `object` has been prepared.
    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> FieldErrors;

    /// Judges an update, and gives what the client is to be warned of if it is let through. Who finds out both together does it here.
    fn judge_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> (FieldErrors, Vec<String>) {
        let errors = self.validate_update(part, object, old, cx);
        if !errors.is_empty() {
            return (errors, Vec::new());
        }
        (errors, self.warnings(object, Some(old), cx))
    }

    /// Warnings for the client (`Warning: 299`), on create (`old` is none) and update.
    fn warnings(&self, _object: &Value, _old: Option<&Value>, _cx: &Context<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Whether a change from `old` to `object` counts as a new generation. Called for [`Part::Main`] and
    /// [`Part::Scale`] only; most kinds compare the spec.
    fn generation_changed(&self, object: &Value, old: &Value) -> bool;

    /// Whether objects of this kind have a generation at all (`ConfigMap`s have not).
    fn has_generation(&self) -> bool {
        true
    }

    /// Top-level fields, or paths such as `spec.x`, that a write to `part` leaves alone; they are not recorded in
    /// managedFields for that part. `["status"]` for Main and `["spec"]` (and what else) for Status usually.
    fn reset_fields(&self, part: Part) -> Vec<&'static str>;

    /// Values for field selectors besides `metadata.name` and `metadata.namespace`.
    fn selectable(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// As [`Strategy::selectable`] for an object in this version; the fields of custom resources have names of their
    /// own. This is what callers use.
    fn fields(&self, object: &Value, _version: &str) -> Vec<(String, String)> {
        let named = self.selectable(object).into_iter();
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Names of the fields that [`Strategy::fields`] gives, so that a selector on another one is refused.
    fn selectable_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// How a name is judged: gives the texts of what is wrong with `name`. `prefix` is true for generateName.
    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::builtin::names::dns_subdomain(name, prefix)
    }

    /// The grace period of a delete that names none; 0 deletes at once. Pods have 30 when they are on a node.
    fn grace_seconds(&self, _object: &Value, asked: Option<i64>) -> i64 {
        let _ = asked;
        0
    }

    /// Whether deletes of this kind go through a grace period at all, be it zero: then the object is marked first
    /// and removed in a second write. Pods.
    fn is_graceful(&self) -> bool {
        false
    }

    /// Marks an object that the server itself takes apart after a delete, and so keeps until then. False if deletes of
    /// this kind go the usual way. Definitions, whose objects go first.
    fn begin_delete(&self, _object: &mut Value, _now: Timestamp) -> bool {
        false
    }

    /// The status that the server itself gives to an object after each write, in a write of its own; none if it has
    /// no say. `others` gives the other objects of the kind. Definitions, which it accepts.
    fn settled_status(
        &self,
        _object: &Value,
        _others: &dyn Fn() -> Vec<Value>,
        _now: Timestamp,
    ) -> Option<Value> {
        None
    }

    /// What the server derives from objects of this kind.
    fn derived(&self) -> Derived {
        Derived::Nothing
    }

    /// Whether PUT to a name that does not exist creates it.
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether an update without resourceVersion is accepted. Custom resources refuse it.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// Whether the stored form is that of every served version. If not, [`Strategy::from_storage`] and
    /// [`Strategy::to_storage`] convert.
    fn stored_as_is(&self) -> bool {
        true
    }

    /// The number of what is filled in where an object is read, if that is all that is done to it then; else 0. What is filled in
    /// otherwise has another number.
    fn defaults(&self) -> u64 {
        0
    }

    /// Whether an object has all that would be filled in.
    fn has_defaults(&self, _object: &Value) -> bool {
        false
    }

    /// From the stored form to the one of `version`.
    fn from_storage(&self, _object: &mut Value, _version: &str) {}

    /// From the form of `version` to the stored one.
    fn to_storage(&self, _object: &mut Value, _version: &str) {}

    /// The columns of the table form, for this version.
    fn columns(&self, version: &str) -> Vec<Column>;

    /// The cells of the table form, one a column.
    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value>;

    /// What a row of the table form says beside its cells. Pods that have ended.
    fn row_condition(&self, _object: &Value) -> Option<Value> {
        None
    }

    /// Takes out of the metadata that a row shows what the server adds only to objects that it serves whole.
    fn trim_row(&self, _shown: &mut Value) {}
}
