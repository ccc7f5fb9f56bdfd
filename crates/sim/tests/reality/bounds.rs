//! What has to hold at every moment of a story.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;

use crate::drive::Drive;
use crate::story::Bounds;

/// Somebody who watches.
pub(crate) struct Watch {
    bounds: Bounds,
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    sets: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    most: i64,
    fewest: Option<i64>,
}

impl Seen {
    fn look(&mut self) {
        let asked = self
            .sets
            .values()
            .map(|set| set["spec"]["replicas"].as_i64().unwrap_or(0));
        let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let asked = if self.sets.is_empty() {
            i64::try_from(self.pods.values().filter(stays).count()).unwrap()
        } else {
            asked.sum()
        };
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
        };
        let ready = self.pods.values().filter(stays).filter(is_ready).count();
        let ready = i64::try_from(ready).unwrap();
        self.most = self.most.max(asked);
        self.fewest = Some(self.fewest.map_or(ready, |fewest| fewest.min(ready)));
    }
}

impl Watch {
    pub(crate) async fn start(drive: &Drive, bounds: Bounds) -> Result<Self, String> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = Vec::new();
        for kind in ["ReplicaSet", "Pod"] {
            let api = drive.api(kind);
            let list = api
                .list(&ListParams::default())
                .await
                .map_err(|e| e.to_string())?;
            let from = list.metadata.resource_version.unwrap_or_default();
            for object in list.items {
                learn(&mut seen.lock().unwrap(), kind, &object, true);
            }
            let seen = seen.clone();
            tasks.push(tokio::spawn(async move {
                let params = WatchParams::default().disable_bookmarks();
                let mut events = api.watch(&params, &from).await.unwrap().boxed();
                while let Some(Ok(event)) = events.next().await {
                    let mut seen = seen.lock().unwrap();
                    match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            learn(&mut seen, kind, &object, true);
                        }
                        WatchEvent::Deleted(object) => learn(&mut seen, kind, &object, false),
                        _ => {}
                    }
                    seen.look();
                }
            }));
        }
        seen.lock().unwrap().look();
        Ok(Self {
            bounds,
            seen,
            tasks,
        })
    }

    pub(crate) fn verdict(self) -> Result<(), String> {
        for task in &self.tasks {
            task.abort();
        }
        judge(&self.seen.lock().unwrap(), self.bounds)
    }
}

fn judge(seen: &Seen, bounds: Bounds) -> Result<(), String> {
    let (most, fewest) = (seen.most, seen.fewest.unwrap_or(0));
    if most > bounds.most || fewest < bounds.fewest {
        return Err(format!(
            "{most} pods, {fewest} ready at some moment; {bounds:?}"
        ));
    }
    Ok(())
}

/// What a race of the real controller excuses, and what not: on the embedded server nothing, and nowhere one pod more or one ready pod less.
pub(crate) fn check_races() {
    let bounds = Bounds {
        most: 4,
        fewest: 3,
        raced: 1,
    };
    let seen = |most, fewest| Seen {
        most,
        fewest: Some(fewest),
        ..Seen::default()
    };
    assert!(judge(&seen(5, 3), bounds.of_real()).is_ok());
    assert!(judge(&seen(5, 3), bounds).is_err());
    assert!(judge(&seen(6, 3), bounds.of_real()).is_err());
    assert!(judge(&seen(5, 2), bounds.of_real()).is_err());
}

fn learn(seen: &mut Seen, kind: &str, object: &DynamicObject, is_here: bool) {
    let map = if kind == "Pod" {
        &mut seen.pods
    } else {
        &mut seen.sets
    };
    let name = object.metadata.name.clone().unwrap_or_default();
    if is_here {
        map.insert(name, serde_json::to_value(object).unwrap());
    } else {
        map.remove(&name);
    }
}
