//! How each cluster is, and how many are how far.

use slipway_api::fleet::rollout::status::{ClusterStatus, Counts, Run};

use crate::observe::rollout::Asked;
use crate::observe::{Entry, Revision, Strategy, World};
use crate::plan::run::is_skipped;
use crate::plan::survey::{Seen, Standing, Survey};
use crate::reasons::{Reason, state};

/// One cluster, as it is told of and counted.
#[derive(Debug, Clone)]
pub(in crate::plan) struct Case {
    pub(in crate::plan) status: ClusterStatus,
    is_selected: bool,
    is_current: bool,
    is_counted: bool,
}

/// What is told of a cluster: a state, a reason and a sentence.
type Told<'a> = (&'static str, Option<&'a str>, Option<&'a str>);

/// All clusters by name, but for those that are being deleted.
pub(in crate::plan) fn cases(world: &World, survey: &Survey<'_>, run: Option<&Run>) -> Vec<Case> {
    let is_external = matches!(&world.rollout.wanted, Asked::For(wanted) if wanted.strategy == Strategy::External);
    let here = survey.all().filter(|seen| seen.standing != Standing::Going);
    here.map(|seen| {
        let is_left = run.is_some_and(|run| is_skipped(run, seen));
        let (state, reason, message) =
            if is_external && seen.is_selected() && seen.entry().is_some() {
                by_others(seen)
            } else {
                told(seen, is_left && !seen.has_joined)
            };
        Case {
            is_selected: seen.is_selected(),
            is_current: seen.standing == Standing::Current,
            is_counted: seen.is_unready() && !is_left && !is_external,
            status: ClusterStatus {
                name: seen.name.to_owned(),
                state: state.to_owned(),
                revision: seen.entry().and_then(|entry| entry.revision.clone()),
                reason: reason.map(str::to_owned),
                message: message.map(str::to_owned),
                since: None,
            },
        }
    })
    .collect()
}

fn told<'a>(seen: &Seen<'a>, is_skipped: bool) -> Told<'a> {
    let cluster = seen.cluster;
    if let (true, Revision::Blocked { reason, message }) = (seen.is_selected(), &cluster.wanted) {
        return (state::BLOCKED, Some(reason), Some(message));
    }
    if let (true, Some(refused)) = (seen.is_selected(), seen.refused()) {
        let reason = Reason::RefusedByApi.as_str();
        return (state::BLOCKED, Some(reason), Some(&refused.message));
    }
    let unreachable = Some(Reason::Unreachable.as_str());
    let (reason, message) = words(seen.entry());
    match (seen.standing, cluster.is_reachable) {
        (Standing::Going | Standing::Deselected, _) => (state::UNASSIGNING, None, None),
        (Standing::Foreign, _) => (state::BLOCKED, Some(Reason::OwnedByOther.as_str()), None),
        (Standing::New, _) if !cluster.is_initialized => {
            (state::PENDING, Some(Reason::ClusterNotReady.as_str()), None)
        }
        (Standing::New, false) => (state::SKIPPED, unreachable, None),
        (Standing::Current, true) if seen.is_settled() => (state::READY, None, None),
        (_, false) if is_skipped => (state::SKIPPED, unreachable, None),
        (_, true) if is_skipped => (
            state::SKIPPED,
            Some(Reason::UnreadyBefore.as_str()),
            message,
        ),
        (Standing::Outdated | Standing::Current, false) => (state::UNREADY, unreachable, None),
        (Standing::Outdated, true) if !seen.is_ready() => (state::UNREADY, reason, message),
        (Standing::New | Standing::Outdated, true) => (state::PENDING, None, None),
        (Standing::Current, true) => at_work(seen.entry()),
    }
}

/// A cluster that somebody else moves is as far as it is with what it has.
fn by_others<'a>(seen: &Seen<'a>) -> Told<'a> {
    match (seen.cluster.is_reachable, seen.is_ready()) {
        (false, _) => (state::UNREADY, Some(Reason::Unreachable.as_str()), None),
        (true, true) => (state::READY, None, None),
        (true, false) => at_work(seen.entry()),
    }
}

/// How far a cluster is with an assignment that it is not ready with.
fn at_work(entry: Option<&Entry>) -> Told<'_> {
    let (reason, message) = words(entry);
    let has_failed = entry.is_some_and(Entry::has_failed);
    let state = if has_failed {
        state::FAILED
    } else {
        state::UPDATING
    };
    (state, reason, message)
}

/// What the cluster itself tells of the assignment that it has.
fn words(entry: Option<&Entry>) -> (Option<&str>, Option<&str>) {
    let status = entry.and_then(|entry| {
        let status = entry.status.as_ref()?;
        (status.observed == entry.revision).then_some(status)
    });
    match status {
        Some(status) => (status.reason.as_deref(), status.message.as_deref()),
        None => (None, None),
    }
}

/// How many clusters are how far.
pub(in crate::plan) fn counts(cases: &[Case]) -> Counts {
    let selected = || cases.iter().filter(|case| case.is_selected);
    let number = |all: usize| i64::try_from(all).unwrap_or(i64::MAX);
    let of = |state: &str| number(selected().filter(|case| case.status.state == state).count());
    Counts {
        total: number(selected().count()),
        updated: number(selected().filter(|case| case.is_current).count()),
        ready: of(state::READY),
        unready: number(selected().filter(|case| case.is_counted).count()),
        failed: of(state::FAILED),
        skipped: of(state::SKIPPED),
        blocked: of(state::BLOCKED),
    }
}
