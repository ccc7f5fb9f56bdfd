//! Watches beside the other requests.
//!
//! A recorded watch ended when its client went or the recording was over, and nobody wrote down which. So each object's
//! events must be the beginning of those that the embedded server shows for it; up to the last event that was recorded it shows
//! no others; and whatever it shows, also later, is what the watch asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use slipway_e2e::record::{Pair, Seen};

use crate::compare::{ABSENT, Difference};
use crate::drawn::Drawn;
use crate::report::Report;
use crate::selected::Selected;
use crate::server::Embedded;

/// Long enough for the last events to arrive in this process.
const QUIET: Duration = Duration::from_millis(300);

/// Long enough for one event.
const ARRIVAL: Duration = Duration::from_millis(10);

/// Open watches, by their place in the recording.
#[derive(Default)]
pub(crate) struct Watches(BTreeMap<usize, (u16, Shown)>);

/// What a watch has shown so far, and whether it was asked for.
type Shown = Arc<Mutex<Vec<(Seen, bool)>>>;

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
        let selected = Selected::by(&pair.path)?;
        let code = server
            .watch(pair, &drawn.path(&pair.path), move |line| {
                let event: Value = serde_json::from_slice(line).unwrap_or_default();
                let is_asked_for = event.get("object").is_some_and(|it| selected.has(it));
                let seen = Seen::read(line).map(|seen| (seen, is_asked_for));
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(seen);
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
            let ours = versions(found.iter().map(|(seen, _)| seen));
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
                let difference = Difference::new("code", pair.code, *code);
                report.add(*index, pair, &difference);
                continue;
            }
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            for difference in differences(&recorded, &found) {
                report.add(*index, pair, &difference);
            }
        }
    }
}

/// Where what a watch showed is not what was recorded of it.
fn differences(recorded: &[Seen], found: &[(Seen, bool)]) -> Vec<Difference> {
    let mut all = Vec::new();
    let named = |(namespace, name): &(String, String)| format!("{namespace}/{name}");
    let ours = stories(found.iter().map(|(seen, _)| seen));
    let theirs = stories(recorded);
    let empty = Vec::new();
    for (object, story) in &theirs {
        let shown = ours.get(object).unwrap_or(&empty);
        if !shown.starts_with(story) {
            let path = format!("events[{}]", named(object));
            all.push(Difference::new(&path, json!(story), json!(shown)));
        }
    }
    let last = last_in_common(recorded, found);
    let meanwhile = found
        .iter()
        .map(|(seen, _)| seen)
        .filter(|seen| number(seen) <= last);
    for (object, shown) in &stories(meanwhile) {
        let story = theirs.get(object).unwrap_or(&empty);
        if shown.len() > story.len() {
            let path = format!("surplus[{}]", named(object));
            all.push(Difference::new(&path, json!(story), json!(shown)));
        }
    }
    let mut foreign = Story::new();
    for (Seen(kind, namespace, name, _), _) in
        found.iter().filter(|(_, is_asked_for)| !is_asked_for)
    {
        let object = (namespace.clone(), name.clone());
        foreign.entry(object).or_default().push(kind.clone());
    }
    for (object, shown) in &foreign {
        let path = format!("foreign[{}]", named(object));
        all.push(Difference::new(&path, ABSENT, json!(shown)));
    }
    all
}

/// Our version of the last event that was recorded and that we have shown.
fn last_in_common(recorded: &[Seen], found: &[(Seen, bool)]) -> Option<u64> {
    let ours = versions(found.iter().map(|(seen, _)| seen));
    versions(recorded)
        .iter()
        .filter_map(|(object, recorded)| {
            let shown = ours.get(object)?.iter().take(recorded.len());
            shown.filter_map(|version| version.parse().ok()).max()
        })
        .max()
}

fn number(Seen(.., version): &Seen) -> Option<u64> {
    version.parse().ok()
}

fn stories<'a>(events: impl IntoIterator<Item = &'a Seen>) -> Story {
    let mut all = Story::new();
    for Seen(kind, namespace, name, _) in events {
        all.entry((namespace.clone(), name.clone()))
            .or_default()
            .push(kind.clone());
    }
    all
}

/// The versions of each object's events.
fn versions<'a>(events: impl IntoIterator<Item = &'a Seen>) -> Story {
    let mut all = Story::new();
    for Seen(_, namespace, name, version) in events {
        all.entry((namespace.clone(), name.clone()))
            .or_default()
            .push(version.clone());
    }
    all
}
