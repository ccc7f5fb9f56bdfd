//! Deployments that roll without pods: a stand-in for the actors where only a Deployment's own status matters.
//!
//! It says what the Deployment controller says of a rollout, in two writes: that it goes on, and some time later that it
//! is done. So scenarios that are about policies and not about pods cost a tenth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use slipway_apiserver::store::{ChangeKind, Stored};
use tokio::time::Instant;

const DEPLOYMENTS: &str = "apps/deployments";

/// Namespace and name.
type Name = (String, String);

/// The one controller of such a cluster.
pub struct Rollouts {
    cluster: Arc<Cluster>,
    client: Client,
    clock: Arc<dyn Clock>,
    takes: Duration,
    seen: u64,
    /// When which rollout is done.
    done: BTreeMap<Name, Instant>,
}

impl Rollouts {
    /// Rollouts in this cluster take so long.
    pub fn new(
        cluster: Arc<Cluster>,
        client: Client,
        clock: Arc<dyn Clock>,
        takes: Duration,
    ) -> Self {
        Self {
            cluster,
            client,
            clock,
            takes,
            seen: 0,
            done: BTreeMap::new(),
        }
    }

    /// Works until dropped.
    pub async fn run(mut self) {
        let (all, version) = self.cluster.everything();
        self.seen = version;
        for (_, stored) in all
            .iter()
            .filter(|(resource, _)| &**resource == DEPLOYMENTS)
        {
            self.look(stored).await;
            self.resume(stored);
        }
        let cluster = self.cluster.clone();
        loop {
            let written = cluster.next_write();
            self.catch_up().await;
            let next = self.done.values().min().copied();
            tokio::select! {
                biased;
                () = written => {}
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    self.finish().await;
                }
            }
        }
    }

    async fn catch_up(&mut self) {
        let Ok((changes, version)) = self.cluster.history(self.seen) else {
            self.seen = self.cluster.version();
            return;
        };
        self.seen = version;
        for (resource, change) in changes {
            if &*resource != DEPLOYMENTS {
                continue;
            }
            if change.kind == ChangeKind::Deleted {
                self.done.remove(&name(&change.object));
            } else {
                self.look(&change.object).await;
            }
        }
    }

    /// A rollout begins, or the number of replicas changes.
    async fn look(&mut self, stored: &Stored) {
        let object = stored.decode();
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let generation = number("/metadata/generation").unwrap_or(1);
        if number("/status/observedGeneration") == Some(generation) {
            return;
        }
        let before = number("/status/availableReplicas").unwrap_or_default();
        let paused = object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true);
        let replicas = number("/spec/replicas").unwrap_or(1);
        let updated = if paused { before } else { 0 };
        self.say(
            &name(stored),
            generation,
            [before.min(replicas), updated, before],
            false,
        )
        .await;
        if !paused {
            self.done.insert(name(stored), Instant::now() + self.takes);
        }
    }

    /// A rollout goes on that somebody else began, who looks after it no more.
    fn resume(&mut self, stored: &Stored) {
        let object = stored.decode();
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let is_begun = number("/status/observedGeneration") == number("/metadata/generation");
        let paused = object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true);
        let replicas = number("/spec/replicas").unwrap_or(1);
        if is_begun && !paused && number("/status/updatedReplicas") < Some(replicas) {
            self.done.insert(name(stored), Instant::now() + self.takes);
        }
    }

    /// Says of rollouts that they are done.
    async fn finish(&mut self) {
        let now = Instant::now();
        let due = self.done.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Name> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.done.remove(&name);
            let (all, _) = self.cluster.everything();
            let found = all.iter().find(|(resource, stored)| {
                &**resource == DEPLOYMENTS && self::name(stored) == name
            });
            let Some((_, stored)) = found else { continue };
            let object = stored.decode();
            let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
            let replicas = number("/spec/replicas").unwrap_or(1);
            let generation = number("/metadata/generation").unwrap_or(1);
            self.say(&name, generation, [replicas; 3], true).await;
        }
    }

    /// Writes a status: replicas, updated, available.
    async fn say(&self, name: &Name, generation: i64, counts: [i64; 3], done: bool) {
        let [replicas, updated, available] = counts;
        let now = self.clock.now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let reason = if done {
            "NewReplicaSetAvailable"
        } else {
            "ReplicaSetUpdated"
        };
        let condition = |kind: &str, reason: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": "",
                "lastUpdateTime": now.to_string(), "lastTransitionTime": now.to_string(),
            })
        };
        let body = json!({"status": {
            "observedGeneration": generation,
            "replicas": replicas,
            "updatedReplicas": updated,
            "availableReplicas": available,
            "readyReplicas": available,
            "conditions": [
                condition("Available", "MinimumReplicasAvailable"),
                condition("Progressing", reason),
            ],
        }});
        let (namespace, deployment) = name;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}/status");
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(body.to_string().into_bytes());
        // A Deployment that has gone needs no status.
        if let Ok(request) = request {
            let _ = self.client.request_text(request).await;
        }
    }
}

fn name(stored: &Stored) -> Name {
    let header = &stored.header;
    (header.namespace.to_string(), header.name.to_string())
}
