//! What the API, or somebody else, does not let us write: told where it is waited for, so that it takes nobody's place and is
//! never waited for in silence.

use std::collections::BTreeMap;

use slipway_api::fleet::names::field_manager;
use slipway_api::names::FIELD_MANAGER;
use slipway_kernel::fact::Cause;
use slipway_kernel::fields::{list, text};
use slipway_kernel::store::Meta;
use slipway_kernel::{ClusterId, Facts, Kind, ObjectRef};

use super::rollout::{Assigner, target_kind};
use super::view::View;
use crate::observe::gather::{Gathered, assigner};
use crate::observe::{Refused, Strategy, rollout::Asked};
use crate::plan::{Decision, Hold};
use crate::reasons::Reason;
use crate::render::assignment::Layer;
use crate::steps::repeated;
use crate::{kinds, naming};

const UNBLOCK: &str = "whoever mends what the API refuses; it is tried again by itself";

/// The assemblage in which a cluster is assigned something.
fn assemblage(one: &Assigner<'_>, cluster: &str) -> ObjectRef {
    match one.layer() {
        Layer::Remote => ObjectRef::local(kinds::REMOTE_ASSEMBLAGE, one.namespace(), cluster),
        Layer::Bootstrap => {
            let name = naming::bootstrap(cluster);
            ObjectRef::local(kinds::ASSEMBLAGE, one.namespace(), name)
        }
    }
}

/// The name under which somebody assigns.
fn manager(one: &Assigner<'_>) -> String {
    field_manager(&assigner(&one.rollout))
}

fn said(facts: &Facts, object: &ObjectRef, by: &str) -> Option<Refused> {
    let refusal = facts.refusal(object, by)?;
    let said = repeated(object, refusal);
    Some(Refused {
        message: format!("the API refused to change {object}: {said}"),
        retry_at: refusal.retry_at,
    })
}

/// The clusters in whose assemblage the API does not let an entry be written, for instance because somebody else has taken it over.
pub(super) fn clusters<'a>(
    facts: &Facts,
    one: &Assigner<'_>,
    names: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Refused> {
    if facts.refused_parts.is_empty() {
        return BTreeMap::new();
    }
    let by = manager(one);
    let refused = |name: &String| Some((name.clone(), said(facts, &assemblage(one, name), &by)?));
    names.filter_map(refused).collect()
}

/// What the API of a cluster says to what is written there for a `RemoteAssemblage`: to its Assemblage or their namespace, and to
/// Secrets with values, by name.
pub(super) fn over_there(
    facts: &Facts,
    meta: &Meta,
    member: &ClusterId,
) -> (Option<String>, BTreeMap<String, String>) {
    let (mut refused, mut secrets) = (None, BTreeMap::new());
    let all = facts.refused();
    let all =
        all.filter(|(object, refusal)| object.cluster == *member && refusal.cause != Cause::Busy);
    for (object, refusal) in all {
        let is_inside = object.namespace == meta.namespace;
        let is_assemblage = object.kind == kinds::ASSEMBLAGE && object.name == meta.name;
        let is_around = object.kind == kinds::NAMESPACE && object.name == meta.namespace;
        let said = || {
            let said = repeated(object, refusal);
            format!("the API of the cluster refused to change {object}: {said}")
        };
        if is_inside && object.kind == kinds::SECRET {
            secrets.insert(object.name.clone(), said());
        } else if (is_inside && is_assemblage) || is_around {
            refused.get_or_insert_with(said);
        }
    }
    (refused, secrets)
}

/// Adds to a decision what is in the way of carrying it out, and takes out of it what cannot be.
pub(super) fn add(
    view: &View<'_>,
    facts: &Facts,
    one: &Assigner<'_>,
    gathered: &Gathered,
    decision: &mut Decision,
) {
    let hold = |object: &ObjectRef, by: &str, cluster: Option<&String>| {
        let refused = said(facts, object, by)?;
        Some(Hold {
            reason: Reason::RefusedByApi.as_str(),
            message: refused.message,
            cluster: cluster.cloned(),
            until: None,
            unblock: UNBLOCK.to_owned(),
        })
    };
    let by = manager(one);
    let mut holds = Vec::new();
    let made = made(one, gathered, decision);
    if let Some(object) = made.iter().find(|object| is_taken(view, one, object)) {
        holds.push(Hold {
            reason: Reason::OwnedByOther.as_str(),
            message: format!(
                "{object} is somebody else's, and is left alone: no cluster gets the change"
            ),
            cluster: None,
            until: None,
            unblock: "whoever deletes or renames it, or renames the Rollout".to_owned(),
        });
        decision.make = None;
        decision.assign.clear();
    }
    holds.extend(made.iter().filter_map(|object| hold(object, &by, None)));
    for assignment in &decision.assign {
        let key = (assignment.cluster.clone(), assignment.revision.clone());
        let assigned = gathered.assignments.get(&key);
        let secret = assigned.and_then(|assigned| assigned.secret.as_ref());
        let secret = secret.map(|(name, _)| ObjectRef::local(kinds::SECRET, one.namespace(), name));
        holds.extend(secret.and_then(|object| hold(&object, &by, Some(&assignment.cluster))));
    }
    let leaving = decision.unassign.iter();
    holds.extend(leaving.filter_map(|cluster| {
        let object = assemblage(one, cluster);
        hold(&object, FIELD_MANAGER, Some(cluster))
    }));
    decision.holds.extend(holds);
}

/// What is made to keep the revision that a decision makes.
fn made(one: &Assigner<'_>, gathered: &Gathered, decision: &Decision) -> Vec<ObjectRef> {
    let (Some(revision), Asked::For(wanted)) = (&decision.make, &gathered.world.rollout.wanted)
    else {
        return Vec::new();
    };
    let own = &one.item.meta().name;
    let name = naming::module(own, revision);
    let object = |kind: Kind, name: &str| ObjectRef::local(kind, one.namespace(), name);
    match wanted.strategy {
        Strategy::Replace => vec![
            object(kinds::CONTROLLER_REVISION, &name),
            object(target_kind(one), own),
        ],
        Strategy::Incremental | Strategy::External => vec![object(target_kind(one), &name)],
    }
}

/// Whether an object of that name is there that this Rollout did not make: to apply it would be to take it over, and to delete it
/// with the Rollout.
fn is_taken(view: &View<'_>, one: &Assigner<'_>, object: &ObjectRef) -> bool {
    let found = view.get(&object.kind, &object.namespace, &object.name);
    let uid = one.item.meta().uid.as_str();
    found.is_some_and(|found| {
        let mut owners = list(found.body().object(), "/metadata/ownerReferences");
        !owners.any(|owner| text(owner, "/uid") == Some(uid))
    })
}
