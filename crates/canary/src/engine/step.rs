//! In a run: checks, and what a version that passed them gets next.

use std::time::Duration;

use jiff::Timestamp;
use slipway_api::canary::{HookType, Phase};
use slipway_kernel::instant::later;

use super::advance::{Look, Next};
use super::answers::{Alarm, Ask, Check, Heard, alarm, hear};
use super::judge::{Checked, Verdict, judge};
use super::rules::Strategy;
use super::run::{Revision, Run};
use crate::reasons::Reason;

/// What checks came to.
enum Found {
    /// These have to be asked first.
    Unknown(Vec<Ask>),
    /// All passed.
    Passed(Vec<Checked>),
    /// One failed, for this reason.
    Failed(Vec<Checked>, String),
    /// Nobody knows, for this reason.
    Held(Vec<Checked>, String),
}

impl Look<'_> {
    /// A version is analysed.
    pub(super) fn analyse(&self, wanted: &Revision) -> Next {
        if self.run.target.as_ref() != Some(wanted) {
            return self.replaced(wanted);
        }
        if self.run.matching != self.rules.is_matching() {
            // The same weight would be another share of the requests.
            return self.restart(wanted);
        }
        if self.is_deserted() {
            let down = self.sight.target.state();
            return match down.given_up() {
                Some(why) => self.fail(&format!("the new version: {why}")),
                None => self.pull_back(down.why()),
            };
        }
        if self.run.draining {
            return self.refresh();
        }
        let skips = self.run.skip || self.rules.skip;
        let is_unproved = self.run.weight > 0 && !self.run.prepared;
        if is_unproved && !skips && !self.is_alone() {
            // It had this only because nobody else answered.
            return self.unload("The serving version answers again");
        }
        if let Some(why) = self.sight.source.state().given_up().filter(|_| !skips) {
            return self.fail(&format!("the serving version: {why}"));
        }
        if let Some(next) = self.unwhole(skips) {
            let is_judged = !skips && !self.is_alone() && next.run == *self.run;
            return match self.run.due.filter(|_| is_judged) {
                Some(due) => self.judged(due, next),
                None => next,
            };
        }
        if skips {
            return self.take_over("Analysis is skipped; promoting");
        }
        let pending = self.unrouted(self.run.weights());
        match self.run.due {
            None => pending.unwrap_or_else(|| self.first_tick()),
            Some(due) => self.judged(due, pending.unwrap_or_else(|| self.stay())),
        }
    }

    /// Whoever has a share is judged by it when that is due, also while a side is not whole, or the data plane has not taken the
    /// last weights; until then it is held so.
    fn judged(&self, due: Timestamp, held: Next) -> Next {
        match self.early(due) {
            Some(next) if next.run == *self.run => held.wake_at(Some(due)),
            Some(next) => next,
            None => self.at_tick(due, Self::on_tick),
        }
    }

    /// Why the target gets no more than it has: one of the sides is not whole.
    fn unwhole(&self, skips: bool) -> Option<Next> {
        let source = self.sight.source.state();
        if !skips && !source.is_ready() {
            return Some(self.hold_for(Reason::SourceNotReady, &source));
        }
        self.unready()
    }

    /// The data plane has not taken the weights: the next step waits for it, but not for ever.
    fn wait_for_routing(&self, at: Timestamp, pending: Next) -> Next {
        if self.run.held_since.is_none() {
            return self.hold_from_now();
        }
        if self.is_too_late() {
            let hold = pending.holds.first();
            let why = hold.map_or("", |hold| hold.message.as_str());
            return self.fail(&format!("weights are not taken in time: {why}"));
        }
        pending.until(self.deadline()).wake_at(self.after(at))
    }

    /// Pods that were started with former configs go before others come.
    fn refresh(&self) -> Next {
        if self.run.weight > 0 {
            return self.relieve();
        }
        if let Some(next) = self.freed() {
            return next;
        }
        if self.sight.target.size > 0 {
            let message = "its pods are replaced, so that they have the new configs";
            let next = self.stay().hold(Reason::TargetNotReady, message);
            return next.wake_at(self.drain_at());
        }
        self.change(|run| {
            run.draining = false;
            (run.held_since, run.free_since) = (None, None);
        })
    }

    /// What to do while the target is not ready.
    fn unready(&self) -> Option<Next> {
        let readiness = &self.sight.target.state();
        if readiness.is_ready() {
            // Not as long as a step waits for replicas to be divided: nothing is done while the run changes.
            let is_routed = self.unrouted(self.run.weights()).is_none();
            let is_held = self.run.due.is_some() && self.run.held_since.is_some();
            let is_over = is_routed && is_held;
            return is_over.then(|| self.change(|run| run.held_since = None));
        }
        if self.sight.target.size == 0 {
            // Its time begins when it has been scaled up.
            return Some(self.hold_for(Reason::TargetNotReady, readiness));
        }
        if let Some(why) = readiness.given_up() {
            return Some(self.fail(&format!("the new version: {why}")));
        }
        if self.run.held_since.is_none() {
            return Some(self.hold_from_now());
        }
        if self.is_too_late() {
            let why = readiness.why();
            return Some(self.fail(&format!("the new version is not ready in time: {why}")));
        }
        Some(self.hold_in_time(Reason::TargetNotReady, readiness))
    }

    /// None of the target's pods is available, and it has requests: the source gets them, and the run begins anew.
    fn pull_back(&self, why: &str) -> Next {
        let next = self.count_failure(&format!("the new version went down: {why}"), self.now);
        if next.run.phase == Phase::Failed {
            return next;
        }
        let mut next = next;
        let run = &mut next.run;
        run.phase = Phase::Progressing;
        (run.weight, run.mirrored, run.iterations) = (0, false, 0);
        (run.prepared, run.due) = (false, None);
        (run.held_since, run.step_since) = (Some(self.now), Some(self.now));
        next
    }

    /// The version is ready for the first time.
    fn first_tick(&self) -> Next {
        self.change(|run| {
            run.due = Some(self.now);
            run.held_since = None;
        })
        .tell("Starting analysis", None)
    }

    /// A check is due.
    fn on_tick(&self, at: Timestamp) -> Next {
        match alarm(self.rules, self.answers, at) {
            Alarm::Unknown(ask) => return self.stay().ask(ask),
            Alarm::Raised(name) => return self.fail(&format!("webhook {name} asks for it")),
            Alarm::Quiet => {}
        }
        if !self.run.is_exposed() {
            let unwhole = self.unwhole(false).map(|next| next.wake_at(self.after(at)));
            return unwhole.unwrap_or_else(|| self.prepare(at));
        }
        match self.check(at) {
            Found::Unknown(asks) => {
                let mut next = self.stay();
                next.asks = asks;
                next
            }
            Found::Passed(..) | Found::Failed(..) if self.run.unmeasured_since.is_some() => {
                self.change(|run| run.unmeasured_since = None)
            }
            Found::Passed(checks) => self.step(at).with(checks),
            Found::Failed(checks, why) => self.count_failure(&why, at).with(checks),
            Found::Held(checks, why) => self.hold_for_data(at, &why).with(checks),
        }
    }

    /// Asks those who are to be asked before the target gets anything.
    fn prepare(&self, at: Timestamp) -> Next {
        if self.run.prepared {
            return self.step(at);
        }
        match hear(self.rules, self.answers, HookType::PreRollout, at) {
            Heard::Unknown(ask) => self.stay().ask(ask),
            Heard::No(place, why) => {
                let why = format!("pre-rollout webhook {}: {why}", self.name(place));
                self.count_failure(&why, at)
            }
            Heard::Yes => {
                let mut next = self.step(at);
                next.run.prepared = true;
                next
            }
        }
    }

    /// Makes the checks of a tick: webhooks one after the other, then all measures at once.
    fn check(&self, at: Timestamp) -> Found {
        match hear(self.rules, self.answers, HookType::Rollout, at) {
            Heard::Unknown(ask) => return Found::Unknown(vec![ask]),
            Heard::No(place, why) => {
                let why = format!("webhook {}: {why}", self.name(place));
                return Found::Failed(Vec::new(), why);
            }
            Heard::Yes => {}
        }
        let asks = (0..self.rules.metrics.len()).map(|place| Ask {
            check: Check::Metric(place),
            at,
        });
        let unknown: Vec<Ask> = asks
            .clone()
            .filter(|ask| !self.answers.contains_key(ask))
            .collect();
        if !unknown.is_empty() {
            return Found::Unknown(unknown);
        }
        let answers = asks.filter_map(|ask| self.answers.get(&ask));
        let measures = self.rules.metrics.iter().zip(answers);
        // Who gets all requests has nobody left to be compared with.
        let is_alone = self.run.weights().source() == 0 && !self.run.matching;
        let checks: Vec<Checked> = measures
            .map(|(measure, answer)| {
                if is_alone {
                    judge(&measure.alone(), answer)
                } else {
                    judge(measure, answer)
                }
            })
            .collect();
        let first = |verdict| {
            let mut of = checks.iter().filter(move |check| check.verdict == verdict);
            of.next().map(|check| check.message.clone())
        };
        if let Some(why) = first(Verdict::Failed) {
            return Found::Failed(checks, why);
        }
        match first(Verdict::Held) {
            Some(why) => Found::Held(checks, why),
            None => Found::Passed(checks),
        }
    }

    /// A check failed. As many as may be, and the version goes back at once.
    fn count_failure(&self, why: &str, at: Timestamp) -> Next {
        let failed = self.run.failed_checks.saturating_add(1);
        if failed >= self.rules.threshold {
            let limit = self.rules.threshold;
            let mut next = self.fail(&format!(
                "failed checks reached the threshold {limit}: {why}"
            ));
            next.run.failed_checks = failed;
            return next;
        }
        self.change(|run| {
            run.failed_checks = failed;
            run.due = self.next_due(at);
        })
        .warn(format!("Halt advancement: {why}"), None)
    }

    /// Nobody knows how the version does: it stays where it is, but not for ever.
    fn hold_for_data(&self, at: Timestamp, why: &str) -> Next {
        let Some(since) = self.run.unmeasured_since else {
            return self
                .change(|run| run.unmeasured_since = Some(at))
                .warn(format!("Halt advancement: {why}"), None);
        };
        let deadline = later(since, self.rules.deadline);
        // One answer after a long silence says nothing of the time before.
        if deadline.is_some_and(|deadline| deadline <= self.now) && self.has_heard_twice() {
            return self.fail(&format!("the progress deadline is over: {why}"));
        }
        self.stay()
            .hold(Reason::NoData, why)
            .until(deadline.filter(|deadline| *deadline > self.now))
            .wake_at(self.after(at))
    }

    /// A version that passed its checks gets more, or takes over.
    fn step(&self, at: Timestamp) -> Next {
        if let Some(next) = self.unwhole(false) {
            return next.wake_at(self.after(at));
        }
        if let Some(pending) = self.unrouted(self.run.weights()) {
            return self.wait_for_routing(at, pending);
        }
        match &self.rules.strategy {
            Strategy::Weights(steps) => self.step_weights(steps, at),
            Strategy::Matching(iterations) => self.step_matching(*iterations, at),
            Strategy::Switch(iterations) => self.step_switch(*iterations, at),
        }
    }

    fn step_weights(&self, steps: &[u8], at: Timestamp) -> Next {
        let place = steps.iter().position(|step| *step > self.run.weight);
        if let Some(until) = self.paused(place.unwrap_or(steps.len())) {
            let message = "the version stays at this step for a while";
            let next = self.stay().hold(Reason::StepPause, message);
            return next.until(Some(until)).wake_at(self.after(at));
        }
        if !self.run.mirrored
            && self.run.phase != Phase::WaitingPromotion
            && let Some(next) = self.gate(HookType::ConfirmTrafficIncrease, at)
        {
            return next;
        }
        let Some(weight) = place.and_then(|place| steps.get(place).copied()) else {
            return self.confirm(at, |look| look.take_over("Promotion started"));
        };
        if self.rules.mirror && self.run.weight == 0 && !self.run.mirrored {
            return self.move_on(at, "Advance: traffic is copied to the new version", |run| {
                run.mirrored = true;
            });
        }
        let text = format!("Advance: new version weight {weight}");
        self.move_on(at, &text, |run| {
            (run.weight, run.mirrored) = (weight, false);
        })
    }

    /// When the pause of the step before this place ends, if it is not over.
    fn paused(&self, place: usize) -> Option<Timestamp> {
        let pause: Duration = *self.rules.pauses.get(place.checked_sub(1)?)?;
        let end = later(self.run.step_since?, pause).unwrap_or(Timestamp::MAX);
        (end > self.now).then_some(end)
    }

    fn step_matching(&self, iterations: u32, at: Timestamp) -> Next {
        let done = self.run.iterations;
        if done >= iterations {
            return self.confirm(at, |look| look.take_over("Promotion started"));
        }
        let text = format!("Advance: iteration {}/{iterations}", done + 1);
        self.move_on(at, &text, |run| {
            (run.weight, run.iterations) = (100, done + 1);
        })
    }

    fn step_switch(&self, iterations: u32, at: Timestamp) -> Next {
        let done = self.run.iterations;
        let is_live = self.rules.is_live();
        if done < iterations {
            let text = format!("Advance: iteration {}/{iterations}", done + 1);
            return self.move_on(at, &text, |run| {
                run.mirrored = self.rules.mirror && is_live;
                run.iterations = done + 1;
            });
        }
        if is_live && done == iterations {
            return self.confirm(at, |look| {
                look.move_on(at, "Routing all traffic to the new version", |run| {
                    (run.weight, run.mirrored) = (100, false);
                    run.iterations = done.saturating_add(1);
                })
            });
        }
        self.confirm(at, |look| look.take_over("Promotion started"))
    }

    /// Goes to the next step, which lasts an interval.
    fn move_on(&self, at: Timestamp, text: &str, change: impl FnOnce(&mut Run)) -> Next {
        self.change(|run| {
            change(run);
            run.phase = Phase::Progressing;
            (run.due, run.gate) = (self.next_due(at), None);
            (run.step_since, run.held_since) = (Some(self.now), None);
        })
        .tell(text, None)
    }

    /// Asks for leave to raise the weight; none if it is given.
    fn gate(&self, kind: HookType, at: Timestamp) -> Option<Next> {
        let (place, why) = match hear(self.rules, self.answers, kind, at) {
            Heard::Yes => return None,
            Heard::Unknown(ask) => return Some(self.stay().ask(ask)),
            Heard::No(place, why) => (place, why),
        };
        let name = self.name(place);
        let message = format!("webhook {name} does not approve: {why}");
        if self.run.gate.as_deref() != Some(name) {
            let closed = self.change(|run| run.gate = Some(name.to_owned()));
            return Some(closed.warn(format!("Halt advancement: {message}"), self.alert_of(place)));
        }
        let next = self.stay().hold(Reason::TrafficGateClosed, message);
        Some(next.wake_at(self.after(at)))
    }

    /// Asks for leave to take over, and goes on with it.
    fn confirm(&self, at: Timestamp, go: impl FnOnce(&Self) -> Next) -> Next {
        let (place, why) = match hear(self.rules, self.answers, HookType::ConfirmPromotion, at) {
            Heard::Yes => return go(self),
            Heard::Unknown(ask) => return self.stay().ask(ask),
            Heard::No(place, why) => (place, why),
        };
        let message = format!("webhook {} does not approve: {why}", self.name(place));
        if self.run.phase == Phase::WaitingPromotion {
            let next = self.stay().hold(Reason::PromotionGateClosed, message);
            return next.wake_at(self.after(at));
        }
        self.change(|run| {
            run.phase = Phase::WaitingPromotion;
            (run.due, run.gate) = (self.after(at), None);
        })
        .warn(
            format!("Halting: waiting for promotion approval: {message}"),
            self.alert_of(place),
        )
    }
}
