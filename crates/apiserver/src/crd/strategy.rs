//! The rules of one custom resource, compiled from its definition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::check::{self, NO_PATH};
use super::columns::{self, Columns};
use super::compiled::{Shared, compiled};
use super::jsonpath::JsonPath;
use super::pair::Pair;
use super::rules::Verdict;
use super::structural::Structural;
use super::{embedded, lists, prune, scale};
use crate::builtin::names;
use crate::field::{Fault, FieldError, FieldErrors};
use crate::meta;
use crate::resource::{Context, Part, Scale, Strategy};
use crate::schema::Schema;
use crate::table::Column;
use crate::value;

/// The rules of a custom resource, for all versions of its definition.
#[derive(Debug)]
pub struct CustomStrategy {
    pub(super) versions: BTreeMap<String, VersionRules>,
    /// The version in which objects are stored.
    pub(super) storage: String,
}

/// The rules of one version.
#[derive(Debug)]
pub(super) struct VersionRules {
    compiled: Shared,
    status: bool,
    scale: Option<Scale>,
    columns: Columns,
    selectable: Vec<(String, Option<JsonPath>)>,
}

impl VersionRules {
    /// Compiles an entry of `spec.versions`.
    pub(super) fn compile(version: &Value) -> Self {
        let selectable = value::items(version, "selectableFields")
            .iter()
            .map(|field| {
                let path = value::text(field, "jsonPath");
                let name = path.strip_prefix('.').unwrap_or(path).to_owned();
                (name, JsonPath::parse(path))
            });
        Self {
            compiled: compiled(value::at(version, "schema.openAPIV3Schema")),
            status: has_status(version),
            scale: scale::of(version),
            columns: Columns::read(value::items(version, "additionalPrinterColumns")),
            selectable: selectable.collect(),
        }
    }

    /// The schema of the version.
    pub(super) fn schema(&self) -> &Schema {
        &self.compiled.schema
    }

    fn structural(&self) -> &Structural {
        self.compiled.structural()
    }

    /// Fills in defaults, but none in the metadata of the object.
    fn default(&self, object: &mut Value) {
        let metadata = value::take(object, "metadata");
        prune::default(self.schema().view(), object);
        if let Some(metadata) = metadata {
            value::put(object, "metadata", metadata);
        }
    }

    /// What a judgement ends with: the CEL rules, unless an error before them makes running them pointless.
    fn with_rules(&self, mut errors: FieldErrors, object: &Value, old: Option<&Value>) -> Verdict {
        let only = |errors| Verdict {
            errors,
            ..Verdict::default()
        };
        let Some(rules) = self.compiled.rules() else {
            return only(errors);
        };
        let blocked = errors.iter().any(|e| {
            matches!(
                e.fault,
                Fault::NotSupported
                    | Fault::Required
                    | Fault::TooLong
                    | Fault::TooMany
                    | Fault::TypeInvalid
            )
        });
        if blocked {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid(NO_PATH, &Value::Null, why));
            return only(errors);
        }
        let mut verdict = rules.run(self.structural(), object, old, "");
        errors.append(&mut verdict.errors);
        Verdict { errors, ..verdict }
    }

    fn scale_spec(&self, object: &Value, errors: &mut FieldErrors) {
        if let Some(paths) = &self.scale {
            errors.extend(scale::replicas_error(object, &paths.spec_replicas));
        }
    }

    fn scale_status(&self, object: &Value, errors: &mut FieldErrors) {
        let Some(paths) = &self.scale else { return };
        errors.extend(scale::replicas_error(object, &paths.status_replicas));
        let path = paths.selector.as_str();
        if let Some(found) = value::at(object, path.trim_start_matches('.'))
            && !path.is_empty()
            && !found.is_string()
        {
            let why = scale::accessor_error(path, found, "string");
            errors.push(FieldError::invalid_str(path, "", why));
        }
    }

    fn lists(&self, object: &Value) -> FieldErrors {
        let mut errors = FieldErrors::new();
        lists::validate(self.structural(), object, "", &mut errors);
        errors
    }

    /// What is repeated in lists, unless something was before: hardly ever is anything, and then the old object is not looked at.
    fn repeated(&self, object: &Value, old: &Value) -> FieldErrors {
        let mut repeated = self.lists(object);
        if !repeated.is_empty() && !self.lists(old).is_empty() {
            repeated.clear();
        }
        repeated
    }

    fn judge_update(&self, object: &Value, old: &Value) -> Verdict {
        let pair = Pair {
            old,
            new: object,
            schema: self.structural(),
        };
        let mut errors = check::check(self.structural(), object, "", Some(pair));
        self.scale_spec(object, &mut errors);
        self.scale_status(object, &mut errors);
        embedded::validate(self.structural(), object, "", &mut errors);
        errors.extend(self.repeated(object, old));
        self.with_rules(errors, object, Some(old))
    }

    fn judge_status(&self, object: &Value, old: &Value) -> Verdict {
        let mut errors = FieldErrors::new();
        let schema = self.structural().property("status");
        if let (Some(status), Some(schema)) = (object.get("status"), schema) {
            let pair = old.get("status").map(|old| Pair {
                old,
                new: status,
                schema,
            });
            errors = check::check(schema, status, "status", pair);
        }
        self.scale_status(object, &mut errors);
        errors.extend(self.repeated(object, old));
        self.with_rules(errors, object, Some(old))
    }
}

