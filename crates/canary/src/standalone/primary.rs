//! The copy that serves: made once, and given the template of each version that is promoted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use slipway_api::flagger::{FORMER_TEMPLATE, LAST_APPLIED, RESTART_ID, REVISION, SCALE_TO_ZERO};
use slipway_kernel::fields::strings;

use super::apart::{Apart, Maker};
use super::configs::{Copy, use_copies};
use super::hash::normalise;
use super::readiness::Workload;
use super::{Names, PodLabel};
use crate::engine::Revision;

/// A former template that is longer than this is not kept: annotations have bounds.
const MAX_KEPT: usize = 100 * 1024;

/// All that the copy is made of.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The workload.
    pub target: &'a Value,
    /// Its kind.
    pub kind: Workload,
    /// What things are called.
    pub names: &'a Names,
    /// The label by which its pods are known.
    pub label: &'a PodLabel,
    /// The labels by which pods may be known at all; empty for the usual ones.
    pub labels: &'a [String],
    /// The Canary, as an owner.
    pub owner: &'a Value,
    /// Configs that the copy has copies of.
    pub copies: &'a BTreeSet<Copy>,
    /// The version that it becomes.
    pub revision: &'a Revision,
    /// The version that served before.
    pub serving: Option<&'a Revision>,
    /// How often that was tried again.
    pub attempt: u32,
    /// Whether an autoscaler sets its replicas.
    pub is_scaled: bool,
    /// What names of labels and annotations have to begin with to be copied; with `*` all are.
    pub prefixes: &'a [String],
}

/// The copy, where there is none yet.
pub fn make(recipe: &Recipe<'_>) -> Value {
    let target = recipe.target;
    let mut spec = shared_spec(recipe);
    spec.insert("selector".to_owned(), selector(recipe));
    spec.insert(
        "template".to_owned(),
        template(recipe, &BTreeMap::new(), Maker::Us),
    );
    if recipe.kind == Workload::Deployment {
        let size = recipe.kind.size(target).max(1);
        spec.insert("replicas".to_owned(), json!(size));
    }
    let mut labels = kept(recipe, "/metadata/labels");
    labels.insert(recipe.label.key.clone(), recipe.label.primary());
    let mut annotations = kept(recipe, "/metadata/annotations");
    annotations.insert(REVISION.to_owned(), stamp(recipe.revision));
    json!({
        "apiVersion": "apps/v1",
        "kind": target.get("kind"),
        "metadata": {
            "name": recipe.names.primary,
            "namespace": target.pointer("/metadata/namespace"),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [recipe.owner],
        },
        "spec": spec,
    })
}

/// What is to be changed of the copy so that it is of a version: a merge patch. The former template is kept, so that it can
/// be given back.
pub fn promote(recipe: &Recipe<'_>, primary: &Value) -> Value {
    let selected = strings(primary, "/spec/selector/matchLabels");
    let mut after = shared_spec(recipe);
    let wanted = template(recipe, &selected, Maker::Us);
    after.insert("template".to_owned(), wanted);
    if recipe.kind == Workload::Deployment && !recipe.is_scaled {
        let size = recipe.kind.size(recipe.target);
        if size > 0 {
            after.insert("replicas".to_owned(), json!(size));
        }
    }
    let before = primary.get("spec").cloned().unwrap_or_default();
    let mut annotations: BTreeMap<String, Value> = kept(recipe, "/metadata/annotations")
        .into_iter()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    annotations.insert(REVISION.to_owned(), json!(stamp(recipe.revision)));
    // Between two promotions that nobody finished, what served is what it was before the first.
    let is_served = recipe
        .serving
        .is_none_or(|serving| is_stamped_as(primary, serving));
    if is_served || !is_stamped(primary) {
        annotations.insert(FORMER_TEMPLATE.to_owned(), former(primary));
    }
    json!({
        "metadata": {"annotations": annotations},
        "spec": changes(&before, &Value::Object(after)),
    })
}

