//! Whose turn it is: so many at once, and those who wait are served key by key, each key's in the order in which they came.
//!
//! A value without clock or tasks. No operation costs more than the logarithm of how many wait.

use std::collections::{BTreeMap, BTreeSet};

/// Names somebody who wants a turn. Later ones have higher numbers.
pub(super) type Ticket = u64;

/// The turns of one line.
#[derive(Debug)]
pub(super) struct Turns<K> {
    most: usize,
    under_way: usize,
    /// Of each key that waits: its place in the round, and its tickets.
    waiting: BTreeMap<K, (u64, BTreeSet<Ticket>)>,
    /// The keys that wait, by when they are served.
    round: BTreeMap<u64, K>,
    next_place: u64,
}

impl<K: Ord + Clone> Turns<K> {
    /// At least one at a time.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            under_way: 0,
            waiting: BTreeMap::new(),
            round: BTreeMap::new(),
            next_place: 0,
        }
    }

    /// Somebody wants a turn. True if it begins now; otherwise they wait.
    pub(super) fn ask(&mut self, key: K, ticket: Ticket) -> bool {
        if self.under_way < self.most {
            self.under_way += 1;
            return true;
        }
        if let Some((_, tickets)) = self.waiting.get_mut(&key) {
            tickets.insert(ticket);
        } else {
            self.queue(key, BTreeSet::from([ticket]));
        }
        false
    }

    /// A turn has ended. The next one begins, if somebody waits.
    pub(super) fn end(&mut self) -> Option<Ticket> {
        let Some((_, key)) = self.round.pop_first() else {
            self.under_way = self.under_way.saturating_sub(1);
            return None;
        };
        let (_, mut tickets) = self.waiting.remove(&key)?;
        let first = tickets.pop_first();
        if !tickets.is_empty() {
            self.queue(key, tickets);
        }
        first
    }

    /// Somebody does not want to wait any longer. False if they were not waiting: their turn has begun.
    pub(super) fn leave(&mut self, key: &K, ticket: Ticket) -> bool {
        let Some((place, tickets)) = self.waiting.get_mut(key) else {
            return false;
        };
        let was_waiting = tickets.remove(&ticket);
        if tickets.is_empty() {
            let place = *place;
            self.round.remove(&place);
            self.waiting.remove(key);
        }
        was_waiting
    }

    /// Nobody has a turn or waits for one.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0 && self.round.is_empty()
    }

    fn queue(&mut self, key: K, tickets: BTreeSet<Ticket>) {
        self.next_place += 1;
        self.round.insert(self.next_place, key.clone());
        self.waiting.insert(key, (self.next_place, tickets));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn so_many_at_once_and_then_in_the_order_in_which_they_came() {
        let mut turns = Turns::new(2);
        assert!(turns.ask("a", 1) && turns.ask("a", 2));
        assert!(!turns.ask("a", 3) && !turns.ask("a", 4));
        assert_eq!(
            [turns.end(), turns.end(), turns.end(), turns.end()],
            [Some(3), Some(4), None, None]
        );
        assert!(turns.is_idle());
    }

    #[test]
    fn who_asks_much_does_not_delay_who_asks_little() {
        let mut turns = Turns::new(1);
        assert!(turns.ask("busy", 0));
        for ticket in 1..=100 {
            assert!(!turns.ask("busy", ticket));
        }
        assert!(!turns.ask("quiet", 101) && !turns.ask("other", 102));
        let served: Vec<_> = std::iter::from_fn(|| turns.end()).take(6).collect();
        assert_eq!(served, [1, 101, 102, 2, 3, 4]);
    }

    #[test]
    fn who_leaves_is_passed_over_and_who_has_begun_cannot_leave() {
        let mut turns = Turns::new(1);
        assert!(turns.ask("a", 1));
        assert!(!turns.ask("b", 2) && !turns.ask("c", 3));
        assert!(turns.leave(&"b", 2) && !turns.leave(&"b", 2));
        assert_eq!(turns.end(), Some(3));
        assert!(!turns.leave(&"c", 3));
        assert_eq!(turns.end(), None);
        assert!(turns.is_idle());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask(u8),
        End,
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0_u8..4).prop_map(Step::Ask),
            Just(Step::End),
            (0_usize..8).prop_map(Step::Leave),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_too_many_and_nobody_is_lost_or_served_twice(most in 1_usize..4, steps in steps()) {
            let mut turns = Turns::new(most);
            let (mut under_way, mut waiting) = (0_usize, Vec::new());
            for (ticket, step) in steps.into_iter().enumerate() {
                let ticket = ticket as Ticket;
                match step {
                    Step::Ask(key) => {
                        if turns.ask(key, ticket) {
                            prop_assert!(waiting.is_empty());
                            under_way += 1;
                        } else {
                            prop_assert_eq!(under_way, most);
                            waiting.push((key, ticket));
                        }
                    }
                    Step::End if under_way > 0 => match turns.end() {
                        None => {
                            prop_assert!(waiting.is_empty());
                            under_way -= 1;
                        }
                        Some(next) => {
                            let at = waiting.iter().position(|(_, ticket)| *ticket == next);
                            prop_assert!(at.is_some(), "{} was not waiting", next);
                            let (key, _) = waiting.remove(at.unwrap());
                            // In their order within a key.
                            prop_assert!(waiting.iter().all(|(k, t)| *k != key || *t > next));
                        }
                    },
                    Step::Leave(which) if which < waiting.len() => {
                        let (key, ticket) = waiting.remove(which);
                        prop_assert!(turns.leave(&key, ticket));
                    }
                    Step::End | Step::Leave(_) => {}
                }
                prop_assert!(under_way <= most);
                prop_assert_eq!(turns.is_idle(), under_way == 0 && waiting.is_empty());
            }
        }
    }
}
