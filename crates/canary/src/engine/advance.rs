//! One look at a run: does it go on, and how?

use jiff::Timestamp;
use slipway_api::canary::{HookType, Phase};

use super::answers::{Answers, Ask, Check};
use super::judge::Checked;
use super::rules::{Rules, Shift};
use super::run::{Revision, Run};
use super::sight::{Readiness, Sight};
use crate::reasons::Reason;

/// How loud a piece of news is: who wants alerts from a level on gets those above it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Good to know.
    Info,
    /// Somebody should look.
    Warn,
    /// Something went wrong.
    Error,
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// A sentence.
    pub text: String,
    /// Whether it is bad.
    pub is_warning: bool,
    /// The level of its alert, if it is worth one.
    pub alert: Option<Level>,
}

/// Why nothing, or not more, is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// A word that programs match on.
    pub reason: Reason,
    /// A sentence.
    pub message: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

/// What comes of a look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Next {
    /// What is to be remembered from now on. Where it differs, nothing else is done before it is written.
    pub run: Run,
    /// What has to be asked.
    pub asks: Vec<Ask>,
    /// What is told, when the run has been written.
    pub news: Vec<News>,
    /// Why it does not go on.
    pub holds: Vec<Hold>,
    /// What checks came to, if they were made.
    pub checks: Vec<Checked>,
    /// When to look again although nothing has changed.
    pub wake: Option<Timestamp>,
}

impl Next {
    fn of(run: Run) -> Self {
        Self {
            run,
            ..Self::default()
        }
    }

    pub(super) fn hold(mut self, reason: Reason, message: impl Into<String>) -> Self {
        self.holds.push(Hold {
            reason,
            message: message.into(),
            until: None,
        });
        self
    }

    pub(super) fn until(mut self, at: Option<Timestamp>) -> Self {
        if let Some(hold) = self.holds.last_mut() {
            hold.until = at;
        }
        self.wake_at(at)
    }

    pub(super) fn wake_at(mut self, at: Option<Timestamp>) -> Self {
        self.wake = match (self.wake, at) {
            (Some(known), Some(at)) => Some(known.min(at)),
            (known, at) => known.or(at),
        };
        self
    }

    pub(super) fn ask(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    pub(super) fn tell(mut self, text: impl Into<String>, alert: Option<Level>) -> Self {
        self.news.push(News {
            text: text.into(),
            is_warning: false,
            alert,
        });
        self
    }

    pub(super) fn warn(mut self, text: impl Into<String>, alert: Option<Level>) -> Self {
        self.news.push(News {
            text: text.into(),
            is_warning: true,
            alert,
        });
        self
    }

    /// The same, which is still held by what held it before somebody was asked again.
    pub(super) fn still(mut self, holds: Vec<Hold>) -> Self {
        if !self.asks.is_empty() && self.holds.is_empty() {
            self.holds = holds;
        }
        self
    }

    pub(super) fn with(mut self, checks: Vec<Checked>) -> Self {
        self.checks = checks;
        self
    }
}

/// All that one look goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) rules: &'a Rules,
    pub(super) run: &'a Run,
    pub(super) sight: &'a Sight,
    pub(super) answers: &'a Answers,
    pub(super) now: Timestamp,
}

/// Decides how a run goes on.
pub fn advance(rules: &Rules, run: &Run, sight: &Sight, answers: &Answers, now: Timestamp) -> Next {
    let look = Look {
        rules,
        run,
        sight,
        answers,
        now,
    };
    let next = look.decide();
    look.explained(next)
}

