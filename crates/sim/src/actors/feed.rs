//! One watch per kind: list, watch from there, and start over when the server says so.
//!
//! Unlike `kube::runtime::watcher` it asks for watches that last a day and for no bookmarks: in virtual time every
//! reconnection and every bookmark would be an event in a cluster in which nothing happens.
//!
//! Objects come as texts and are read in one place, if they have to be: the compiler then makes one reader of each of
//! Kubernetes' large types instead of four, which halves what building this crate takes.

use std::time::Duration;

use futures::future::Either;
use futures::stream;
use futures::stream::{BoxStream, StreamExt};
use http::Request;
use kube::Client;
use kube::api::{ListMeta, WatchEvent};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::key::Kind;
use super::told::Head;
use super::world::{Watched, World};

/// How long to wait before an attempt after a failure. Always the same, so that no seed is needed for it.
const PAUSE: Duration = Duration::from_secs(1);

/// How long one watch lasts, in seconds.
const LASTS: u32 = 86_400;

/// Something that the world learns.
pub(crate) type News = Box<dyn FnOnce(&mut World) + Send>;

/// An object that nobody has read.
type Text = Box<RawValue>;

type Events = BoxStream<'static, kube::Result<WatchEvent<Text>>>;

enum State {
    Start,
    Listed(String),
    Watching(String, Events),
}

/// What a kind's objects are to the world.
struct Reader {
    kind: Kind,
    replace: fn(Vec<Text>, String) -> Result<News, serde_json::Error>,
    learn: fn(Head, Text) -> News,
    lose: fn(Head, Text) -> News,
}

impl Reader {
    fn of<K: Watched>() -> Self {
        Self {
            kind: K::KIND,
            replace: |items, version| {
                let items = items
                    .iter()
                    .map(|text| Head::of(text.get())?.read(text.get()));
                let items = items.collect::<Result<Vec<K>, _>>()?;
                Ok(Box::new(move |world| world.replace(items, &version)))
            },
            learn: |head, text| Box::new(move |world| world.learn_shown::<K>(&head, text.get())),
            lose: |head, _| Box::new(move |world| world.lose::<K>(&head)),
        }
    }
}

/// Watches all objects of a kind, for ever.
pub(crate) fn watch<K: Watched>(client: Client) -> BoxStream<'static, News> {
    watch_kind(client, Reader::of::<K>())
}

fn watch_kind(client: Client, reader: Reader) -> BoxStream<'static, News> {
    stream::unfold(
        (client, reader, State::Start),
        |(client, reader, state)| async {
            let (news, state) = step(&client, &reader, state).await;
            Some((news, (client, reader, state)))
        },
    )
    .filter_map(|news| async { news })
    .boxed()
}

async fn step(client: &Client, reader: &Reader, state: State) -> (Option<News>, State) {
    match state {
        State::Start => match list(client, reader).await {
            Ok((news, at)) => (Some(news), State::Listed(at)),
            Err(error) => {
                tracing::debug!(kind = ?reader.kind, %error, "cannot list");
                tokio::time::sleep(PAUSE).await;
                (None, State::Start)
            }
        },
        State::Listed(at) => match open(client, reader.kind, &at).await {
            Ok(events) => (None, State::Watching(at, events)),
            Err(kube::Error::Api(status)) if status.code == 410 => (None, State::Start),
            Err(error) => {
                tracing::debug!(kind = ?reader.kind, %error, "cannot watch");
                tokio::time::sleep(PAUSE).await;
                (None, State::Listed(at))
            }
        },
        State::Watching(at, mut events) => {
            let event = events.next().await;
            // The watch was cut, or its time is over: go on from the last event.
            let Some(Ok(taken)) = event.map(|event| take(reader, event?)) else {
                tokio::time::sleep(PAUSE).await;
                return (None, State::Listed(at));
            };
            match taken {
                Either::Left((news, version)) => (Some(news), State::Watching(version, events)),
                Either::Right(true) => (None, State::Watching(at, events)),
                Either::Right(false) => {
                    tokio::time::sleep(PAUSE).await;
                    (None, State::Start)
                }
            }
        }
    }
}

/// The news in an event and its version, or whether the watch can go on without.
fn take(reader: &Reader, event: WatchEvent<Text>) -> kube::Result<Either<(News, String), bool>> {
    let (read, object) = match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => (reader.learn, object),
        WatchEvent::Deleted(object) => (reader.lose, object),
        WatchEvent::Bookmark(_) => return Ok(Either::Right(true)),
        WatchEvent::Error(_) => return Ok(Either::Right(false)),
    };
    let head = Head::of(object.get()).map_err(kube::Error::SerdeError)?;
    let version = head.version.clone();
    Ok(Either::Left((read(head, object), version)))
}

/// A list, its objects not yet looked at.
#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
    #[serde(default)]
    items: Vec<Text>,
}

async fn list(client: &Client, reader: &Reader) -> kube::Result<(News, String)> {
    let path = reader.kind.collection("");
    let page: Page = client.request(get(&path)?).await?;
    let at = page.metadata.resource_version.unwrap_or_default();
    let news = (reader.replace)(page.items, at.clone()).map_err(kube::Error::SerdeError)?;
    Ok((news, at))
}

async fn open(client: &Client, kind: Kind, at: &str) -> kube::Result<Events> {
    let path = kind.collection("");
    let query = format!("{path}?watch=true&resourceVersion={at}&timeoutSeconds={LASTS}");
    let events = client.request_events::<Text>(get(&query)?).await?;
    Ok(events.boxed())
}

fn get(path: &str) -> kube::Result<Request<Vec<u8>>> {
    Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}
