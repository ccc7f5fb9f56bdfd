//! Whoever tells more than is taken in waits, and nothing is lost.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::json;
use slipway_kernel::identity::{ClusterId, kinds};
use slipway_kernel::interest::Need;
use slipway_kernel::parts::Parts;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::{Bounds, Control, Listener, News, PAGE, Times, Watch, WatchKey};
use crate::channel::Channel;
use crate::ledger::Ledger;
use crate::message::Message;

const PAGES: u32 = 20;

/// A server with so many pages of config maps, and a stream on which nothing comes.
fn client() -> kube::Client {
    let service = tower::service_fn(|request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default();
        if query.split('&').any(|part| part == "watch=true") {
            let silence = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
            return Ok(Response::new(Either::Left(StreamBody::new(silence))));
        }
        let mut parts = query.split('&');
        let from = parts.find_map(|part| part.strip_prefix("continue="));
        let page: u32 = from.map_or(0, |page| page.parse().unwrap());
        let next = (page + 1 < PAGES).then(|| (page + 1).to_string());
        let items: Vec<_> = (0..PAGE)
            .map(|n| json!({"metadata": {"name": format!("{page}-{n}"), "namespace": "default"}}))
            .collect();
        let list = json!({
            "kind": "ConfigMapList", "apiVersion": "v1", "items": items,
            "metadata": {"resourceVersion": "1", "continue": next.unwrap_or_default()},
        });
        let body = Full::from(list.to_string());
        Ok::<_, Infallible>(Response::new(Either::Right(body)))
    });
    kube::Client::new(service, "default")
}

fn watch(room: usize, bounds: Option<Bounds>) -> (Watch, mpsc::UnboundedReceiver<Message>) {
    let (news, told) = mpsc::unbounded_channel();
    let hour = Duration::from_hours(1);
    let key = WatchKey::first(&ClusterId::remote("north"), &kinds::CONFIG_MAP);
    let control = Arc::new(Control::new(1));
    let plain = Channel::from(client());
    let watch = Watch {
        listener: Listener::new(plain.clone(), key.clone(), control.clone(), news.clone()),
        key,
        plain,
        need: Need::Required,
        reads: Parts::ALL,
        times: Times {
            answer: hour,
            missing: hour,
            relist: hour,
            poll: hour,
            silence: None,
        },
        rights: Arc::default(),
        control,
        places: Ledger::default().places(),
        news,
        room: Some(Arc::new(Semaphore::new(room))),
        bounds,
    };
    (watch, told)
}

fn virtually(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test);
}

#[test]
fn a_member_that_tells_more_than_is_taken_in_waits_and_nothing_is_lost() {
    virtually(async {
        let (watch, mut told) = watch(4, None);
        let mut watching = std::pin::pin!(watch.run());
        let a_while = Duration::from_mins(1);
        assert!(timeout(a_while, &mut watching).await.is_err());
        assert_eq!(
            told.len(),
            4,
            "the rest waits, also what is said of the list"
        );
        let (mut objects, mut is_listed) = (0, false);
        while let Ok(message) = told.try_recv() {
            let Message::Watch(_, _, news, room) = message else {
                continue;
            };
            match news {
                News::Page(page) => objects += page.len(),
                News::Listed(names, _) => {
                    assert_eq!(names.len(), objects);
                    is_listed = true;
                }
                _ => {}
            }
            drop(room);
            assert!(timeout(a_while, &mut watching).await.is_err());
        }
        assert!(is_listed);
        assert_eq!(objects, (PAGES * PAGE) as usize);
    });
}

#[test]
fn a_member_with_more_than_is_taken_in_is_listed_again_with_growing_pauses() {
    virtually(async {
        let most = 2 * PAGE as usize;
        let (watch, mut told) = watch(1_000, Bounds::of(most));
        let mut watching = std::pin::pin!(watch.run());
        let a_while = Duration::from_mins(10);
        assert!(timeout(a_while, &mut watching).await.is_err());
        let (mut objects, mut failures) = (0, 0);
        while let Ok(message) = told.try_recv() {
            let Message::Watch(_, _, news, _) = message else {
                continue;
            };
            assert!(!matches!(news, News::Listed(..)), "it was not all");
            match news {
                News::Page(page) => objects += page.len(),
                News::Failed(why) => {
                    assert!(why.is_too_much(), "{why}");
                    assert_eq!(objects, most);
                    (objects, failures) = (0, failures + 1);
                }
                _ => {}
            }
        }
        // After 5, 10, 20, … s.
        assert_eq!(failures, 7);
    });
}
