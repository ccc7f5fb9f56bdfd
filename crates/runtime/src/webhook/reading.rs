//! Reads for reviews and for what they let go, shared by those that wait together.
//!
//! A review is served by a read that began after it arrived. So of those that arrive while a read is under way the first
//! begins the next one, and all others wait for that: however many reviews there are, a collection is read by one request
//! at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slipway_kernel::admission::{Collection, Reading};
use tokio::sync::Notify;

use crate::collection::Reader;
use crate::message::Message;

/// Collections that are remembered although nobody waits for them.
const IDLE: usize = 64;

/// A place in the order in which reviews arrive and reads begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// How far the reads of one collection are.
#[derive(Default)]
struct Progress {
    is_running: bool,
    last: Option<(Ticket, Reading)>,
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
    Lead,
}

impl Slot {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, arrived: Ticket) -> Turn {
        let mut progress = self.progress();
        match &progress.last {
            Some((began, reading)) if *began > arrived => Turn::Known(reading.clone()),
            _ if progress.is_running => Turn::Wait,
            _ => {
                progress.is_running = true;
                Turn::Lead
            }
        }
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
            match slot.turn(arrived) {
                Turn::Known(reading) => return reading,
                Turn::Wait => turned.await,
                Turn::Lead => {
                    let lead = Lead(&slot);
                    let began = self.ticket();
                    let reading = self.reader.read(collection).await;
                    slot.progress().last = Some((began, reading.clone()));
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
