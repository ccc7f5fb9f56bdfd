//! Contact with the API, watch by watch.
//!
//! Contact is a list that is complete, a stream that is opened, or any byte of it, whether or not it is news: a watch in a
//! quiet namespace says nothing for a minute and is well. While nothing comes, a small read of the same kind is tried every
//! [`SILENCE`], or as often as the settings say. It counts only beside an open stream: a kind that can be read and not watched is out of contact.
//!
//! What comes to nothing is none, however often it is answered: after a failure a part of a list does not count, because
//! the next one may fail for ever; nor does a stream after several that were closed as soon as they were opened.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;
use slipway_kernel::store::number;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::failure::{Failure, Verb};
use super::{BACKOFF, News, Watch};

/// While nothing comes, the API is asked this often, at home, if nothing else is set.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// How long that read may take. While contact is lost, the next one follows at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// The head of an answer may take this long, and after each time that it took longer, this much longer.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
const MAX_HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// A stream that ends within this time, without a word, was closed at once.
pub(super) const BRIEF: Duration = Duration::from_secs(1);
/// So many streams in a row may end so soon, each with a word, before the next one is waited with.
const HASTY: u32 = 5;

/// How a watch is doing, and how it is told to begin again.
#[derive(Debug)]
pub(crate) struct Control {
    /// The number of the watch: what one of another number tells is not about what is watched now.
    pub(crate) run: u64,
    /// It is read this often, in milliseconds, instead of being watched; 0 if it is watched.
    quiet: AtomicU64,
    /// Whether there has ever been a list.
    pub(super) seen: AtomicBool,
    pub(super) round: AtomicU64,
    pub(super) again: Notify,
    /// The newest version that the API has spoken of.
    newest: AtomicU64,
    /// Whether only objects with the watch's labels may be read.
    labelled: AtomicBool,
    /// Whether there is no room for what has been told. Until that has been said, nothing is taken in.
    crowded: AtomicBool,
    contact: Mutex<Contact>,
}

#[derive(Debug)]
struct Contact {
    heard: Instant,
    reached: Instant,
    /// Since when, and how, if the last thing was a failure.
    failing: Option<(Instant, String)>,
    /// Since when a stream is open.
    opened: Option<Instant>,
    /// How many streams in a row were closed at once.
    brief: u32,
    /// How many in a row ended as soon as they were opened, whatever they told before.
    hasty: u32,
    /// Whether nothing is under way, because something failed a moment ago.
    is_pausing: bool,
    late: u32,
}

impl Contact {
    /// Something has come that is contact. Gives whether it had been lost.
    fn renew(&mut self) -> bool {
        self.heard = Instant::now();
        self.reached = self.heard;
        self.failing.take().is_some()
    }

    /// After how many streams in a row that were closed at once, without counting the first: that is nothing bad.
    fn shunned(&self) -> Option<u32> {
        self.brief.checked_sub(1).filter(|times| *times > 0)
    }
}

impl Control {
    pub(crate) fn new(run: u64) -> Self {
        let now = Instant::now();
        Self {
            run,
            quiet: AtomicU64::new(0),
            seen: AtomicBool::new(false),
            round: AtomicU64::new(0),
            again: Notify::new(),
            newest: AtomicU64::new(0),
            labelled: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
            contact: Mutex::new(Contact {
                heard: now,
                reached: now,
                failing: None,
                opened: None,
                brief: 0,
                hasty: 0,
                is_pausing: false,
                late: 0,
            }),
        }
    }
}

impl Control {
    /// One for another watch of the same, of this number. Whoever waits for a list that the former one was asked for gets it from
    /// this one: its first list is newer than that.
    pub(crate) fn anew(&self, run: u64) -> Self {
        let round = self.round.load(Ordering::Acquire);
        Self {
            round: AtomicU64::new(round),
            ..Self::new(run)
        }
    }

    /// How often it is read instead of being watched, if it is.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let millis = self.quiet.load(Ordering::Acquire);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// From now on it is read this often, or watched; one that is under way changes over at once.
    pub(crate) fn set_quiet(&self, every: Option<Duration>) {
        if self.begin_quiet(every) {
            self.again.notify_one();
        }
    }

