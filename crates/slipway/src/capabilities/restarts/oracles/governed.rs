//! R9: the default criteria never act on what a Flipper governs, by what there is and not by what the operator saw.

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, Event, History, Image};
use slipway_sim::oracles::workload::{name, restarts};
use slipway_sim::oracles::{Case, Findings};

use super::policy::{self, FLIPPERS};

/// Within this time a policy that is new or has changed is known.
const SEEN: SignedDuration = SignedDuration::from_secs(10);

/// When first something went wrong, if it did.
fn first_trouble(history: &History) -> Timestamp {
    let marks = history.marks.iter().filter(|mark| {
        matches!(
            mark.what,
            Event::Spell(_)
                | Event::Watch(..)
                | Event::CutOff(..)
                | Event::Paused(..)
                | Event::Restored
        )
    });
    let requests = history.requests.iter().filter(|r| r.fault.is_some());
    let times = marks.map(|mark| mark.at).chain(requests.map(|r| r.at));
    times.min().unwrap_or(Timestamp::MAX)
}

/// Whether the operator must know of a policy that has been as it is since then.
fn is_known(history: &History, since: Timestamp, at: Timestamp) -> bool {
    let known = since.checked_add(SEEN).unwrap_or(Timestamp::MAX);
    let calm = history.calm.checked_add(SEEN).unwrap_or(Timestamp::MAX);
    known <= at && (known <= first_trouble(history) || calm <= at)
}

/// When an object last changed but for its status, up to a version.
fn settled<'a>(history: &'a History, version: u64, change: &'a Change) -> Timestamp {
    let of_it = history
        .changes
        .iter()
        .filter(|c| c.object == change.object && c.version <= version && c.after.is_some());
    let differs = |c: &&Change| {
        let spec = |image: &Option<std::sync::Arc<Image>>| {
            image.as_ref().and_then(|image| image.at("/spec").cloned())
        };
        spec(&c.before) != spec(&c.after)
    };
    let last = of_it.rev().find(differs);
    last.map_or(history.start, |change| change.at)
}

/// R9.
pub(in super::super) fn by_default_only(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for touch in restarts(history) {
        let (change, version) = (touch.change, touch.change.version - 1);
        // A request may arrive late: what counts is what was there when it left.
        let flippers = history.states(FLIPPERS, version.min(touch.request.versions.0));
        let acting = flippers.iter().any(|(object, image)| {
            let policy = policy::read(object, image);
            policy.is_some_and(|p| p.acts && p.matches(&change.object, touch.before))
        });
        let sent = touch.request.at;
        let governor = flippers.iter().find(|(object, image)| {
            let policy = policy::leniently(object, image);
            let last = history
                .changes
                .iter()
                .rev()
                .find(|c| c.object == ***object && c.version <= version);
            let since = last.map_or(history.start, |last| settled(history, version, last));
            policy.matches(&change.object, touch.before) && is_known(history, since, sent)
        });
        findings.check(change.at, acting || governor.is_none(), || {
            let what = governor.map(|(object, _)| format!("{}/{}", object.1, object.2));
            format!(
                "{} was restarted by the default criteria, and Flipper {} governs it",
                name(&change.object),
                what.unwrap_or_default()
            )
        });
    }
    findings
}
