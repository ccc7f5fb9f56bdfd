//! The client of a watch: it listens to all that comes, and does not wait for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

use super::failure::NoAnswer;
use super::{Control, Failure, News, WatchKey};
use crate::message::Message;

/// A stream on which nothing has come for this long, no bookmark either, is opened again.
const SILENT: Duration = Duration::from_mins(2);

/// Who listens.
#[derive(Clone)]
struct Ear {
    key: WatchKey,
    control: Arc<Control>,
    news: mpsc::UnboundedSender<Message>,
}

impl Ear {
    /// Something has come on a stream.
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

    /// Waits before a stream is opened, if those before it were closed at once: kube opens the next one without a pause,
    /// and without a word.
    async fn pause(&self) {
        if let Some(wait) = self.control.shunned() {
            let failure = Failure::closed_at_once();
            self.control.fail(&failure);
            self.tell(News::Failed(failure));
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

/// A client that gives up when the head of an answer does not come (kube's watcher would wait for ever), that ends silent
/// streams, and that notes contact.
pub(crate) fn attended(
    client: kube::Client,
    key: WatchKey,
    control: &Arc<Control>,
    news: mpsc::UnboundedSender<Message>,
) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let control = control.clone();
    let ear = Ear { key, control, news };
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, ear) = (client.clone(), ear.clone());
        async move {
            let query = request.uri().query().unwrap_or_default();
            let is_stream = query.split('&').any(|part| part == "watch=true");
            if is_stream {
                ear.pause().await;
            }
            let patience = ear.control.patience();
            let response = tokio::select! {
                biased;
                () = sleep(patience) => {
                    ear.control.is_late();
                    return Err(tower::BoxError::from(NoAnswer(patience)));
                }
                response = client.send(request) => response.map_err(tower::BoxError::from)?,
            };
            let is_good = response.status().is_success();
            match (is_good, is_stream) {
                (true, true) => ear.open(),
                (true, false) => ear.control.hear_part(),
                (false, _) => {}
            }
            Ok(response.map(|body| Attended::new(body, ear, is_good, is_stream)))
        }
    });
    kube::Client::new(service, namespace)
}

/// The body of an answer.
struct Attended {
    body: kube::client::Body,
    ear: Ear,
    is_good: bool,
    /// When a stream counts as silent; none for other answers.
    silent: Option<Pin<Box<Sleep>>>,
    /// Whether nothing has come of it yet.
    is_mute: bool,
}

impl Attended {
    fn new(body: kube::client::Body, ear: Ear, is_good: bool, is_stream: bool) -> Self {
        let silent = (is_good && is_stream).then(|| Box::pin(sleep(SILENT)));
        Self {
            body,
            ear,
            is_good,
            silent,
            is_mute: true,
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
    type Error = <kube::client::Body as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &frame {
            self.note(frame.as_ref());
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
