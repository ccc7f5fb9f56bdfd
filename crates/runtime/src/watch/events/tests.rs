//! Against a server that says what it was told to say, in virtual time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame};
use slipway_kernel::identity::{ClusterId, kinds};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::Control;
use super::*;
use crate::channel::Channel;

/// What is said, and whether that is all.
struct Said {
    text: Option<Bytes>,
    ends: bool,
}

impl Body for Said {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.text.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// How many objects are taken in.
const BOUND: usize = 4;

const LIST: &str = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}"#;

fn answer(code: u16, text: impl Into<String>, ends: bool) -> Response<Said> {
    let text = Some(Bytes::from(text.into()));
    let answer = Response::builder().status(code);
    answer.body(Said { text, ends }).unwrap()
}

fn added(version: u64) -> String {
    format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

fn bookmark(version: &str) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

/// What was asked, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// Whoever watches a server that gives these answers one after the other, and then none.
fn source(answers: impl IntoIterator<Item = Response<Said>>) -> (Source, Asked) {
    let asked = Asked::default();
    let noted = asked.clone();
    let answers: VecDeque<_> = answers.into_iter().collect();
    let answers = Mutex::new(answers);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        noted.lock().unwrap().push(request.uri().to_string());
        let answer = answers.lock().unwrap().pop_front();
        async move {
            match answer {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    let channel = Channel::from(kube::Client::new(service, "default"));
    let key = WatchKey::first(&ClusterId::remote("north"), &kinds::CONFIG_MAP);
    let (news, _) = mpsc::unbounded_channel();
    let control = Arc::new(Control::new(1));
    let source = Source {
        listener: Listener::new(channel, key.clone(), control, news),
        key,
        reads: Parts::ALL,
        bounds: Bounds::of(BOUND),
        streamed: 0,
        state: State::Empty,
    };
    (source, asked)
}

async fn next(source: &mut Source) -> String {
    match source.next().await {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::Page(objects)) => format!("page of {}", objects.len()),
        Ok(Event::Done) => "done".to_owned(),
        Ok(Event::Apply(object)) => format!("applied {}", Meta::of(&object).version),
        Ok(Event::Delete(object)) => format!("deleted {}", Meta::of(&object).version),
        Err(Error::WatchError(status)) => format!("told {}", status.code),
        Err(Error::WatchStartFailed(kube::Error::Api(status))) => {
            format!("refused {}", status.code)
        }
        Err(Error::WatchStartFailed(kube::Error::Service(why))) => why.to_string(),
        Err(error) => format!("{error:?}"),
    }
}

/// Goes on until a list has been told.
async fn listed(source: &mut Source) {
    for told in ["init", "page of 0", "done"] {
        assert_eq!(next(source).await, told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_where_it_ended_and_a_bookmark_without_a_version_is_none() {
    let first = added(7) + &bookmark("9") + &bookmark("");
    let (mut source, asked) = source([
        answer(200, LIST, true),
        answer(200, first, true),
        answer(200, added(11), true),
    ]);
    listed(&mut source).await;
    assert_eq!(next(&mut source).await, "applied 7");
    assert_eq!(next(&mut source).await, "applied 11");
    let asked = asked.lock().unwrap().clone();
    assert!(asked[1].contains("resourceVersion=5"), "{asked:?}");
    assert!(asked[2].contains("resourceVersion=9"), "{asked:?}");
    assert!(asked[2].contains("allowWatchBookmarks=true"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_version_that_is_gone_is_a_list() {
    let gone = concat!(
        r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","#,
        r#""message":"too old","reason":"Expired","code":410}}"#,
        "\n"
    );
    let (mut source, _) = source([
        answer(200, LIST, true),
        answer(200, gone, false),
        answer(200, LIST, true),
    ]);
    listed(&mut source).await;
    assert_eq!(next(&mut source).await, "told 410");
    listed(&mut source).await;
}

/// A forged member, or a broken proxy before one.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_does_not_end_is_given_up_and_tried_again() {
    let (mut source, asked) = source([
        answer(200, LIST, true),
        answer(503, "{\"kind\":", false),
        answer(200, added(6), false),
    ]);
    listed(&mut source).await;
    let began = Instant::now();
    assert_eq!(next(&mut source).await, "no answer within 10 s");
    assert!(began.elapsed() < Duration::from_secs(11));
    assert_eq!(next(&mut source).await, "applied 6");
    assert!(asked.lock().unwrap()[2].contains("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn whoever_points_elsewhere_or_answers_with_a_page_refuses() {
    let (mut source, _) = source([
        answer(200, LIST, true),
        answer(302, "<html>", true),
        answer(502, "", true),
    ]);
    listed(&mut source).await;
    for code in [302, 502] {
        assert_eq!(next(&mut source).await, format!("refused {code}"));
    }
}

/// A page with so many objects and a next one.
fn page_of(objects: usize) -> Response<Said> {
    let items: Vec<_> = (0..objects)
        .map(|n| serde_json::json!({"metadata": {"name": n.to_string()}}))
        .collect();
    let list = serde_json::json!({
        "metadata": {"resourceVersion": "5", "continue": "more"}, "items": items,
    });
    answer(200, list.to_string(), true)
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_end_is_given_up_at_its_bound() {
    let excess = "more than 4 objects";
    let too_much = |error: Error| match error {
        Error::InitialListFailed(kube::Error::Service(why)) => why.to_string(),
        other => format!("{other:?}"),
    };
    for pages in [vec![2, 2, 2], vec![5], vec![0; 6]] {
        let (mut source, asked) = source(pages.iter().map(|objects| page_of(*objects)));
        assert_eq!(next(&mut source).await, "init");
        for objects in &pages[1..] {
            assert_eq!(next(&mut source).await, format!("page of {objects}"));
        }
        let error = source.next().await.err().unwrap();
        assert_eq!(too_much(error), excess, "{pages:?}");
        assert_eq!(asked.lock().unwrap().len(), pages.len());
        // The next one begins anew.
        assert_eq!(next(&mut source).await, "init");
    }
}

/// What is told again and again need not be the same objects, and nobody keeps count of which they are.
#[tokio::test(start_paused = true)]
async fn after_as_much_on_streams_as_a_list_may_have_everything_is_listed() {
    let large = |version: u64| {
        let text = "x".repeat(9 << 20);
        format!(
            "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"{version}\"}},\"data\":\"{text}\"}}}}\n"
        )
    };
    let (mut source, _) = source([
        answer(200, LIST, true),
        answer(200, large(6), true),
        answer(200, large(7), true),
        answer(200, LIST, true),
    ]);
    listed(&mut source).await;
    assert_eq!(next(&mut source).await, "applied 6");
    listed(&mut source).await;
}
