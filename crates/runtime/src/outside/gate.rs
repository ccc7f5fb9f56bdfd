//! Turns that can be waited for, in as many lines as there are targets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::turns::{Ticket, Turns};

/// Lines of which each lets so many through at once. A line that nobody uses is forgotten.
pub(super) struct Gate<K>(Arc<Mutex<Lines<K>>>);

struct Lines<K> {
    most: usize,
    turns: BTreeMap<String, Turns<K>>,
    calls: BTreeMap<Ticket, oneshot::Sender<()>>,
    next: Ticket,
}

impl<K: Ord + Clone> Lines<K> {
    fn end(&mut self, line: &str) {
        let Some(turns) = self.turns.get_mut(line) else {
            return;
        };
        let next = turns.end();
        if turns.is_idle() {
            self.turns.remove(line);
        }
        if let Some(call) = next.and_then(|ticket| self.calls.remove(&ticket)) {
            // Who has given up meanwhile ends the turn when it is dropped.
            let _ = call.send(());
        }
    }
}

impl<K: Ord + Clone> Gate<K> {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            most,
            turns: BTreeMap::new(),
            calls: BTreeMap::new(),
            next: 0,
        })))
    }

    fn lines(&self) -> MutexGuard<'_, Lines<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn in a line. It lasts until it is dropped.
    pub(super) async fn turn(&self, line: &str, key: K) -> Turn<K> {
        let (turn, called) = {
            let mut lines = self.lines();
            lines.next += 1;
            let (ticket, most) = (lines.next, lines.most);
            let turns = lines.turns.entry(line.to_owned());
            let begins = turns
                .or_insert_with(|| Turns::new(most))
                .ask(key.clone(), ticket);
            let called = (!begins).then(|| {
                let (call, called) = oneshot::channel();
                lines.calls.insert(ticket, call);
                called
            });
            let turn = Turn {
                gate: self.0.clone(),
                line: line.to_owned(),
                key,
                ticket,
            };
            (turn, called)
        };
        if let Some(called) = called {
            let _ = called.await;
        }
        turn
    }
}

/// A turn, or the wish for one.
pub(super) struct Turn<K: Ord + Clone> {
    gate: Arc<Mutex<Lines<K>>>,
    line: String,
    key: K,
    ticket: Ticket,
}

impl<K: Ord + Clone> Drop for Turn<K> {
    fn drop(&mut self) {
        let mut lines = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        lines.calls.remove(&self.ticket);
        let turns = lines.turns.get_mut(&self.line);
        let was_waiting = turns.is_some_and(|turns| turns.leave(&self.key, self.ticket));
        if !was_waiting {
            lines.end(&self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_that_is_full_holds_up_no_other() {
        let gate = Gate::new(1);
        let slow = gate.turn("slow", 1).await;
        assert!(gate.turn("slow", 2).now_or_never().is_none());
        assert!(gate.turn("quick", 3).now_or_never().is_some());
        drop(slow);
        assert!(gate.turn("slow", 4).now_or_never().is_some());
        let lines = gate.lines();
        assert!(lines.turns.is_empty() && lines.calls.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_waiting_takes_nobodys_turn() {
        let gate = Arc::new(Gate::new(1));
        let first = gate.turn("a", 1).await;
        let given_up = timeout(Duration::from_secs(1), gate.turn("a", 2)).await;
        assert!(given_up.is_err());
        let waiting = {
            let gate = gate.clone();
            tokio::spawn(async move { gate.turn("a", 3).await })
        };
        sleep(Duration::from_secs(1)).await;
        drop(first);
        let third = waiting.await.unwrap();
        assert!(gate.turn("a", 4).now_or_never().is_none());
        drop(third);
        assert!(gate.turn("a", 5).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_begins_in_the_moment_of_giving_up_is_passed_on() {
        let gate = Gate::new(1);
        let first = gate.turn("a", 1).await;
        let mut second = Box::pin(gate.turn("a", 2));
        assert!(second.as_mut().now_or_never().is_none());
        // Its turn begins, and it is dropped before it has noticed.
        drop(first);
        drop(second);
        assert!(gate.turn("a", 3).now_or_never().is_some());
    }
}
