//! A hub and its members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use slipway_kernel::identity::ClusterId;
use slipway_runtime::{Environment, Operator, Settings};
use tokio::time::Instant;

use super::GOOD;
use super::herd::{Herd, NAME};
use super::line::Lines;
use crate::stage::{ADMIN, Replica, Stage, alone, epoch};

/// The members that there are.
pub(crate) const ALL: [&str; 3] = ["east", "north", "west"];

/// How long changes are gathered before they are planned.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(30);

/// Home, members, and the lines to them.
pub(crate) struct Fleet {
    pub(crate) home: Stage,
    pub(crate) members: BTreeMap<String, Stage>,
    pub(crate) lines: Lines,
}

impl Fleet {
    /// One in which all members are named and wanted to have `1`.
    pub(crate) async fn new() -> Self {
        let fleet = Self::unnamed().await;
        for name in ALL {
            fleet.name(name, "1").await;
        }
        fleet
    }

    /// One in which no member is named yet.
    pub(crate) async fn unnamed() -> Self {
        let home = Stage::seeded(1).await;
        let mut members = BTreeMap::new();
        for (seed, name) in (2..).zip(ALL) {
            members.insert(name.to_owned(), Stage::seeded(seed).await);
        }
        let clusters = members.iter();
        let clusters = clusters.map(|(name, stage)| (name.clone(), stage.cluster.clone()));
        Self {
            home,
            lines: Lines::new(clusters.collect()),
            members,
        }
    }

    /// One in which all members are ready, with the replica that sees to it and how long it usually takes until what home wants
    /// has been done.
    pub(crate) async fn running() -> (Self, Replica, Duration) {
        let fleet = Self::new().await;
        let replica = fleet.start(alone(), Herd::default());
        for name in ALL {
            fleet.until_state(name, "Ready", 5).await;
        }
        let usual = fleet.follow(&ALL, "usual").await;
        (fleet, replica, usual)
    }

    /// Changes what the good members are to have again and again, and fails if that takes longer than usual.
    pub(crate) async fn goes_on(&self, usual: Duration) {
        for round in 0..17 {
            let took = self.follow(&GOOD, &round.to_string()).await;
            assert!(took <= usual + DEBOUNCE, "{took:?}, usually {usual:?}");
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }

    /// Names a member at home.
    pub(crate) async fn name(&self, name: &str, want: &str) {
        self.credentials(name, ADMIN).await;
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"herd": "true"}},
            "data": {"want": want},
        });
        let path = "/api/v1/namespaces/default/configmaps";
        self.home.create(path, &map).await;
    }

    /// Makes the Secret of a member.
    pub(crate) async fn credentials(&self, name: &str, token: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "labels": {"herd": "true"}},
            "data": {"token": STANDARD.encode(token)},
        });
        self.home
            .create("/api/v1/namespaces/default/secrets", &secret)
            .await;
    }

    /// Changes the credentials of a member.
    pub(crate) async fn rotate(&self, name: &str, token: &str) {
        let path = format!("/api/v1/namespaces/default/secrets/{name}");
        let body = json!({"data": {"token": STANDARD.encode(token)}});
        self.home.send("PATCH", &path, &body).await;
    }

    /// Changes the object that means a member.
    pub(crate) async fn patch(&self, name: &str, body: Value) {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        self.home.send("PATCH", &path, &body).await;
    }

    pub(crate) async fn want(&self, name: &str, value: &str) {
        self.patch(name, json!({"data": {"want": value}})).await;
    }

    /// A member is named no more.
    pub(crate) async fn unname(&self, name: &str) {
        for kind in ["configmaps", "secrets"] {
            let path = format!("/api/v1/namespaces/default/{kind}/{name}");
            self.home.send("DELETE", &path, &Value::Null).await;
        }
    }

    /// What home says of a member.
    pub(crate) async fn state(&self, name: &str) -> String {
        self.home.entry(name, "state").await.unwrap_or_default()
    }

    pub(crate) async fn until_state(&self, name: &str, state: &str, at_most: u64) {
        let began = Instant::now();
        while self.state(name).await != state {
            let is = self.state(name).await;
            assert!(
                began.elapsed() < Duration::from_secs(at_most),
                "{name} is {is} and not {state} after {at_most} s"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a member has this; gives how long that took, exactly.
    pub(crate) async fn until(&self, name: &str, value: &str, at_most: u64) -> Duration {
        let (stage, began) = (&self.members[name], Instant::now());
        while stage.have(NAME).await != value {
            assert!(
                began.elapsed() < Duration::from_secs(at_most),
                "{name} has no {value} after {at_most} s"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        began.elapsed()
    }

    /// Changes what members are to have, and gives how long the slowest takes to have it.
    pub(crate) async fn follow(&self, names: &[&str], value: &str) -> Duration {
        let mut slowest = Duration::ZERO;
        for name in names {
            self.want(name, value).await;
            slowest = slowest.max(self.until(name, value, 5).await);
        }
        slowest
    }

    /// Starts a replica.
    pub(crate) fn start(&self, settings: Settings, herd: Herd) -> Replica {
        Replica::run(self.operator(settings).with(Arc::new(herd)))
    }

    /// A replica without capabilities.
    pub(crate) fn operator(&self, settings: Settings) -> Operator {
        let environment = Environment::virtual_from(epoch(), 7);
        let client = self.home.client(&settings.replica);
        let lines = self.lines.of(&settings.replica);
        Operator::new(environment, client, settings).connecting(Arc::new(lines))
    }

    /// What replicas wrote into a member.
    pub(crate) fn writes(&self, name: &str) -> usize {
        let written = self.members[name].records(|record| {
            record.context.starts_with("controller=herd")
                && !matches!(record.verb.as_str(), "get" | "list" | "watch")
        });
        written.len()
    }
}

/// How many stores there are of a member.
pub(crate) fn stores_of(replica: &Replica, name: &str) -> usize {
    let stores = replica.view.stores();
    stores.of_cluster(&ClusterId::remote(name)).count()
}
