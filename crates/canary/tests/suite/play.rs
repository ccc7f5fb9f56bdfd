//! A play of the engine: a world of plain values in which deeds are done, questions answered, and time passes to when the
//! engine asked to be woken. Every law that can be seen from outside is checked after every look.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use slipway_api::canary::{HookType, Phase};
use slipway_canary::engine::{
    Answer, Answers, Ask, Check, Command, Deed, Finish, Hook, Level, Measure, Next, Readiness,
    Reading, Revision, Routing, Rules, Run, Shift, Side, Sight, Strategy, Verb, Weights, advance,
    deeds,
};
use slipway_canary::reasons::Reason;

/// A version of this name.
pub(crate) fn version(name: &str) -> Revision {
    Revision {
        template: name.to_owned(),
        configs: None,
    }
}

/// Rules of a canary by these weights, one check every ten seconds.
pub(crate) fn by_weights(steps: &[u8]) -> Rules {
    Rules {
        interval: Duration::from_secs(10),
        threshold: 3,
        deadline: Duration::from_mins(1),
        strategy: Strategy::Weights(steps.to_vec()),
        ..Rules::default()
    }
}

/// Rules with so many iterations.
pub(crate) fn by_iterations(iterations: u32) -> Rules {
    Rules {
        strategy: Strategy::Switch(iterations),
        ..by_weights(&[100])
    }
}

/// A webhook, called like its type.
pub(crate) fn hook(kind: HookType) -> Hook {
    Hook {
        name: kind.as_str().to_owned(),
        kind,
        mute: false,
    }
}

/// A measure that is good up to 1.
pub(crate) fn measure(name: &str) -> Measure {
    let mut measure = Measure {
        name: name.to_owned(),
        ..Measure::default()
    };
    measure.good.max = Some(1.0);
    measure
}

/// How questions are answered.
pub(crate) type Oracle = Box<dyn Fn(&Rules, Ask) -> Option<Answer>>;

pub(crate) struct Play {
    pub(crate) rules: Rules,
    pub(crate) run: Run,
    pub(crate) sight: Sight,
    pub(crate) now: Timestamp,
    /// How questions are answered; none leaves them open.
    pub(crate) oracle: Oracle,
    /// What was answered.
    pub(crate) answers: Answers,
    /// Whether deeds are done at all.
    pub(crate) obeys: bool,
    /// Whether sides become ready as soon as they are asked for.
    pub(crate) heals: bool,
    /// Whether the source's pods go before those of another template come, as with the strategy `Recreate`.
    pub(crate) recreates: bool,
    /// Each (phase, weight, mirrored) that was written.
    pub(crate) story: Vec<(Phase, u8, bool)>,
    /// What was told.
    pub(crate) told: Vec<String>,
    /// What was told loudly.
    pub(crate) alerts: Vec<String>,
    /// What of that was told as an error.
    pub(crate) errors: Vec<String>,
    /// Whom was asked, and when.
    pub(crate) asked: Vec<Ask>,
    /// All that was done.
    pub(crate) done: Vec<Deed>,
    /// Why nothing went on at the last look.
    pub(crate) holds: Vec<Reason>,
    /// How often the run was written.
    pub(crate) writes: usize,
}

/// Everybody agrees, except that nobody wants the version to go back.
#[expect(
    clippy::unnecessary_wraps,
    reason = "others leave questions open; this one is in their place"
)]
pub(crate) fn fine(rules: &Rules, ask: Ask) -> Option<Answer> {
    let is_rollback = |place: usize| rules.hooks[place].kind == HookType::Rollback;
    Some(match ask.check {
        Check::Hook(place) if is_rollback(place) => Answer::No("all is well".to_owned()),
        Check::Hook(_) => Answer::Yes,
        Check::Metric(_) => Answer::Value(Reading {
            value: 0.5,
            ..Reading::default()
        }),
    })
}

/// Nobody is led to where no pod is while the version that takes over, or did not quite, is ready to answer.
pub(crate) fn check_answered(rules: &Rules, run: &Run, sight: &Sight, is_sent_back: bool) {
    let is_meant = match run.phase {
        Phase::Promoting | Phase::Finalising => true,
        Phase::Failed => !run.draining && !is_sent_back,
        _ => false,
    };
    let can = rules.is_live() && rules.finish == Finish::IntoSource && !rules.suspend;
    let is_ready = sight.target.serves(run.target.as_ref());
    let is_lost = (run.weight < 100 || run.matching) && sight.source.state().is_down();
    assert!(
        !(is_meant && can && is_ready && is_lost),
        "nobody answers, and the new version could: {run:?}"
    );
}

