//! Answers on their way to a replica: watch events can be lost, doubled, late, or the last.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::json;
use slipway_apiserver::shell;
use slipway_apiserver::status::Status;
use slipway_kernel::identity::ClusterId;
use tokio::time::{Instant, Sleep};

use super::weather::{Flow, Line, Weather};
use crate::fault::{Adversary, EventFault, LATE};
use crate::history::{Event, Recorder};

/// The body of an answer.
#[derive(Debug)]
pub struct Events {
    body: Option<shell::Body>,
    ready: VecDeque<Bytes>,
    late: Option<Pin<Box<Sleep>>>,
    faults: Option<Faults>,
}

/// What a watch needs to go wrong.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) recorder: Recorder,
    pub(super) adversary: Arc<Mutex<Adversary>>,
    pub(super) relist: Duration,
    /// The cluster that the watch is of.
    pub(super) cluster: ClusterId,
    /// The plural of what is watched.
    pub(super) about: String,
    pub(super) place: Place,
}

/// Which watch it is, and whose.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) weather: Arc<Weather>,
    pub(super) line: Line,
    /// `plural.group`.
    pub(super) kind: String,
    pub(super) opened: Instant,
}

impl Place {
    fn flow(&self) -> Flow {
        self.weather.on_watch(&self.line, &self.kind, self.opened)
    }
}

impl Faults {
    /// What happens to the next event. It is written down, with the time until its consequences are over.
    fn next(&self) -> Option<EventFault> {
        let (_, fault) = self
            .adversary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .on_event();
        let fault = fault?;
        let (cluster, about) = (self.cluster.clone(), self.about.clone());
        self.recorder
            .mark(Event::Watch(cluster, about, fault.name()));
        let lasts = match fault {
            // Nobody can know before everything is listed again.
            EventFault::Drop => self.relist,
            EventFault::Delay => LATE,
            EventFault::Duplicate | EventFault::Close | EventFault::Gone => Duration::ZERO,
        };
        self.recorder.disturbed_for(lasts);
        Some(fault)
    }
}

impl Events {
    /// An answer of the server. Only those that come piece by piece meet faults.
    pub(super) fn new(body: shell::Body, faults: Faults) -> Self {
        let streams = matches!(body, shell::Body::Stream(_));
        Self {
            body: Some(body),
            ready: VecDeque::new(),
            late: None,
            faults: streams.then_some(faults),
        }
    }

    /// An answer that the server never gave.
    pub(super) fn said(text: String) -> Self {
        Self {
            body: None,
            ready: VecDeque::from([text.into()]),
            late: None,
            faults: None,
        }
    }

    /// Takes in an event of the watch, as the fault at its place wants it.
    fn take(&mut self, event: Bytes) {
        let Some(faults) = &self.faults else {
            self.ready.push_back(event);
            return;
        };
        // The two ends at which the type can be.
        let bookmark = b"\"type\":\"BOOKMARK\"";
        if event
            .get(1..)
            .is_some_and(|rest| rest.starts_with(bookmark))
            || event.trim_ascii_end().ends_with(b"\"type\":\"BOOKMARK\"}")
        {
            self.ready.push_back(event);
            return;
        }
        match faults.next() {
            None => self.ready.push_back(event),
            Some(EventFault::Drop) => {}
            Some(EventFault::Duplicate) => {
                self.ready.push_back(event.clone());
                self.ready.push_back(event);
            }
            Some(EventFault::Delay) => {
                self.late = Some(Box::pin(tokio::time::sleep(LATE)));
                self.ready.push_back(event);
            }
            Some(EventFault::Close) => self.body = None,
            Some(EventFault::Gone) => {
                self.body = None;
                let status = Status::expired("too old resource version: on purpose");
                let text = json!({"type": "ERROR", "object": status}).to_string();
                self.ready.push_back(format!("{text}\n").into());
            }
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(faults) = &this.faults {
            faults.place.weather.wake(cx.waker());
        }
        loop {
            match this.faults.as_ref().map(|faults| faults.place.flow()) {
                None | Some(Flow::Open) => {}
                // Whoever reads has to find out by the clock.
                Some(Flow::Silent) => return Poll::Pending,
                Some(Flow::Broken) => return Poll::Ready(None),
            }
            if let Some(late) = &mut this.late {
                std::task::ready!(late.as_mut().poll(cx));
                this.late = None;
            }
            if let Some(bytes) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let Some(body) = &mut this.body else {
                return Poll::Ready(None);
            };
            match std::task::ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.take(data);
                    }
                }
                _ => return Poll::Ready(None),
            }
        }
    }
}
