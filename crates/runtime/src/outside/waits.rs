//! Who is left alone, and for how long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Backoff;

/// How many targets are remembered; of more, those are forgotten that may be asked again soonest.
const MOST: usize = 1_024;

/// Targets that could not be reached. A value: time is given to it.
#[derive(Debug)]
pub(super) struct Waits {
    backoff: Backoff,
    by_target: BTreeMap<String, Wait>,
    by_end: BTreeSet<(Instant, String)>,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    failures: u32,
    until: Instant,
}

impl Waits {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            by_target: BTreeMap::new(),
            by_end: BTreeSet::new(),
        }
    }

    /// How often in a row a target has failed, and for how long it is left alone yet.
    pub(super) fn left(&self, target: &str, now: Instant) -> Option<(u32, Duration)> {
        let wait = self.by_target.get(target)?;
        let left = wait.until.saturating_duration_since(now);
        (!left.is_zero()).then_some((wait.failures, left))
    }

    /// A target has failed. Those who had asked it before it was left alone count once together.
    pub(super) fn failed(&mut self, target: &str, now: Instant) {
        if self.left(target, now).is_some() {
            return;
        }
        let before = self.forget(target);
        let failures = before.map_or(1, |wait| wait.failures.saturating_add(1));
        let until = crate::environment::after(now, self.backoff.after(failures));
        let wait = Wait { failures, until };
        self.by_target.insert(target.to_owned(), wait);
        self.by_end.insert((until, target.to_owned()));
        if self.by_target.len() > MOST
            && let Some((_, soonest)) = self.by_end.pop_first()
        {
            self.by_target.remove(&soonest);
        }
    }

    /// A target has answered.
    pub(super) fn succeeded(&mut self, target: &str) {
        self.forget(target);
    }

    fn forget(&mut self, target: &str) -> Option<Wait> {
        let wait = self.by_target.remove(target)?;
        self.by_end.remove(&(wait.until, target.to_owned()));
        Some(wait)
    }
}

/// What is said of somebody who is left alone.
pub(super) fn left_alone((failures, wait): (u32, Duration)) -> String {
    format!("it is left alone for another {wait:.1?} after {failures} failures in a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_secs(1),
        most: Duration::from_secs(4),
    };

    #[tokio::test(start_paused = true)]
    async fn a_target_that_fails_is_left_alone_ever_longer_until_it_answers() {
        let (mut waits, mut now) = (Waits::new(BACKOFF), Instant::now());
        for (failures, seconds) in [(1, 1), (2, 2), (3, 4), (4, 4)] {
            assert_eq!(waits.left("a", now), None);
            waits.failed("a", now);
            let left = Duration::from_secs(seconds);
            assert_eq!(waits.left("a", now), Some((failures, left)));
            // Of many who had asked together, the first counts.
            waits.failed("a", now);
            assert_eq!(waits.left("a", now), Some((failures, left)));
            assert_eq!(waits.left("b", now), None);
            now += left;
        }
        waits.succeeded("a");
        waits.failed("a", now);
        assert_eq!(waits.left("a", now), Some((1, Duration::from_secs(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn not_all_targets_of_the_world_are_remembered() {
        let (mut waits, now) = (Waits::new(BACKOFF), Instant::now());
        for n in 0..5_000 {
            waits.failed(&n.to_string(), now);
        }
        assert_eq!((waits.by_target.len(), waits.by_end.len()), (MOST, MOST));
    }
}
