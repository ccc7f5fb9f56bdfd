//! Watches one kind, and never stops.
//!
//! Lists are consistent (a quorum read) and paged. A watch that is closed or expired is opened again at once, except after
//! several that were closed as soon as they were opened; one on which nothing comes after two minutes; everything is listed again now and then. Contact is measured apart from news
//! ([`Control`]). After failures it is tried again within 8 s, so that the API's return is noticed within 10 s. A kind is
//! missing when discovery says so, twice ([`defined`]); it is looked for every 5 s, and a missing right with growing pauses
//! up to every heartbeat, and so is one of which a member has more than is taken in ([`bounds`]). A kind that may be listed but
//! not watched is listed again and again, with a look for the right at every heartbeat. No object can stall the others of its
//! kind: they are taken as they are, and understood later, one by one.

mod attend;
mod bounds;
mod contact;
mod defined;
mod events;
mod failure;
#[cfg(test)]
mod flood;
mod lines;
mod poll;
mod whole;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher;
use serde_json::Value;
use slipway_kernel::identity::{ClusterId, Kind};
use slipway_kernel::interest::Need;
use slipway_kernel::parts::Parts;
use slipway_kernel::store::{Meta, Name};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::channel::Channel;
use crate::ledger::Places;
use crate::message::Message;
use crate::rights::Rights;
use crate::settings::Backoff;
pub(crate) use attend::Listener;
pub(crate) use bounds::Bounds;
use bounds::TooMuch;
pub(crate) use contact::{Control, SILENCE};
use events::Event;
pub(crate) use failure::Failure;
use poll::Look;

/// What one watch is about. It is kept in many places, of each of thousands of clusters: clones share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchKey(Arc<Wanted>);

/// Which objects are watched.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub(crate) cluster: ClusterId,
    pub(crate) kind: Kind,
    pub(crate) labels: String,
    /// Empty for all.
    pub(crate) namespace: String,
    /// Only the object of this name.
    pub(crate) name: Option<Arc<str>>,
}

impl From<Wanted> for WatchKey {
    fn from(wanted: Wanted) -> Self {
        Self(Arc::new(wanted))
    }
}

impl Deref for WatchKey {
    type Target = Wanted;

    fn deref(&self) -> &Wanted {
        &self.0
    }
}

impl WatchKey {
    /// What is before all that are about a kind.
    pub(crate) fn first(cluster: &ClusterId, kind: &Kind) -> Self {
        Self::from(Wanted {
            cluster: cluster.clone(),
            kind: kind.clone(),
            labels: String::new(),
            namespace: String::new(),
            name: None,
        })
    }

    /// The one object that it is about, if there can be no other.
    pub(crate) fn single(&self) -> Option<Name> {
        let name = self.name.as_ref()?;
        let is_single = !self.namespace.is_empty() || !self.kind.namespaced;
        is_single.then(|| (self.namespace.clone(), name.to_string()))
    }

    /// Whether both are about one kind in one cluster.
    pub(crate) fn shares_kind(&self, other: &Self) -> bool {
        self.kind == other.kind && self.cluster == other.cluster
    }
}

/// What a watch has to tell.
#[derive(Debug)]
pub(crate) enum News {
    /// A list is about to be begun; the number is that of what was known before.
    Listing(u64),
    /// Objects of the list that is under way.
    Page(Vec<Value>),
    /// All that there is has been told; the number is that of the round asked for with [`Control::relist`].
    Listed(BTreeSet<Name>, u64),
    /// This object is new or has changed.
    Applied(Value),
    /// This object is gone.
    Deleted(Value),
    /// The kind may not be watched, and is listed again and again.
    Polled(String),
    /// The kind is watched, although it could not be before.
    Streamed,
    /// The kind is not defined, or there is no right to it and it can be done without.
    Missing(Failure),
    /// The kind is not found just now, although it was seen before: whether it is defined is being asked.
    Doubtful,
    /// The kind is defined now, and not listed yet.
    Defined,
    /// The kind is there and may not be seen, or not any more: what was seen last is all that is known.
    Hidden(Failure),
    /// The API cannot be reached, or refuses.
    Failed(Failure),
    /// The API answers again.
    Reached,
    /// The API's newest version is older than one that it told of before.
    Rewound,
    /// A stream has ended, which need not mean anything: the next one is opened at once.
    Ended,
}

/// The times of a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// A list is begun again after this time without an answer.
    pub(crate) answer: Duration,
    /// How long to wait at most until a missing right is looked for again.
    pub(crate) missing: Duration,
    /// After this time everything is listed again, whatever the watch has told.
    pub(crate) relist: Duration,
    /// Between lists of what may not be watched.
    pub(crate) poll: Duration,
    /// While nothing comes, the API is asked this often; none if somebody else looks whether it answers.
    pub(crate) silence: Option<Duration>,
}

impl Times {
    fn denied(&self) -> Backoff {
        Backoff {
            first: Duration::from_secs(5).min(self.missing),
            most: self.missing,
        }
    }
}

