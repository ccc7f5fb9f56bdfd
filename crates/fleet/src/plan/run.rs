//! One change on its way: from when it begins until every cluster that can have it has it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::rollout::status::{MAX_CLUSTERS, PastRun, Run};

use super::survey::{Seen, Standing, Survey};
use super::{Decision, report};
use crate::observe::{Wanted, World};
use crate::reasons::outcome;

/// What an incremental change is made on: who is left for later in it, and who goes first.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) world: &'a World,
    pub(super) wanted: &'a Wanted,
    pub(super) survey: &'a Survey<'a>,
    /// The last revision that proved itself.
    pub(super) stable: Option<&'a str>,
}

impl Ground<'_> {
    /// The run of an incremental rollout that begins now; none if there is nothing that could be done.
    ///
    /// Who is unready or unreachable now is left for later. Not so who became unready by a revision of this Rollout that did
    /// not prove itself: those go first, else what mends them could never reach them. Nor those that are unready with one that
    /// did, where these are more than may be left for later: then it has turned bad, and all others wait for them.
    pub(super) fn begin(&self, now: Timestamp) -> Option<Run> {
        let left = self.left();
        let is_left = |seen: &Seen<'_>| left.contains(seen.name);
        let can =
            |seen: &Seen<'_>| seen.can_move() && seen.cluster.is_reachable && !seen.is_coming_up();
        self.survey.selected().find(|seen| can(seen))?;
        // Where only clusters that have nothing yet, or are broken anyway, get what has proved itself, there is nothing to be
        // tried first.
        let is_a_switch =
            |seen: &Seen<'_>| seen.standing == Standing::Outdated && can(seen) && !is_left(seen);
        let is_tried =
            self.stable != Some(self.survey.target()) || self.survey.selected().any(is_a_switch);
        let mut run = Run {
            revision: self.survey.target().to_owned(),
            started: Time(now),
            canary: None,
            canary_passed: (!is_tried).then_some(Time(now)),
            // A status has its limits; who is left out here counts.
            skipped: left
                .iter()
                .take(MAX_CLUSTERS)
                .map(|name| (*name).to_owned())
                .collect(),
        };
        if is_tried {
            run.canary = self.canary(&run);
        }
        Some(run)
    }

    /// Who is left for later in a run that begins now. Who has joined is so anyway.
    fn left(&self) -> BTreeSet<&str> {
        let is_unready = |seen: &Seen<'_>| {
            let is_behind = seen.standing == Standing::Outdated;
            is_behind && !seen.is_ready() && !seen.has_joined && !self.is_ours_to_mend(seen)
        };
        let is_ill = |seen: &Seen<'_>| seen.cluster.is_reachable && is_unready(seen);
        let ill = self.survey.selected().filter(|seen| is_ill(seen)).count();
        let has_turned_bad = ill > self.wanted.max_unreachable.of(self.survey.total());
        let is_left = |seen: &Seen<'_>| match seen.standing {
            _ if seen.has_joined => false,
            Standing::New => seen.cluster.is_initialized && !seen.cluster.is_reachable,
            Standing::Outdated => {
                let goes_first = has_turned_bad && is_ill(seen);
                !seen.cluster.is_reachable || (is_unready(seen) && !goes_first)
            }
            Standing::Current => {
                let is_mended = seen.cluster.is_reachable && self.is_ours_to_mend(seen);
                !seen.is_settled() && !is_mended
            }
            Standing::Going | Standing::Deselected | Standing::Foreign => false,
        };
        let left = self.survey.selected().filter(|seen| is_left(seen));
        left.map(|seen| seen.name).collect()
    }

    /// Whether a cluster that is unready is so because of this Rollout. Where the first cluster was ready with a change, another one
    /// that failed with it is ill for a reason of its own, as far as anybody knows: else it would be what the next change, and the
    /// way back, are tried with.
    fn is_ours_to_mend(&self, seen: &Seen<'_>) -> bool {
        let before = self.world.rollout.status.run.as_ref();
        let was_ready = before.is_some_and(|run| !is_skipped(run, seen));
        let is_first = |run: &Run| run.canary.as_deref() == Some(seen.name);
        let passed = before.filter(|run| run.canary_passed.is_some() && !is_first(run));
        let is_alone = passed.is_some() && seen.is_ill();
        let has_passed =
            |run: &Run| seen.template() == Some(run.revision.as_str()) && !seen.is_ready();
        let has_proved = self.has_proved(seen) || passed.is_some_and(has_passed);
        (was_ready && !is_alone) || !has_proved
    }

    /// Whether what a cluster has proved itself, now or once.
    fn has_proved(&self, seen: &Seen<'_>) -> bool {
        let template = seen.template();
        let mut history = self.world.rollout.status.history.iter();
        template == self.stable
            || history.any(|past| {
                past.outcome == outcome::SUCCEEDED && Some(past.revision.as_str()) == template
            })
    }

    /// Who goes first: who has the change already, though it has not proved itself (it was taken back and came again), if one
    /// does with the values that it should have; else whoever is chosen.
    pub(super) fn canary(&self, run: &Run) -> Option<String> {
        let holders = self.survey.in_order(|seen| self.holds_target(seen));
        let first =
            |is_meant: &dyn Fn(&Seen<'_>) -> bool| holders.iter().find(|seen| is_meant(seen));
        let holder = first(&|seen| seen.is_settled())
            .or_else(|| first(&|seen| self.holds_wanted(seen)))
            .or_else(|| holders.first());
        let holder = holder.map(|holder| holder.name.to_owned());
        holder.or_else(|| self.chosen(run))
    }

    /// Who is chosen to go first: one that was made unready by a revision that stopped at it; else whose turn it is, where there
    /// is room for one more that is unready; else one that is unready already; at last one of those that are left for later.
    /// Nobody who cannot be reached, nor who has joined and is on its way with what it got.
    pub(super) fn chosen(&self, run: &Run) -> Option<String> {
        let before = self.world.rollout.status.run.as_ref();
        let was_stopped = before.is_none_or(|run| run.canary_passed.is_none());
        let all = self.survey.in_order(|seen| self.is_candidate(seen));
        let (left, candidates): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) =
            all.into_iter().partition(|seen| is_skipped(run, seen));
        let first = |is_meant: &dyn Fn(&Seen<'_>) -> bool| {
            candidates.iter().copied().find(|seen| is_meant(seen))
        };
        let has_room = self.unready(run) < self.allowed();
        let mut left = left.into_iter().filter(|seen| !seen.is_coming_up());
        let found = first(&|seen| was_stopped && seen.is_unready() && !self.has_proved(seen))
            .or_else(|| first(&|seen| has_room && !seen.is_unready()))
            .or_else(|| first(&|seen| seen.is_unready()))
            .or_else(|| first(&|_| true))
            .or_else(|| left.next());
        Some(found?.name.to_owned())
    }

    /// One that could go first and is unready already, so that it takes nobody's room.
    pub(super) fn broken(&self, run: &Run) -> Option<String> {
        let is_broken = |seen: &Seen<'_>| {
            self.is_candidate(seen) && seen.is_unready() && !is_skipped(run, seen)
        };
        let first = self.survey.in_order(is_broken).first().copied();
        first.map(|seen| seen.name.to_owned())
    }

    /// Whether a cluster has the target, though that has not proved itself.
    pub(super) fn holds_target(&self, seen: &Seen<'_>) -> bool {
        let target = Some(self.survey.target());
        self.stable != target && seen.template() == target
    }

    /// Whether a cluster has the target, though that has not proved itself, and is to get no other values of it.
    pub(super) fn holds_wanted(&self, seen: &Seen<'_>) -> bool {
        self.holds_target(seen) && !is_changed(seen)
    }

    /// Whether a cluster could go first. One without an assignment gets what has proved itself, if there is such a thing.
    pub(super) fn is_candidate(&self, seen: &Seen<'_>) -> bool {
        let stable = self.stable;
        let proved = stable.and_then(|stable| seen.proved(stable, self.survey.target()));
        let is_served = seen.standing == Standing::New && proved.is_some();
        seen.can_move() && seen.cluster.is_reachable && !is_served
    }

    /// Whether a cluster counts against the budget.
    pub(super) fn is_counted(run: &Run, seen: &Seen<'_>) -> bool {
        seen.is_unready() && !is_skipped(run, seen)
    }

    /// How many count against the budget.
    pub(super) fn unready(&self, run: &Run) -> usize {
        let counted = self.survey.selected();
        counted.filter(|seen| Self::is_counted(run, seen)).count()
    }

    /// How many may.
    pub(super) fn allowed(&self) -> usize {
        self.wanted.max_unready.of(self.survey.total())
    }
}

