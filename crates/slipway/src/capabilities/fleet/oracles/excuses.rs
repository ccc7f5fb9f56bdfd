//! Who was unready before a change began, and is left for later in it. What the operator shows as left for later is not believed:
//! what a cluster had when the change began is told by the assignments, how it was by the Kustomization there, and whether it could
//! be reached by what was wrong then. Of the operator's status only the moment is taken at which it first told of the change.

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, History, Image, Object};

use super::progress::Step;
use super::{at, has_failed, is_ready, kustomization, template, was_ready};

/// How long after a cluster can be reached again the operator may not know that yet.
const UNNOTICED: SignedDuration = SignedDuration::from_mins(5);

/// Whether a cluster that is not ready with what it was `given` does not count while the change of `step` goes on: it was unready
/// or away when that began, and has been since, so that nothing was broken by it.
pub(super) fn is_excused(
    history: &History,
    all: &[Step<'_>],
    given: &Step<'_>,
    step: &Step<'_>,
) -> bool {
    let Some(began) = began(history, step) else {
        return false;
    };
    let had = all.iter().rfind(|one| {
        one.rollout == given.rollout && one.cluster == given.cluster && one.at < began
    });
    let Some(had) = had else {
        return false;
    };
    // Who was given the change and then lost counts, whatever begins anew for the same template.
    let is_of_before = had.at < asked(history, step);
    let is_ill =
        is_ill(history, all, had, began) || (is_of_before && is_alone(history, all, had, began));
    (is_of_before && is_away(history, &given.cluster, began))
        || (is_ill && !is_ready_within(history, had, (began, given.at)))
}

/// Whether a cluster failed with what another one was ready with before it got it: what came then is not tried with this one.
fn is_alone(history: &History, all: &[Step<'_>], had: &Step<'_>, moment: Timestamp) -> bool {
    let is_proved = all.iter().any(|other| {
        other.rollout == had.rollout
            && other.cluster != had.cluster
            && template(&other.after) == template(&had.after)
            && is_ready_within(history, other, (other.at, had.at))
    });
    let place = had.place();
    let object = kustomization(&place, had.sync());
    let failed = at(history.changes_in(&place.expanded_in), &object, moment);
    is_proved && failed.is_some_and(has_failed)
}

/// Whether a cluster was unready at a moment for a reason of its own: it was ready with what it had before, and is not any more, or
/// was so already when it got that.
fn is_ill(history: &History, all: &[Step<'_>], had: &Step<'_>, moment: Timestamp) -> bool {
    if is_ready_at(history, had, moment) {
        return false;
    }
    is_ready_within(history, had, (had.at, moment)) || is_excused(history, all, had, had)
}

fn is_ready_within(history: &History, had: &Step<'_>, time: (Timestamp, Timestamp)) -> bool {
    was_ready(history, &had.place(), had.sync(), &had.after, time)
}

fn is_ready_at(history: &History, had: &Step<'_>, moment: Timestamp) -> bool {
    let place = had.place();
    let object = kustomization(&place, had.sync());
    let changes = history.changes_in(&place.expanded_in);
    at(changes, &object, moment).is_some_and(|image| is_ready(image, &had.after))
}

/// When the change that a step is part of was first told of.
fn began(history: &History, step: &Step<'_>) -> Option<Timestamp> {
    let started = step.image.text("/status/run/started")?;
    let revision = step.image.text("/status/run/revision")?;
    let mut changes = of(history, &step.rollout);
    let first = changes.find(|change| {
        change.after.as_ref().is_some_and(|after| {
            after.text("/status/run/started") == Some(started)
                && after.text("/status/run/revision") == Some(revision)
        })
    })?;
    Some(first.at)
}

/// Since when a Rollout has had the template that it has at a step.
fn asked(history: &History, step: &Step<'_>) -> Timestamp {
    let template = step.image.at("/spec/template");
    let changes = of(history, &step.rollout).take_while(|change| change.at <= step.at);
    let mut since = Timestamp::MAX;
    for change in changes {
        let has =
            |image: Option<&Image>| image.and_then(|image| image.at("/spec/template")) == template;
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        if has(after) && (before.is_none() || !has(before)) {
            since = change.at;
        }
    }
    since
}

fn of<'a>(history: &'a History, rollout: &'a Object) -> impl Iterator<Item = &'a Change> {
    let changes = history.changes.iter();
    changes.filter(move |change| change.object == *rollout)
}

/// Whether something was wrong with the way to a cluster at a moment, or shortly before.
fn is_away(history: &History, cluster: &str, moment: Timestamp) -> bool {
    history.all_spells().any(|(began, spell)| {
        let is_there = spell.cluster.as_deref() == Some(cluster);
        let over = began
            .checked_add(spell.lasts)
            .and_then(|over| over.checked_add(UNNOTICED));
        is_there && began <= moment && over.is_ok_and(|over| moment <= over)
    })
}
