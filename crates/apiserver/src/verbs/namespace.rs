//! What is special about namespaces: their own finalizer in the spec, and the `finalize` subresource.

use serde_json::Value;

use super::create;
use super::update::{Change, change_object, track};
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::resource::{Part, Resource};
use crate::status::Outcome;
use crate::{meta, value};

fn is_namespace(resource: &Resource) -> bool {
    resource.names.group.is_empty() && resource.names.plural == "namespaces"
}

/// Whether a namespace still waits for its content to be removed.
pub(super) fn is_pending(resource: &Resource, object: &Value) -> bool {
    is_namespace(resource) && !value::items(object, "spec.finalizers").is_empty()
}

/// A namespace that is being deleted shows it in its phase. True if it is one.
pub(super) fn mark(resource: &Resource, object: &mut Value) -> bool {
    if is_namespace(resource) {
        value::put(object, "status.phase", "Terminating");
    }
    is_namespace(resource)
}

/// Answers PUT on `finalize`: only the finalizers in the spec change.
pub(super) async fn finalize(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "UpdateOptions")?;
    create::check_manager(&options, false, "UpdateOptions")?;
    let (object, mut warnings) = ex.decode_object("UpdateOptions")?;
    meta::match_name(&object, &ex.target.name)?;
    let manager = ex.manager(&options.field_manager);
    let api_version = ex.api_version();
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ex.not_found(&ex.target.name))?;
        let mut new = live.clone();
        value::copy(&mut new, &object, "spec.finalizers");
        value::copy(&mut new, &object, "metadata.resourceVersion");
        track(ex, Part::Main, Some(live), &mut new, &manager, &api_version)?;
        Ok(new)
    };
    let change = Change {
        part: Part::Main,
        dry_run: options.dry_run,
        upsert: false,
        names_uid: true,
        transform: &transform,
    };
    let (result, _) = change_object(ex, &change, &mut warnings).await?;
    create::answer(ex, 200, result, warnings)
}
