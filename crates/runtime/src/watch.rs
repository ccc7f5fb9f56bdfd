//! Watches one kind, and never stops.
//!
//! Lists are consistent (a quorum read) and paged. A watch that is closed, expired or silent is opened again within
//! 300 s; a missing definition or right of an optional kind is looked for again with every heartbeat. A kind that may be
//! listed but not watched is listed again and again, with a look for the right at every heartbeat. No object can
//! stall the others of its kind: they are taken as they are, and understood later, one by one.

mod defined;
mod poll;
mod whole;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use http_body_util::BodyExt;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use slipway_kernel::identity::{ClusterId, Kind};
use slipway_kernel::interest::Need;
use slipway_kernel::parts::Parts;
use slipway_kernel::store::{Meta, Name};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::message::Message;
use crate::settings::Backoff;
use poll::Look;

/// What one watch is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchKey {
    pub(crate) cluster: ClusterId,
    pub(crate) kind: Kind,
    pub(crate) labels: String,
    /// Empty for all.
    pub(crate) namespace: String,
    /// Only the object of this name.
    pub(crate) name: Option<&'static str>,
}

/// What a watch has to tell.
#[derive(Debug)]
pub(crate) enum News {
    /// A list has been begun.
    Listing,
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
    /// The kind is not served, or may not be watched.
    Missing(String),
    /// The kind is there and may not be seen, or not any more: what was seen last is all that is known.
    Hidden(String),
    /// The API cannot be reached, or refuses.
    Failed(String),
}

/// How a watch is told to begin again.
#[derive(Debug)]
pub(crate) struct Control {
    /// Whether there has ever been a list.
    seen: AtomicBool,
    round: AtomicU64,
    again: Notify,
    heard: Mutex<Instant>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            seen: AtomicBool::new(false),
            round: AtomicU64::new(0),
            again: Notify::new(),
            heard: Mutex::new(Instant::now()),
        }
    }
}

impl Control {
    /// Something has come from the server, if only a bookmark.
    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When something last came from the server.
    pub(crate) fn heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a new list; [`News::Listed`] with at least this number is it.
    pub(crate) fn relist(&self) -> u64 {
        let round = self.round.fetch_add(1, Ordering::AcqRel) + 1;
        self.again.notify_one();
        round
    }
}

/// The times of a watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// A list is begun again after this time without an answer.
    pub(crate) answer: Duration,
    /// How long to wait until a missing kind is looked for again.
    pub(crate) missing: Duration,
    /// After this time everything is listed again, whatever the watch has told.
    pub(crate) relist: Duration,
    /// Between lists of what may not be watched.
    pub(crate) poll: Duration,
}

/// Between failures.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(30),
};

/// A watch that is not refused within this time is open.
const STREAMS: Duration = Duration::from_secs(10);

/// Objects in one answer to a list. What is not kept of them is let go before the next ones come: whole objects take ten
/// times the room of what is.
const PAGE: u32 = 50;

/// The server ends a watch after this time; five seconds later it counts as silent.
const WATCH_SECONDS: u32 = 290;

/// One watch.
pub(crate) struct Watch {
    pub(crate) key: WatchKey,
    pub(crate) client: kube::Client,
    pub(crate) need: Need,
    /// The large parts that are not left out of its objects.
    pub(crate) reads: Parts,
    pub(crate) times: Times,
    pub(crate) control: Arc<Control>,
    pub(crate) news: mpsc::UnboundedSender<Message>,
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
    /// The kind is not there.
    Missing,
    /// It may not be listed, and what follows from that depends on whether it is there.
    Forbidden(String),
    /// It may only be looked at in this way.
    Unwatchable(Look, String),
    /// It failed.
    Failed,
    /// Nobody listens any more.
    Deaf,
}