/// Gives the copy its former template back, of the version that served; none if it was not kept.
pub fn give_back(primary: &Value, serving: &Revision) -> Option<Value> {
    let annotations = primary.pointer("/metadata/annotations")?;
    let text = annotations.get(FORMER_TEMPLATE)?.as_str()?;
    let template: Value = serde_json::from_str(text).ok()?;
    let before = primary.get("spec").cloned().unwrap_or_default();
    Some(json!({
        "metadata": {"annotations": {REVISION: stamp(serving), FORMER_TEMPLATE: null}},
        "spec": changes(&before, &json!({"template": template})),
    }))
}

/// How a version is written on the copy.
pub fn stamp(revision: &Revision) -> String {
    let configs = revision.configs.iter().flatten();
    let mut text = revision.template.clone();
    for (name, checksum) in configs {
        text = format!("{text},{name}={checksum}");
    }
    text
}

/// Whether the copy is of a version: by what is written on it, else by comparing templates.
pub fn is_of(recipe: &Recipe<'_>, primary: &Value) -> bool {
    let annotations = primary.pointer("/metadata/annotations");
    let written = annotations.and_then(|all| all.get(REVISION)?.as_str());
    match written {
        Some(written) => written == stamp(recipe.revision),
        None => is_alike(recipe, primary),
    }
}

/// Whether it is written on the copy that it is of this version.
pub fn is_stamped_as(primary: &Value, revision: &Revision) -> bool {
    let annotations = strings(primary, "/metadata/annotations");
    annotations.get(REVISION) == Some(&stamp(revision))
}

/// Whether it is written on the copy which version it is of.
pub fn is_stamped(primary: &Value) -> bool {
    strings(primary, "/metadata/annotations").contains_key(REVISION)
}

/// Whether the copy's template is what the target's would become, whoever made it: what is compared where nothing is written on the
/// copy.
fn is_alike(recipe: &Recipe<'_>, primary: &Value) -> bool {
    let mut makers = [Maker::Us, Maker::Flagger].into_iter();
    makers.any(|maker| is_alike_by(maker, recipe, primary))
}

fn is_alike_by(maker: Maker, recipe: &Recipe<'_>, primary: &Value) -> bool {
    let selected = strings(primary, "/spec/selector/matchLabels");
    let mut wanted = template(recipe, &selected, maker);
    let mut seen = primary
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    if !has_labels(&seen, &wanted) || !has_init_containers(recipe, &seen, &wanted) {
        return false;
    }
    for template in [&mut wanted, &mut seen] {
        let annotations = template.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove(RESTART_ID);
        }
        // These have been looked at.
        if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("labels");
        }
        if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("initContainers");
        }
        normalise(template);
    }
    wanted == seen
}

/// Whether the labels that the copy's pods have are as they would be. It may lack some.
fn has_labels(seen: &Value, wanted: &Value) -> bool {
    let wanted = strings(wanted, "/metadata/labels");
    let seen = strings(seen, "/metadata/labels");
    seen.iter()
        .all(|(name, value)| wanted.get(name) == Some(value))
}

/// Whether the init containers are as they would be; Flagger leaves them the configs of the workload.
fn has_init_containers(recipe: &Recipe<'_>, seen: &Value, wanted: &Value) -> bool {
    let of = |template: &Value| {
        let mut all = json!({"spec": {"initContainers": template.pointer("/spec/initContainers")}});
        normalise(&mut all);
        all
    };
    let own = recipe.target.pointer("/spec/template").map(of);
    let seen = of(seen);
    seen == of(wanted) || Some(seen) == own
}

/// The former template, where it can be kept. The same promotion again keeps what is there.
fn former(primary: &Value) -> Value {
    let template = primary.pointer("/spec/template");
    let text = template.map(Value::to_string).unwrap_or_default();
    if text.is_empty() || text.len() > MAX_KEPT {
        return Value::Null;
    }
    json!(text)
}

/// What target and copy have in common besides template, selector and replicas.
fn shared_spec(recipe: &Recipe<'_>) -> Map<String, Value> {
    let fields = [
        "progressDeadlineSeconds",
        "minReadySeconds",
        "revisionHistoryLimit",
        "strategy",
        "updateStrategy",
    ];
    let spec = recipe.target.get("spec");
    fields
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), spec?.get(field)?.clone())))
        .collect()
}