    /// The same of one that has not begun; gives whether that is a change.
    pub(crate) fn begin_quiet(&self, every: Option<Duration>) -> bool {
        let millis = every.map_or(0, |every| every.as_millis());
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.quiet.swap(millis, Ordering::AcqRel) != millis
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list is complete. Gives whether contact had been lost.
    pub(super) fn complete(&self) -> bool {
        self.contact().renew()
    }

    /// A part of a list has come.
    pub(super) fn hear_part(&self) {
        let mut contact = self.contact();
        contact.heard = Instant::now();
        if contact.failing.is_none() {
            contact.reached = contact.heard;
        }
    }

    /// Something has come on a stream, if only a bookmark. Gives whether contact had been lost.
    pub(super) fn hear_stream(&self) -> bool {
        let mut contact = self.contact();
        contact.brief = 0;
        contact.renew()
    }

    /// A read was answered. Gives whether contact had been lost.
    fn reach(&self) -> bool {
        let mut contact = self.contact();
        contact.reached = Instant::now();
        contact.failing.take().is_some()
    }

    pub(super) fn fail(&self, failure: &Failure) {
        let mut contact = self.contact();
        let since = contact
            .failing
            .as_ref()
            .map_or_else(Instant::now, |(since, _)| *since);
        contact.failing = Some((since, failure.to_string()));
    }

    /// The API answered, if only that the kind is not there or may not be seen.
    pub(crate) fn answered(&self) {
        self.contact().failing = None;
    }

    /// A stream has been opened. Gives whether contact had been lost.
    pub(super) fn open(&self) -> bool {
        let mut contact = self.contact();
        contact.opened = Some(Instant::now());
        contact.late = 0;
        contact.shunned().is_none() && contact.renew()
    }

    /// The server has ended a stream.
    pub(super) fn ended(&self, is_mute: bool) {
        let mut contact = self.contact();
        let is_brief = contact.opened.is_some_and(|at| at.elapsed() < BRIEF);
        contact.hasty = if is_brief {
            contact.hasty.saturating_add(1)
        } else {
            0
        };
        contact.brief = if is_mute && is_brief {
            contact.brief.saturating_add(1)
        } else {
            0
        };
    }

    /// A stream is open no more.
    pub(super) fn close(&self) {
        self.contact().opened = None;
    }

    /// How long to wait before a stream is opened, where those before it were closed at once.
    pub(super) fn shunned(&self) -> Option<Duration> {
        let times = self.contact().shunned()?;
        Some(BACKOFF.after(times))
    }

    /// How long to wait before a stream is opened, where many before it ended as soon as they had told something. That is no failure,
    /// and yet nobody may be asked as often as he answers.
    pub(super) fn hasty(&self) -> Option<Duration> {
        let times = self.contact().hasty.checked_sub(HASTY)?;
        Some(BACKOFF.after(times.saturating_add(1)))
    }

    /// All that was asked for has come. One page of a list is not all: the next one may take as long.
    pub(super) fn in_time(&self) {
        self.contact().late = 0;
    }

    /// The watch waits before it tries again, until what this gives is dropped.
    pub(super) fn pause(&self) -> Pausing<'_> {
        self.contact().is_pausing = true;
        Pausing(self)
    }

    fn is_pausing(&self) -> bool {
        self.contact().is_pausing
    }

    /// Whether a stream is open that may be believed to stay so.
    fn is_open(&self) -> bool {
        let contact = self.contact();
        let is_sure = |at: Instant| contact.shunned().is_none() || at.elapsed() >= BRIEF;
        contact.opened.is_some_and(is_sure)
    }

    /// How long to wait for the head of an answer.
    pub(super) fn patience(&self) -> Duration {
        let late = self.contact().late;
        HEAD_PATIENCE
            .saturating_mul(late.saturating_add(1))
            .min(MAX_HEAD_PATIENCE)
    }

    /// The head of an answer did not come in time.
    pub(super) fn is_late(&self) {
        let mut contact = self.contact();
        contact.late = contact.late.saturating_add(1);
    }

    /// When something last came of the watch itself.
    pub(crate) fn heard(&self) -> Instant {
        self.contact().heard
    }

    /// When there last was contact.
    pub(crate) fn reached(&self) -> Instant {
        self.contact().reached
    }

    /// Since when there has been nothing at all.
    fn quiet_since(&self) -> Instant {
        let contact = self.contact();
        contact.heard.max(contact.reached)
    }

    /// Since when it fails, and how; none while it does not.
    pub(crate) fn failing(&self) -> Option<(Instant, String)> {
        self.contact().failing.clone()
    }

    /// An object has come.
    pub(super) fn note(&self, object: &Value) {
        let version = object.pointer("/metadata/resourceVersion");
        let version = number(version.and_then(Value::as_str).unwrap_or_default());
        self.newest.fetch_max(version, Ordering::AcqRel);
    }

    /// Versions have run backwards: the next ones are compared with nothing.
    pub(crate) fn forget_versions(&self) {
        self.newest.store(0, Ordering::Release);
    }

    /// There is no room for what is told: it is told no more, and begins anew after a while.
    pub(crate) fn crowd(&self) {
        self.crowded.store(true, Ordering::Release);
        self.again.notify_one();
    }

