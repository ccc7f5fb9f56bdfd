//! Where people ask that nothing is done: `spec.suspend`, and the command `pause`.
//!
//! Time that passes meanwhile does not count: what is waited for has as long as it had before.

use std::time::Duration;

use slipway_api::canary::Phase;
use slipway_kernel::instant::later;

use super::advance::{Look, Next};
use super::rules::Finish;
use super::run::Revision;
use super::sight::Weights;
use crate::reasons::Reason;

impl Look<'_> {
    /// Remembers since when nothing is done; none if that is remembered, or nothing goes on that would have to be.
    pub(super) fn stopped(&self) -> Option<Next> {
        let is_known = self.run.stopped_since.is_some();
        let is_due = !is_known && self.run.phase.is_running();
        is_due.then(|| self.change(|run| run.stopped_since = Some(self.now)))
    }

    /// Goes on: what is waited for is waited for as long as before.
    pub(super) fn resumed(&self) -> Option<Next> {
        let since = self.run.stopped_since?;
        let passed = Duration::try_from(self.now.duration_since(since)).unwrap_or_default();
        Some(self.change(|run| {
            run.stopped_since = None;
            let marks = [
                &mut run.step_since,
                &mut run.held_since,
                &mut run.unmeasured_since,
            ];
            for mark in marks {
                *mark = mark.and_then(|at| later(at, passed));
            }
        }))
    }

    /// A person has paused the run. It stays where it is; but nobody is sent to where nobody answers, or to what was not
    /// analysed.
    pub(super) fn stay_paused(&self, wanted: &Revision, because: &str) -> Next {
        if self.rules.finish == Finish::IntoSource && self.is_deserted() {
            return self.unload("The new version went down");
        }
        if let Some(next) = self.rescued() {
            return next;
        }
        let has_traffic = self.run.weights() != Weights::SOURCE;
        if has_traffic && self.run.target.as_ref() != Some(wanted) {
            match self.run.phase {
                Phase::Progressing | Phase::WaitingPromotion => return self.replaced(wanted),
                Phase::Promoting if self.rules.finish == Finish::IntoSource && !self.is_alone() => {
                    return self.unload("New revision detected");
                }
                _ => {}
            }
        }
        self.stopped().unwrap_or_else(|| {
            self.stay()
                .hold(Reason::Paused, format!("paused {because}"))
        })
    }
}