/// Between failures. Whoever waits longer notices too late that the API is back.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(8),
};

/// After a failure it is tried again within this time.
pub(crate) const RETRY: Duration = BACKOFF.most;

/// A watch that is not refused within this time is open.
const STREAMS: Duration = Duration::from_secs(10);

/// Objects in one answer to a list, unless they are large ([`Bounds`]). What is not kept of them is let go before the next ones come: whole
/// objects take ten times the room of what is.
const PAGE: u32 = 50;

/// The server ends a watch after this time; five seconds later it counts as silent.
const WATCH_SECONDS: u32 = 290;

/// One watch.
pub(crate) struct Watch {
    pub(crate) key: WatchKey,
    /// The way to the API that listens.
    pub(crate) listener: Listener,
    /// The same without that, for what is no part of the watch.
    pub(crate) plain: Channel,
    pub(crate) need: Need,
    /// The large parts that are not left out of its objects.
    pub(crate) reads: Parts,
    pub(crate) times: Times,
    pub(crate) rights: Arc<Rights>,
    pub(crate) control: Arc<Control>,
    /// Of what we write and are told.
    pub(crate) places: Places,
    pub(crate) news: mpsc::UnboundedSender<Message>,
    /// Room for what the loop has yet to take in, which all watches of a member share: one that tells more than that waits by
    /// itself, and what the others tell waits for no more. None at home.
    pub(crate) room: Option<Arc<Semaphore>>,
    /// How much is taken in of it. None at home.
    pub(crate) bounds: Option<Bounds>,
}

/// What has come of a list.
#[derive(Default)]
struct List {
    /// Not told yet.
    page: Vec<Value>,
    names: BTreeSet<Name>,
}

impl List {
    fn add(&mut self, object: Value) {
        self.names.insert(Meta::of(&object).key());
        self.page.push(object);
    }
}

/// Why a round ended.
enum End {
    /// A new list was asked for, is due, or is needed.
    Relist,
    /// It is not found or may not be listed, and what follows from that depends on whether it is defined.
    Absent(Failure),
    /// It is forbidden, and can be done without if the right to it is missing.
    Forbidden(Failure),
    /// There is no right to it, and it can be done without.
    Denied,
    /// It may only be looked at in this way.
    Unwatchable(Look, String),
    /// There is more of it than is taken in.
    TooMuch,
    /// It failed.
    Failed,
    /// Nobody listens any more.
    Deaf,
}