    /// Whether there is no room for what is told.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Acquire)
    }

    /// There is room again, because nothing is kept of what was told before.
    pub(crate) fn make_room(&self) {
        self.crowded.store(false, Ordering::Release);
    }

    /// The number of the list that was last asked for.
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::Acquire)
    }

    /// Asks for a new list; [`News::Listed`] with at least this number is it.
    pub(crate) fn relist(&self) -> u64 {
        let round = self.round.fetch_add(1, Ordering::AcqRel) + 1;
        self.again.notify_one();
        round
    }
}

/// While this is there, a watch waits. Its round may be given up meanwhile, and the next one must not look as if it waited.
pub(super) struct Pausing<'a>(&'a Control);

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.contact().is_pausing = false;
    }
}

/// The part of a list that is not objects.
#[derive(Deserialize)]
struct Head {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    resource_version: String,
}

impl Watch {
    /// Looks for contact while nothing comes, until the round has to begin again: because the API is back and the round
    /// hangs on a request from before, or because the kind cannot be read any more.
    pub(super) async fn keep_contact(&self) {
        let Some(silence) = self.times.silence else {
            return std::future::pending().await;
        };
        let mut is_lost = false;
        let mut next = Instant::now() + PATIENCE;
        loop {
            if self.control.is_pausing() {
                // The next attempt is soon, and is as good.
                next = Instant::now() + PATIENCE;
            }
            let due = next.max(self.control.quiet_since() + silence);
            if Instant::now() < due {
                sleep_until(due).await;
                continue;
            }
            let known = self.control.newest.load(Ordering::Acquire);
            let began = Instant::now();
            match timeout(PATIENCE, Box::pin(self.probe())).await {
                Ok(Ok(version)) => {
                    if (1..known).contains(&version) {
                        self.tell(News::Rewound);
                    }
                    self.control.newest.fetch_max(version, Ordering::AcqRel);
                    if self.control.is_open() {
                        if self.control.reach() {
                            self.tell(News::Reached);
                        }
                    } else if is_lost {
                        return;
                    }
                    is_lost = false;
                }
                Ok(Err(error)) => {
                    let failure = Failure::of(&error, Verb::List, &self.key);
                    let may_be_labels = failure.code() == Some(403) && !self.key.labels.is_empty();
                    if may_be_labels && !self.control.labelled.swap(true, Ordering::AcqRel) {
                        continue;
                    }
                    if failure.is_about_the_kind() {
                        if self.control.is_open() {
                            return;
                        }
                        // What the round is waiting for tells the same.
                        next = began + silence;
                        continue;
                    }
                    self.fail(failure);
                    is_lost = true;
                }
                Err(_) => {
                    self.fail(Failure::no_answer(PATIENCE));
                    is_lost = true;
                }
            }
            next = began + if is_lost { PATIENCE } else { silence };
        }
    }

    /// A read of the kind that is as small as it can be. Without label selector, unless rights need it: one that few objects
    /// match would make the API look at all of them.
    async fn probe(&self) -> Result<u64, kube::Error> {
        let mut params = ListParams::default().limit(1);
        if self.control.labelled.load(Ordering::Acquire) {
            params = params.labels(&self.key.labels);
        }
        if let Some(name) = &self.key.name {
            params = params.fields(&format!("metadata.name={name}"));
        }
        let path = self.key.kind.path(&self.key.namespace);
        let request = Request::new(path)
            .list_metadata(&params)
            .map_err(kube::Error::BuildRequest)?;
        let head: Head = self.plain.request(request).await?;
        Ok(number(&head.metadata.resource_version))
    }

    /// All that there is has come.
    pub(super) fn complete(&self) {
        if self.control.complete() {
            self.tell(News::Reached);
        }
    }

    /// Tells that contact is lost.
    pub(super) fn fail(&self, failure: Failure) {
        self.control.fail(&failure);
        self.tell(News::Failed(failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bookmark on each is a word, and a server that ends all streams after it would be asked without a pause.
    #[tokio::test(start_paused = true)]
    async fn streams_that_end_as_soon_as_they_have_told_something_are_opened_with_pauses() {
        let control = Control::new(1);
        let turn = || {
            control.open();
            control.hear_stream();
            control.ended(false);
            control.close();
            assert_eq!(control.shunned(), None);
            control.hasty().map(|wait| wait.as_secs())
        };
        for _ in 1..HASTY {
            assert_eq!(turn(), None);
        }
        let waits: Vec<Option<u64>> = (0..5).map(|_| turn()).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(4), Some(8), Some(8)]);
        control.open();
        tokio::time::sleep(BRIEF).await;
        control.ended(false);
        assert_eq!(control.hasty(), None);
    }

    #[test]
    fn a_watch_in_the_place_of_another_one_makes_the_lists_that_were_asked_for() {
        let before = Control::new(1);
        let wanted = before.relist();
        let after = before.anew(2);
        assert_eq!(after.run, 2);
        assert!(after.round.load(Ordering::Acquire) >= wanted);
    }
}
