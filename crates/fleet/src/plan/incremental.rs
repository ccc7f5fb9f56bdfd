//! Incremental: one cluster first, then so many at a time that never more than the budget are unready.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::fleet::rollout::status::{MAX_CLUSTERS, Run};
use slipway_kernel::capability::show::count;

use super::run::{self, Ground, is_changed, is_skipped};
use super::survey::{Seen, Standing, Survey};
use super::{Decision, Hold};
use crate::observe::{Entry, Wanted, World};
use crate::reasons::{Reason, outcome};

pub(super) fn decide(
    world: &World,
    wanted: &Wanted,
    survey: &Survey<'_>,
    decision: &mut Decision,
    now: Timestamp,
) {
    if let Some(hold) = survey.unread() {
        // Who was well before may be lost or ill by now, and must not go first.
        decision.holds.push(hold);
        return;
    }
    if let Some(hold) = survey.unresolved().filter(|_| decision.run.is_some()) {
        // A change that is on its way is not over because nobody knows yet what is wanted.
        decision.holds.push(hold);
        return;
    }
    run::supersede(world, survey, decision, now);
    let stable = decision.stable.clone();
    let ground = Ground {
        world,
        wanted,
        survey,
        stable: stable.as_deref(),
    };
    let Some(run) = decision.run.clone() else {
        // The next plan moves clusters: first it has to be written down who was unready now.
        decision.run = ground.begin(now);
        left(survey, decision);
        return;
    };
    let pass = Pass { ground, run: &run };
    let next = run::still_left(survey, &run);
    // All that were unready or unreachable when it began, whatever they say of themselves. Not who has joined since.
    let (many, most) = (
        next.skipped.len(),
        wanted.max_unreachable.of(survey.total()),
    );
    let anew = pass.tried_anew();
    let is_tried_anew = anew.is_some();
    decision.run = Some(anew.map_or(next.clone(), |canary| Run {
        canary: Some(canary),
        canary_passed: None,
        ..next
    }));
    left(survey, decision);
    if is_tried_anew {
        // The next plan moves it: first it has to be written down that it goes first again.
        return;
    }
    if many > most {
        let message = format!(
            "{} unready or unreachable when this began, and at most {most} may be left for later",
            count(many, "cluster"),
        );
        let hold = Hold::new(
            Reason::TooManyUnreachable,
            message,
            "the clusters, when they are back, or a higher maxUnreachable",
        );
        decision.holds.push(hold);
        // Whoever has nothing yet waits for nobody.
        pass.newcomers(decision);
        return;
    }
    if pass.has_passed() {
        pass.others(decision, now);
    } else {
        pass.canary(decision);
    }
    if !pass.is_over(decision) {
        return;
    }
    if pass.has_passed() && survey.selected().any(Seen::is_settled) {
        run::end(world, survey, outcome::SUCCEEDED, decision, now);
        decision.stable = Some(survey.target().to_owned());
    } else if pass.has_nobody(decision) {
        // It is over, but it has not proved itself.
        run::end(world, survey, outcome::ABANDONED, decision, now);
    }
}

/// What a plan looks at while a change is on its way.
struct Pass<'a> {
    ground: Ground<'a>,
    /// As it is stored: who is not among the skipped there counts.
    run: &'a Run,
}

impl<'a> Pass<'a> {
    fn survey(&self) -> &'a Survey<'a> {
        self.ground.survey
    }

