//! The annotation of client-side apply, which `kubectl`'s server-side apply takes over from and keeps up to date.

use serde_json::{Map, Value};

use crate::value;

use super::check::{Duplicates, check};
use super::compare::compare;
use super::fields::field_set;
use super::place::Place;
use super::set::Set;
use super::step::json;

/// The only manager for which the annotation counts.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The most bytes that all annotations of an object may have.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    let text = value::map(object, "metadata.annotations")?.get(ANNOTATION)?;
    text.as_str().filter(|text| !text.is_empty())
}

/// The fields over which `kubectl` may not fall out with others, because client-side apply wrote them and they are
/// still as it wrote them. Nothing if the annotation is absent or unusable.
pub(super) fn own_fields(place: Place<'_>, live: &Value, api_version: &str) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let fits = |object| check(place, object, Duplicates::Refused).is_ok();
    if value::text(&last, "apiVersion") != api_version || !fits(&last) || !fits(live) {
        return None;
    }
    let changes = compare(place, &last, live);
    let fields = field_set(place, &last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(fields)
}

/// Writes the applied configuration into the annotation, if the object has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", json(&config));
    if let Some(annotations) = annotations(object) {
        annotations.insert(ANNOTATION.to_owned(), text.into());
        let size: usize = annotations
            .iter()
            .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
            .sum();
        if size > MAX_ANNOTATIONS {
            annotations.remove(ANNOTATION);
        }
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    value::at_mut(object, "metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