impl Watch {
    /// Watches until nobody listens any more.
    pub(crate) async fn run(self) {
        let (mut failures, mut denials) = (0, 0);
        let mut polled = false;
        loop {
            let began = Instant::now();
            // All but the round is seldom, and nothing is kept of it meanwhile.
            let mut end = if self.control.is_crowded() {
                self.crowded()
            } else if self.control.quiet().is_some() {
                Box::pin(self.look_now_and_then()).await
            } else {
                tokio::select! {
                    biased;
                    end = self.round(&mut failures, polled) => end,
                    () = self.keep_contact() => End::Relist,
                }
            };
            if let End::Unwatchable(look, why) = end {
                polled = true;
                end = Box::pin(self.poll(look, why)).await;
            } else if began.elapsed() > STREAMS {
                polled = false;
            }
            match end {
                End::Absent(failure) => end = Box::pin(self.absent(failure)).await,
                End::Forbidden(failure) => end = Box::pin(self.forbidden(failure)).await,
                _ => {}
            }
            if began.elapsed() > BACKOFF.most * 2 {
                failures = 0;
            }
            let wait = match end {
                End::Deaf => return,
                // What does not fit in is no success.
                End::Relist if self.control.is_crowded() => continue,
                End::Relist | End::Unwatchable(..) | End::Absent(_) | End::Forbidden(_) => {
                    denials = 0;
                    continue;
                }
                End::Denied | End::TooMuch => {
                    denials += 1;
                    self.times.denied().after(denials)
                }
                End::Failed => {
                    failures += 1;
                    BACKOFF.after(failures)
                }
            };
            tokio::select! {
                biased;
                () = self.control.again.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// One list and what follows.
    async fn round(&self, failures: &mut u32, polled: bool) -> End {
        let round = self.control.round.load(Ordering::Acquire);
        let mut stream = self.objects();
        let mut list = List::default();
        let mut listed = false;
        let relist = Instant::now() + self.times.relist;
        // A watch that was refused before and is not now says nothing.
        let mut streams = polled.then(|| Instant::now() + STREAMS);
        loop {
            // Between the pages of a list an answer must come; a watch has its own, longer time.
            let next = async {
                if listed {
                    Ok(stream.next().await)
                } else {
                    timeout(self.times.answer, stream.next()).await
                }
            };
            let event = tokio::select! {
                biased;
                () = self.control.again.notified() => return End::Relist,
                () = sleep_until(relist) => return End::Relist,
                () = sleep_until(streams.unwrap_or(relist)), if listed && streams.is_some() => {
                    streams = None;
                    self.tell(News::Streamed);
                    continue;
                }
                event = next => event,
            };
            let news = match event {
                Ok(Some(Ok(Event::Init))) => {
                    list = List::default();
                    listed = false;
                    News::Listing(self.places.last())
                }
                Ok(Some(Ok(Event::Page(objects)))) => {
                    if !self.take_page(&mut list, objects).await {
                        return End::Deaf;
                    }
                    continue;
                }
                Ok(Some(Ok(Event::Done))) => {
                    listed = true;
                    self.control.seen.store(true, Ordering::Release);
                    self.tell_much(News::Page(std::mem::take(&mut list.page)))
                        .await;
                    if !self.tell(News::Listed(std::mem::take(&mut list.names), round)) {
                        return End::Deaf;
                    }
                    self.complete();
                    continue;
                }
                Ok(Some(Ok(Event::Apply(object)))) => {
                    self.control.note(&object);
                    News::Applied(object)
                }
                Ok(Some(Ok(Event::Delete(object)))) => News::Deleted(object),
                Ok(Some(Err(error))) => {
                    if let Some(end) = self.failed(&error) {
                        return end;
                    }
                    // The watch goes on from where it was.
                    *failures += 1;
                    let pausing = self.control.pause();
                    let is_asked = tokio::select! {
                        biased;
                        () = self.control.again.notified() => true,
                        () = sleep(BACKOFF.after(*failures)) => false,
                    };
                    drop(pausing);
                    if is_asked {
                        return End::Relist;
                    }
                    continue;
                }
                Ok(None) => return End::Failed,
                Err(_) => {
                    self.fail(Failure::no_answer(self.times.answer));
                    return End::Failed;
                }
            };
            if !self.tell_much(news).await {
                return End::Deaf;
            }
        }
    }

    /// Tells a page of a list, in as many parts as it takes: some servers send more than they are asked for. Gives whether somebody
    /// listens.
    async fn take_page(&self, list: &mut List, objects: Vec<Value>) -> bool {
        for object in objects {
            self.control.note(&object);
            list.add(object);
            if list.page.len() >= PAGE as usize {
                let page = News::Page(std::mem::take(&mut list.page));
                if !self.tell_much(page).await {
                    return false;
                }
            }
        }
        true
    }

    /// There is no room for what has been told.
    fn crowded(&self) -> End {
        let most = self.bounds.map_or(0, Bounds::objects);
        self.fail(Failure::too_much(TooMuch::Objects(most), &self.key));
        End::TooMuch
    }

    fn tell(&self, news: News) -> bool {
        self.send(news, None)
    }

    /// Tells what may be much: waits while too much of it has not been taken in.
    async fn tell_much(&self, news: News) -> bool {
        let room = match &self.room {
            Some(room) => room.clone().acquire_owned().await.ok(),
            None => None,
        };
        self.send(news, room)
    }

    fn send(&self, news: News, room: Option<OwnedSemaphorePermit>) -> bool {
        let message = Message::Watch(self.key.clone(), self.control.run, news, room);
        self.news.send(message).is_ok()
    }

    /// Says what is wrong, and whether the round is over.
    fn failed(&self, error: &watcher::Error) -> Option<End> {
        let failure = Failure::of_watcher(error, &self.key);
        let code = failure.code();
        if let Some(look) = self.only(error, code) {
            return Some(End::Unwatchable(look, failure.to_string()));
        }
        match (code, self.need) {
            (Some(404), Need::Optional | Need::RequiredIfServed)
            | (Some(403), Need::RequiredIfServed) => {
                return Some(End::Absent(failure));
            }
            (Some(403), Need::Optional) if self.control.seen.load(Ordering::Acquire) => {
                self.tell(News::Hidden(failure));
                return Some(End::Failed);
            }
            (Some(403), Need::Optional) => return Some(End::Forbidden(failure)),
            // An expired version is nothing bad: it only needs a new list. A list that expires while it is made is.
            (Some(410), _) if !matches!(error, watcher::Error::InitialListFailed(_)) => {
                return Some(End::Failed);
            }
            _ => {}
        }
        let is_too_much = failure.is_too_much();
        self.fail(failure);
        match (error, code) {
            _ if is_too_much => Some(End::TooMuch),
            // kube opens the watch again and again at the version that was refused, as one that is newer than all that
            // there is after a restore.
            (watcher::Error::WatchStartFailed(_), Some(_))
            | (
                watcher::Error::WatchError(_)
                | watcher::Error::InitialListFailed(_)
                | watcher::Error::NoResourceVersion,
                _,
            ) => Some(End::Failed),
            _ => None,
        }
    }

    /// How else a kind can be looked at that may not be watched.
    fn only(&self, error: &watcher::Error, code: Option<u16>) -> Option<Look> {
        match error {
            watcher::Error::WatchStartFailed(_) if code == Some(403) => Some(Look::List),
            watcher::Error::InitialListFailed(_) if code == Some(403) => {
                let name = self.key.name.as_ref();
                let name = name.filter(|_| !self.key.namespace.is_empty());
                name.map(|name| Look::Get(name.clone()))
            }
            _ => None,
        }
    }
}
