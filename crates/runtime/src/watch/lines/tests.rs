#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::poll;
use hyper::body::Frame;
use serde_json::Value;

use super::*;

/// Says these one after the other.
struct Said(VecDeque<Result<Bytes, kube::Error>>);

/// Says the same for ever.
struct Endless(&'static [u8]);

impl Body for Said {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        Poll::Ready(self.0.pop_front().map(|said| said.map(Frame::data)))
    }
}

impl Body for Endless {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0)))))
    }
}

const TEXT: &str = concat!(
    "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n",
    "\r\n",
    "{\"type\":\"BOOKMARK\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\"}}}\n",
    "{\"type\":\"DELETED\",\"object\":{\"b\":\"\\n\"}}\n",
    "{\"type\":\"ADDED\",\"obj",
);

fn said(chunks: impl IntoIterator<Item = Result<Bytes, kube::Error>>) -> Lines<Said> {
    Lines::of(Said(chunks.into_iter().collect()), true)
}

async fn told(lines: &mut Lines<Said>) -> Option<String> {
    Some(match lines.event::<Value>().await? {
        Ok(WatchEvent::Added(object)) => format!("added {object}"),
        Ok(WatchEvent::Deleted(object)) => format!("deleted {object}"),
        Ok(WatchEvent::Bookmark(mark)) => format!("bookmark {}", mark.metadata.resource_version),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("error: {error}"),
    })
}

#[tokio::test]
async fn events_are_the_same_however_they_are_cut() {
    for size in 1..TEXT.len() {
        let chunks = TEXT.as_bytes().chunks(size).map(Bytes::copy_from_slice);
        let mut lines = said(chunks.map(Ok));
        let mut all = Vec::new();
        while let Some(event) = told(&mut lines).await {
            all.push(event);
        }
        let expected = [r#"added {"a":1}"#, "bookmark 7", r#"deleted {"b":"\n"}"#];
        assert_eq!(all, expected, "cut after each {size} bytes");
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_line_that_was_read() {
    let line = Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":1}\n");
    let mut lines = said([Ok(line.slice(..5)), Ok(line.slice(5..))]);
    assert!(told(&mut lines).await.is_some());
    assert_eq!((lines.rest.len(), lines.begun.capacity()), (0, 0));
}

#[tokio::test]
async fn a_refusal_among_events_is_told_and_nonsense_is_an_error() {
    let status =
        r#"{"kind":"Status","status":"Failure","message":"no","code":410,"reason":"Gone"}"#;
    let text = format!("{status}\n7\n");
    let mut lines = said([Ok(Bytes::from(text))]);
    let refusal = lines.event::<Value>().await.unwrap();
    assert!(matches!(refusal, Err(kube::Error::Api(status)) if status.code == 410));
    let nonsense = lines.event::<Value>().await.unwrap();
    assert!(matches!(nonsense, Err(kube::Error::SerdeError(_))));
    assert!(lines.event::<Value>().await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_cut_off_ends_and_one_that_breaks_fails() {
    let broken = |kind: ErrorKind| {
        let error = io::Error::new(kind, "over");
        kube::Error::Service(Box::new(error))
    };
    let mut lines = said([Err(broken(ErrorKind::UnexpectedEof))]);
    assert!(lines.event::<Value>().await.is_none());
    let mut lines = said([Err(broken(ErrorKind::BrokenPipe))]);
    let failed = lines.event::<Value>().await.unwrap();
    assert!(matches!(failed, Err(kube::Error::ReadEvents(_))));
    assert!(lines.event::<Value>().await.is_none());
}

/// A forged member, or a broken proxy before one, that never pauses.
#[tokio::test]
async fn lines_without_end_that_tell_nothing_take_nobody_elses_turn() {
    for nothing in [&b"\n\n\n"[..], b" ", b""] {
        let mut lines = Lines::of(Endless(nothing), true);
        let mut event = std::pin::pin!(lines.event::<Value>());
        assert!(poll!(&mut event).is_pending(), "{nothing:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    static MUCH: [u8; 1 << 20] = [b'x'; 1 << 20];
    let mut lines = Lines::of(Endless(&MUCH), true);
    let failed = lines.event::<Value>().await.unwrap();
    let is_too_long = matches!(failed, Err(kube::Error::LinesCodecMaxLineLengthExceeded));
    assert!(is_too_long);
    assert!(lines.event::<Value>().await.is_none());
    assert_eq!(lines.begun.capacity(), 0);
}

/// It has no more bytes than a line may have, and would take a gigabyte once it is read.
#[tokio::test]
async fn a_line_of_many_small_parts_is_not_read() {
    let parts = "{\"\":0},".repeat((15 << 20) / 7);
    let line = format!("{{\"type\":\"ADDED\",\"object\":[{parts}0]}}\n");
    let mut lines = said([Ok(Bytes::from(line))]);
    let failed = lines.event::<Value>().await.unwrap();
    let error = failed.err().unwrap();
    assert_eq!(super::super::bounds::too_much(&error), Some(TooMuch::Parts));
    assert!(lines.event::<Value>().await.is_none());
}
