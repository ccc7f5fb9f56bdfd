//! What is listed of a kind and told of it afterwards, for as long as somebody asks for the next.
//!
//! kube's watcher, with less between it and the connection: it keeps nothing while nothing comes, where kube's has a client of its
//! own, with a task and a queue, and a buffer for lines. A stream that ends is opened again where it ended, and one whose version is
//! gone begins with a new list. What one line, one answer and one turn may be is limited: nobody else's time and room is taken.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::HeaderValue;
use http::header::ACCEPT_ENCODING;
use kube::api::{WatchEvent, WatchParams};
use kube::core::Request;
use kube::runtime::watcher::Error;
use serde_json::Value;
use slipway_kernel::parts::{Part, Parts, Read};
use slipway_kernel::store::Meta;

use super::attend::{Attended, Listener};
use super::bounds::{Bounds, Taken};
use super::lines::Lines;
use super::whole::{ALL, MOST, kept, listed, page, selected};
use super::{WATCH_SECONDS, Watch, WatchKey};

/// What is told of a kind.
pub(super) enum Event {
    /// A list begins.
    Init,
    /// Objects of it.
    Page(Vec<Value>),
    /// It has ended.
    Done,
    /// This object is new or has changed.
    Apply(Value),
    /// This object is gone.
    Delete(Value),
}

/// How far it is.
enum State {
    /// Nothing is known.
    Empty,
    /// A list is under way; where its next page is, and what has been taken of it.
    Listing(Option<String>, Box<Taken>),
    /// All of a list has been told, but not that.
    Told(String),
    /// A list or a stream has ended at this version.
    Ended(String),
    /// A stream is open, and has told all up to this version.
    Open(String, Box<Lines<Attended>>),
}

/// Whoever lists and watches.
struct Source {
    listener: Listener,
    key: WatchKey,
    reads: Parts,
    bounds: Option<Bounds>,
    /// How many bytes have come on streams since the last list.
    streamed: usize,
    state: State,
}

impl Watch {
    /// All objects, and what becomes of them. Whoever asks for the next after an error waits first.
    pub(super) fn objects(&self) -> BoxStream<'static, Result<Event, Error>> {
        let source = Source {
            listener: self.listener.clone(),
            key: self.key.clone(),
            reads: self.reads,
            bounds: self.bounds,
            streamed: 0,
            state: State::Empty,
        };
        stream::unfold(source, |mut source| async move {
            let event = source.next().await;
            Some((event, source))
        })
        .boxed()
    }
}

impl Source {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            // What is large and seldom is in boxes, so that nothing is kept of it while nothing comes.
            match &mut self.state {
                State::Empty => {
                    self.streamed = 0;
                    self.state = State::Listing(None, Box::new(Taken::nothing(self.bounds)));
                    return Ok(Event::Init);
                }
                State::Listing(next, taken) => {
                    let (next, taken) = (next.take(), taken.as_ref().clone());
                    return Box::pin(self.page(next, taken)).await;
                }
                State::Told(version) => {
                    self.state = State::Ended(std::mem::take(version));
                    return Ok(Event::Done);
                }
                State::Ended(version) => {
                    let version = std::mem::take(version);
                    if let Err(error) = Box::pin(self.open(version)).await {
                        return Err(Error::WatchStartFailed(error));
                    }
                }
                State::Open(..) => {
                    let told = if self.reads.has(Part::ManagedFields) {
                        self.told::<ALL>().await
                    } else {
                        self.told::<MOST>().await
                    };
                    if let Some(told) = told {
                        return told;
                    }
                }
            }
        }
    }

    /// The next page of a list of which that has been taken.
    async fn page(&mut self, next: Option<String>, mut taken: Taken) -> Result<Event, Error> {
        // Whatever comes to nothing begins anew.
        self.state = State::Empty;
        let mut params = listed(&self.key).limit(taken.next_page());
        params.continue_token = next;
        let what = (&self.key, self.reads);
        let page = page(&self.listener, what, &params, &mut taken).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => return Err(Error::InitialListFailed(error)),
        };
        self.state = match (page.next, page.version) {
            (None, None) => return Err(Error::NoResourceVersion),
            (Some(next), _) => State::Listing(Some(next), Box::new(taken)),
            (None, Some(version)) => State::Told(version),
        };
        Ok(Event::Page(page.objects))
    }

    async fn open(&mut self, version: String) -> Result<(), kube::Error> {
        let is_bounded = self.bounds.is_some();
        let opened = streamed(&self.listener, &self.key, &version, is_bounded).await;
        self.state = match opened {
            Ok(lines) => State::Open(version, Box::new(lines)),
            Err(error) => {
                self.state = State::Ended(version);
                return Err(error);
            }
        };
        Ok(())
    }

    /// The next that a stream tells; none where it is nothing that anybody has to know.
    async fn told<const PARTS: u8>(&mut self) -> Option<Result<Event, Error>> {
        let State::Open(version, lines) = &mut self.state else {
            return None;
        };
        let Some(told) = lines.event::<Read<PARTS>>().await else {
            self.state = State::Ended(std::mem::take(version));
            return None;
        };
        self.streamed = self.streamed.saturating_add(lines.taken());
        if self.bounds.is_some_and(|b| self.streamed > b.bytes()) {
            // Nobody knows how much of all that is kept: what there is now is listed, within its own bounds.
            self.state = State::Empty;
            return None;
        }
        let (object, is_gone) = match told {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, false),
            Ok(WatchEvent::Deleted(object)) => (object, true),
            Ok(WatchEvent::Bookmark(mark)) => {
                let newest = mark.metadata.resource_version;
                // One without a version says nothing: a stream that is opened at none begins with what there is then, and not with
                // what has gone since.
                if !newest.is_empty() {
                    *version = newest;
                }
                return None;
            }
            Ok(WatchEvent::Error(status)) => {
                // The version is gone: what has happened since can only be seen in a new list.
                if status.code == 410 {
                    self.state = State::Empty;
                }
                return Some(Err(Error::WatchError(status)));
            }
            Err(error) => return Some(Err(Error::WatchFailed(error))),
        };
        let object = kept(object, self.reads);
        let newest = Meta::of(&object).version;
        if newest.is_empty() {
            self.state = State::Empty;
            return Some(Err(Error::NoResourceVersion));
        }
        *version = newest;
        Some(Ok(if is_gone {
            Event::Delete(object)
        } else {
            Event::Apply(object)
        }))
    }
}

/// Opens a stream at a version.
async fn streamed(
    listener: &Listener,
    key: &WatchKey,
    version: &str,
    is_bounded: bool,
) -> Result<Lines<Attended>, kube::Error> {
    let (label_selector, field_selector) = selected(key);
    let params = WatchParams {
        label_selector,
        field_selector,
        timeout: Some(WATCH_SECONDS),
        ..WatchParams::default()
    };
    let request = Request::new(key.kind.path(&key.namespace)).watch(&params, version);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let answer = listener.open(request).await?;
    Ok(Lines::of(answer.into_body(), is_bounded))
}

#[cfg(test)]
mod tests;