/// What becomes of a run whose Canary cannot be followed any more, where its version is to have no more than this weight: it
/// failed. Those who want to know its end are told when it can be followed again.
pub fn withdrawn(run: &Run, weight: u8, way: &str, now: Timestamp) -> Run {
    let is_end = run.phase.is_running() || run.phase == Phase::Waiting;
    let mut after = Run {
        phase: Phase::Failed,
        serving: run.serving.clone(),
        target: run.target.clone(),
        attempt: run.attempt,
        failed_checks: run.failed_checks,
        router: run.router.clone(),
        places: run.places.clone(),
        command: run.command.clone(),
        ends: run.ends.clone(),
        weight,
        replicas: run.replicas,
        matching: run.matching,
        draining: true,
        closing: is_end || run.closing,
        due: if is_end { Some(now) } else { run.due },
        ..Run::default()
    };
    if is_end {
        let analysis = if run.skip { "skipped" } else { "completed" };
        count(&mut after, &format!("failed/{way}/{analysis}"));
    }
    after
}

/// Whether the source has become what the target is, at this attempt.
pub(super) fn is_promoted(run: &Run, sight: &Sight) -> bool {
    let source = &sight.source;
    let is_tried = run.attempt == 0 || source.attempt == Some(run.attempt);
    source.revision.is_some() && source.revision == run.target && is_tried
}

/// Counts an end.
fn count(run: &mut Run, end: &str) {
    let ends = run.ends.entry(end.to_owned()).or_default();
    *ends = ends.saturating_add(1);
}

