//! The answers of a cluster's keys: they live with their key, and go with it.
//!
//! A key keeps what its last plan says that the next one needs, and no more than so many answers and bytes: what a key is
//! told, however much it asks, costs no other key anything.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use slipway_kernel::fact::{Answer, Answers, QuestionId};
use slipway_kernel::identity::Key;
use slipway_kernel::question::Failure;

/// How many answers a key keeps: some for each pod of the largest group. Of more, the oldest goes.
pub(crate) const MAX_ANSWERS: usize = 65_536;
/// How many bytes: what does not fit any more is an answer that was too large.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What one key keeps.
#[derive(Debug, Default)]
struct Own {
    answers: Answers,
    bytes: usize,
}

/// The answers of all keys of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Kept(BTreeMap<Key, Own>);

impl Kept {
    /// The answers of a key, without copying them.
    pub(crate) fn of(&self, key: &Key) -> Answers {
        let own = self.0.get(key);
        own.map(|own| own.answers.clone()).unwrap_or_default()
    }

    /// A question of a key has been answered.
    pub(crate) fn put(&mut self, key: &Key, id: QuestionId, at: Timestamp, answer: Answer) {
        self.0.entry(key.clone()).or_default().put(id, at, answer);
    }

    /// Forgets what a key has no use for any more.
    pub(crate) fn retain(&mut self, key: &Key, keeps: &BTreeSet<QuestionId>) {
        let Some(own) = self.0.get_mut(key) else {
            return;
        };
        if own.answers.keys().any(|id| !keeps.contains(id)) {
            own.answers.retain(|id, _| keeps.contains(id));
            own.bytes = own.answers.iter().map(size).sum();
        }
        if own.answers.is_empty() {
            self.0.remove(key);
        }
    }

    /// Forgets all answers.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many answers are kept.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|own| own.answers.len()).sum()
    }

    /// All came so much later, or earlier.
    pub(super) fn shift(&mut self, by: SignedDuration) {
        for own in self.0.values_mut() {
            for (at, _) in own.answers.values_mut() {
                *at = at.checked_add(by).unwrap_or(*at);
            }
        }
    }
}

impl Own {
    fn put(&mut self, id: QuestionId, at: Timestamp, mut answer: Answer) {
        self.take(&id);
        if self.bytes.saturating_add(answer.size()) > MAX_BYTES {
            answer = Answer::Failed(Failure::TooLarge {
                what: "all that is kept for its key",
                most: MAX_BYTES,
            });
        }
        if self.answers.len() >= MAX_ANSWERS {
            let oldest = self.answers.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.take(&oldest);
            }
        }
        let entry = (at, answer);
        self.bytes = self.bytes.saturating_add(size((&id, &entry)));
        self.answers.insert(id, entry);
    }

    fn take(&mut self, id: &QuestionId) {
        if !self.answers.contains_key(id) {
            return;
        }
        if let Some(entry) = self.answers.remove(id) {
            self.bytes = self.bytes.saturating_sub(size((id, &entry)));
        }
    }
}

/// What one answer takes, about.
fn size((id, (_, answer)): (&QuestionId, &(Timestamp, Answer))) -> usize {
    id.uid.len() + size_of::<(QuestionId, Timestamp)>() + answer.size()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use slipway_kernel::Purpose;
    use slipway_kernel::identity::ClusterId;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            cluster: ClusterId::local(),
            controller: "toy",
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn id(attempt: u32) -> QuestionId {
        QuestionId {
            controller: "toy",
            uid: "u".to_owned(),
            purpose: Purpose::new("ask"),
            attempt,
            due: Timestamp::UNIX_EPOCH,
        }
    }

    fn said(bytes: usize) -> Answer {
        Answer::Said {
            code: 200,
            body: "x".repeat(bytes),
        }
    }

    fn at(second: u32) -> Timestamp {
        Timestamp::from_second(i64::from(second)).unwrap()
    }

    #[test]
    fn answers_are_their_keys_and_go_with_it() {
        let mut kept = Kept::default();
        for n in 0..10_000 {
            kept.put(&key("a"), id(n), at(n), said(1));
        }
        kept.put(&key("b"), id(0), at(0), said(2));
        assert_eq!((kept.of(&key("a")).len(), kept.len()), (10_000, 10_001));
        assert_eq!(kept.of(&key("b"))[&id(0)].1, said(2));
        assert!(kept.of(&key("c")).is_empty());
        let needed: BTreeSet<QuestionId> = [id(7)].into();
        kept.retain(&key("a"), &needed);
        assert_eq!((kept.of(&key("a")).len(), kept.len()), (1, 2));
        kept.retain(&key("a"), &BTreeSet::new());
        kept.retain(&key("b"), &BTreeSet::new());
        assert!(kept.0.is_empty());
    }

    #[test]
    fn a_plan_is_handed_its_answers_and_not_a_copy() {
        let mut kept = Kept::default();
        kept.put(&key("a"), id(0), at(0), said(1));
        let (one, other) = (kept.of(&key("a")), kept.of(&key("a")));
        assert!(std::ptr::eq(&raw const *one, &raw const *other));
        // Whoever has them does not see what comes later.
        kept.put(&key("a"), id(1), at(0), said(1));
        assert_eq!((one.len(), kept.of(&key("a")).len()), (1, 2));
    }

    #[test]
    fn of_too_many_answers_the_oldest_goes() {
        let mut kept = Kept::default();
        let most = u32::try_from(MAX_ANSWERS).unwrap();
        for n in 0..most + 2 {
            kept.put(&key("a"), id(n), at(n), said(0));
        }
        let of = kept.of(&key("a"));
        assert_eq!(of.len(), MAX_ANSWERS);
        assert!(!of.contains_key(&id(1)) && of.contains_key(&id(2)));
    }

    #[test]
    fn what_does_not_fit_was_too_large_and_what_goes_makes_room() {
        let mut kept = Kept::default();
        kept.put(&key("a"), id(0), at(0), said(MAX_BYTES - 10_000));
        kept.put(&key("a"), id(1), at(0), said(20_000));
        let told = kept.of(&key("a"))[&id(1)].1.clone();
        assert!(
            matches!(told, Answer::Failed(Failure::TooLarge { .. })),
            "{told:?}"
        );
        // Another key has room of its own.
        kept.put(&key("b"), id(1), at(0), said(20_000));
        assert_eq!(kept.of(&key("b"))[&id(1)].1, said(20_000));
        kept.put(&key("a"), id(0), at(0), said(1));
        kept.put(&key("a"), id(1), at(0), said(20_000));
        assert_eq!(kept.of(&key("a"))[&id(1)].1, said(20_000));
        kept.retain(&key("a"), &[id(1)].into());
        assert!(kept.0[&key("a")].bytes < 21_000);
    }
}
