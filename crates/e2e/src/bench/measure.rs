//! Counts what the API shows: restarts with their delay, and every other write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_e2e::operator::Operator;
use tokio::task::JoinSet;

use crate::load::Load;
use crate::turns::{Beside, Delays, Herd, Idle};

/// One change of a Deployment, as the watch showed it.
struct Change {
    name: String,
    at: Timestamp,
    /// The stamp that it had and has.
    stamp: Option<Timestamp>,
    restarted: Option<Timestamp>,
}

/// Watches that count, and end with this: a later run shares neither the server nor the processor with them.
pub(crate) struct Counts {
    _watches: JoinSet<()>,
    changes: Arc<Mutex<Vec<Change>>>,
    others: Vec<Arc<Mutex<usize>>>,
    marks: Vec<usize>,
    stamps: BTreeMap<String, Timestamp>,
}

impl Counts {
    /// Starts to watch Deployments, events, statuses of policies and leases.
    pub(crate) async fn start(load: &Load) -> Result<Self> {
        let deployments = load.collection("apps", "v1", "Deployment", "deployments");
        let list = deployments.list(&ListParams::default()).await?;
        let stamps = list
            .items
            .iter()
            .filter_map(|d| Some((d.metadata.name.clone()?, stamp(d, LAST_RESTART)?)))
            .collect();
        let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
        let sink = changes.clone();
        let mut watches = JoinSet::new();
        watch(
            &mut watches,
            deployments,
            list.metadata.resource_version.unwrap_or_default(),
            move |object| {
                let change = Change {
                    name: object.metadata.name.clone().unwrap_or_default(),
                    at: Timestamp::now(),
                    stamp: stamp(&object, LAST_RESTART),
                    restarted: restarted(&object),
                };
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(change);
            },
        );
        let mut others = Vec::new();
        for (group, version, kind, plural) in [
            ("events.k8s.io", "v1", "Event", "events"),
            ("flipper.io.github.com", "v1alpha1", "Flipper", "flippers"),
            ("coordination.k8s.io", "v1", "Lease", "leases"),
        ] {
            let api = load.collection(group, version, kind, plural);
            let list = api.list(&ListParams::default().limit(1)).await?;
            let count: Arc<Mutex<usize>> = Arc::default();
            let sink = count.clone();
            watch(
                &mut watches,
                api,
                list.metadata.resource_version.unwrap_or_default(),
                move |_| {
                    *sink.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                },
            );
            others.push(count);
        }
        let marks = vec![0; others.len()];
        Ok(Self {
            _watches: watches,
            changes,
            others,
            marks,
            stamps,
        })
    }

    /// Waits until every Deployment has been restarted, and gives the delays.
    pub(crate) async fn restarts(
        &mut self,
        count: usize,
        first: Timestamp,
        within: SignedDuration,
    ) -> Result<Delays> {
        let deadline = first + within;
        let mut delays: BTreeMap<String, SignedDuration> = BTreeMap::new();
        let mut mutations = 0;
        while delays.len() < count {
            if Timestamp::now() > deadline {
                bail!(
                    "only {} of {count} Deployments were restarted within {within}",
                    delays.len()
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            for change in self.fresh() {
                mutations += 1;
                if change.restarted.is_some()
                    && let Some(before) = self.stamps.get(&change.name)
                {
                    let due = *before + crate::INTERVAL;
                    delays
                        .entry(change.name)
                        .or_insert(change.at.duration_since(due));
                }
            }
        }
        let mut sorted: Vec<SignedDuration> = delays.into_values().collect();
        sorted.sort();
        let at = |percent: usize| {
            let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
            sorted.get(place).copied().context("no restarts")
        };
        Ok(Delays {
            p50: at(50)?.as_secs_f64(),
            p99: at(99)?.as_secs_f64(),
            mutations_per_restart: ratio(mutations, count),
            beside: self.others(),
        })
    }

    /// Counts what is written while nothing is due.
    pub(crate) async fn idle(&mut self, operator: &Operator, during: Duration) -> Result<Idle> {
        // What the last restarts have still to say is not idleness.
        tokio::time::sleep(Duration::from_secs(15)).await;
        self.fresh();
        self.others();
        let before = operator.processor_time()?;
        tokio::time::sleep(during).await;
        let used = operator.processor_time()?.saturating_sub(before);
        let mutations = self.fresh().len();
        Ok(Idle {
            mutations,
            beside: self.others(),
            processor: used.as_secs_f64() / during.as_secs_f64(),
        })
    }

    /// Shortens the interval so that all are due, and measures until all have been restarted once more.
    pub(crate) async fn herd(&mut self, load: &Load, count: usize) -> Result<Herd> {
        self.fresh();
        let before = Timestamp::now() - SignedDuration::from_secs(1);
        let start = Instant::now();
        load.policy("40s").await?;
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        while done.len() < count {
            if start.elapsed() > Duration::from_mins(5) {
                bail!(
                    "only {} of {count} were restarted in five minutes",
                    done.len()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            for change in self.fresh() {
                if change.stamp.is_some_and(|stamp| stamp >= before) {
                    *done.entry(change.name).or_default() += 1;
                }
            }
            if done.len() == count {
                load.policy("1h").await?;
            }
        }
        Ok(Herd {
            all: start.elapsed(),
            mutations_per_restart: ratio(done.values().sum(), count),
        })
    }

    fn fresh(&mut self) -> Vec<Change> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *changes)
    }

    /// Events, statuses and leases written since this was last asked.
    fn others(&mut self) -> Beside {
        let mut result = [0; 3];
        for ((count, mark), slot) in self.others.iter().zip(&mut self.marks).zip(&mut result) {
            let now = *count.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = now - *mark;
            *mark = now;
        }
        let [events, statuses, leases] = result;
        Beside {
            events,
            statuses,
            leases,
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of a bench are small")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn stamp(object: &DynamicObject, annotation: &str) -> Option<Timestamp> {
    object
        .metadata
        .annotations
        .as_ref()?
        .get(annotation)?
        .parse()
        .ok()
}

fn restarted(object: &DynamicObject) -> Option<Timestamp> {
    object
        .data
        .pointer("/spec/template/metadata/annotations")?
        .get(RESTARTED_AT)?
        .as_str()?
        .parse()
        .ok()
}

/// Calls `each` with every changed object, until these watches are dropped.
fn watch(
    watches: &mut JoinSet<()>,
    api: Api<DynamicObject>,
    mut version: String,
    each: impl Fn(DynamicObject) + Send + 'static,
) {
    watches.spawn(async move {
        loop {
            let parameters = WatchParams::default().timeout(290);
            let Ok(stream) = api.watch(&parameters, &version).await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut stream = stream.boxed();
            while let Ok(Some(event)) = stream.try_next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        version = object.metadata.resource_version.clone().unwrap_or_default();
                        each(object);
                    }
                    WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                    WatchEvent::Deleted(_) | WatchEvent::Error(_) => {}
                }
            }
        }
    });
}