impl Look<'_> {
    fn decide(&self) -> Next {
        if self.rules.suspend {
            let message = "spec.suspend is true; nothing is done";
            return self
                .stopped()
                .unwrap_or_else(|| self.stay().hold(Reason::Suspended, message));
        }
        if let Some(next) = self.command() {
            return next;
        }
        if let Some(next) = self.moved() {
            return next;
        }
        let Some(wanted) = self.sight.target.revision.as_ref() else {
            return self.without_target();
        };
        if let Some(because) = &self.run.paused {
            return self.stay_paused(wanted, because);
        }
        if let Some(next) = self.resumed() {
            return next;
        }
        if let Some(next) = self.rescued() {
            return next;
        }
        if self.sight.source.readiness == Readiness::Missing
            && let Some(next) = self.without_source(wanted)
        {
            return next;
        }
        match self.run.phase {
            Phase::Initializing => self.initialise(),
            Phase::Initialized | Phase::Succeeded | Phase::Failed => self.idle(wanted),
            Phase::Waiting => self.wait(wanted),
            Phase::Progressing | Phase::WaitingPromotion => self.analyse(wanted),
            Phase::Promoting => self.promote(wanted),
            Phase::Finalising => self.finalise(wanted),
            Phase::Terminating | Phase::Terminated => self.stay(),
        }
    }

    /// The same, which says whose answer is waited for where nothing else is said.
    fn explained(&self, next: Next) -> Next {
        let is_asked = !next.asks.is_empty() && next.run == *self.run;
        if !is_asked || !next.holds.is_empty() {
            return next;
        }
        let name = |ask: &Ask| match ask.check {
            Check::Hook(place) => format!("webhook {}", self.name(place)),
            Check::Metric(place) => {
                let measure = self.rules.metrics.get(place);
                let name = measure.map_or("unknown", |measure| measure.name.as_str());
                format!("metric {name}")
            }
        };
        let names: Vec<String> = next.asks.iter().map(name).collect();
        let message = format!("asked, and not answered yet: {}", names.join(", "));
        next.hold(Reason::Asking, message)
    }

    /// Nothing changes.
    pub(super) fn stay(&self) -> Next {
        Next::of(self.run.clone())
    }

    /// The run is changed.
    pub(super) fn change(&self, change: impl FnOnce(&mut Run)) -> Next {
        let mut run = self.run.clone();
        change(&mut run);
        Next::of(run)
    }

    /// Begins a run of this version.
    pub(super) fn start(&self, wanted: &Revision, skip: bool) -> Next {
        let is_again = self.run.target.as_ref() == Some(wanted) && self.run.is_new();
        // After a promotion that failed the target has the traffic. It keeps that while the source could not bear it.
        let is_stranded = self.run.weight > 0 && !self.sight.source.state().is_ready();
        self.change(|run| {
            run.attempt = if is_again { run.attempt + 1 } else { 0 };
            run.target = Some(wanted.clone());
            run.skip = skip;
            if !is_stranded {
                run.weight = 0;
            }
            let before = if is_again { None } else { run.serving.clone() };
            self.begin(run);
            // Where nothing is analysed, it does not matter what its pods were started with.
            run.draining = !skip && self.is_reconfigured(before.as_ref(), wanted);
        })
        .tell(
            "New revision detected! Scaling up the new version",
            Some(Level::Info),
        )
    }

    /// Begins again with another version, in the middle of a run.
    pub(super) fn restart(&self, wanted: &Revision) -> Next {
        let before = self.run.target.as_ref();
        let kept = self.kept();
        self.change(|run| {
            run.attempt = 0;
            run.target = Some(wanted.clone());
            // Whoever wanted no analysis meant the version that they saw.
            (run.weight, run.skip) = (kept, false);
            self.begin(run);
            run.draining = self.is_reconfigured(before, wanted);
        })
        .tell("New revision detected! Restarting analysis", None)
    }

    /// Another version than the one that is tried is wanted.
    pub(super) fn replaced(&self, wanted: &Revision) -> Next {
        if self.run.serving.as_ref() == Some(wanted) {
            self.cancel()
        } else {
            self.restart(wanted)
        }
    }

    /// The version that serves is wanted again: nothing is left to analyse.
    fn cancel(&self) -> Next {
        let kept = self.kept();
        self.change(|run| {
            run.phase = Phase::Finalising;
            run.target.clone_from(&run.serving);
            (run.weight, run.mirrored, run.iterations) = (kept, false, 0);
            (run.skip, run.prepared) = (false, false);
            (run.due, run.held_since, run.unmeasured_since) = (None, None, None);
            (run.step_since, run.free_since) = (Some(self.now), None);
        })
        .tell(
            "The serving version is wanted again; the run is cancelled",
            Some(Level::Info),
        )
    }

    /// Sends the version back. What it has goes to what serves as soon as somebody answers there.
    pub(super) fn fail(&self, why: &str) -> Next {
        let kept = self.kept();
        let end = if kept > 0 {
            "its traffic goes to the serving version when that answers"
        } else {
            "all traffic goes to the serving version"
        };
        self.change(|run| {
            self.end(run, Phase::Failed);
            (run.weight, run.draining) = (kept, true);
        })
        .warn(format!("Rolling back: {why}; {end}"), Some(Level::Error))
    }

    /// What the target keeps of its share when that is to go back: all of it, while it alone answers.
    fn kept(&self) -> u8 {
        if self.is_alone() { self.run.weight } else { 0 }
    }

    /// Whether the target has requests, and nobody but it could answer any.
    pub(super) fn is_alone(&self) -> bool {
        let (source, target) = (self.sight.source.state(), self.sight.target.state());
        self.run.weight > 0 && source.is_down() && !target.is_down()
    }

    /// The promotion failed while only the target is healthy: it keeps, or gets, the traffic.
    pub(super) fn strand(&self, why: &str) -> Next {
        let target = &self.sight.target;
        let can = self.rules.is_live() && target.serves(self.run.target.as_ref());
        let kept = self.kept();
        let text = if can {
            format!("Promotion failed: {why}; all traffic stays with the new version")
        } else {
            format!("Promotion failed: {why}")
        };
        self.change(|run| {
            self.end(run, Phase::Failed);
            run.weight = if can { 100 } else { kept };
            // All requests, and not those alone that match: nobody else answers the others.
            run.matching = false;
            // It was not sent back: what it does not get now it gets when it is ready.
            run.held_since = Some(self.now);
        })
        .warn(text, Some(Level::Error))
    }

    /// Whether a version differs from the one before only in its configs, while pods are there: these were started with those of
    /// before, and nobody would analyse the new ones.
    fn is_reconfigured(&self, before: Option<&Revision>, wanted: &Revision) -> bool {
        let is_same = before.is_some_and(|before| {
            before.template == wanted.template && before.configs != wanted.configs
        });
        is_same && self.sight.target.size > 0
    }

    /// The beginning of every run.
    fn begin(&self, run: &mut Run) {
        run.phase = Phase::Progressing;
        (run.mirrored, run.iterations, run.failed_checks) = (false, 0, 0);
        (run.prepared, run.closing, run.draining) = (false, false, false);
        (run.due, run.unmeasured_since, run.gate) = (None, None, None);
        // Its time begins when it has been scaled up.
        (run.step_since, run.held_since) = (Some(self.now), None);
        run.free_since = None;
        run.matching = self.rules.is_matching();
        run.router = Some(self.rules.router.clone());
        run.places.clone_from(&self.rules.places);
        run.replicas = self.replicas();
    }

    /// How many replicas a run divides by its weight, where their numbers are the weights: as many as before one that has left some
    /// of them to be given back, else as many as serve, or as a person asks for.
    fn replicas(&self) -> Option<u32> {
        let (source, target) = (&self.sight.source, &self.sight.target);
        let asked = || source.size.max(target.size).max(1);
        let is_divided = self.rules.shift == Shift::Replicas;
        is_divided.then(|| self.run.replicas.unwrap_or_else(asked))
    }

    /// Whether none of the target's pods can answer what it gets, while some of the source's could.
    pub(super) fn is_deserted(&self) -> bool {
        let is_seen = self.run.weight > 0 || self.run.mirrored;
        is_seen && self.sight.target.state().is_down() && !self.sight.source.state().is_down()
    }

    /// What the target has goes to the source, and the run stays where it is.
    pub(super) fn unload(&self, why: &str) -> Next {
        self.change(|run| (run.weight, run.mirrored) = (0, false))
            .warn(
                format!("{why}; all traffic goes to the serving version"),
                Some(Level::Warn),
            )
    }

    /// Puts a run to its end. How many checks failed is still to be seen.
    pub(super) fn end(&self, run: &mut Run, phase: Phase) {
        let end = if phase == Phase::Failed {
            "failed"
        } else {
            "succeeded"
        };
        let is_skipped = run.skip || self.rules.skip;
        let analysis = if is_skipped { "skipped" } else { "completed" };
        let way = self.rules.strategy.as_str();
        count(run, &format!("{end}/{way}/{analysis}"));
        run.phase = phase;
        (run.weight, run.mirrored, run.iterations) = (0, false, 0);
        (run.skip, run.prepared, run.gate) = (false, false, None);
        run.closing = self.rules.has(HookType::PostRollout);
        run.due = run.closing.then_some(self.now);
        (run.step_since, run.held_since, run.unmeasured_since) = (None, None, None);
        run.free_since = None;
    }

    /// The workload is gone. In the middle of a run that sends the version back.
    fn without_target(&self) -> Next {
        let why = "the workload does not exist";
        match self.run.phase {
            Phase::Waiting | Phase::Progressing | Phase::WaitingPromotion => self.fail(why),
            Phase::Promoting | Phase::Finalising if !self.is_promoted() => self.fail(why),
            Phase::Promoting | Phase::Finalising if self.run.weight > 0 => {
                self.unload("The workload does not exist")
            }
            _ => self.stay().hold(Reason::TargetNotFound, why),
        }
    }

    /// Whether the source has become what the target is.
    pub(super) fn is_promoted(&self) -> bool {
        is_promoted(self.run, self.sight)
    }

    /// Waits for a side to become ready.
    pub(super) fn hold_for(&self, reason: Reason, readiness: &Readiness) -> Next {
        self.stay().hold(reason, readiness.why())
    }

    /// The same, for as long as progress may take.
    pub(super) fn hold_in_time(&self, reason: Reason, readiness: &Readiness) -> Next {
        self.hold_for(reason, readiness).until(self.deadline())
    }
}