/// All labels that the target selects by, with the one that tells target and copy apart.
fn selector(recipe: &Recipe<'_>) -> Value {
    let mut selector = recipe
        .target
        .pointer("/spec/selector")
        .cloned()
        .unwrap_or_default();
    if let Some(labels) = selector
        .get_mut("matchLabels")
        .and_then(Value::as_object_mut)
    {
        labels.insert(recipe.label.key.clone(), json!(recipe.label.primary()));
    }
    selector
}

/// The target's template as a copy has it that somebody made. Labels that the copy selects by are those that it selects.
fn template(recipe: &Recipe<'_>, selected: &BTreeMap<String, String>, maker: Maker) -> Value {
    let mut template = recipe
        .target
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    use_copies(&mut template, recipe.copies);
    let (names, label, labels) = (recipe.names, recipe.label, recipe.labels);
    Apart::by(maker, recipe.kind, names, label, labels).rename(&mut template);
    let mut labels = strings(&template, "/metadata/labels");
    labels.insert(recipe.label.key.clone(), recipe.label.primary());
    labels.extend(selected.clone());
    let mut annotations = strings(&template, "/metadata/annotations");
    let id = restart_id(recipe.revision, recipe.attempt);
    annotations.insert(RESTART_ID.to_owned(), id);
    let Some(fields) = template.as_object_mut() else {
        return template;
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("labels".to_owned(), json!(labels));
        metadata.insert("annotations".to_owned(), json!(annotations));
        // Some servers say that there is none.
        metadata.remove("creationTimestamp");
    }
    let selector = template.pointer_mut("/spec/nodeSelector");
    if let Some(selector) = selector.and_then(Value::as_object_mut) {
        selector.remove(SCALE_TO_ZERO);
    }
    template
}

/// What pods of a version have, at an attempt: another one has them started anew.
fn restart_id(revision: &Revision, attempt: u32) -> String {
    let id = format!("{}-{attempt}", stamp(revision));
    super::hash::digest(id.as_bytes())
}

/// Whether the copy's template was written at this attempt of a version.
pub fn is_tried(primary: &Value, revision: &Revision, attempt: u32) -> bool {
    let annotations = strings(primary, "/spec/template/metadata/annotations");
    annotations.get(RESTART_ID) == Some(&restart_id(revision, attempt))
}

/// Labels or annotations of the target that the copy has too.
fn kept(recipe: &Recipe<'_>, path: &str) -> BTreeMap<String, String> {
    let all = strings(recipe.target, path).into_iter();
    let is_kept = |name: &String| {
        let mut prefixes = recipe.prefixes.iter();
        let is_wanted = prefixes.any(|prefix| prefix == "*" || name.starts_with(prefix.as_str()));
        is_wanted && name != LAST_APPLIED && name != "deployment.kubernetes.io/revision"
    };
    all.filter(|(name, _)| is_kept(name)).collect()
}

/// The merge patch that makes one value out of another, where the other has the field: what is only in the former goes.
pub fn changes(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(name.clone(), whole(known, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// The same, where all of the former is to be replaced.
pub(crate) fn whole(before: &Value, after: &Value) -> Value {
    let mut patch = changes(before, after);
    if let (Value::Object(known), Value::Object(wanted), Value::Object(patch)) =
        (before, after, &mut patch)
    {
        let gone = known.keys().filter(|name| !wanted.contains_key(*name));
        patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    }
    patch
}

/// How a workload is given so many replicas. A `DaemonSet` is put away by a node selector that no node has.
pub fn sized(kind: Workload, size: u32) -> Value {
    match kind {
        Workload::Deployment => json!({"spec": {"replicas": size}}),
        Workload::DaemonSet => {
            let value = if size == 0 {
                json!("true")
            } else {
                Value::Null
            };
            json!({"spec": {"template": {"spec": {"nodeSelector": {SCALE_TO_ZERO: value}}}}})
        }
    }
}
