//! One watch per kind: list, watch from there, and start over when the server says so.
//!
//! Unlike `kube::runtime::watcher` it asks for watches that last a day and for no bookmarks: in virtual time every
//! reconnection and every bookmark would be an event in a cluster in which nothing happens.

use std::time::Duration;

use futures::future::Either;
use futures::stream;
use futures::stream::{BoxStream, StreamExt};
use http::Request;
use kube::Client;
use kube::api::{ObjectList, WatchEvent};

use super::world::{Watched, World};

/// How long to wait before an attempt after a failure. Always the same, so that no seed is needed for it.
const PAUSE: Duration = Duration::from_secs(1);

/// How long one watch lasts, in seconds.
const LASTS: u32 = 86_400;

/// Something that the world learns.
pub(crate) type News = Box<dyn FnOnce(&mut World) + Send>;

type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

enum State<K> {
    Start,
    Listed(String),
    Watching(String, Events<K>),
}

/// Watches all objects of a kind, for ever.
pub(crate) fn watch<K: Watched + std::fmt::Debug>(client: Client) -> BoxStream<'static, News> {
    stream::unfold((client, State::<K>::Start), |(client, state)| async {
        let (news, state) = step(&client, state).await;
        Some((news, (client, state)))
    })
    .filter_map(|news| async { news })
    .boxed()
}

async fn step<K: Watched + std::fmt::Debug>(
    client: &Client,
    state: State<K>,
) -> (Option<News>, State<K>) {
    match state {
        State::Start => match list::<K>(client).await {
            Ok(list) => {
                let at = list.metadata.resource_version.unwrap_or_default();
                let (items, version) = (list.items, at.clone());
                let news: News = Box::new(move |world| world.replace(items, &version));
                (Some(news), State::Listed(at))
            }
            Err(error) => {
                tracing::debug!(kind = ?K::KIND, %error, "cannot list");
                tokio::time::sleep(PAUSE).await;
                (None, State::Start)
            }
        },
        State::Listed(at) => match open::<K>(client, &at).await {
            Ok(events) => (None, State::Watching(at, events)),
            Err(kube::Error::Api(status)) if status.code == 410 => (None, State::Start),
            Err(error) => {
                tracing::debug!(kind = ?K::KIND, %error, "cannot watch");
                tokio::time::sleep(PAUSE).await;
                (None, State::Listed(at))
            }
        },
        State::Watching(at, mut events) => {
            // The watch was cut, or its time is over: go on from the last event.
            let Some(Ok(event)) = events.next().await else {
                tokio::time::sleep(PAUSE).await;
                return (None, State::Listed(at));
            };
            match take(event) {
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
fn take<K: Watched>(event: WatchEvent<K>) -> Either<(News, String), bool> {
    let version = |object: &K| object.meta().resource_version.clone().unwrap_or_default();
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let version = version(&object);
            let news: News = Box::new(move |world| world.learn(object));
            Either::Left((news, version))
        }
        WatchEvent::Deleted(object) => {
            let version = version(&object);
            let news: News = Box::new(move |world| world.lose(&object));
            Either::Left((news, version))
        }
        WatchEvent::Bookmark(_) => Either::Right(true),
        WatchEvent::Error(_) => Either::Right(false),
    }
}

async fn list<K: Watched + std::fmt::Debug>(client: &Client) -> kube::Result<ObjectList<K>> {
    let path = K::KIND.collection("");
    client.request(get(&path)?).await
}

async fn open<K: Watched + std::fmt::Debug>(client: &Client, at: &str) -> kube::Result<Events<K>> {
    let path = K::KIND.collection("");
    let query = format!("{path}?watch=true&resourceVersion={at}&timeoutSeconds={LASTS}");
    let events = client.request_events::<K>(get(&query)?).await?;
    Ok(events.boxed())
}

fn get(path: &str) -> kube::Result<Request<Vec<u8>>> {
    Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}