impl Watch {
    /// Watches until nobody listens any more.
    pub(crate) async fn run(self) {
        let mut failures = 0;
        let mut polled = false;
        loop {
            let began = Instant::now();
            let mut end = self.round(&mut failures, polled).await;
            if let End::Unwatchable(look, why) = end {
                polled = true;
                end = self.poll(look, why).await;
            } else if let End::Forbidden(why) = end {
                end = self.forbidden(why).await;
            } else if began.elapsed() > STREAMS {
                polled = false;
            }
            if began.elapsed() > BACKOFF.most * 2 {
                failures = 0;
            }
            let wait = match end {
                End::Deaf => return,
                End::Relist | End::Unwatchable(..) | End::Forbidden(_) => continue,
                End::Missing => self.times.missing,
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
                    News::Listing
                }
                Ok(Some(Ok(Event::InitApply(object)))) => {
                    list.add(object);
                    if list.page.len() < PAGE as usize {
                        continue;
                    }
                    News::Page(std::mem::take(&mut list.page))
                }
                Ok(Some(Ok(Event::InitDone))) => {
                    listed = true;
                    self.control.seen.store(true, Ordering::Release);
                    self.tell(News::Page(std::mem::take(&mut list.page)));
                    News::Listed(std::mem::take(&mut list.names), round)
                }
                Ok(Some(Ok(Event::Apply(object)))) => News::Applied(object),
                Ok(Some(Ok(Event::Delete(object)))) => News::Deleted(object),
                Ok(Some(Err(error))) => {
                    if let Some(end) = self.failed(&error) {
                        return end;
                    }
                    // The watch goes on from where it was.
                    *failures += 1;
                    sleep(BACKOFF.after(*failures)).await;
                    continue;
                }
                Ok(None) => return End::Failed,
                Err(_) => {
                    self.tell(News::Failed("no answer to a list".to_owned()));
                    return End::Failed;
                }
            };
            if !self.tell(news) {
                return End::Deaf;
            }
        }
    }

    fn tell(&self, news: News) -> bool {
        self.news
            .send(Message::Watch(self.key.clone(), news))
            .is_ok()
    }

    /// Says what is wrong, and whether the round is over.
    fn failed(&self, error: &watcher::Error) -> Option<End> {
        let code = code(error);
        let text = reason(error);
        if let Some(look) = self.only(error, code) {
            return Some(End::Unwatchable(look, text));
        }
        if code == Some(403) && self.need == Need::WhereDefined {
            return Some(End::Forbidden(text));
        }
        let is_missing = match code {
            Some(404) => self.need != Need::Required,
            Some(403) => self.need == Need::Optional,
            _ => false,
        };
        if is_missing && code == Some(403) && self.control.seen.load(Ordering::Acquire) {
            self.tell(News::Hidden(text));
            return Some(End::Failed);
        }
        if is_missing {
            self.tell(News::Missing(text));
            return Some(End::Missing);
        }
        // An expired version is nothing bad: it only needs a new list.
        if code == Some(410) {
            return Some(End::Failed);
        }
        self.tell(News::Failed(text));
        match (error, code) {
            // kube opens the watch again and again at the version that was refused.
            (watcher::Error::WatchStartFailed(_), Some(_)) => Some(End::Failed),
            (watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion, _) => {
                Some(End::Failed)
            }
            _ => None,
        }
    }

    /// How else a kind can be looked at that may not be watched.
    fn only(&self, error: &watcher::Error, code: Option<u16>) -> Option<Look> {
        match error {
            watcher::Error::WatchStartFailed(_) if code == Some(403) => Some(Look::List),
            watcher::Error::InitialListFailed(_) if code == Some(403) => {
                let name = self.key.name.filter(|_| !self.key.namespace.is_empty());
                name.map(Look::Get)
            }
            _ => None,
        }
    }

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default()
            .timeout(WATCH_SECONDS)
            .page_size(PAGE);
        if !self.key.labels.is_empty() {
            config = config.labels(&self.key.labels);
        }
        if let Some(name) = self.key.name {
            config = config.fields(&format!("metadata.name={name}"));
        }
        config
    }
}

fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

fn code(error: &watcher::Error) -> Option<u16> {
    status(error).map(|status| status.code)
}

fn reason(error: &watcher::Error) -> String {
    match status(error) {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// A client that gives up when the head of an answer does not come: kube's watcher would wait for ever. Bodies may take
/// their time; whatever comes of them is heard.
pub(crate) fn impatient(
    client: kube::Client,
    patience: Duration,
    control: &Arc<Control>,
) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let control = control.clone();
    let service = tower::service_fn(move |request| {
        let (client, control) = (client.clone(), control.clone());
        async move {
            let response = tokio::select! {
                biased;
                () = sleep(patience) => return Err(tower::BoxError::from("no answer in time")),
                response = client.send(request) => response.map_err(tower::BoxError::from)?,
            };
            control.hear();
            Ok(response.map(|body| {
                body.map_frame(move |frame| {
                    control.hear();
                    frame
                })
            }))
        }
    });
    kube::Client::new(service, namespace)
}