/// Whether a version of a definition has a `status` subresource.
pub(super) fn has_status(version: &Value) -> bool {
    value::has(version, "subresources.status")
}

impl CustomStrategy {
    fn version(&self, cx: &Context<'_>) -> Option<&VersionRules> {
        self.versions.get(cx.version)
    }

    fn any_status(&self) -> bool {
        self.versions.values().any(|v| v.status)
    }

    fn judge(&self, part: Part, object: &Value, old: &Value, cx: &Context<'_>) -> Verdict {
        match (self.version(cx), part) {
            (None, _) => Verdict::default(),
            (Some(version), Part::Status) => version.judge_status(object, old),
            (Some(version), Part::Main | Part::Scale) => version.judge_update(object, old),
        }
    }
}

impl Strategy for CustomStrategy {
    fn default(&self, object: &mut Value, cx: &Context<'_>) {
        if let Some(version) = self.version(cx) {
            version.default(object);
        }
    }

    fn prepare_create(&self, object: &mut Value, cx: &Context<'_>) {
        if self.version(cx).is_some_and(|v| v.status) {
            value::take(object, "status");
        }
    }

    fn validate(&self, object: &Value, cx: &Context<'_>) -> FieldErrors {
        let Some(version) = self.version(cx) else {
            return FieldErrors::new();
        };
        let mut errors = check::check(version.structural(), object, "", None);
        version.scale_spec(object, &mut errors);
        version.scale_status(object, &mut errors);
        embedded::validate(version.structural(), object, "", &mut errors);
        errors.extend(version.lists(object));
        version.with_rules(errors, object, None).errors
    }

    fn prepare_update(&self, part: Part, object: &mut Value, old: &Value, cx: &Context<'_>) {
        match part {
            Part::Main | Part::Scale => {
                if self.version(cx).is_some_and(|v| v.status) {
                    value::copy(object, old, "status");
                }
            }
            Part::Status => meta::keep_all_but_status(object, old),
        }
    }

    fn validate_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> FieldErrors {
        self.judge(part, object, old, cx).errors
    }

    /// Its rules are run once for both.
    fn judge_update(
        &self,
        part: Part,
        object: &Value,
        old: &Value,
        cx: &Context<'_>,
    ) -> (FieldErrors, Vec<String>) {
        let Verdict { errors, tolerated } = self.judge(part, object, old, cx);
        let mut warnings = finalizer_warnings(object, Some(old));
        warnings.extend(tolerated.iter().map(ToString::to_string));
        (errors, warnings)
    }

