//! What people ask for in the middle of things. Each is followed once, in whatever phase it comes.

use slipway_api::canary::Phase;

use super::advance::{Level, Look, Next};
use super::rules::Finish;

/// What a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Send the version back.
    Abort,
    /// Let the version take over without further analysis.
    Promote,
    /// Try the version that failed again.
    Retry,
}

impl Verb {
    /// As the annotation spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Promote => "promote",
            Self::Retry => "retry",
        }
    }

    /// The verb of this name.
    pub fn of(name: &str) -> Option<Self> {
        let mut all = [Self::Abort, Self::Promote, Self::Retry].into_iter();
        all.find(|verb| verb.as_str() == name)
    }
}

/// Something that a person asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What.
    pub verb: Verb,
    /// Tells it from others.
    pub id: String,
    /// Who asked, and why.
    pub because: String,
}

impl Look<'_> {
    /// Follows a command that was not followed yet.
    pub(super) fn command(&self) -> Option<Next> {
        let command = self.sight.command.as_ref()?;
        if self.run.command.as_deref() == Some(command.id.as_str()) {
            return None;
        }
        let followed = match command.verb {
            Verb::Abort => self.abort(&command.because),
            Verb::Promote => self.promote_now(&command.because),
            Verb::Retry => self.retry(&command.because),
        };
        let mut next = followed.unwrap_or_else(|| {
            let (verb, phase) = (command.verb.as_str(), self.run.phase.as_str());
            self.stay()
                .warn(format!("There is nothing to {verb} in phase {phase}"), None)
        });
        next.run.command = Some(command.id.clone());
        Some(next)
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
            (run.step_since, run.held_since) = (Some(self.now), Some(self.now));
        })
    }

    fn retry(&self, because: &str) -> Option<Next> {
        let wanted = self.sight.target.revision.as_ref()?;
        let is_failed = self.run.phase == Phase::Failed && self.run.is_new();
        let is_same = self.run.target.as_ref() == Some(wanted);
        (is_failed && is_same).then(|| {
            let is_stranded = self.run.weight > 0 && self.rules.finish == Finish::IntoSource;
            let next = if is_stranded {
                self.promote_again()
            } else {
                self.start(wanted, false)
            };
            next.tell(format!("Trying again {because}"), None)
        })
    }
}
