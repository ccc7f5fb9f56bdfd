//! Watches beside the other requests.
//!
//! A recorded watch ended when its client went or the recording was over. So each object's events must be the beginning
//! of those that the embedded server shows for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use slipway_e2e::record::{Pair, Seen};

use crate::compare::Difference;
use crate::drawn::Drawn;
use crate::report::Report;
use crate::server::Embedded;

/// Long enough for the last events to arrive in this process.
const QUIET: Duration = Duration::from_millis(300);

/// Long enough for one event.
const ARRIVAL: Duration = Duration::from_millis(10);

/// Open watches, by their place in the recording.
#[derive(Default)]
pub(crate) struct Watches(BTreeMap<usize, (u16, Shown)>);

/// What a watch has shown so far.
type Shown = Arc<Mutex<Vec<Seen>>>;

type Story = BTreeMap<(String, String), Vec<String>>;

impl Watches {
    /// Opens a watch where the recorded one was.
    pub(crate) async fn open(
        &mut self,
        server: &Embedded,
        index: usize,
        pair: &Pair,
        drawn: &Drawn,
    ) -> Result<()> {
        let events = Shown::default();
        let sink = events.clone();
        let code = server
            .watch(pair, &drawn.path(&pair.path), move |line| {
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(Seen::read(line));
            })
            .await?;
        self.0.insert(index, (code, events));
        Ok(())
    }

    /// Learns the versions of writes whose answers nobody recorded (the server's own, as in an eviction): the nth event
    /// of an object is the nth here too.
    pub(crate) async fn learn(&self, pairs: &[Pair], drawn: &mut Drawn) {
        tokio::time::sleep(ARRIVAL).await;
        for (index, (_, found)) in &self.0 {
            let recorded = pairs.get(*index).and_then(|pair| pair.events.as_deref());
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let ours = versions(&found);
            for (object, recorded) in versions(recorded.unwrap_or_default()) {
                let shown = ours.get(&object).into_iter().flatten();
                for (recorded, ours) in recorded.iter().zip(shown) {
                    drawn.learn_version(recorded, ours);
                }
            }
        }
    }

    /// Compares what they showed.
    pub(crate) async fn compare(&self, pairs: &[Pair], report: &mut Report) {
        tokio::time::sleep(QUIET).await;
        for (index, (code, found)) in &self.0 {
            let Some(pair) = pairs.get(*index) else {
                continue;
            };
            let recorded = pair.events.clone().unwrap_or_default();
            report.watched.0 += 1;
            report.watched.1 += recorded.len();
            if *code != pair.code {
                let difference = Difference {
                    path: "code".to_owned(),
                    recorded: pair.code.into(),
                    found: (*code).into(),
                };
                report.add(*index, pair, &difference);
                continue;
            }
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let ours = stories(&found);
            for (object, story) in stories(&recorded) {
                let empty = Vec::new();
                let shown = ours.get(&object).unwrap_or(&empty);
                if !shown.starts_with(&story) {
                    let difference = Difference {
                        path: format!("events[{}/{}]", object.0, object.1),
                        recorded: json!(story),
                        found: json!(shown),
                    };
                    report.add(*index, pair, &difference);
                }
            }
        }
    }
}

fn stories(events: &[Seen]) -> Story {
    let mut all = Story::new();
    for Seen(kind, namespace, name, _) in events {
        all.entry((namespace.clone(), name.clone()))
            .or_default()
            .push(kind.clone());
    }
    all
}

/// The versions of each object's events.
fn versions(events: &[Seen]) -> Story {
    let mut all = Story::new();
    for Seen(_, namespace, name, version) in events {
        all.entry((namespace.clone(), name.clone()))
            .or_default()
            .push(version.clone());
    }
    all
}
