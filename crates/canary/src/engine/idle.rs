//! Before a run: what serves is made, and a new version is noticed and let in.

use jiff::Timestamp;
use slipway_api::canary::{HookType, Phase};

use super::advance::{Level, Look, Next};
use super::answers::{Alarm, Heard, alarm, hear};
use super::rules::Finish;
use super::run::Revision;
use super::sight::Weights;
use crate::reasons::Reason;

impl Look<'_> {
    /// What serves has to be there, ready and routed to, before the target is put away.
    pub(super) fn initialise(&self) -> Next {
        let source = &self.sight.source;
        if !source.state().is_ready() {
            return self.hold_for(Reason::SourceNotReady, &source.state());
        }
        if let Some(next) = self.unrouted(Weights::SOURCE) {
            return next;
        }
        if let Some(next) = self.freed() {
            return next;
        }
        if self.sight.target.size > 0 {
            return self.drains();
        }
        let serving = source.revision.clone();
        self.change(|run| {
            run.phase = Phase::Initialized;
            run.router = Some(self.rules.router.clone());
            run.places.clone_from(&self.rules.places);
            run.serving.clone_from(&serving);
            run.target = serving;
            (run.weight, run.mirrored, run.iterations) = (0, false, 0);
            (run.failed_checks, run.draining) = (0, false);
            (run.due, run.held_since, run.free_since) = (None, None, None);
        })
        .tell("Initialization done", Some(Level::Info))
    }

    /// Between two runs, what traffic goes by is what is asked for: that is remembered before anything of it is changed.
    pub(super) fn moved(&self) -> Option<Next> {
        let (run, rules) = (self.run, self.rules);
        let is_idle = matches!(
            run.phase,
            Phase::Initialized | Phase::Succeeded | Phase::Failed | Phase::Waiting
        );
        let is_left = run.weight == 0 && !run.draining;
        let is_known = run.router.is_some() && !run.places.is_empty();
        let is_same = run.router.as_ref() == Some(&rules.router) && run.places == rules.places;
        (is_idle && is_left && is_known && !is_same).then(|| {
            self.change(|run| {
                run.router = Some(rules.router.clone());
                run.places.clone_from(&rules.places);
            })
        })
    }

    /// Nothing goes on; is there something new?
    pub(super) fn idle(&self, wanted: &Revision) -> Next {
        if self.rules.finish == Finish::IntoSource && self.is_deserted() {
            return self.unload("The new version went down");
        }
        if self.run.draining && self.run.weight > 0 && !self.is_alone() {
            return self.relieve();
        }
        if self.run.closing
            && let Some(next) = self.closes(wanted)
        {
            return next;
        }
        if let Some(next) = self.drained() {
            return next;
        }
        let next = if self.run.serving.as_ref() == Some(wanted) {
            self.settled()
        } else if self.run.target.as_ref() == Some(wanted)
            || (self.is_stranded() && !self.rules.skip)
        {
            self.healed()
        } else {
            self.let_in(wanted)
        };
        self.routed(next)
    }

    /// What a version that went back leaves: its pods are to go, and what serves is to get back what the run took of it.
    fn drained(&self) -> Option<Next> {
        if !self.run.draining {
            return None;
        }
        if self.sight.target.size == 0 && !self.is_short() {
            return Some(self.change(|run| {
                (run.draining, run.free_since, run.replicas) = (false, None, None);
            }));
        }
        self.freed()
    }

    /// The same, which says what is not routed as it is to be, and goes on in time with what is to go.
    fn routed(&self, next: Next) -> Next {
        if next.run != *self.run {
            return next;
        }
        let mut next = if self.run.draining {
            next.wake_at(self.drain_at())
        } else {
            next
        };
        if next.holds.is_empty()
            && next.asks.is_empty()
            && let Some(pending) = self.unrouted(self.run.weights())
        {
            next.holds = pending.holds;
        }
        next
    }

    /// The target has no traffic, and goes when the data plane has had its time.
    pub(super) fn drains(&self) -> Next {
        let Some(at) = self.drain_at() else {
            return self.stay();
        };
        let message = "the data plane has a while to take the weights, before pods go";
        let next = self.stay().hold(Reason::RoutingPending, message);
        next.until(Some(at))
    }

    /// Whether a promotion failed, and the target has the traffic, or gets it when it is ready; or it has some because nobody else
    /// answers.
    pub(super) fn is_stranded(&self) -> bool {
        let is_held = self.run.weight > 0 || self.run.held_since.is_some();
        is_held && self.rules.finish == Finish::IntoSource
    }

    /// What was tried last is still what is wanted, or its promotion failed and it has the traffic. That goes back to what serves
    /// when this is ready: where it has become what was promoted after all, that takes over; where it is what it was before,
    /// another version can be analysed beside it.
    fn healed(&self) -> Next {
        if !self.is_stranded() {
            return self.stay();
        }
        if self.run.draining {
            // Without a share nothing is left to be given back: its pods go.
            let has_share = self.run.weight > 0;
            return if has_share {
                self.relieve()
            } else {
                self.stay()
            };
        }
        let source = &self.sight.source;
        let is_large = source.size >= self.needed();
        if is_large && source.serves(self.run.target.as_ref()) {
            return self
                .change(|run| {
                    (run.phase, run.weight) = (Phase::Finalising, 0);
                    (run.step_since, run.held_since) = (Some(self.now), Some(self.now));
                    run.free_since = None;
                })
                .tell(
                    "The serving version is ready after all, and gets all traffic",
                    Some(Level::Info),
                );
        }
        if is_large && source.serves(self.run.serving.as_ref()) {
            return self
                .change(|run| {
                    (run.weight, run.draining, run.free_since) = (0, true, None);
                    run.held_since = None;
                })
                .tell(
                    "The serving version is ready again, and gets all traffic",
                    Some(Level::Info),
                );
        }
        let why = if is_large {
            source.state().why().to_owned()
        } else {
            self.scaled_first()
        };
        let message = format!("the promotion failed, and the new version keeps the traffic: {why}");
        self.stay().hold(Reason::SourceNotReady, message)
    }

    /// What serves is gone. It can be made of what the workload is, where that is the version that served; otherwise a person has
    /// to say what is to serve.
    pub(super) fn without_source(&self, wanted: &Revision) -> Option<Next> {
        if self.rules.finish == Finish::OntoTarget || self.run.closing {
            return None;
        }
        let skips = self.run.skip || self.rules.skip;
        match self.run.phase {
            // It is made there.
            Phase::Initializing | Phase::Promoting | Phase::Terminating | Phase::Terminated => None,
            Phase::Progressing | Phase::WaitingPromotion => {
                let is_wanted = self.run.target.as_ref() == Some(wanted);
                (is_wanted && !skips).then(|| self.strand("the serving version does not exist"))
            }
            phase if self.is_makeable(phase, wanted) => {
                Some(self.hold_for(Reason::SourceNotReady, &self.sight.source.readiness))
            }
            _ if skips => None,
            _ => {
                let message = "the serving version does not exist, and its template is not known; apply that version, or promote";
                Some(self.stay().hold(Reason::TemplateLost, message))
            }
        }
    }

    /// Whether what serves can be made of what the workload is.
    fn is_makeable(&self, phase: Phase, wanted: &Revision) -> bool {
        let meant = if phase == Phase::Finalising {
            &self.run.target
        } else {
            &self.run.serving
        };
        meant.as_ref() == Some(wanted)
    }

    /// The version that serves is what is wanted.
    fn settled(&self) -> Next {
        if self.run.target != self.run.serving {
            // It was put back: the version that failed may come again.
            return self.change(|run| {
                run.target.clone_from(&run.serving);
                run.due = None;
            });
        }
        let source = &self.sight.source;
        let is_large = source.size >= self.needed();
        if self.is_stranded() && is_large && source.serves(self.run.serving.as_ref()) {
            let change = self.change(|run| {
                (run.weight, run.draining, run.free_since) = (0, true, None);
                run.held_since = None;
            });
            return change.tell(
                "The serving version is ready again, and gets all traffic",
                None,
            );
        }
        if self.run.due.is_some() {
            return self.change(|run| run.due = None);
        }
        if self.run.weight > 0 && self.run.draining {
            return self.relieve();
        }
        self.stay()
    }

    /// A new version may begin when what serves is ready and those who are asked agree.
    fn let_in(&self, wanted: &Revision) -> Next {
        let source = &self.sight.source.state();
        if !self.rules.skip && !source.is_ready() {
            return self.hold_for(Reason::SourceNotReady, source);
        }
        if !self.rules.has(HookType::ConfirmRollout) {
            return self.start(wanted, false);
        }
        let Some(due) = self.run.due else {
            // The question needs a time that stays the same after a crash.
            return self.change(|run| run.due = Some(self.now));
        };
        if let Some(next) = self.early(due) {
            return next;
        }
        self.at_tick(due, |look, at| look.may_begin(wanted, at))
    }

    /// Asks for leave to begin.
    fn may_begin(&self, wanted: &Revision, at: Timestamp) -> Next {
        match hear(self.rules, self.answers, HookType::ConfirmRollout, at) {
            Heard::Unknown(ask) => self.stay().ask(ask),
            Heard::Yes => self.start(wanted, false),
            Heard::No(place, why) => {
                let alert = self.alert_of(place);
                self.change(|run| {
                    run.phase = Phase::Waiting;
                    run.target = Some(wanted.clone());
                    run.attempt = 0;
                    run.due = self.after(at);
                })
                .warn(
                    format!(
                        "Halting: waiting for approval by {}: {why}",
                        self.name(place)
                    ),
                    alert,
                )
            }
        }
    }

    /// A new version waits for leave to begin.
    pub(super) fn wait(&self, wanted: &Revision) -> Next {
        if self.rules.finish == Finish::IntoSource && self.is_deserted() {
            return self.unload("The new version went down");
        }
        if let Some(next) = self.drained() {
            return next;
        }
        if self.run.serving.as_ref() == Some(wanted) {
            return self
                .change(|run| {
                    run.phase = Phase::Succeeded;
                    run.target.clone_from(&run.serving);
                    run.due = None;
                })
                .tell(
                    "The serving version is wanted again; nothing is to be done",
                    None,
                );
        }
        if self.run.target.as_ref() != Some(wanted) {
            return self.change(|run| {
                run.target = Some(wanted.clone());
                run.due = Some(self.now);
            });
        }
        let Some(due) = self.run.due else {
            return self.change(|run| run.due = Some(self.now));
        };
        if let Some(next) = self.early(due) {
            let is_so = next.run == *self.run;
            return if is_so {
                self.gate_closed(Some(due))
            } else {
                next
            };
        }
        self.at_tick(due, |look, at| look.may_begin_now(wanted, at))
    }

    /// Asks again for leave to begin.
    fn may_begin_now(&self, wanted: &Revision, at: Timestamp) -> Next {
        match alarm(self.rules, self.answers, at) {
            Alarm::Unknown(ask) => return self.stay().ask(ask),
            Alarm::Raised(name) => return self.fail(&format!("webhook {name} asks for it")),
            Alarm::Quiet => {}
        }
        match hear(self.rules, self.answers, HookType::ConfirmRollout, at) {
            Heard::Unknown(ask) => self.stay().ask(ask),
            Heard::No(..) => self.gate_closed(self.after(at)),
            Heard::Yes if self.rules.skip || self.sight.source.state().is_ready() => {
                self.start(wanted, false)
            }
            Heard::Yes => self.hold_for(Reason::SourceNotReady, &self.sight.source.state()),
        }
    }

    fn gate_closed(&self, again: Option<Timestamp>) -> Next {
        let message = "a confirm-rollout webhook has not approved";
        let drains = self.drain_at().filter(|_| self.run.draining);
        self.stay()
            .hold(Reason::RolloutGateClosed, message)
            .wake_at(again)
            .wake_at(drains)
    }

    /// Tells the end to those who want to know it; none where a new version has waited for that for an interval.
    fn closes(&self, wanted: &Revision) -> Option<Next> {
        let next = self.close();
        let is_served = self.run.serving.as_ref() == Some(wanted);
        let is_new = !is_served && self.run.target.as_ref() != Some(wanted);
        if !is_new || next.run != *self.run {
            return Some(next);
        }
        let end = self.run.due.and_then(|due| self.after(due));
        let is_over = end.is_none_or(|end| end <= self.now);
        (!is_over).then(|| next.wake_at(end))
    }

    /// Tells the end to those who want to know it.
    fn close(&self) -> Next {
        let done = |next: Next| -> Next {
            let mut next = next;
            next.run.closing = false;
            next.run.due = None;
            next
        };
        let Some(at) = self.run.due else {
            return done(self.stay());
        };
        match hear(self.rules, self.answers, HookType::PostRollout, at) {
            Heard::Unknown(ask) => self.stay().ask(ask),
            Heard::Yes => done(self.stay()),
            Heard::No(place, why) => {
                let text = format!("post-rollout webhook {} failed: {why}", self.name(place));
                done(self.stay().warn(text, None))
            }
        }
    }

    /// Why the data plane is not at these weights yet, if it is not.
    pub(super) fn unrouted(&self, weights: Weights) -> Option<Next> {
        let routing = &self.sight.routing;
        let why = match (&routing.pending, routing.weights) {
            _ if routing.is_at(weights) => self.undivided()?,
            (Some(why), _) => why.clone(),
            (None, Some(seen)) => {
                let (wanted, seen) = (weights.target, seen.target);
                format!("the new version has weight {seen}, and is to have {wanted}")
            }
            (None, None) => "there is no routing object yet".to_owned(),
        };
        Some(self.stay().hold(Reason::RoutingPending, why))
    }

    /// The level of the alert when this webhook refuses.
    pub(super) fn alert_of(&self, place: usize) -> Option<Level> {
        let is_mute = self.rules.hooks.get(place).is_some_and(|hook| hook.mute);
        (!is_mute).then_some(Level::Warn)
    }

    pub(super) fn name(&self, place: usize) -> &str {
        let hook = self.rules.hooks.get(place);
        hook.map_or("unknown", |hook| hook.name.as_str())
    }
}
