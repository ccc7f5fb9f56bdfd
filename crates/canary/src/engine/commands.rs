//! What people ask for in the middle of things. Each is followed once, in whatever phase it comes.

use slipway_api::canary::Phase;

use super::advance::{Level, Look, Next};
use super::rules::Finish;

/// What a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Send the version back.
    Abort,
    /// Stay where it is.
    Pause,
    /// Let the version take over without further analysis.
    Promote,
    /// Go on.
    Resume,
    /// Try the version that failed again.
    Retry,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Abort,
        Self::Pause,
        Self::Promote,
        Self::Resume,
        Self::Retry,
    ];

    /// As the annotation spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Pause => "pause",
            Self::Promote => "promote",
            Self::Resume => "resume",
            Self::Retry => "retry",
        }
    }

    /// The verb of this name.
    pub fn of(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|verb| verb.as_str() == name)
    }
}

/// Something that a person asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What; none if it is not understood.
    pub verb: Option<Verb>,
    /// Tells it from others.
    pub id: String,
    /// Who asked, and why; what is not understood, if it is not.
    pub because: String,
}

impl Look<'_> {
    /// Follows a command that was not followed yet.
    pub(super) fn command(&self) -> Option<Next> {
        let command = self.sight.command.as_ref()?;
        if self.run.command.as_deref() == Some(command.id.as_str()) {
            return None;
        }
        let mut next = if let Some(verb) = command.verb {
            self.followed(verb, &command.because)
        } else {
            let why = &command.because;
            let text = format!("A command is not understood, and not followed: {why}");
            self.stay().warn(text, None)
        };
        next.run.command = Some(command.id.clone());
        Some(next)
    }

    fn followed(&self, verb: Verb, because: &str) -> Next {
        let followed = match verb {
            Verb::Abort => self.abort(because),
            Verb::Pause => self.pause(because),
            Verb::Promote => self.promote_now(because),
            Verb::Resume => self.resume(because),
            Verb::Retry => self.retry(because),
        };
        let Some(mut next) = followed else {
            let (verb, phase) = (verb.as_str(), self.run.phase.as_str());
            let text = format!("There is nothing to {verb} in phase {phase}");
            return self.stay().warn(text, None);
        };
        if verb != Verb::Pause {
            next.run.paused = None;
        }
        next
    }

    fn pause(&self, because: &str) -> Option<Next> {
        let is_new = self.run.paused.is_none();
        is_new.then(|| {
            self.change(|run| run.paused = Some(because.to_owned()))
                .tell(format!("Paused {because}"), None)
        })
    }

    fn resume(&self, because: &str) -> Option<Next> {
        self.run.paused.as_ref()?;
        Some(self.stay().tell(format!("Resumed {because}"), None))
    }

    fn abort(&self, because: &str) -> Option<Next> {
        let is_late = self.rules.finish == Finish::OntoTarget;
        let can = match self.run.phase {
            Phase::Waiting | Phase::Progressing | Phase::WaitingPromotion | Phase::Promoting => {
                true
            }
            Phase::Finalising => self.run.is_new() && !is_late,
            _ => false,
        };
        can.then(|| self.fail(&format!("aborted {because}")))
    }

    fn promote_now(&self, because: &str) -> Option<Next> {
        let text = format!("Promoting without further analysis {because}");
        let wanted = self.sight.target.revision.as_ref();
        let next = match self.run.phase {
            Phase::Progressing | Phase::WaitingPromotion => {
                self.change(|run| (run.skip, run.phase) = (true, Phase::Progressing))
            }
            Phase::Initialized | Phase::Waiting | Phase::Succeeded | Phase::Failed => {
                let wanted = wanted.filter(|wanted| self.run.serving.as_ref() != Some(*wanted))?;
                self.start(wanted, true)
            }
            _ => return None,
        };
        Some(next.tell(text, Some(Level::Info)))
    }

    /// It was the promotion that failed, and only the target serves: it keeps the traffic while that is tried again.
    fn promote_again(&self) -> Next {
        self.change(|run| {
            run.phase = Phase::Promoting;
            run.attempt += 1;
            (run.closing, run.due) = (false, None);
            (run.step_since, run.held_since) = (Some(self.now), None);
        })
    }

    fn retry(&self, because: &str) -> Option<Next> {
        let wanted = self.sight.target.revision.as_ref()?;
        let is_failed = self.run.phase == Phase::Failed && self.run.is_new();
        let is_same = self.run.target.as_ref() == Some(wanted);
        (is_failed && is_same).then(|| {
            let is_promotion = !self.run.draining && self.rules.finish == Finish::IntoSource;
            let is_stranded = self.run.weight > 0 && is_promotion;
            let next = if is_stranded {
                self.promote_again()
            } else {
                self.start(wanted, false)
            };
            next.tell(format!("Trying again {because}"), None)
        })
    }
}
