//! Times that have to pass, although they are kept as moments of a clock that people and time servers set.
//!
//! Planners and webhooks compare them with the moment that it is now. So when the clock is found to have been set, what is
//! kept is moved by as much: nothing lasts longer or shorter for it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use slipway_kernel::fact::Facts;
use tokio::time::Instant;

use super::State;

/// Less than this is how clocks run, and no setting of them.
const STEP: Duration = Duration::from_secs(1);

/// What the clock last showed, and when that was.
#[derive(Debug, Default)]
pub(super) struct Clock(Option<(Instant, Timestamp)>);

impl State {
    /// The clock shows this now. Whoever keeps a moment, or compares with one, says so first.
    pub(crate) fn keep_time(&mut self, now: Timestamp) {
        let at = Instant::now();
        let Some((before, shown)) = self.clock.0.replace((at, now)) else {
            return;
        };
        let passed = at.saturating_duration_since(before);
        let Ok(expected) = shown.checked_add(passed) else {
            return;
        };
        let by = now.duration_since(expected);
        if by.unsigned_abs() < STEP {
            return;
        }
        tracing::warn!(%by, "the clock was set; what waits is waited for as long as before");
        let members = self.members.values_mut();
        for known in std::iter::once(&mut self.home).chain(members) {
            shift(&mut known.facts, by);
            known.answers.shift(by);
        }
    }
}

/// Moves what is kept of one cluster.
fn shift(facts: &mut Facts, by: SignedDuration) {
    let refused = facts.refusals.values_mut();
    let refused = refused.chain(facts.refused_parts.values_mut());
    let retries = refused.map(|one| &mut one.retry_at);
    let all = retries.chain(facts.deletions.values_mut());
    for moment in all {
        // Without an end is without an end.
        if *moment != Timestamp::MAX {
            *moment = moment.checked_add(by).unwrap_or(*moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use slipway_kernel::fact::{Answer, QuestionId};
    use slipway_kernel::identity::ClusterId;

    use super::*;

    /// Which of two answers is the newer one does not hang on the clock, nor how old one is.
    #[tokio::test(start_paused = true)]
    async fn answers_stay_as_old_as_they_are_however_the_clock_is_set() {
        for hours in [-1, 1] {
            let mut state = State::default();
            let then = Timestamp::UNIX_EPOCH;
            state.keep_time(then);
            let id = QuestionId {
                controller: "zones",
                uid: "pod".to_owned(),
                purpose: slipway_api::purpose::runtime::READ,
                attempt: 0,
                due: then,
            };
            let key = slipway_kernel::Key {
                cluster: ClusterId::local(),
                controller: "zones",
                namespace: "default".to_owned(),
                name: "group".to_owned(),
            };
            let kept = &mut state.home.answers;
            kept.put(&key, id.clone(), then, Answer::timeout());
            tokio::time::advance(Duration::from_secs(10)).await;
            let now = then + SignedDuration::from_secs(10) + SignedDuration::from_hours(hours);
            state.keep_time(now);
            let at = state.home.answers.of(&key).get(&id).map(|(at, _)| *at);
            assert_eq!(at, Some(now - SignedDuration::from_secs(10)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_lasts_as_long_however_the_clock_is_set() {
        for hours in [-1, 1] {
            let mut state = State::default();
            let then = Timestamp::UNIX_EPOCH;
            for uid in ["answered", "open"] {
                let (home, seen) = (ClusterId::local(), state.home.holds);
                assert!(state.hold_deletion(&home, seen, uid, then).is_some());
            }
            state.release_deletion(&ClusterId::local(), "answered", Some(then));
            tokio::time::advance(Duration::from_secs(10)).await;
            let now = then + SignedDuration::from_secs(10) + SignedDuration::from_hours(hours);
            state.keep_time(now);
            let until = |state: &State, uid: &str| state.home.facts.deletions.get(uid).copied();
            let left = SignedDuration::from_secs(50);
            assert_eq!(until(&state, "answered"), Some(now + left));
            assert_eq!(until(&state, "open"), Some(Timestamp::MAX));
            state.keep_time(now);
            assert_eq!(until(&state, "answered"), Some(now + left), "moved once");
        }
    }
}
