//! A run and the status that carries it. A status that Flagger wrote is read too, whatever phase it stopped in.
//!
//! Flagger's hashes are of values of its own and say nothing to others. Where a status has one, templates decide: if the
//! copy that serves is what the workload is, that version serves; otherwise the workload is the version that is tried, and
//! what serves keeps Flagger's hash as its name. Weights are read from the routing objects, because Flagger's status shows
//! others in some phases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::canary::{CanaryCondition, CanaryStatus, Phase, RunStatus};

use super::hash;
use crate::engine::{Revision, Run, Weights};

/// What is to be known to read a status that somebody else wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scene {
    /// The workload's version.
    pub target: Option<Revision>,
    /// Whether the copy that serves is what the workload is.
    pub is_alike: bool,
    /// The weights that are routed.
    pub weights: Option<Weights>,
    /// Whether these are of the requests that match.
    pub is_matching: bool,
    /// What a person asked for last: of whoever wrote the status.
    pub command: Option<String>,
}

/// The run that a status carries.
pub fn run(status: &CanaryStatus, scene: &Scene) -> Run {
    let phase = Phase::of(status.phase.as_deref());
    let kept = status.run.clone().unwrap_or_default();
    let count = |number: i64| u32::try_from(number).unwrap_or_default();
    let run = Run {
        phase,
        serving: revision(
            status.last_promoted_spec.as_ref(),
            kept.promoted_configs.as_ref(),
        ),
        target: revision(
            status.last_applied_spec.as_ref(),
            status.tracked_configs.as_ref(),
        ),
        attempt: count(kept.attempt),
        weight: u8::try_from(status.canary_weight.clamp(0, 100)).unwrap_or_default(),
        mirrored: kept.mirrored,
        matching: kept.matching,
        iterations: count(status.iterations),
        failed_checks: count(status.failed_checks),
        prepared: kept.prepared,
        skip: kept.skip,
        closing: kept.closing,
        draining: kept.draining,
        paused: kept.paused,
        stopped_since: kept.stopped_since.map(|time| time.0),
        router: kept.provider,
        places: kept.places,
        replicas: kept.replicas.and_then(|all| u32::try_from(all).ok()),
        free_since: kept.free_since.map(|time| time.0),
        due: kept.due.map(|time| time.0),
        step_since: kept.step_since.map(|time| time.0),
        held_since: kept.held_since.map(|time| time.0),
        unmeasured_since: kept.unmeasured_since.map(|time| time.0),
        gate: kept.gate,
        command: kept.command,
        ends: kept
            .ends
            .into_iter()
            .map(|(end, number)| (end, count(number)))
            .collect(),
    };
    if is_foreign(status) {
        adopted(run, scene)
    } else {
        renamed(run, scene)
    }
}

/// What serves may still have the name that Flagger gave it. When the workload is put back to it, it gets ours.
fn renamed(mut run: Run, scene: &Scene) -> Run {
    let is_idle = matches!(
        run.phase,
        Phase::Initialized | Phase::Succeeded | Phase::Failed | Phase::Waiting
    );
    let is_named = run
        .serving
        .as_ref()
        .is_some_and(|serving| !hash::is_ours(&serving.template));
    if is_idle && is_named && scene.is_alike {
        run.serving.clone_from(&scene.target);
    }
    run
}

/// Whether somebody else wrote the status last.
pub fn is_foreign(status: &CanaryStatus) -> bool {
    status.run.is_none() && has_foreign_hash(status)
}

fn has_foreign_hash(status: &CanaryStatus) -> bool {
    let hashes = [&status.last_applied_spec, &status.last_promoted_spec];
    let mut known = hashes.into_iter().flatten().filter(|hash| !hash.is_empty());
    known.any(|hash| !hash::is_ours(hash))
}

/// Whether a status of ours did not come back whole: the definition of Canaries is one that does not know what a run has to
/// remember. What is in the condition is in every definition.
pub fn is_pruned(status: &CanaryStatus) -> bool {
    let phase = Phase::of(status.phase.as_deref());
    let is_ours = |one: &CanaryCondition| {
        one.kind == "Promoted" && one.reason == phase.as_str() && one.message == message(phase)
    };
    status.run.is_none() && !has_foreign_hash(status) && status.conditions.iter().any(is_ours)
}

fn revision(hash: Option<&String>, configs: Option<&BTreeMap<String, String>>) -> Option<Revision> {
    let template = hash.filter(|hash| !hash.is_empty())?.clone();
    Some(Revision {
        template,
        configs: configs.cloned(),
    })
}

