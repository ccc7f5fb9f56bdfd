//! The way of a watch to the API: it listens to all that comes, and does not wait for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use kube::client::Body as Sent;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::contact::BRIEF;
use super::failure::NoAnswer;
use super::{Control, Failure, News, WatchKey};
use crate::channel::{Answer, Carry, Channel, good};
use crate::message::Message;

/// A stream on which nothing has come for this long, no bookmark either, is opened again.
const SILENT: Duration = Duration::from_mins(2);

/// Who listens.
struct Ear {
    key: WatchKey,
    control: Arc<Control>,
    news: mpsc::UnboundedSender<Message>,
}

impl Ear {
    /// Something has come on a stream, or it has stayed open where others did not.
    fn hear(&self) {
        if self.control.hear_stream() {
            self.tell(News::Reached);
        }
    }

    /// A stream has been opened.
    fn open(&self) {
        if self.control.open() {
            self.tell(News::Reached);
        }
    }

    /// Waits before a stream is opened, if those before it were closed at once, or as soon as they had told something: the next one is
    /// opened without a pause, and without a word.
    async fn pause(&self) {
        if let Some(wait) = self.control.shunned() {
            let failure = Failure::closed_at_once();
            self.control.fail(&failure);
            self.tell(News::Failed(failure));
            sleep(wait).await;
        } else if let Some(wait) = self.control.hasty() {
            sleep(wait).await;
        }
    }

    fn tell(&self, news: News) {
        // Nobody listens when the replica is about to end.
        let run = self.control.run;
        let message = Message::Watch(self.key.clone(), run, news, None);
        let _ = self.news.send(message);
    }
}

/// A way to the API that gives up when the head of an answer does not come, that ends silent streams, and that notes contact.
#[derive(Clone)]
pub(crate) struct Listener {
    channel: Channel,
    ear: Arc<Ear>,
}

impl Listener {
    pub(crate) fn new(
        channel: Channel,
        key: WatchKey,
        control: Arc<Control>,
        news: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let ear = Arc::new(Ear { key, control, news });
        Self { channel, ear }
    }

    /// Asks for something that ends.
    pub(super) async fn ask(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Attended>, kube::Error> {
        self.send(request, false).await
    }

    /// Asks for a stream. A refusal has to be told in time as well: nobody else looks at the clock meanwhile.
    pub(super) async fn open(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Attended>, kube::Error> {
        self.ear.pause().await;
        let answer = self.send(request, true).await?;
        let patience = self.ear.control.patience();
        let Ok(answer) = timeout(patience, good(answer)).await else {
            self.ear.control.is_late();
            return Err(kube::Error::Service(Box::new(NoAnswer(patience))));
        };
        answer
    }

    async fn send(
        &self,
        request: Request<Vec<u8>>,
        is_stream: bool,
    ) -> Result<Response<Attended>, kube::Error> {
        let control = &self.ear.control;
        let patience = control.patience();
        let response = tokio::select! {
            biased;
            () = sleep(patience) => {
                control.is_late();
                return Err(kube::Error::Service(Box::new(NoAnswer(patience))));
            }
            response = self.channel.carry(request.map(Sent::from)) => response?,
        };
        let is_good = response.status().is_success();
        match (is_good, is_stream) {
            (true, true) => self.ear.open(),
            (true, false) => control.hear_part(),
            (false, _) => {}
        }
        let ear = self.ear.clone();
        Ok(response.map(|body| Attended::new(body, ear, is_good, is_stream)))
    }
}

/// The body of an answer.
pub(super) struct Attended {
    body: Answer,
    ear: Arc<Ear>,
    is_good: bool,
    /// When a stream counts as silent; none for other answers.
    silent: Option<Pin<Box<Sleep>>>,
    /// Whether nothing has come of it yet.
    is_mute: bool,
    /// When a stream has stayed open that was opened after others had been closed at once: one in which nothing happens says nothing for
    /// a minute, and no other sign of contact need come by then.
    stays: Option<Pin<Box<Sleep>>>,
}

impl Attended {
    fn new(body: Answer, ear: Arc<Ear>, is_good: bool, is_stream: bool) -> Self {
        let is_open = is_good && is_stream;
        let silent = is_open.then(|| Box::pin(sleep(SILENT)));
        let is_unsure = is_open && ear.control.shunned().is_some();
        Self {
            body,
            ear,
            is_good,
            silent,
            is_mute: true,
            stays: is_unsure.then(|| Box::pin(sleep(BRIEF))),
        }
    }

    /// Nothing comes, and it is open.
    fn stay(&mut self, cx: &mut Context<'_>) {
        let is_over = |stays: &mut Pin<Box<Sleep>>| stays.as_mut().poll(cx).is_ready();
        if self.stays.as_mut().is_some_and(is_over) {
            self.stays = None;
            self.ear.hear();
        }
    }

    /// Notes what the frame that has come, or the end, says about contact.
    fn note<E>(&mut self, frame: Option<&Result<Frame<Bytes>, E>>) {
        match (frame, &mut self.silent) {
            (Some(Ok(_)), Some(silent)) => {
                silent.as_mut().reset(Instant::now() + SILENT);
                self.is_mute = false;
                self.ear.hear();
            }
            (Some(Ok(_)), None) if self.is_good => self.ear.control.hear_part(),
            (Some(Err(_)) | None, Some(_)) => {
                self.ear.control.ended(self.is_mute);
                self.ear.tell(News::Ended);
            }
            _ => {}
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if self.silent.is_some() {
            self.ear.control.close();
        }
    }
}

impl Body for Attended {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &frame {
            self.note(frame.as_ref());
        } else {
            self.stay(cx);
        }
        match &mut self.silent {
            Some(silent) if frame.is_pending() => silent.as_mut().poll(cx).map(|()| None),
            _ => frame,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
