//! The lines to members: each can be cut, slowed down, and led to another cluster.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame};
use slipway_apiserver::cluster::Cluster;
use slipway_kernel::member::Member;
use slipway_runtime::Channel;
use slipway_runtime::connect::{Connect, Unconnected};
use tokio::sync::watch;
use tower::Service;

/// How a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    /// Nothing that is sent is ever answered.
    Dead,
    /// The same, and streams that are open stay so, and say nothing any more, also when it is over.
    Mute,
    /// What is sent is refused at once.
    Refused,
    /// Every answer takes so long.
    Slow(Duration),
}

/// One line.
#[derive(Clone)]
struct Line {
    cluster: Arc<Cluster>,
    mode: Mode,
    /// Whether what is under way, watches apart, is answered by whoever was asked.
    ends_well: bool,
}

impl Line {
    fn to(cluster: &Arc<Cluster>) -> Self {
        Self {
            cluster: cluster.clone(),
            mode: Mode::Up,
            ends_well: false,
        }
    }
}

/// All lines. Whoever is connected by them sees changes at once, and open streams break.
#[derive(Clone)]
pub(crate) struct Lines {
    agent: String,
    all: Arc<Mutex<BTreeMap<String, Line>>>,
    changes: Arc<watch::Sender<u64>>,
}

impl Lines {
    pub(crate) fn new(clusters: BTreeMap<String, Arc<Cluster>>) -> Self {
        let all = clusters.into_iter();
        let all = all.map(|(name, cluster)| (name, Line::to(&cluster)));
        Self {
            agent: "one".to_owned(),
            all: Arc::new(Mutex::new(all.collect())),
            changes: Arc::new(watch::Sender::new(0)),
        }
    }

    /// The same lines for another replica.
    pub(crate) fn of(&self, agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn set(&self, name: &str, mode: Mode) {
        self.change(name, |line| line.mode = mode);
    }

    /// This cluster answers from now on, also where none did.
    pub(crate) fn lead(&self, name: &str, cluster: &Arc<Cluster>) {
        let mut all = self.all.lock().unwrap();
        let line = all.entry(name.to_owned());
        line.or_insert_with(|| Line::to(cluster));
        drop(all);
        self.change(name, |line| line.cluster = cluster.clone());
    }

    /// The same, as where the former one is shut down in good order.
    pub(crate) fn hand_over(&self, name: &str, cluster: &Arc<Cluster>) {
        self.change(name, |line| {
            line.cluster = cluster.clone();
            line.ends_well = true;
        });
    }

    /// Who answers at the end of a line.
    pub(crate) fn end_of(&self, name: &str) -> Arc<Cluster> {
        self.line(name).cluster
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Line)) {
        change(self.all.lock().unwrap().get_mut(name).unwrap());
        self.changes.send_modify(|n| *n += 1);
    }

    fn line(&self, name: &str) -> Line {
        self.all.lock().unwrap()[name].clone()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the line is dead")]
pub(crate) struct Dead;

impl Connect for Lines {
    fn connect(&self, member: &Member, credentials: &[u8]) -> Result<Channel, Unconnected> {
        let name = member.cluster.as_str().to_owned();
        let token = String::from_utf8(credentials.to_vec()).unwrap();
        if token.is_empty() {
            return Err(Unconnected("there is nothing in it".to_owned()));
        }
        let lines = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (lines, name, token) = (lines.clone(), name.clone(), token.clone());
            async move {
                let line = lines.line(&name);
                match line.mode {
                    Mode::Up => {}
                    Mode::Dead | Mode::Mute => std::future::pending().await,
                    Mode::Refused => return Err(tower::BoxError::from(Dead)),
                    Mode::Slow(time) => tokio::time::sleep(time).await,
                }
                let mut changes = lines.changes.subscribe();
                let query = request.uri().query().unwrap_or_default();
                let is_watch = query.contains("watch=true");
                let mut inner = line.cluster.service(&token).with_agent(&lines.agent);
                let response = inner.call(request).await.map_err(tower::BoxError::from)?;
                let end = Box::pin(async move {
                    loop {
                        let _ = changes.changed().await;
                        let now = lines.line(&name);
                        let is_same = Arc::ptr_eq(&now.cluster, &line.cluster)
                            || (now.ends_well && !is_watch);
                        if !is_same || matches!(now.mode, Mode::Dead | Mode::Refused) {
                            return End::Broken;
                        }
                        if now.mode == Mode::Mute {
                            return End::Mute;
                        }
                    }
                });
                Ok(response.map(|body| Cut {
                    body: Box::pin(body),
                    end,
                    is_mute: false,
                }))
            }
        });
        Ok(kube::Client::new(service, "default").into())
    }
}

/// A body that ends with its line.
struct Cut<B> {
    body: Pin<Box<B>>,
    end: Pin<Box<dyn Future<Output = End> + Send>>,
    is_mute: bool,
}

/// How a line ends for a stream.
enum End {
    Broken,
    Mute,
}

impl<B> Body for Cut<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<tower::BoxError>,
{
    type Data = Bytes;
    type Error = tower::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.is_mute {
            return Poll::Pending;
        }
        match self.end.as_mut().poll(cx) {
            Poll::Ready(End::Broken) => return Poll::Ready(Some(Err(Dead.into()))),
            Poll::Ready(End::Mute) => {
                self.is_mute = true;
                return Poll::Pending;
            }
            Poll::Pending => {}
        }
        let frame = self.body.as_mut().poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }
}
