//! Watches a collection through `kubectl get --raw`, and keeps every event with the time it came.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cluster::Cluster;

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct Event {
    /// When it arrived here.
    pub at: SystemTime,
    /// `ADDED`, `MODIFIED`, `DELETED`.
    pub kind: String,
    /// The object.
    pub object: Value,
}

/// A watch that runs until this value is dropped.
pub struct Watch {
    child: Child,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Watch {
    /// Watches a collection from now on; `path` is as in `/apis/apps/v1/deployments`. Each object goes through `keep`
    /// first, which takes away what nobody asks for.
    pub fn start(cluster: &Cluster, path: &str, keep: fn(Value) -> Value) -> Result<Self> {
        let list = cluster.raw(&format!("{path}?limit=1"))?;
        let version = list
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
            .context("a list without a version")?
            .to_owned();
        let mut child = cluster
            .command()
            .args(["get", "--raw"])
            .arg(format!(
                "{path}?watch=true&resourceVersion={version}&timeoutSeconds=3600"
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting a watch")?;
        let out = child.stdout.take().context("a watch without output")?;
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let sink = events.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let at = SystemTime::now();
                let Ok(mut event) = serde_json::from_str::<Value>(&line) else {
                    continue;
                };
                let kind = event
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let object = keep(event.get_mut("object").map(Value::take).unwrap_or_default());
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Event { at, kind, object });
            }
        });
        Ok(Self { child, events })
    }

    /// Everything so far.
    pub fn events(&self) -> Vec<Event> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many so far.
    pub fn count(&self) -> usize {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