    fn first(&self) -> Option<&Seen<'a>> {
        let canary = self.run.canary.as_ref();
        canary.and_then(|name| self.survey().get(name))
    }

    /// Whether the first cluster is ready with the change.
    fn has_passed(&self) -> bool {
        self.run.canary_passed.is_some() || self.first().is_some_and(Seen::is_settled)
    }

    /// Who goes first again, because what it was ready with is not what it should have any more: values have changed in the
    /// middle of the change, and nobody has tried these. Where nobody went first, or who did is not there any more, somebody does
    /// as soon as what others have is not what they should have any more.
    fn tried_anew(&self) -> Option<String> {
        self.run.canary_passed.as_ref()?;
        let chosen = || self.ground.chosen(self.run);
        let Some(first) = self.first().filter(|seen| seen.is_selected()) else {
            let is_behind = |seen: &Seen<'_>| {
                let has_change = seen.template() == Some(self.survey().target());
                has_change && is_changed(seen) && !is_skipped(self.run, seen)
            };
            let mut all = self.survey().selected();
            return all.any(is_behind).then(chosen)?;
        };
        if !is_changed(first) {
            return None;
        }
        // Without room for it, only one that is unready already can be tried with.
        let has_room = self.ground.unready(self.run) < self.ground.allowed();
        let can_again = first.cluster.is_reachable && (has_room || first.is_unready());
        let again = can_again.then(|| first.name.to_owned());
        again.or_else(chosen)
    }

    /// Whether nobody is left who could have the change: neither now, nor when the API lets us write, nor when it is back: an operator
    /// that has just started has not reached anybody yet. Of a change that the first cluster was ready with, those are waited for as
    /// well that cannot have it now.
    fn has_nobody(&self, decision: &Decision) -> bool {
        let run = decision.run.as_ref();
        let has_canary = run.is_some_and(|run| run.canary.is_some());
        let is_left = |seen: &Seen<'_>| run.is_some_and(|run| is_skipped(run, seen));
        let is_held = |seen: &Seen<'_>| {
            let waits = self.has_passed() && seen.standing == Standing::Outdated && !is_left(seen);
            let is_away = seen.standing == Standing::New && !seen.cluster.is_reachable;
            let comes = is_away && seen.can_move() && !is_left(seen);
            seen.refused().is_some() || waits || comes
        };
        let mut all = self.survey().selected();
        let is_started = has_canary && !self.has_passed();
        !is_started && !all.any(is_held)
    }

    fn over_budget(&self, unready: usize) -> Hold {
        let message = format!(
            "{} unready, and maxUnreadyClusters allows {}",
            count(unready, "cluster"),
            self.ground.allowed(),
        );
        Hold::new(
            Reason::MaxUnreadyClusters,
            message,
            "the clusters, when they are ready, or a higher maxUnreadyClusters",
        )
    }

    /// Until the first cluster is ready with the change, nobody else gets it.
    fn canary(&self, decision: &mut Decision) {
        self.newcomers(decision);
        let can_get = |seen: &Seen<'_>| self.ground.is_candidate(seen);
        // Somebody may have it who was chosen before, was not selected for a moment, and is again: then that one goes first.
        let mut selected = self.survey().selected();
        let is_held = selected.any(|seen| self.ground.holds_wanted(seen));
        let valid = self
            .first()
            .filter(|seen| self.has_change(seen) || (can_get(seen) && !is_held));
        let Some(canary) = valid else {
            // The next plan moves it: first it has to be written down who it is.
            if let Some(run) = &mut decision.run {
                run.canary = self.ground.canary(self.run);
            }
            return;
        };
        if can_get(canary) && self.is_back(canary) {
            decision.is_awaited = true;
            return;
        }
        let unready = self.ground.unready(self.run);
        if !can_get(canary) {
            decision.holds.push(pending(canary));
        } else if canary.is_unready() || unready < self.ground.allowed() {
            decision.assign.extend(canary.wanted());
        } else if let (Some(other), Some(run)) = (self.ground.broken(self.run), &mut decision.run) {
            // There is no room for it, and there may never be before the change reaches this one.
            run.canary = Some(other);
        } else {
            decision.holds.push(self.over_budget(unready));
        }
    }

    /// Whether a cluster was away and is back, or came lately and is ready: it counts from now on, which has to be written down before
    /// it moves. Else it would not count while it is on its way with the change.
    fn is_back(&self, seen: &Seen<'_>) -> bool {
        let has_come = seen.is_told && seen.entry().is_some();
        seen.is_ready() && (is_skipped(self.run, seen) || has_come)
    }

    /// Whether a cluster has the change, maybe with other values by now: whoever goes first and has it is waited for, also if
    /// it is lost.
    fn has_change(&self, seen: &Seen<'_>) -> bool {
        let target = Some(self.survey().target());
        let has_template = self.ground.stable != target && seen.template() == target;
        seen.is_selected() && (seen.standing == Standing::Current || has_template)
    }

    /// Whoever has nothing yet gets what has proved itself, at once: an empty cluster is worse than an old version, and a
    /// version that nobody has tried is worse than both.
    fn newcomers(&self, decision: &mut Decision) {
        let Some(stable) = self.ground.stable else {
            return;
        };
        let is_here = |seen: &Seen<'_>| {
            let is_here = seen.can_be_written() && seen.cluster.is_reachable;
            seen.standing == Standing::New && is_here
        };
        let is_new = |seen: &Seen<'_>| is_here(seen) && !is_skipped(self.run, seen);
        let run = decision.run.as_ref();
        let is_left = |seen: &Seen<'_>| run.is_some_and(|run| is_skipped(run, seen));
        let comes_back = |seen: &Seen<'_>| is_here(seen) && !is_new(seen) && !is_left(seen);
        decision.is_awaited |= self.survey().selected().any(comes_back);
        for seen in self.survey().in_order(is_new) {
            let Some(assignment) = seen.proved(stable, self.survey().target()) else {
                continue;
            };
            // It gets the change when it is ready with this, and does not count before. That has to be written down before it gets
            // anything, else nobody knows it any more. A status has its limits; who is left out there counts.
            if !seen.is_told && self.ground.world.forgets_who_came {
                decision.holds.push(forgetful().at(seen.name));
                continue;
            }
            if !seen.is_told && decision.joined.len() < MAX_CLUSTERS {
                decision.joined.push(assignment.cluster);
                decision.joined.sort();
                continue;
            }
            decision.assign.push(assignment);
        }
    }

    /// The others: those that are unready already first, because that costs nothing, and may be what mends them; then as many
    /// as the budget has room for.
    fn others(&self, decision: &mut Decision, now: Timestamp) {
        if let Some(run) = &mut decision.run {
            run.canary_passed.get_or_insert(Time(now));
        }
        // Who was left for later and is not well gets what may mend it; but who has joined is on its way with what it got.
        let is_left = |seen: &Seen<'_>| self.is_back(seen) || seen.is_coming_up();
        let can = |seen: &Seen<'_>| seen.can_move() && seen.cluster.is_reachable && !is_left(seen);
        let (broken, waiting): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = self
            .survey()
            .in_order(can)
            .into_iter()
            .partition(|seen| seen.is_unready());
        let unready = self.ground.unready(self.run);
        let room = self.ground.allowed().saturating_sub(unready);
        let counts_again = |seen: &Seen<'_>| seen.can_move() && self.is_back(seen);
        decision.is_awaited |= room > 0 && self.survey().selected().any(counts_again);
        let moved = broken.into_iter().chain(waiting.iter().copied().take(room));
        decision.assign.extend(moved.filter_map(Seen::wanted));
        if waiting.len() > room {
            let in_flight = unready + room;
            decision.holds.push(self.over_budget(in_flight));
        }
    }

    /// Whether every cluster that can have the change is ready with it. Who has it and is not ready is waited for, also while it
    /// is not known what it should have: what a value comes from may be gone for a moment. So is who the API does not let us give it
    /// to: that is tried again, and would be another change then.
    fn is_over(&self, decision: &Decision) -> bool {
        let target = Some(self.survey().target());
        let is_done = |seen: &Seen<'_>| match seen.standing {
            Standing::Current => seen.is_settled(),
            Standing::Outdated => {
                let is_on_its_way = seen.template() == target && !seen.is_ready();
                !seen.can_move() && !is_on_its_way
            }
            Standing::New => !seen.can_move() || !seen.cluster.is_reachable,
            Standing::Going | Standing::Deselected | Standing::Foreign => true,
        };
        // Whoever is back is not left for later any more.
        let run = decision.run.as_ref();
        let is_left = |seen: &Seen<'_>| run.is_some_and(|run| is_skipped(run, seen));
        let is_tried_again = |seen: &Seen<'_>| seen.refused().is_some();
        let is_over = |seen: &Seen<'_>| is_done(seen) && !is_tried_again(seen) || is_left(seen);
        decision.assign.is_empty() && self.survey().selected().all(is_over)
    }
}

