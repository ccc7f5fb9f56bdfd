//! A `RemoteAssemblage` in its cluster: what it says is written there, and taken away again.

use jiff::Timestamp;
use serde_json::json;
use slipway_api::fleet::names::{CLEARED, COPIED_FOR, VALUES_FOR};
use slipway_api::purpose::fleet as purpose;
use slipway_kernel::fields::text;
use slipway_kernel::finalizer::{Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::{Action, ClusterId, Facts, Kind, ObjectRef, Plan, Target};

use super::objection::objection;
use super::reach;
use super::remote::{Fate, Remote};
use super::view::{cluster_of, unsettled};
use crate::kinds;
use crate::namespaces::{has_namespace, namespace};
use crate::remote;
use crate::render::Applied;
use crate::render::assignment::label;
use crate::steps::Steps;

/// The plan in the cluster.
pub(super) fn over_there(
    one: &Remote<'_>,
    facts: &Facts,
    cluster: &ClusterId,
    now: Timestamp,
) -> Option<Plan> {
    if one.member != *cluster {
        return None;
    }
    let mut steps = Steps::new(facts, now);
    let there = |kind: Kind, namespace: &str, name: &str| ObjectRef {
        cluster: cluster.clone(),
        ..ObjectRef::local(kind, namespace, name)
    };
    let meta = one.item.meta();
    match Finalizers::of(one.object()).phase(CLEARED) {
        Phase::Unguarded | Phase::Released => return Some(steps.plan),
        Phase::Ending => {
            if let Some(until) = unsettled(one.object(), now) {
                steps.plan.wake(until);
                return Some(steps.plan);
            }
            if one.view.is_undefined(&kinds::REMOTE_ASSEMBLAGE) {
                return Some(steps.plan);
            }
            // Whoever deletes a cluster says nothing of what is in it, and what another control plane has there is that one's.
            let conditions = one.kept().status_but_syncs().conditions;
            let is_forgotten = reach::was_forgotten(&conditions, one.object());
            // An Assemblage that nobody can see needs its Secrets.
            let is_known = one.leaf().is_some() || !facts.is_blind_to(cluster, &kinds::ASSEMBLAGE);
            if one.fate(facts) == Fate::Here && one.is_ours() && !is_forgotten && is_known {
                clear(one, &mut steps, there);
            }
            return Some(steps.plan);
        }
        Phase::Guarded => {}
    }
    let is_open = one.is_ours() && objection(one, facts, now).is_none();
    if !reach::has_assemblages(one.view, cluster) || !is_open {
        return Some(steps.plan);
    }
    let has_namespace = has_namespace(one.view.stores, facts, cluster, &meta.namespace);
    if has_namespace.is_none() {
        if let Some(at) = later(now, super::rollout::READING) {
            steps.plan.wake(at);
        }
        return Some(steps.plan);
    }
    if has_namespace == Some(false) {
        steps.plan.prepares = true;
        let mut made = namespace(&meta.namespace);
        made.object.cluster = cluster.clone();
        steps.apply(made, purpose::NAMESPACE, Vec::new());
        return Some(steps.plan);
    }
    // What home may not read is told at home; here it stays as it was.
    let (world, is_unread) = one.world_there(&Facts::default());
    let decision = remote::decide_writes(&world);
    if is_unread && let Some(at) = later(now, super::rollout::READING) {
        steps.plan.wake(at);
    }
    let mut apply = |mut applied: Applied, purpose| {
        applied.object.cluster = cluster.clone();
        steps.apply(applied, purpose, Vec::new());
    };
    for name in &decision.copy {
        if let Some(copy) = copy(one, name) {
            apply(copy, purpose::VALUES);
        }
    }
    for made in decision.make {
        apply(made, purpose::VALUES);
    }
    if let Some(assemblage) = decision.apply {
        apply(assemblage, purpose::TELL);
    }
    if let Some((body, leaf)) = decision.take_away.zip(one.leaf()) {
        let meta = leaf.meta();
        let object = there(kinds::ASSEMBLAGE, &meta.namespace, &meta.name);
        let action = Action::Patch {
            target: Target::seen(object, meta),
            purpose: purpose::TELL,
            body,
        };
        steps.act(action, Vec::new());
    }
    let copies = one.copies();
    let unused = copies
        .iter()
        .filter(|item| decision.delete_secrets.contains(&item.meta().name));
    for item in unused {
        let meta = item.meta();
        let object = there(kinds::SECRET, &meta.namespace, &meta.name);
        steps.delete(Target::seen(object, meta), purpose::COLLECT);
    }
    Some(steps.plan)
}

/// Takes away what is in the cluster.
fn clear(one: &Remote<'_>, steps: &mut Steps<'_>, there: impl Fn(Kind, &str, &str) -> ObjectRef) {
    if let Some(leaf) = one.leaf() {
        let is_going = text(leaf.body().object(), "/metadata/deletionTimestamp").is_some();
        if !is_going {
            let meta = leaf.meta();
            let object = there(kinds::ASSEMBLAGE, &meta.namespace, &meta.name);
            steps.delete(Target::seen(object, meta), purpose::CLEAR);
        }
        return;
    }
    for item in one.copies() {
        let meta = item.meta();
        let object = there(kinds::SECRET, &meta.namespace, &meta.name);
        steps.delete(Target::seen(object, meta), purpose::CLEAR);
    }
}

/// A Secret with values as it is written into the cluster.
fn copy(one: &Remote<'_>, name: &str) -> Option<Applied> {
    let meta = one.item.meta();
    let found = one.view.get(&kinds::SECRET, &meta.namespace, name)?;
    let object = found.body().object();
    let (reference, body) = crate::render::object(
        kinds::SECRET,
        &meta.namespace,
        name,
        &json!({
            "metadata": {"labels": {
                VALUES_FOR: label(cluster_of(one.object())), COPIED_FOR: label(&meta.name),
            }},
            "immutable": true,
            "data": object.get("data"),
        }),
    );
    Some(Applied {
        object: reference,
        manager: slipway_api::names::FIELD_MANAGER.to_owned(),
        force: true,
        body,
    })
}
