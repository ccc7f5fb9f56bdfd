//! Webhooks that a Canary asks: gates that are opened and closed, and remember who asked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::listener::{Answer, Listener, text};

/// Somebody asked.
#[derive(Debug, Clone)]
pub struct Call {
    /// Which gate.
    pub gate: String,
    /// What was sent.
    pub body: Value,
    /// When it came.
    pub at: Timestamp,
}

#[derive(Default)]
struct Doors {
    closed: BTreeSet<String>,
    calls: Vec<Call>,
}

/// Gates on loopback; they end with this value. A gate is open until it is closed.
pub struct Gates {
    doors: Arc<Mutex<Doors>>,
    listener: Listener,
    _runtime: Runtime,
}

impl Gates {
    /// Serves them.
    pub fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("starting the gates' runtime")?;
        let doors: Arc<Mutex<Doors>> = Arc::default();
        let asked = doors.clone();
        let listener = runtime.block_on(Listener::start(move |request| {
            answer(asked.clone(), request)
        }))?;
        Ok(Self {
            doors,
            listener,
            _runtime: runtime,
        })
    }

    fn doors(&self) -> MutexGuard<'_, Doors> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everybody through who asks for this gate, or nobody.
    pub fn set(&self, gate: &str, is_open: bool) {
        let mut doors = self.doors();
        if is_open {
            doors.closed.remove(gate);
        } else {
            doors.closed.insert(gate.to_owned());
        }
    }

    /// A webhook of a Canary that asks for this gate.
    pub fn webhook(&self, kind: &str, gate: &str) -> Value {
        let url = format!("http://127.0.0.1:{}/{gate}", self.listener.port());
        json!({"name": gate, "type": kind, "url": url})
    }

    /// Who has asked for a gate so far.
    pub fn calls(&self, gate: &str) -> Vec<Call> {
        let doors = self.doors();
        let calls = doors.calls.iter().filter(|call| call.gate == gate);
        calls.cloned().collect()
    }

    /// All who have asked since the last time that this was asked for.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.doors().calls)
    }
}

async fn answer(doors: Arc<Mutex<Doors>>, request: Request<Incoming>) -> Answer {
    let at = Timestamp::now();
    let gate = request.uri().path().trim_start_matches('/').to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes);
    let body = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let mut doors = doors.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = !doors.closed.contains(&gate);
    doors.calls.push(Call { gate, body, at });
    if is_open {
        text(200, "open")
    } else {
        text(403, "closed")
    }
}