/// Whether a cluster is to get something else than it has, and can.
pub(super) fn is_changed(seen: &Seen<'_>) -> bool {
    seen.standing == Standing::Outdated && seen.can_move()
}

/// Whether a cluster is left for later: because it was unready when the run began, or has joined and never was ready.
pub(super) fn is_skipped(run: &Run, seen: &Seen<'_>) -> bool {
    seen.has_joined || run.skipped.iter().any(|name| name == seen.name)
}

/// A run without those who are not left for later any more: whoever has come back is not.
pub(super) fn still_left(survey: &Survey<'_>, run: &Run) -> Run {
    let is_away = |name: &&String| survey.get(name).is_some_and(is_away);
    Run {
        skipped: run.skipped.iter().filter(is_away).cloned().collect(),
        ..run.clone()
    }
}

fn is_away(seen: &Seen<'_>) -> bool {
    match seen.standing {
        Standing::Current => !seen.is_settled(),
        Standing::New | Standing::Outdated => !seen.is_ready(),
        Standing::Going | Standing::Deselected | Standing::Foreign => false,
    }
}

/// Ends the run that goes on, if there is one.
pub(super) fn end(
    world: &World,
    survey: &Survey<'_>,
    how: &str,
    decision: &mut Decision,
    now: Timestamp,
) {
    let Some(run) = decision.run.take() else {
        return;
    };
    // What takes its place counts by another revision: of one that was superseded, the last that was told is known.
    let counts = if how == outcome::SUPERSEDED {
        world.rollout.status.counts.unwrap_or_default()
    } else {
        report::counts(&report::cases(world, survey, Some(&run)))
    };
    decision.ended.push(PastRun {
        revision: run.revision,
        started: run.started,
        finished: Time(now),
        outcome: how.to_owned(),
        counts,
    });
}

/// Ends the run that goes on because another change takes its place, if one does.
pub(super) fn supersede(
    world: &World,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) -> bool {
    let run = decision.run.as_ref();
    let is_other = run.is_some_and(|run| run.revision != survey.target());
    if is_other {
        end(world, survey, outcome::SUPERSEDED, decision, now);
    }
    is_other
}
