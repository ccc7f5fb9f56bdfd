//! `ControllerRevisions`: the history of templates that `StatefulSets` and `DaemonSets` keep.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::hash;
use super::key::{Key, Kind};
use super::world::World;
use super::write::{Write, as_json};

/// A revision's content: the patch that brings the template back.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    let mut template = as_json(template);
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template that a revision keeps.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let data = &revision.data.as_ref()?.0;
    serde_json::from_value(data.pointer("/spec/template")?.clone()).ok()
}

/// The revisions of one owner, by number, oldest first.
pub(crate) fn of(world: &World, owner: &ObjectMeta) -> Vec<Arc<ControllerRevision>> {
    let mut revisions = world.owned_by::<ControllerRevision>(owner);
    revisions.sort_by_key(|r| (r.revision, r.metadata.name.clone()));
    revisions
}

/// The revision for the present template, and what has to be written for it to be there with the highest number.
pub(crate) fn current(
    known: &[Arc<ControllerRevision>],
    owner: &ObjectMeta,
    reference: OwnerReference,
    template: &PodTemplateSpec,
    label: &str,
) -> (ControllerRevision, Option<Write>) {
    let wanted = without_stamp(data(template));
    let number = known.last().map_or(1, |last| last.revision + 1);
    let is_equal = |revision: &&Arc<ControllerRevision>| {
        let data = revision.data.as_ref().map(|data| data.0.clone());
        data.map(without_stamp).as_ref() == Some(&wanted)
    };
    if let Some(equal) = known.iter().rev().find(is_equal) {
        if equal.revision + 1 == number {
            return (ControllerRevision::clone(equal), None);
        }
        let write = Write::Patch {
            kind: Kind::Revision,
            key: Key::of(&equal.metadata),
            subresource: "",
            body: json!({
                "metadata": {"resourceVersion": equal.metadata.resource_version},
                "revision": number,
            }),
        };
        let mut renewed = ControllerRevision::clone(equal);
        renewed.revision = number;
        return (renewed, Some(write));
    }
    let hash = hash::name(template, None);
    let name = owner.name.as_deref().unwrap_or_default();
    let mut labels = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    labels.insert(label.to_owned(), hash.clone());
    let revision = ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: owner.namespace.clone(),
            labels: Some(labels),
            annotations: owner.annotations.clone(),
            owner_references: Some(vec![reference]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data(template))),
        revision: number,
    };
    let write = Write::Create {
        kind: Kind::Revision,
        body: as_json(&revision),
    };
    (revision, Some(write))
}

/// Templates are written with an empty creation time by some; it says nothing.
fn without_stamp(mut data: Value) -> Value {
    if let Some(Value::Object(meta)) = data.pointer_mut("/spec/template/metadata") {
        meta.remove("creationTimestamp");
    }
    data
}

/// Deletes what the history keeps no longer: revisions that nothing live carries, lowest numbers first.
pub(crate) fn truncate(
    known: &[Arc<ControllerRevision>],
    limit: Option<i32>,
    is_live: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Write> {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
    let history: Vec<_> = known.iter().filter(|revision| !is_live(revision)).collect();
    let excess = history.len().saturating_sub(limit);
    let going = history.into_iter().take(excess);
    going
        .map(|revision| Write::Delete {
            kind: Kind::Revision,
            key: Key::of(&revision.metadata),
            uid: revision.metadata.uid.clone().unwrap_or_default(),
            grace: None,
        })
        .collect()
}