/// A run that Flagger began, as ours.
fn adopted(mut run: Run, scene: &Scene) -> Run {
    let Some(target) = &scene.target else {
        return run;
    };
    let left = run.phase;
    let is_promotion = matches!(left, Phase::Promoting | Phase::Finalising);
    run.phase = goes_on(left, scene.is_alike);
    if left == Phase::Finalising && !scene.is_alike {
        // What Flagger promoted serves, under the name that it has for it.
        run.serving.clone_from(&run.target);
    }
    // The copy has the new template already in a promotion: then what served before is not known any more.
    if scene.is_alike && !is_promotion {
        run.serving = Some(target.clone());
    }
    let keeps = matches!(run.phase, Phase::Initialized | Phase::Succeeded);
    run.target = if keeps && !scene.is_alike {
        // A version came while nobody looked.
        run.serving.clone()
    } else {
        Some(target.clone())
    };
    let weights = scene.weights.unwrap_or_default();
    (run.weight, run.mirrored) = match run.phase {
        // It begins anew.
        phase if phase != left => (0, false),
        Phase::Waiting | Phase::Progressing | Phase::WaitingPromotion | Phase::Promoting => {
            (weights.target.min(100), weights.mirrored)
        }
        // Where a promotion failed, the workload has all traffic.
        Phase::Failed if weights.target == 100 => (100, false),
        _ => (0, false),
    };
    run.matching = scene.is_matching;
    run.command.clone_from(&scene.command);
    run.prepared = run.is_exposed();
    run.draining = run.phase == Phase::Failed && run.weight == 0;
    run
}

/// Where a run of Flagger's goes on. A version is promoted only where the copy has become it: another may have come since, and
/// Flagger's hash does not tell.
fn goes_on(left: Phase, is_alike: bool) -> Phase {
    match left {
        // What was promoted serves, and the workload is something else by now.
        Phase::Finalising if !is_alike => Phase::Succeeded,
        Phase::Promoting if !is_alike => Phase::Progressing,
        // The version that serves is wanted again: nothing is left to analyse.
        Phase::Progressing | Phase::WaitingPromotion if is_alike => Phase::Finalising,
        phase => phase,
    }
}

/// The status that carries a run: Flagger's fields, and ours beside them. What is not the run's (`checks`, `waitingFor`,
/// cookies) stays as it is.
pub fn status(run: &Run, before: &CanaryStatus, generation: i64, now: Timestamp) -> CanaryStatus {
    let mut after = before.clone();
    after.phase = Some(run.phase.as_str().to_owned());
    after.failed_checks = i64::from(run.failed_checks);
    after.canary_weight = i64::from(run.weight);
    after.iterations = i64::from(run.iterations);
    after.observed_generation = Some(generation);
    let hash = |revision: &Option<Revision>| revision.as_ref().map(|one| one.template.clone());
    let configs = |revision: &Option<Revision>| revision.as_ref()?.configs.clone();
    after.last_applied_spec = hash(&run.target);
    after.last_promoted_spec = hash(&run.serving);
    after.tracked_configs = configs(&run.target);
    after.run = Some(RunStatus {
        attempt: i64::from(run.attempt),
        mirrored: run.mirrored,
        matching: run.matching,
        prepared: run.prepared,
        skip: run.skip,
        closing: run.closing,
        draining: run.draining,
        paused: run.paused.clone(),
        stopped_since: run.stopped_since.map(Time),
        provider: run.router.clone(),
        places: run.places.clone(),
        replicas: run.replicas.map(i64::from),
        free_since: run.free_since.map(Time),
        due: run.due.map(Time),
        step_since: run.step_since.map(Time),
        held_since: run.held_since.map(Time),
        unmeasured_since: run.unmeasured_since.map(Time),
        promoted_configs: configs(&run.serving),
        gate: run.gate.clone(),
        command: run.command.clone(),
        ends: run
            .ends
            .iter()
            .map(|(end, number)| (end.clone(), i64::from(*number)))
            .collect(),
    });
    condition(&mut after, run.phase, now);
    if after != *before {
        after.last_transition_time = Some(Time(now));
    }
    after
}

/// `Promoted`, by which pipelines wait. Its time is that of its last change of status.
fn condition(status: &mut CanaryStatus, phase: Phase, now: Timestamp) {
    let (value, reason) = (phase.promoted(), phase.as_str());
    let known = status.conditions.iter().find(|one| one.kind == "Promoted");
    if known.is_some_and(|one| one.status == value && one.reason == reason) {
        return;
    }
    let since = known
        .filter(|one| one.status == value)
        .and_then(|one| one.last_transition_time.clone());
    let made = CanaryCondition {
        kind: "Promoted".to_owned(),
        status: value.to_owned(),
        last_update_time: Some(Time(now)),
        last_transition_time: since.or(Some(Time(now))),
        reason: reason.to_owned(),
        message: message(phase).to_owned(),
    };
    status.conditions.retain(|one| one.kind != "Promoted");
    status.conditions.push(made);
}

fn message(phase: Phase) -> &'static str {
    match phase {
        Phase::Initializing => "The serving copy is being made",
        Phase::Initialized => "The serving copy is ready",
        Phase::Waiting => "A new version waits for approval",
        Phase::Progressing => "A new version is being analysed",
        Phase::WaitingPromotion => "A new version waits for approval of its promotion",
        Phase::Promoting => "A new version is being promoted",
        Phase::Finalising => "The promotion is being completed",
        Phase::Succeeded => "The new version serves",
        Phase::Failed => "The new version was sent back",
        Phase::Terminating => "The workload is being given back",
        Phase::Terminated => "The workload was given back",
    }
}
