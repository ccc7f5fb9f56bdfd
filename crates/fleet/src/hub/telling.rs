//! A `RemoteAssemblage` at home: what is known of its cluster is told on it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;
use slipway_api::fleet::assemblage::AssemblageStatus;
use slipway_api::fleet::names::{CLEARED, CONFIRM_UNASSIGN};
use slipway_api::purpose::fleet as purpose;
use slipway_kernel::condition::{clear, set};
use slipway_kernel::finalizer::{self, Finalizers, Phase};
use slipway_kernel::instant::later;
use slipway_kernel::member::{Credentials, reasons};
use slipway_kernel::{Action, Blocker, Facts, Member, MemberState, Plan};

use super::objection::{mistaken, objection};
use super::remote::{Fate, Remote, record};
use super::{members, reach};
use crate::reasons::Reason;
use crate::steps::Steps;
use crate::{kinds, remote};

/// How long what is to be written into a cluster may be on its way before it is looked whether it was refused.
const PENDING: Duration = Duration::from_secs(5);

/// Why a cluster is not taken for the one that is meant.
const MISTAKES: [&str; 2] = [Reason::OwnedByOther.as_str(), Reason::TwoNames.as_str()];

/// Whether all that is in the cluster is assigned here. Said only where it is not.
const ASSIGNED: &str = "Assigned";
/// Why not.
const KEPT: &str = "SyncsKept";

/// The plan at home.
pub(super) fn at_home(one: &Remote<'_>, facts: &Facts, now: Timestamp) -> Plan {
    let mut steps = Steps::new(facts, now);
    let finalizers = Finalizers::of(one.object());
    let before = one.kept().status_but_syncs();
    let member = members::one(one.view, &one.member);
    let state = facts.members.get(&one.member).map(AsRef::as_ref);
    let fate = one.fate(facts);
    let is_gone = reach::is_gone(&before.conditions, fate, now);
    match finalizers.phase(CLEARED) {
        Phase::Unguarded => {
            let add = finalizer::add(one.target(), &finalizers, CLEARED, purpose::GUARD);
            steps.prepare(add);
            return steps.plan;
        }
        Phase::Released => return steps.plan,
        Phase::Ending => {
            // With its definition gone nobody has said that what the cluster has may go.
            let is_undefined = one.view.is_undefined(&kinds::REMOTE_ASSEMBLAGE);
            let is_forgotten = is_gone || reach::was_forgotten(&before.conditions, one.object());
            let known = (member.as_ref(), state);
            if is_forgotten || is_undefined || is_cleared(one, facts, known, fate) {
                let target = one.target();
                let remove = finalizer::remove(target, &finalizers, CLEARED, purpose::RELEASE);
                if let Some(remove) = remove {
                    steps.act(remove, Vec::new());
                }
                return steps.plan;
            }
        }
        Phase::Guarded if is_gone => {
            steps.delete(one.target(), purpose::FORGET);
            return steps.plan;
        }
        Phase::Guarded => {}
    }
    tell(one, &mut steps, facts, (member.as_ref(), state), now);
    steps.plan
}

/// Whether nothing is left in the cluster, or nobody could ever look: the kubeconfig has been looked for and is not there. That it
/// could not be read, or cannot be used, or that we have no right to see what there is, says nothing of what is in the cluster.
fn is_cleared(
    one: &Remote<'_>,
    facts: &Facts,
    (member, state): (Option<&Member>, Option<&MemberState>),
    fate: Fate,
) -> bool {
    let Some(member) = member else {
        return true;
    };
    let from = &member.credentials;
    let is_lost =
        one.view.has_kubeconfig(&from.namespace, &from.name) == Some(false) && fate != Fate::Absent;
    // What another control plane has there is that one's.
    let is_seen = !facts.is_blind_to(&one.member, &kinds::ASSEMBLAGE);
    let is_empty = is_seen && one.leaf().is_none() && one.copies().is_empty();
    let is_clean = one.elsewhere().is_some() || is_empty;
    // It was never written to.
    let is_untouched = member.confirmed.is_none();
    is_lost || is_untouched || (reach::is_open(member, state) && is_clean)
}