/// Why a cluster that came gets nothing: nobody would know that it has just come.
fn forgetful() -> Hold {
    let message = "the definition of Rollouts does not keep status.joined, so that a cluster that comes during a change gets nothing before it";
    let unblock = "whoever applies the definitions that come with this version";
    Hold::new(Reason::DefinitionTooOld, message, unblock)
}

/// Why the first cluster is not ready yet, with what it says itself.
fn pending(canary: &Seen<'_>) -> Hold {
    let entry = canary.entry();
    let status = entry.and_then(|entry| {
        let status = entry.status.as_ref();
        status.filter(|status| status.observed == entry.revision)
    });
    let told = status
        .and_then(|status| status.message.as_deref())
        .filter(|told| !told.is_empty());
    let told = told.map(|told| format!(": {told}")).unwrap_or_default();
    let failed = entry.is_some_and(Entry::has_failed);
    let is_silent =
        status.and_then(|status| status.reason.as_deref()) == Some(Reason::AgentSilent.as_str());
    let (reason, what) = match (canary.cluster.is_reachable, failed) {
        (false, _) => (
            Reason::CanaryFailed,
            format!(
                "cannot be reached with the change{}",
                canary.cluster.because()
            ),
        ),
        (true, true) => (
            Reason::CanaryFailed,
            format!("failed with the change{told}"),
        ),
        (true, false) if canary.settles_at().is_some() => (
            Reason::CanaryPending,
            "is ready with the change, and not for long enough yet".to_owned(),
        ),
        (true, false) if is_silent => (
            Reason::AgentSilent,
            format!("does not look at the change{told}"),
        ),
        (true, false) => (
            Reason::CanaryPending,
            format!("is not ready with the change yet{told}"),
        ),
    };
    let message = format!("the first cluster {what}");
    Hold::new(
        reason,
        message,
        "the cluster, or another change of the template",
    )
    .until(canary.settles_at())
    .at(canary.name)
}

