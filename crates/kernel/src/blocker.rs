//! Why nothing happens.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use slipway_api::waiting::{MAX_WAITING, WaitingFor};

use crate::identity::ObjectRef;
use crate::text::shortened;

/// The longest sentence that is shown: what somebody wrote may be part of it, and a status is no place for all of that.
const LONGEST: usize = 1_024;

/// One reason why nothing happens, and who can change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// A word that programs can match on.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// What is waited for.
    pub object: ObjectRef,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself, if it does.
    pub until: Option<Timestamp>,
    /// Who or what can end it before.
    pub unblock: String,
}

impl Blocker {
    /// As an object's status shows it.
    pub fn waiting(&self) -> WaitingFor {
        WaitingFor {
            reason: self.reason.to_owned(),
            message: shortened(&self.message, LONGEST),
            object: self.object.waiting(),
            since: Time(self.since),
            until: self.until.map(Time),
            unblock: shortened(&self.unblock, LONGEST),
        }
    }
}

/// `status.waitingFor`: oldest first, few, in a stable order; what was already waited for keeps its `since`.
pub fn waiting_for(blockers: &[Blocker], before: &[WaitingFor]) -> Vec<WaitingFor> {
    let mut all: Vec<WaitingFor> = blockers
        .iter()
        .map(|blocker| {
            let mut waiting = blocker.waiting();
            let known = before
                .iter()
                .find(|w| w.reason == waiting.reason && w.object == waiting.object);
            if let Some(known) = known
                && known.since.0 < waiting.since.0
            {
                waiting.since = known.since.clone();
            }
            waiting
        })
        .collect();
    all.sort_by(|a, b| (a.since.0, &a.reason, &a.object).cmp(&(b.since.0, &b.reason, &b.object)));
    let mut told = BTreeSet::new();
    all.retain(|w| told.insert((w.reason.clone(), w.object.clone())));
    all.truncate(MAX_WAITING);
    all
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{Blocker, waiting_for};
    use crate::identity::{ObjectRef, kinds};

    fn blocker(reason: &'static str, name: &str, since: i64) -> Blocker {
        Blocker {
            reason,
            message: format!("{name} waits"),
            object: ObjectRef::local(kinds::DEPLOYMENT, "d", name),
            since: Timestamp::from_second(since).unwrap_or_default(),
            until: None,
            unblock: "time".to_owned(),
        }
    }

    fn shown(blockers: &[Blocker]) -> Vec<(String, i64)> {
        let all = waiting_for(blockers, &[]);
        all.into_iter()
            .map(|w| (w.object.name, w.since.0.as_second()))
            .collect()
    }

    #[test]
    fn oldest_first_and_each_once_however_they_come() {
        let mut all = vec![
            blocker("A", "x", 30),
            blocker("A", "y", 20),
            blocker("A", "x", 10),
        ];
        let expected = [("x".to_owned(), 10), ("y".to_owned(), 20)];
        assert_eq!(shown(&all), expected);
        all.reverse();
        assert_eq!(shown(&all), expected);
    }

    #[test]
    fn few_are_shown() {
        let all: Vec<Blocker> = (0..20).map(|n| blocker("A", &n.to_string(), n)).collect();
        assert_eq!(shown(&all).len(), 8);
        assert_eq!(shown(&all).first(), Some(&("0".to_owned(), 0)));
    }

    #[test]
    fn a_sentence_is_no_longer_than_people_read() {
        let long = Blocker {
            message: "a".repeat(10_000),
            ..blocker("A", "x", 10)
        };
        let shown = waiting_for(&[long], &[]);
        assert_eq!(shown[0].message.chars().count(), 1_025);
    }

    #[test]
    fn what_was_waited_for_before_keeps_its_time() {
        let before = waiting_for(&[blocker("A", "x", 10)], &[]);
        let now = waiting_for(&[blocker("A", "x", 50), blocker("B", "x", 40)], &before);
        let since: Vec<i64> = now.iter().map(|w| w.since.0.as_second()).collect();
        assert_eq!(since, [10, 40]);
        assert_eq!(waiting_for(&[blocker("A", "x", 90)], &before), before);
    }
}
