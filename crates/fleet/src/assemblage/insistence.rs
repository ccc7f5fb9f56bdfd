//! What others put into objects of ours: it is taken out once, and if it is put in again that is told, and nobody fights.

use std::collections::BTreeMap;

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

/// How what somebody else put into a source is taken out; what is told if it was already, and is there again. None if there is nothing
/// to be taken out.
pub(super) fn mended(
    name: &str,
    seen: &SourceSeen,
    wanted: &GitRepositorySpec,
    strange: &BTreeMap<&'static str, &Value>,
) -> Option<Result<Mended, Told>> {
    if strange.is_empty() {
        return None;
    }
    let hash = revision::of_template(strange);
    if seen.put_right.as_ref() == Some(&hash) {
        let paths: Vec<&str> = strange.keys().copied().collect();
        let what = format!("{} of GitRepository {name}", paths.join(", "));
        return Some(Err(told(&what)));
    }
    let mut spec = serde_json::to_value(wanted).unwrap_or_default();
    for path in strange.keys() {
        silence(&mut spec, path);
    }
    let body = json!({"metadata": {"annotations": {PUT_RIGHT: hash}}, "spec": spec});
    Some(Ok(Mended {
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