impl Play {
    /// A Canary that serves v1 and has nothing to do.
    pub(crate) fn new(rules: Rules) -> Self {
        let side = |size| Side {
            revision: Some(version("v1")),
            attempt: None,
            size,
            full: 3,
            most: None,
            readiness: Readiness::Ready,
        };
        Self {
            rules,
            run: Run {
                phase: Phase::Initialized,
                serving: Some(version("v1")),
                target: Some(version("v1")),
                ..Run::default()
            },
            sight: Sight {
                source: side(3),
                target: side(0),
                routing: Routing {
                    weights: Some(Weights::SOURCE),
                    pending: None,
                },
                command: None,
                refused_since: None,
            },
            now: Timestamp::from_second(1_000_000).unwrap(),
            oracle: Box::new(fine),
            answers: BTreeMap::new(),
            obeys: true,
            heals: true,
            recreates: false,
            story: Vec::new(),
            told: Vec::new(),
            alerts: Vec::new(),
            errors: Vec::new(),
            asked: Vec::new(),
            done: Vec::new(),
            holds: Vec::new(),
            writes: 0,
        }
    }

    /// Somebody pushes a version.
    pub(crate) fn push(&mut self, name: &str) -> &mut Self {
        self.sight.target.revision = Some(version(name));
        if self.sight.target.size > 0 && !self.heals {
            self.sight.target.readiness = Readiness::Partly("rolling".to_owned());
        }
        self
    }

    pub(crate) fn command(&mut self, verb: Verb, id: &str) -> &mut Self {
        self.sight.command = Some(Command {
            verb: Some(verb),
            id: id.to_owned(),
            because: "by ann".to_owned(),
        });
        self
    }

    pub(crate) fn answer(&mut self, oracle: impl Fn(&Rules, Ask) -> Option<Answer> + 'static) {
        self.oracle = Box::new(oracle);
        self.answers.clear();
    }

    /// One look; gives whether something came of it.
    pub(crate) fn look(&mut self) -> (bool, Option<Timestamp>) {
        let next = advance(&self.rules, &self.run, &self.sight, &self.answers, self.now);
        self.holds = next.holds.iter().map(|hold| hold.reason).collect();
        if next.run != self.run {
            self.write(next);
            return (true, None);
        }
        check_answered(&self.rules, &self.run, &self.sight, self.is_sent_back());
        let heard = self.hear(&next.asks);
        let planned = deeds(&self.rules, &self.run, &self.sight, self.now);
        self.holds
            .extend(planned.holds.iter().map(|hold| hold.reason));
        let texts = planned.news.iter().map(|news| news.text.clone());
        self.told.extend(texts);
        let mut is_done = false;
        if self.obeys {
            for deed in planned.list {
                self.obey(&deed);
                self.done.push(deed);
                is_done = true;
            }
        }
        (is_done || heard, next.wake)
    }

    fn write(&mut self, next: Next) {
        self.check_transition(&next.run);
        let is_promotion = next.run.phase == Phase::Promoting && self.run.phase != Phase::Promoting;
        if is_promotion && !self.rules.skip && !self.run.skip {
            let is_bad = next
                .checks
                .iter()
                .any(|check| check.verdict.as_str() == "Failed");
            assert!(!is_bad, "promoted with a failing check: {:?}", next.checks);
        }
        for news in &next.news {
            self.told.push(news.text.clone());
            if news.alert.is_some() {
                self.alerts.push(news.text.clone());
            }
            if news.alert == Some(Level::Error) {
                self.errors.push(news.text.clone());
            }
        }
        self.run = next.run;
        self.writes += 1;
        let seen = (self.run.phase, self.run.weight, self.run.mirrored);
        if self.story.last() != Some(&seen) {
            self.story.push(seen);
        }
    }

    /// What no transition may do.
    fn check_transition(&self, next: &Run) {
        assert!(next.weight <= 100);
        let (source, target) = (self.sight.source.state(), self.sight.target.state());
        let is_alone = source.is_down() && !target.is_down();
        assert!(
            next.weight >= self.run.weight || !is_alone,
            "taken from who alone answers: {:?} to {next:?}",
            self.run
        );
        let grows = next.weights().exposes_more_than(self.run.weights());
        let is_strand = next.phase == Phase::Failed;
        if grows {
            let target = &self.sight.target;
            assert!(
                target.serves(next.target.as_ref()),
                "more for an unready version: {:?} to {next:?}",
                self.run
            );
            assert!(is_strand || next.phase != Phase::Initializing);
        }
    }

    /// Whether the last version that failed did so by itself, and not in its promotion.
    fn is_sent_back(&self) -> bool {
        let mut ends = self.told.iter().rev();
        let is_end = |text: &&String| {
            text.starts_with("Rolling back") || text.starts_with("Promotion failed")
        };
        let last = ends.find(is_end);
        last.is_some_and(|text| text.starts_with("Rolling back"))
    }

    fn hear(&mut self, asks: &[Ask]) -> bool {
        let mut heard = false;
        for ask in asks {
            if let Some(answer) = (self.oracle)(&self.rules, *ask) {
                self.asked.push(*ask);
                assert!(
                    self.answers.insert(*ask, answer).is_none(),
                    "asked twice: {ask:?}"
                );
                heard = true;
            }
        }
        heard
    }

