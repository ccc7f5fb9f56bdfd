//! The lines of a stream, each an event.
//!
//! A line is read where it came; only one that is not whole yet is kept. What a server may send is limited: the longest line, and
//! how many are taken in one turn, so that one that sends without a pause, if only empty lines, takes nobody else's.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Body;
use kube::api::WatchEvent;
use kube::core::Status;
use serde::de::DeserializeOwned;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::WATCH_SECONDS;
use super::bounds::{TooMuch, is_heavy};

/// The longest line: ten times the largest object.
const LONGEST: usize = 16 << 20;

/// A stream on which nothing that is an event has come for this long is dead, whatever else comes: the server would have ended it.
const SILENT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// The lines of a stream.
pub(super) struct Lines<B> {
    /// None once it has ended, or failed.
    body: Option<B>,
    /// What has come and was not looked at.
    rest: Bytes,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// When there last was an event.
    told: Instant,
    /// How many bytes have been read since somebody asked.
    taken: usize,
    /// Whether a line that takes too much room once it is read is not.
    is_bounded: bool,
}

impl<B> Lines<B>
where
    B: Body<Data = Bytes, Error = kube::Error> + Unpin,
{
    pub(super) fn of(body: B, is_bounded: bool) -> Self {
        Self {
            body: Some(body),
            rest: Bytes::new(),
            begun: Vec::new(),
            told: Instant::now(),
            taken: 0,
            is_bounded,
        }
    }

    /// How many bytes of lines have been read since this was asked.
    pub(super) fn taken(&mut self) -> usize {
        std::mem::take(&mut self.taken)
    }

    /// The next event; none at the end.
    pub(super) async fn event<T: DeserializeOwned>(
        &mut self,
    ) -> Option<Result<WatchEvent<T>, kube::Error>> {
        loop {
            let line = match self.line().await? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            self.taken = self.taken.saturating_add(line.len());
            if self.is_bounded && is_heavy(&line) {
                return Some(Err(self.failed(TooMuch::Parts.into())));
            }
            let told = serde_json::from_slice(&line);
            self.let_go();
            match told {
                Ok(event) => {
                    self.told = Instant::now();
                    return Some(Ok(event));
                }
                // An empty line, or one that was cut off at the end of the stream.
                Err(error) if error.is_eof() => {}
                Err(error) => {
                    self.told = Instant::now();
                    let said = serde_json::from_slice::<Status>(&line);
                    return Some(Err(match said {
                        Ok(status) => kube::Error::Api(status.boxed()),
                        Err(_) => kube::Error::SerdeError(error),
                    }));
                }
            }
        }
    }

    /// The next line; none at the end.
    async fn line(&mut self) -> Option<Result<Bytes, kube::Error>> {
        loop {
            // What tells nothing, if only empty frames, is not waited for, and there may be no end of it.
            consume_budget().await;
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(end);
                self.rest.advance(1);
                if self.begun.is_empty() {
                    return Some(Ok(line));
                }
                let mut whole = std::mem::take(&mut self.begun);
                whole.extend_from_slice(&line);
                return Some(Ok(whole.into()));
            }
            self.begun
                .extend_from_slice(&std::mem::take(&mut self.rest));
            if self.begun.len() > LONGEST {
                return Some(Err(
                    self.failed(kube::Error::LinesCodecMaxLineLengthExceeded)
                ));
            }
            let frame = match &mut self.body {
                Some(body) => body.frame().await,
                None => return None,
            };
            match frame {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                None => {
                    self.body = None;
                    let last = std::mem::take(&mut self.begun);
                    return (!last.is_empty()).then(|| Ok(last.into()));
                }
                Some(Err(error)) => {
                    let is_end = is_cut_off(&error);
                    let error = self.failed(kube::Error::ReadEvents(io::Error::other(error)));
                    return (!is_end).then_some(Err(error));
                }
            }
            if self.told.elapsed() > SILENT {
                self.body = None;
                self.begun.clear();
                return None;
            }
        }
    }

    /// Nothing comes after an error.
    fn failed(&mut self, error: kube::Error) -> kube::Error {
        self.body = None;
        self.begun = Vec::new();
        error
    }

    /// Keeps nothing of what has been looked at.
    fn let_go(&mut self) {
        if self.rest.is_empty() {
            self.rest = Bytes::new();
        }
    }
}

/// Whether a connection has ended in the middle of an answer, as proxies end those that have been open for some time: the next
/// stream goes on from there, and nothing is wrong.
fn is_cut_off(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests;
