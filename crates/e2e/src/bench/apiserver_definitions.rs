//! Clusters with the same large definitions, of which a process keeps one copy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::Clock;
use slipway_e2e::process;

use crate::inside::{FIRST_CLUSTERS, TOKEN, ask, cluster, post};

/// What the server's own tests hold it to.
#[path = "../../../apiserver/tests/integration/definitions.rs"]
mod written;

/// How many clusters are weighed.
const CLUSTERS: u32 = 200;

/// A clock that stands.
#[derive(Debug)]
struct Moment(Timestamp);

impl Clock for Moment {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A cluster that began at a moment of its own, with all definitions and an object of each.
async fn with_definitions(number: u32) -> Result<Arc<Cluster>> {
    let began = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(i64::from(number));
    let cluster = Config::seeded(&format!("d{number}"), u64::from(number), Arc::default())
        .with_admin(TOKEN)
        .with_clock(Arc::new(Moment(began)))
        .build();
    let mut service = cluster.service(TOKEN);
    for definition in written::three() {
        let request = post(written::DEFINITIONS, definition.to_string())?;
        ask(&mut service, request, 201).await?;
    }
    for (path, object) in written::objects() {
        ask(&mut service, post(&path, object.to_string())?, 201).await?;
    }
    Ok(cluster)
}

/// What the first cluster with them takes, and one more.
pub(crate) async fn weigh() -> Result<Value> {
    let resident = || process::resident(std::process::id());
    // What the process has once, whichever definitions there are.
    let plain: Vec<Arc<Cluster>> = (0..FIRST_CLUSTERS).map(cluster).collect();
    let nothing = resident()?;
    let first = with_definitions(0).await?;
    let one = resident()?;
    // Room that reading a definition takes for a moment is there from now on.
    let mut all = vec![
        first,
        with_definitions(1).await?,
        with_definitions(2).await?,
    ];
    let before = resident()?;
    let (start, mut fastest) = (Instant::now(), Duration::MAX);
    for number in 0..CLUSTERS {
        let began = Instant::now();
        all.push(with_definitions(3 + number).await?);
        fastest = fastest.min(began.elapsed());
    }
    let took = start.elapsed() / CLUSTERS;
    let after = resident()?;
    drop((plain, all));
    let size: usize = written::three().iter().map(|d| d.to_string().len()).sum();
    Ok(json!({
        "definitions": size,
        "definitions_first": one.saturating_sub(nothing),
        "definitions_more": after.saturating_sub(before) / u64::from(CLUSTERS),
        "definitions_time": took.as_secs_f64() * 1e3,
        "definitions_fastest": fastest.as_secs_f64() * 1e3,
    }))
}