    fn obey(&mut self, deed: &Deed) {
        match deed {
            Deed::Route(weights) => self.route(*weights),
            Deed::SizeSource(size) => {
                self.check_source_size(*size);
                self.sight.source.size = *size;
            }
            Deed::SizeTarget(size) => {
                self.check_target_size(*size);
                self.sight.target.size = *size;
                self.sight.target.readiness = match size {
                    0 => Readiness::Ready,
                    _ if self.heals => Readiness::Ready,
                    _ => Readiness::Down("starting".to_owned()),
                };
            }
            Deed::Template(revision) => {
                self.sight.source.revision = Some(revision.clone());
                self.sight.source.attempt = Some(self.run.attempt);
                if self.sight.source.readiness == Readiness::Missing {
                    self.sight.source.size = self.sight.source.full;
                }
                self.sight.source.readiness = if self.heals {
                    Readiness::Ready
                } else if self.recreates {
                    Readiness::Down("recreated".to_owned())
                } else {
                    Readiness::Partly("rolling".to_owned())
                };
            }
        }
    }

    fn route(&mut self, weights: Weights) {
        let before = self.sight.routing.weights.unwrap_or_default();
        assert_eq!(weights.source() + weights.target, 100);
        if weights.exposes_more_than(before) {
            let target = &self.sight.target;
            assert!(target.size > 0 && target.readiness.is_ready());
            assert_eq!(target.revision, self.run.target);
        }
        self.sight.routing.weights = Some(weights);
    }

    fn check_target_size(&self, size: u32) {
        if size < self.sight.target.size && size > 0 {
            // Its share became smaller, where replicas are the shares.
            assert_eq!(self.rules.shift, Shift::Replicas);
            assert!(self.sight.routing.is_at(self.run.weights()));
            assert!(self.sight.source.state().is_ready());
            return;
        }
        if size < self.sight.target.size && self.rules.finish == Finish::IntoSource {
            assert!(
                self.sight.routing.is_at(Weights::SOURCE),
                "the target is scaled down while it has traffic"
            );
            let is_end = self.run.phase == Phase::Finalising;
            let is_down = self.sight.source.state().is_down();
            assert!(!is_end || !is_down, "who alone has pods is put away");
        }
    }

    fn check_source_size(&self, size: u32) {
        if size >= self.sight.source.size {
            return;
        }
        let target = &self.sight.target;
        assert!(target.readiness.is_ready(), "the source shrinks too early");
        if self.rules.shift == Shift::Replicas {
            let is_led = self.sight.routing.is_at(self.run.weights());
            assert!(is_led, "the source shrinks before the target is led to");
        } else {
            let is_moved = self.sight.routing.is_at(Weights::to_target(100));
            assert!(is_moved, "the source shrinks while it has traffic");
        }
    }

    /// Looks until nothing comes of it any more at this moment; gives when to look again.
    pub(crate) fn settle(&mut self) -> Option<Timestamp> {
        for _ in 0..200 {
            if let (false, wake) = self.look() {
                return wake;
            }
        }
        panic!("it does not settle: {:?}", self.run);
    }

    /// Lets time pass to the next moment that the engine asked for; gives whether there is one.
    pub(crate) fn pass(&mut self) -> bool {
        let Some(wake) = self.settle() else {
            return false;
        };
        assert!(wake > self.now, "woken for the past: {:?}", self.run);
        self.now = wake;
        true
    }

    /// Lets the play go on to its end.
    pub(crate) fn finish(&mut self) -> Phase {
        for _ in 0..500 {
            if !self.pass() {
                break;
            }
        }
        self.run.phase
    }

    /// Lets so many moments pass.
    pub(crate) fn ticks(&mut self, number: usize) -> &mut Self {
        for _ in 0..number {
            self.pass();
        }
        self.settle();
        self
    }

    /// Time passes, whatever the engine asked for.
    pub(crate) fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self.settle();
        self
    }

    /// The weights that were written, without repetition.
    pub(crate) fn weights(&self) -> Vec<u8> {
        let mut all: Vec<u8> = self.story.iter().map(|(_, weight, _)| *weight).collect();
        all.dedup();
        all
    }

    /// The phases that were written, without repetition.
    pub(crate) fn phases(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = self
            .story
            .iter()
            .map(|(phase, ..)| phase.as_str())
            .collect();
        all.dedup();
        all
    }

    /// How often webhooks of a type were asked.
    pub(crate) fn calls(&self, kind: HookType) -> usize {
        let is_meant = |ask: &&Ask| match ask.check {
            Check::Hook(place) => self.rules.hooks[place].kind == kind,
            Check::Metric(_) => false,
        };
        self.asked.iter().filter(is_meant).count()
    }
}
