//! Reads for reviews and for what they let go, shared by those that wait together.
//!
//! A review is served by a read that began after it arrived. So of those that arrive while a read is under way the first
//! begins the next one, and all others wait for that: however many reviews there are, a collection is read by one request
//! at a time. Where many wait, all are answered at the same moment and their callers ask again at the same moment: the
//! first of those waits a little for the others, or else every other read would be for one review alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slipway_kernel::admission::{Collection, Reading};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::collection::Reader;
use crate::message::Message;

/// Collections that are remembered although nobody waits for them.
const IDLE: usize = 64;

/// For how much of the last read's time the next one waits for company, at most.
const GATHERING: u32 = 8;
/// The longest that a read waits for company.
const LONGEST_GATHERING: Duration = Duration::from_millis(5);

/// A place in the order in which reviews arrive and reads begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// How far the reads of one collection are.
#[derive(Default)]
struct Progress {
    is_running: bool,
    last: Option<Last>,
}

/// The read that ended last.
struct Last {
    began: Ticket,
    reading: Reading,
    took: Duration,
    ended: Instant,
    /// How many reviews it was for, beside the one that read.
    shared: usize,
}

impl Last {
    /// How long the next one waits for company: only if there was some just now.
    fn gathering(&self, now: Instant) -> Duration {
        let is_over = now.saturating_duration_since(self.ended) >= self.took;
        if self.shared == 0 || is_over {
            return Duration::ZERO;
        }
        (self.took / GATHERING).min(LONGEST_GATHERING)
    }
}

#[derive(Default)]
struct Slot {
    progress: Mutex<Progress>,
    turned: Notify,
}

/// What a review does next.
enum Turn {
    Known(Reading),
    Wait,
    /// Read, after a pause.
    Lead(Duration),
}

impl Slot {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, arrived: Ticket, now: Instant) -> Turn {
        let mut progress = self.progress();
        if let Some(last) = progress.last.as_mut().filter(|last| last.began > arrived) {
            last.shared += 1;
            return Turn::Known(last.reading.clone());
        }
        if progress.is_running {
            return Turn::Wait;
        }
        progress.is_running = true;
        let last = progress.last.as_ref();
        Turn::Lead(last.map_or(Duration::ZERO, |last| last.gathering(now)))
    }
}

/// Whoever reads for the others. A review that is given up in the middle of it leaves the next one to read.
struct Lead<'a>(&'a Slot);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.progress().is_running = false;
        self.0.turned.notify_waiters();
    }
}

/// The reads of one replica's webhooks.
pub(crate) struct Readings {
    reader: Reader,
    tickets: AtomicU64,
    slots: Mutex<BTreeMap<Collection, Arc<Slot>>>,
}

impl Readings {
    pub(crate) fn new(reader: Reader) -> Self {
        Self {
            reader,
            tickets: AtomicU64::new(0),
            slots: Mutex::default(),
        }
    }

    /// The next place in the order.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::AcqRel))
    }

    /// What came of a read that began after the review arrived.
    pub(crate) async fn read(&self, collection: &Collection, arrived: Ticket) -> Reading {
        let slot = self.slot(collection);
        loop {
            let mut turned = std::pin::pin!(slot.turned.notified());
            turned.as_mut().enable();
            match slot.turn(arrived, Instant::now()) {
                Turn::Known(reading) => return reading,
                Turn::Wait => turned.await,
                Turn::Lead(pause) => {
                    let lead = Lead(&slot);
                    if !pause.is_zero() {
                        self.reader.shared.environment.sleep(pause).await;
                    }
                    let (began, start) = (self.ticket(), Instant::now());
                    let reading = self.reader.read(collection).await;
                    let ended = Instant::now();
                    slot.progress().last = Some(Last {
                        began,
                        reading: reading.clone(),
                        took: ended.saturating_duration_since(start),
                        ended,
                        shared: 0,
                    });
                    drop(lead);
                    if !self.reader.shared.lock().changes.is_empty() {
                        // The loop wakes for what has changed. Nobody listens when the replica has ended.
                        let _ = self.reader.inbox.send(Message::Ended);
                    }
                    return reading;
                }
            }
        }
    }

    fn slot(&self, collection: &Collection) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() > IDLE {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        slots.entry(collection.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Duration = Duration::from_millis(16);

    fn after(began: u64, now: Instant) -> Slot {
        let slot = Slot::default();
        slot.progress().last = Some(Last {
            began: Ticket(began),
            reading: Reading::Current,
            took: READ,
            ended: now,
            shared: 0,
        });
        slot
    }

    fn pause(slot: &Slot, arrived: u64, now: Instant) -> Option<Duration> {
        match slot.turn(Ticket(arrived), now) {
            Turn::Lead(pause) => Some(pause),
            Turn::Known(_) | Turn::Wait => None,
        }
    }

    #[test]
    fn whoever_is_alone_reads_at_once() {
        let now = Instant::now();
        assert_eq!(pause(&after(5, now), 7, now), Some(Duration::ZERO));
    }

    #[test]
    fn whoever_comes_back_first_of_many_waits_for_the_others() {
        let now = Instant::now();
        let slot = after(5, now);
        assert!(pause(&slot, 3, now).is_none(), "served by the read");
        assert_eq!(pause(&slot, 7, now), Some(READ / GATHERING));
        assert!(pause(&slot, 8, now).is_none(), "waits for that one");
    }

    #[test]
    fn long_after_a_crowd_nobody_waits() {
        let now = Instant::now();
        let slot = after(5, now);
        assert!(pause(&slot, 3, now).is_none());
        assert_eq!(pause(&slot, 7, now + READ), Some(Duration::ZERO));
    }

    #[test]
    fn a_slow_read_makes_nobody_wait_for_long() {
        let now = Instant::now();
        let slot = after(5, now);
        if let Some(last) = &mut slot.progress().last {
            last.took = Duration::from_secs(3);
        }
        assert!(pause(&slot, 3, now).is_none());
        assert_eq!(pause(&slot, 7, now), Some(LONGEST_GATHERING));
    }
}