/// Tells on it how its cluster is.
fn tell(
    one: &Remote<'_>,
    steps: &mut Steps<'_>,
    facts: &Facts,
    (member, state): (Option<&Member>, Option<&MemberState>),
    now: Timestamp,
) {
    let known = member.zip(state);
    let blocker = known.and_then(|(member, state)| {
        let unreached = reach::blocker(one.view, member, state);
        let is_unknown = |blocker: &Blocker| blocker.reason != reasons::CLUSTER_UNCONFIRMED;
        let away = unreached.clone().filter(is_unknown);
        away.or_else(|| objection(one, facts, state.since))
            .or(unreached)
    });
    let is_open = known.is_some() && blocker.is_none();
    let (mut world, has_unread) = one.world(facts, is_open);
    world.reached = state.filter(|_| is_open).map(|state| state.since);
    let decision = remote::decide(&world, now);
    let before = &world.before;
    if let Some(at) = decision.look_at.filter(|at| *at > now) {
        steps.plan.wake(at);
    }
    if decision.is_pending()
        && let Some(at) = later(now, PENDING)
    {
        // Written it is seen; refused it is not.
        steps.plan.wake(at);
    }
    let generation = one.item.meta().generation;
    let mut after = AssemblageStatus {
        observed_generation: Some(generation),
        conditions: before.conditions.clone(),
        cluster: record(
            before.cluster.as_ref(),
            one.cluster().as_ref(),
            recorded(member, state).filter(|_| mistaken(one, facts).is_none()),
        ),
        summary: Some(decision.summary.clone()),
        syncs: decision.syncs,
    };
    crate::conditions::set(&mut after, generation, now);
    tell_kept(&mut after.conditions, &decision.kept, generation, now);
    forget_words(one, steps, &decision.followed);
    let fate = one.fate(facts);
    if let Some(at) = reach::tell_fate(&mut after.conditions, fate, generation, now) {
        steps.plan.wake(at);
    }
    let from = member.map(|member| &member.credentials);
    let is_unread = |from: &Credentials| {
        one.view
            .has_kubeconfig(&from.namespace, &from.name)
            .is_none()
    };
    if from.is_some_and(is_unread)
        && let Some(at) = later(now, reach::PATIENCE)
    {
        steps.plan.wake(at);
    }
    let is_mistaken = blocker
        .as_ref()
        .is_some_and(|one| MISTAKES.contains(&one.reason));
    if is_mistaken && let Some(at) = later(now, reach::PATIENCE) {
        // Whoever ends it may change another object than this.
        steps.plan.wake(at);
    }
    if member.is_some() {
        let conditions = &mut after.conditions;
        let again = reach::tell(conditions, state, blocker.as_ref(), generation, now);
        if let Some(at) = again {
            steps.plan.wake(at);
        }
        steps.plan.blockers.extend(blocker);
    }
    if has_unread && let Some(at) = later(now, super::rollout::READING) {
        steps.plan.wake(at);
    }
    let stored = one.object().get("status");
    steps.status(one.target(), (before, stored), &after);
}

/// Tells which syncs are in the cluster that nobody has assigned here, and how they go.
fn tell_kept(
    conditions: &mut Vec<Condition>,
    kept: &BTreeSet<String>,
    generation: i64,
    now: Timestamp,
) {
    if kept.is_empty() {
        clear(conditions, ASSIGNED);
        return;
    }
    let names: Vec<&str> = kept.iter().take(5).map(String::as_str).collect();
    let message = format!(
        "{} syncs are in the cluster and assigned by nobody here ({}): they stay. To have them taken away, annotate this object with \
         {CONFIRM_UNASSIGN}={}",
        kept.len(),
        names.join(", "),
        kept.len(),
    );
    set(conditions, ASSIGNED, false, KEPT, &message, generation, now);
}

/// Takes words of a person away that have been followed: each is good once.
fn forget_words(one: &Remote<'_>, steps: &mut Steps<'_>, followed: &[&'static str]) {
    if followed.is_empty() {
        return;
    }
    let mut annotations = serde_json::Map::new();
    for word in followed {
        annotations.insert((*word).to_owned(), serde_json::Value::Null);
    }
    let action = Action::Patch {
        target: one.target(),
        purpose: purpose::FOLLOWED,
        body: json!({"metadata": {"annotations": annotations}}),
    };
    steps.act(action, Vec::new());
}

/// The uid to be recorded: that of a cluster that is seen for the first time, or that a person confirmed.
fn recorded<'a>(member: Option<&Member>, state: Option<&'a MemberState>) -> Option<&'a str> {
    let uid = state?.uid()?;
    let confirmed = member?.confirmed.as_deref();
    confirmed.is_none_or(|known| known == uid).then_some(uid)
}