    fn warnings(&self, object: &Value, old: Option<&Value>, cx: &Context<'_>) -> Vec<String> {
        let mut warnings = finalizer_warnings(object, old);
        let version = self.version(cx);
        if let (Some(rules), Some(version), Some(old)) =
            (version.and_then(|v| v.compiled.rules()), version, old)
        {
            let Verdict { tolerated, .. } = rules.run(version.structural(), object, Some(old), "");
            warnings.extend(tolerated.iter().map(ToString::to_string));
        }
        warnings
    }

    fn generation_changed(&self, object: &Value, old: &Value) -> bool {
        !content(object).eq(content(old))
    }

    fn reset_fields(&self, part: Part) -> Vec<&'static str> {
        match part {
            Part::Main | Part::Scale if self.any_status() => vec!["status"],
            Part::Main | Part::Scale => Vec::new(),
            Part::Status => vec!["metadata", "spec"],
        }
    }

    fn fields(&self, object: &Value, version: &str) -> Vec<(String, String)> {
        let Some(version) = self.versions.get(version) else {
            return Vec::new();
        };
        let value_of = |path: &Option<JsonPath>| {
            let found = path.as_ref().map(|p| p.find(object)).unwrap_or_default();
            found
                .first()
                .map(|v| columns::sprint(v))
                .unwrap_or_default()
        };
        version
            .selectable
            .iter()
            .map(|(name, path)| (name.clone(), value_of(path)))
            .collect()
    }

    fn selectable_names(&self) -> Vec<String> {
        let all = self.versions.values().flat_map(|v| &v.selectable);
        let names: BTreeSet<String> = all.map(|(name, _)| name.clone()).collect();
        names.into_iter().collect()
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    /// Reading fills in defaults that the definition got after the object was stored.
    fn stored_as_is(&self) -> bool {
        self.versions.len() == 1
            && !self
                .versions
                .values()
                .any(|v| v.structural().has_defaults())
    }

    fn defaults(&self) -> u64 {
        let mut versions = self.versions.values();
        match (versions.next(), versions.next()) {
            (Some(only), None) => only.compiled.number,
            _ => 0,
        }
    }

    fn has_defaults(&self, object: &Value) -> bool {
        let mut versions = self.versions.values();
        versions.all(|version| prune::is_complete(version.schema().view(), object))
    }

    fn from_storage(&self, object: &mut Value, version: &str) {
        // Defaults of the stored version are filled in when an object is read, those of others are not.
        if let Some(storage) = self.versions.get(&self.storage) {
            storage.default(object);
        }
        if version != self.storage
            && let Some(version) = self.versions.get(version)
        {
            prune(version.schema(), object);
        }
    }

    fn to_storage(&self, object: &mut Value, version: &str) {
        if version != self.storage
            && let Some(storage) = self.versions.get(&self.storage)
        {
            prune(storage.schema(), object);
        }
    }

    fn columns(&self, version: &str) -> Vec<Column> {
        let columns = self.versions.get(version).map(|v| v.columns.headers());
        columns.unwrap_or_else(|| Columns::read(&[]).headers())
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
        let cells = self.version(cx).map(|v| v.columns.cells(object, cx.now));
        cells.unwrap_or_default()
    }
}

/// The fields of an object besides its metadata.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = object.as_object().into_iter();
    fields.flat_map(|fields| value::all_but(fields, "metadata"))
}

/// Finalizers that are not qualified by a domain earn a warning.
fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let texts = |v: &Value| -> BTreeSet<String> {
        let all = value::items(v, "metadata.finalizers").iter();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let before = old.map(texts).unwrap_or_default();
    let mut warnings = Vec::new();
    for name in texts(object).difference(&before) {
        let warn = |why: &str| format!("metadata.finalizers: {}: {why}", crate::field::quote(name));
        warnings.extend(names::label_key(name).iter().map(|why| warn(why)));
        if !name.contains('/') && !STANDARD.contains(&name.as_str()) {
            let how = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            warnings.push(warn(&format!(
                "prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
            )));
        }
    }
    warnings
}