/// Tells of the clusters that are left for later.
fn left(survey: &Survey<'_>, decision: &mut Decision) {
    let run = decision.run.as_ref();
    let is_left = |seen: &Seen<'_>| {
        let is_behind = matches!(seen.standing, Standing::New | Standing::Outdated);
        let is_skipped = seen.has_joined || run.is_some_and(|run| is_skipped(run, seen));
        is_behind && (is_skipped || !seen.cluster.is_reachable)
    };
    let all: Vec<Hold> = survey
        .selected()
        .filter(|seen| is_left(seen))
        .map(later)
        .collect();
    decision.holds.extend(all);
}

fn later(seen: &Seen<'_>) -> Hold {
    let hold = if seen.has_joined && seen.cluster.is_reachable {
        let message =
            "the cluster has joined lately, and gets the change when it is ready with what it has";
        Hold::new(
            Reason::ClusterUnready,
            message,
            "the cluster, when it is ready",
        )
    } else if seen.cluster.is_reachable {
        let message = "the cluster was unready before the change: it does not count, and gets it after the first one";
        Hold::new(
            Reason::UnreadyBefore,
            message,
            "the cluster, when it is ready again, or the change, when it has passed the first cluster",
        )
    } else {
        let because = seen.cluster.because();
        let message =
            format!("the cluster cannot be reached{because}, and gets the change when it is back");
        Hold::new(Reason::Unreachable, message, "the cluster, when it is back")
    };
    hold.at(seen.name)
}
