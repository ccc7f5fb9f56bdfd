//! After the analysis: the version takes over.

use slipway_api::canary::Phase;
use slipway_kernel::instant::later;

use super::advance::{Level, Look, Next};
use super::deeds::split;
use super::rules::{Finish, Rules, Shift};
use super::run::{Revision, Run};
use super::sight::{Readiness, Sight, Weights};
use crate::reasons::Reason;

impl Look<'_> {
    /// The version takes over.
    pub(super) fn take_over(&self, text: &str) -> Next {
        self.change(|run| {
            run.phase = Phase::Promoting;
            run.mirrored = false;
            (run.due, run.gate) = (None, None);
            // The time of what serves begins when it has its new template.
            (run.step_since, run.held_since) = (Some(self.now), None);
        })
        .tell(text, None)
    }

    pub(super) fn promote(&self, wanted: &Revision) -> Next {
        match self.rules.finish {
            Finish::IntoSource => self.change_source(wanted),
            Finish::OntoTarget => self.onto_target(wanted),
        }
    }

    /// The source becomes what the target is, then gets the traffic back.
    fn change_source(&self, wanted: &Revision) -> Next {
        if self.is_deserted() {
            return self.unload("The new version went down");
        }
        let is_other = self.run.matching && !self.rules.is_matching();
        if self.run.weight > 0 && is_other && !self.is_alone() {
            return self.unload("Which requests the new version gets was changed");
        }
        let is_wanted = self.run.target.as_ref() == Some(wanted);
        if !self.is_promoted() {
            // What was analysed is promoted, and nothing else.
            return if is_wanted {
                self.give_template()
            } else {
                self.replaced(wanted)
            };
        }
        if !is_wanted && self.run.weight > 0 && !self.is_alone() {
            // The target is about to be something that nobody has analysed.
            return self.change(|run| run.weight = 0).tell(
                "New revision detected; it waits for the end of this promotion, without traffic",
                None,
            );
        }
        match &self.sight.source.state() {
            Readiness::Ready => self.give_back(),
            Readiness::Stuck(why) | Readiness::Stalled(why) => self.strand(why),
            _ if self.run.held_since.is_none() => self.hold_from_now(),
            unready if self.is_too_late() => {
                let why = format!("it is not ready in time: {}", unready.why());
                self.strand(&why)
            }
            unready => self.hold_in_time(Reason::SourceNotReady, unready),
        }
    }

    /// The source gets its new template, which may be refused; but not for ever. Time in which nobody tried does not count.
    fn give_template(&self) -> Next {
        let since = self.sight.refused_since;
        let end = since.and_then(|since| later(since, self.rules.deadline));
        if end.is_some_and(|end| end <= self.now) {
            return self.fail("the serving version could not be changed in time");
        }
        let message = "the serving version is about to be changed";
        self.stay().hold(Reason::SourceNotReady, message).until(end)
    }

    /// Traffic goes back to the source, which is the new version now.
    fn give_back(&self) -> Next {
        let (weight, step) = (self.run.weight, self.rules.promotion_step);
        if self.sight.source.size < self.needed() {
            let message = self.scaled_first();
            return self.stay().hold(Reason::SourceNotReady, message);
        }
        if let Some(due) = self.run.due
            && let Some(next) = self.early(due)
        {
            let message = "each step of the promotion lasts an interval";
            return next.hold(Reason::StepPause, message);
        }
        let left = if step == 0 {
            0
        } else {
            weight.saturating_sub(step)
        };
        if left == 0 {
            return self
                .change(|run| {
                    run.phase = Phase::Finalising;
                    run.weight = 0;
                    (run.due, run.free_since) = (None, None);
                    run.held_since = run.held_since.or(Some(self.now));
                })
                .tell("Routing all traffic to the serving version", None);
        }
        if let Some(next) = self.unrouted(self.run.weights()) {
            return next;
        }
        self.change(|run| {
            run.weight = left;
            run.due = later(self.now, self.rules.interval);
        })
        .tell(format!("Advance: new version weight {left}"), None)
    }

    /// What is said while the source has too few replicas for what it is to take over.
    pub(super) fn scaled_first(&self) -> String {
        let need = self.needed();
        format!("the serving version is scaled to {need} before it gets traffic")
    }

    /// How many replicas the source must have before it takes over what the target has now.
    pub(super) fn needed(&self) -> u32 {
        needed(self.rules, self.run, self.sight)
    }

    /// Whether the source has yet to get back what the run took of its replicas.
    pub(super) fn is_short(&self) -> bool {
        self.run.replicas.is_some() && self.sight.source.size < self.needed()
    }

    /// Why replicas are not divided by the weight yet, where their numbers are the weights; none if they are.
    pub(super) fn undivided(&self) -> Option<String> {
        let all = divided(self.rules, self.run, self.sight)?;
        let (run, sight) = (self.run, self.sight);
        if !matches!(run.phase, Phase::Progressing | Phase::WaitingPromotion) {
            return None;
        }
        let (target, source) = split(all, run.weight);
        // Who has all requests leaves the others as many pods as they had.
        let source = (run.weight < 100).then_some((&sight.source, source, "serving"));
        let target = (&sight.target, target.max(1), "new");
        let mut both = [Some(target), source].into_iter().flatten();
        let (side, wanted, which) = both.find(|(side, wanted, _)| side.size != *wanted)?;
        let seen = side.size;
        Some(format!(
            "the {which} version has {seen} replicas, and is to have {wanted}"
        ))
    }

    /// The target keeps the traffic.
    fn onto_target(&self, wanted: &Revision) -> Next {
        if self.run.target.as_ref() != Some(wanted) && self.run.weight < 100 {
            return self.restart(wanted);
        }
        let target = &self.sight.target.state();
        match target {
            Readiness::Ready if self.run.weight < 100 => self
                .change(|run| run.weight = 100)
                .tell("Routing all traffic to the new version", None),
            Readiness::Ready => match self.unrouted(Weights::to_target(100)) {
                Some(next) => next,
                None => self.change(|run| run.phase = Phase::Finalising),
            },
            Readiness::Stuck(why) | Readiness::Stalled(why) => self.fail(why),
            _ if self.run.held_since.is_none() => self.hold_from_now(),
            unready if unready.is_down() || self.is_too_late() => self.fail(unready.why()),
            unready => self.hold_in_time(Reason::TargetNotReady, unready),
        }
    }

    /// Traffic has moved: what is not needed any more is put away.
    pub(super) fn finalise(&self, wanted: &Revision) -> Next {
        let is_done = match self.rules.finish {
            Finish::IntoSource => {
                if let Some(next) = self.broken(wanted) {
                    return next;
                }
                if self.run.weight > 0 {
                    return self.relieve();
                }
                if let Some(next) = self.unrouted(Weights::SOURCE) {
                    return next;
                }
                if let Some(next) = self.freed() {
                    return next;
                }
                self.sight.target.size == 0 && !self.is_short()
            }
            Finish::OntoTarget => self.sight.source.size == 0 || !self.run.is_new(),
        };
        let source = self.sight.source.state();
        if !is_done && self.rules.finish == Finish::IntoSource && source.is_down() {
            return self.hold_for(Reason::SourceNotReady, &source);
        }
        if !is_done {
            return self.drains();
        }
        let is_new = self.run.is_new();
        let text = if is_new {
            "Promotion completed!"
        } else {
            "The serving version is what is wanted, and serves on"
        };
        self.change(|run| {
            self.end(run, Phase::Succeeded);
            if !is_new {
                // A version that was taken back has neither succeeded nor failed.
                run.ends.clone_from(&self.run.ends);
            }
            if self.rules.finish == Finish::OntoTarget {
                run.weight = 100;
            }
            run.replicas = None;
            run.serving.clone_from(&run.target);
        })
        .tell(text, Some(Level::Info))
    }

    /// What the target has kept, because it alone answered, goes to the source when that answers.
    pub(super) fn relieve(&self) -> Next {
        if self.is_alone() {
            let state = self.sight.source.state();
            let why = state.why();
            let message = format!("the new version keeps its traffic, which alone answers: {why}");
            return self.stay().hold(Reason::SourceNotReady, message);
        }
        self.change(|run| (run.weight, run.free_since) = (0, None))
            .tell(
                "The serving version answers again, and gets all traffic",
                Some(Level::Info),
            )
    }

    /// A version that was proven, and is ready, gets all requests where nobody else answers any: in its promotion, until its pods are
    /// put away, and after one that failed. The source gets them back when it is ready.
    pub(super) fn rescued(&self) -> Option<Next> {
        let (run, target) = (self.run, &self.sight.target);
        let is_meant = match run.phase {
            Phase::Promoting | Phase::Finalising => true,
            Phase::Failed => !run.draining && self.is_stranded(),
            _ => false,
        };
        let can = self.rules.finish == Finish::IntoSource && self.rules.is_live();
        let source = self.sight.source.state();
        let is_needed = source.is_down() && (run.weight < 100 || run.matching);
        if !is_meant || !can || !is_needed || !target.serves(run.target.as_ref()) {
            return None;
        }
        let next = self.change(|run| {
            (run.weight, run.matching, run.free_since) = (100, false, None);
            if run.phase == Phase::Finalising && run.is_new() {
                // The time that what serves has for it goes on.
                (run.phase, run.step_since) = (Phase::Promoting, Some(self.now));
            }
        });
        let why = source.why();
        let text = format!(
            "Nobody answers for the serving version: {why}; all traffic goes to the new version"
        );
        Some(next.warn(text, Some(Level::Warn)))
    }

    /// The source breaks after it got the traffic, and the target is still there to take it.
    fn broken(&self, wanted: &Revision) -> Option<Next> {
        let is_new = self.run.is_new() && self.run.target.as_ref() == Some(wanted);
        let source = self.sight.source.state();
        let why = source.given_up()?;
        (is_new && self.sight.target.state().is_ready()).then(|| self.strand(why))
    }
}

/// How many replicas the weight divides, where their numbers are the weights.
pub(super) fn divided(rules: &Rules, run: &Run, sight: &Sight) -> Option<u32> {
    let all = || run.replicas.unwrap_or(sight.source.size).max(1);
    (rules.shift == Shift::Replicas).then(all)
}

/// How many replicas the source must have before it takes over what the target has. What a run took of its replicas it gets back,
/// by whatever traffic is shifted since.
pub(super) fn needed(rules: &Rules, run: &Run, sight: &Sight) -> u32 {
    let (source, target) = (&sight.source, &sight.target);
    match run.replicas.or_else(|| divided(rules, run, sight)) {
        Some(all) => source.size.max(all),
        None if run.weight == 0 => source.size,
        None => source.size.max(source.bounded(target.size)),
    }
}
