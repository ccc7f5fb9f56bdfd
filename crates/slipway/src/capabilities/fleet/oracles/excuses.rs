//! Who was unready before a change began, and is left for later in it. What the operator shows as left for later is not believed:
//! what a cluster had when the change began is told by the assignments, how it was by the Kustomization there, and whether it could
//! be reached by what was wrong then. Of the operator's status two things are taken: when it first told of the change, and what
//! was under way until then.

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, History, Image, Object};

use super::progress::Step;
use super::{at, has_failed, is_ready, kustomization, template, was_ready};

/// How long after nothing is in the way any more the operator may not know that a cluster can be reached: it asks every half minute,
/// and some time passes until it has seen everything again.
const UNNOTICED: SignedDuration = SignedDuration::from_mins(1);

/// What was under way when a change began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Former {
    /// No other change.
    None,
    /// Another one, which one cluster had been ready with.
    Passed,
    /// Another one, which nobody had been ready with: whoever became unready meanwhile may be so because of it.
    Tried,
}

/// Whether a cluster that is not ready with what it was `given` does not count while the change of `step` goes on: it was unready
/// or away when that began, and has been since, so that nothing was broken by it.
pub(super) fn is_excused(
    history: &History,
    all: &[Step<'_>],
    given: &Step<'_>,
    step: &Step<'_>,
) -> bool {
    let Some((began, former)) = began(history, step) else {
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
    let is_alone = || is_of_before && former != Former::Tried && is_alone(history, all, had, began);
    let is_ill = is_ill(history, all, had, (began, former)) || is_alone();
    // Who is back counts from when it moves.
    let has_moved = given.at >= began;
    (is_of_before && !has_moved && is_away(history, &given.cluster, began))
        || (is_ill && !is_ready_within(history, had, (began, given.at)))
}

/// Whether a cluster failed with what another one was ready with before it got it: what came then is not tried with this one.
fn is_alone(history: &History, all: &[Step<'_>], had: &Step<'_>, moment: Timestamp) -> bool {
    let is_proved = is_proved(history, all, had, had.at);
    let place = had.place();
    let object = kustomization(&place, had.sync());
    let failed = at(history.changes_in(&place.expanded_in), &object, moment);
    is_proved && failed.is_some_and(has_failed)
}

/// Whether another cluster was ready by then with what this one has.
fn is_proved(history: &History, all: &[Step<'_>], had: &Step<'_>, until: Timestamp) -> bool {
    all.iter().any(|other| {
        other.rollout == had.rollout
            && other.cluster != had.cluster
            && template(&other.after) == template(&had.after)
            && is_ready_within(history, other, (other.at, until))
    })
}

/// Whether a cluster was unready when a change began for a reason of its own: it was ready with what it had before, and is not any
/// more, and not because of a change that was still under way; or it was so already when it got what others were ready with.
fn is_ill(
    history: &History,
    all: &[Step<'_>],
    had: &Step<'_>,
    (began, former): (Timestamp, Former),
) -> bool {
    if is_ready_at(history, had, began) {
        return false;
    }
    (former == Former::None && is_ready_within(history, had, (had.at, began)))
        || (is_proved(history, all, had, began) && is_excused(history, all, had, had))
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

/// When the change that a step is part of was first told of, and what was under way until then.
fn began(history: &History, step: &Step<'_>) -> Option<(Timestamp, Former)> {
    let started = step.image.text("/status/run/started")?;
    let revision = step.image.text("/status/run/revision")?;
    let mut changes = of(history, &step.rollout);
    let first = changes.find(|change| {
        change.after.as_ref().is_some_and(|after| {
            after.text("/status/run/started") == Some(started)
                && after.text("/status/run/revision") == Some(revision)
        })
    })?;
    let has = |field: &str| {
        let before = first.before.as_deref();
        before.is_some_and(|before| before.text(&format!("/status/run/{field}")).is_some())
    };
    let former = match (has("revision"), has("canaryPassed")) {
        (false, _) => Former::None,
        (true, true) => Former::Passed,
        (true, false) => Former::Tried,
    };
    Some((first.at, former))
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

/// Whether something was wrong with the way to a cluster at a moment, or shortly before: as long as it can keep the operator from
/// something, and until that has noticed.
fn is_away(history: &History, cluster: &str, moment: Timestamp) -> bool {
    history.all_spells().any(|(began, spell)| {
        let is_there = spell.cluster.as_deref() == Some(cluster);
        let lasts = spell.over().saturating_sub(spell.at);
        let over = began
            .checked_add(lasts)
            .and_then(|over| over.checked_add(UNNOTICED));
        is_there && began <= moment && over.is_ok_and(|over| moment <= over)
    })
}
