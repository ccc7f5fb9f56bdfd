//! What others put into objects of ours: it is taken out once, and if it is put in again that is told, and nobody fights.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_api::fleet::names::PUT_RIGHT;
use slipway_api::fleet::sync::NamedSync;
use slipway_api::foreign::git_repository::GitRepositorySpec;
use slipway_bindings::revision;

use super::state::Told;
use super::{KustomizationSeen, Mended, SourceSeen};
use crate::reasons::Reason;

/// Where a source says what is fetched, and may leave it unsaid.
pub(super) const OPTIONAL: [&str; 10] = [
    "/ignore",
    "/include",
    "/recurseSubmodules",
    "/ref/branch",
    "/ref/commit",
    "/ref/name",
    "/ref/semver",
    "/ref/tag",
    "/secretRef",
    "/sparseCheckout",
];

/// What a source is asked for that says what is fetched.
const FETCHED: [&str; 4] = ["url", "ref", "secretRef", "recurseSubmodules"];

/// Whether something says nothing.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

impl SourceSeen {
    /// What it says otherwise than it should, of what is fetched. How often it is looked at is everybody's.
    pub(super) fn otherwise(&self, wanted: &GitRepositorySpec) -> BTreeMap<&'static str, Value> {
        let part = |spec: &GitRepositorySpec, path: &str| {
            let spec = serde_json::to_value(spec).unwrap_or_default();
            spec.get(path).cloned().unwrap_or_default()
        };
        let said = FETCHED.map(|path| (path, part(&self.spec, path)));
        let said = said.into_iter();
        said.filter(|(path, value)| *value != part(wanted, path))
            .collect()
    }

    /// What is said in it besides what it should say.
    pub(super) fn strange(&self, wanted: &GitRepositorySpec) -> BTreeMap<&'static str, &Value> {
        let wanted = serde_json::to_value(wanted).unwrap_or_default();
        let said = self.said.iter();
        let strange = said.filter(|(path, _)| wanted.pointer(path).is_none_or(is_nothing));
        strange.map(|(path, value)| (*path, value)).collect()
    }
}

impl KustomizationSeen {
    /// Whether this is what we wrote last, whatever became of it.
    pub(super) fn is_written(&self, sync: &NamedSync, hash: &str) -> bool {
        self.revision == sync.revision && self.written.as_deref() == Some(hash)
    }
}

/// How a source that is not what its name says is put right.
pub(super) enum Correction {
    /// It is applied again, with this mark.
    Apply(String),
    /// What somebody else put into it is taken out.
    Patch(Mended),
    /// It was already, and is so again.
    Insisted(Told),
}

/// How a source is put right that is not what its name says; none if it is.
pub(super) fn correction(
    name: &str,
    seen: &SourceSeen,
    wanted: &GitRepositorySpec,
) -> Option<Correction> {
    let (otherwise, strange) = (seen.otherwise(wanted), seen.strange(wanted));
    if otherwise.is_empty() && strange.is_empty() {
        return None;
    }
    let hash = revision::of_template(&(&otherwise, &strange));
    if seen.put_right.as_ref() == Some(&hash) {
        let paths: BTreeSet<&str> = otherwise.keys().chain(strange.keys()).copied().collect();
        let paths: Vec<&str> = paths.into_iter().collect();
        let what = format!("{} of GitRepository {name}", paths.join(", "));
        return Some(Correction::Insisted(told(&what)));
    }
    if strange.is_empty() {
        return Some(Correction::Apply(hash));
    }
    let mut spec = serde_json::to_value(wanted).unwrap_or_default();
    for path in strange.keys() {
        silence(&mut spec, path);
    }
    let body = json!({"metadata": {"annotations": {PUT_RIGHT: hash}}, "spec": spec});
    Some(Correction::Patch(Mended {
        name: name.to_owned(),
        body,
    }))
}

/// Takes something out by a merge patch.
fn silence(patch: &mut Value, path: &str) {
    let path = path.trim_start_matches('/');
    let (part, field) = match path.split_once('/') {
        Some((part, field)) => (patch.get_mut(part), field),
        None => (Some(patch), path),
    };
    if let Some(fields) = part.and_then(Value::as_object_mut) {
        fields.insert(field.to_owned(), Value::Null);
    }
}

/// What is told where somebody insists.
pub(super) fn told(what: &str) -> Told {
    let message = format!(
        "somebody else changes {what}, and has changed it again after it was put right: it is left alone"
    );
    Told::blocked(Reason::OwnedByOther, &message)
}
