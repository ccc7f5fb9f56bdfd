//! Requests between a program and its API server: some are held on their way until they are let go.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use futures::TryStreamExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::client::connected;
use crate::https::{self, Answer};
use crate::process::Folder;

/// A checkpoint in front of an API server; it ends with this value.
pub struct Checkpoint {
    door: Arc<Door>,
    kubeconfig: PathBuf,
    _runtime: Runtime,
    _folder: Folder,
}

/// What all connections share.
struct Door {
    upstream: kube::Client,
    /// Whether deletions of pods wait.
    is_closed: watch::Sender<bool>,
    /// The paths that have waited.
    held: Mutex<Vec<String>>,
}

impl Checkpoint {
    /// In front of the server of this kubeconfig. Whoever goes through here has the rights of its user.
    pub fn start(kubeconfig: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (upstream, listener) = runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            let listener = listener.context("listening for a checkpoint")?;
            anyhow::Ok((connected(kubeconfig).await?, listener))
        })?;
        let folder = Folder::new("checkpoint")?;
        let kubeconfig = folder.path().join("kubeconfig");
        https::write_kubeconfig(&kubeconfig, listener.local_addr()?.port())?;
        let door = Arc::new(Door {
            upstream,
            is_closed: watch::Sender::new(false),
            held: Mutex::default(),
        });
        let served = door.clone();
        runtime.spawn(https::serve(listener, move |request| {
            served.clone().answer(request)
        }));
        Ok(Self {
            door,
            kubeconfig,
            _runtime: runtime,
            _folder: folder,
        })
    }

    /// The kubeconfig of who is to go through here.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Deletions of pods wait from now on, before the API server sees them.
    pub fn hold_deletions(&self) {
        self.door.is_closed.send_replace(true);
    }

    /// Those that wait go on, and so do all others.
    pub fn let_go(&self) {
        self.door.is_closed.send_replace(false);
    }

    /// The paths of those that waited, or wait.
    pub fn held(&self) -> Vec<String> {
        self.door.held().clone()
    }
}

impl Door {
    fn held(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = parts.uri.path();
        if parts.method == Method::DELETE && path.contains("/pods/") {
            let mut closed = self.is_closed.subscribe();
            if *closed.borrow_and_update() {
                self.held().push(path.to_owned());
                closed.wait_for(|is_closed| !is_closed).await?;
            }
        }
        let forward = https::passed_on(&parts, &body, &["accept-encoding"])?;
        let (parts, body) = self.upstream.send(forward).await?.into_parts();
        let frames = StreamBody::new(body.into_data_stream().map_ok(Frame::data));
        Ok(https::reply(&parts, frames.boxed_unsync()))
    }
}
