//! After a restore of the API's storage to an older version, what was known and decided before is not believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_kernel::identity::kinds;
use slipway_runtime::{Environment, Operator, Settings};

use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};
use crate::toy::{Map, Toy};

/// An API server, and the same one with the storage that it had a while ago.
struct Restored {
    now: Stage,
    then: Stage,
    is_over: Arc<AtomicBool>,
}

impl Restored {
    /// Both begin alike; what is done only to `now` is undone by the restore.
    async fn new(maps: &[(&str, Value)]) -> Self {
        let (now, then) = (Stage::new().await, Stage::new().await);
        for stage in [&now, &then] {
            for (name, data) in maps {
                stage.map(name, data.clone()).await;
            }
        }
        Self {
            now,
            then,
            is_over: Arc::default(),
        }
    }

    fn client(&self) -> Client {
        let service = |stage: &Stage| stage.client("one");
        let (now, then) = (service(&self.now), service(&self.then));
        let is_over = self.is_over.clone();
        let service = tower::service_fn(move |request| {
            let restored = is_over.load(Ordering::Acquire);
            let client = if restored { then.clone() } else { now.clone() };
            async move { client.send(request).await.map_err(tower::BoxError::from) }
        });
        Client::new(service, "default")
    }

    fn start(&self, settings: Settings) -> Replica {
        let environment = Environment::virtual_from(epoch(), 7);
        let operator = Operator::new(environment, self.client(), settings);
        Replica::run(operator.with(Arc::new(Toy::default())))
    }

    fn restore(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The open watch ends.
    async fn end_the_watch(&self) {
        let about = Match {
            resource: "/configmaps".to_owned(),
            ..Match::default()
        };
        let faults = self.now.cluster.faults();
        faults.add_watch(about, Frequency::always(), WatchFault::Close);
        self.now
            .map("last", json!({"want": "1", "have": "1"}))
            .await;
    }
}

/// What the replica knows of a map: what it has, and at which version.
fn known(replica: &Replica, name: &str) -> Option<(Option<String>, u64)> {
    let stores = replica.view.stores();
    let cluster = slipway_kernel::ClusterId::local();
    let entry = stores.get::<Map>(&cluster, &kinds::CONFIG_MAP, "default", name)?;
    let version = entry.meta.version.parse().unwrap();
    Some((entry.body.have.clone(), version))
}

async fn changes(stage: &Stage) {
    for n in 2..30 {
        stage.want("a", &n.to_string()).await;
        stage.until_have("a", &n.to_string(), 5).await;
    }
    stage.map("new", json!({"want": "1"})).await;
    stage.until_have("new", "1", 5).await;
}

/// Older objects replace newer ones, and work goes on from there. On a store that only ever takes what is newer, the
/// replica would believe in what is gone, and see no change until the versions have caught up.
async fn goes_on(world: &Restored, replica: &Replica, at_most: u64) {
    secs(at_most).await;
    let (have, _) = known(replica, "a").unwrap();
    assert_eq!(have.as_deref(), Some("1"), "as it was then");
    assert_eq!(known(replica, "new"), None, "there was none then");
    world.then.want("a", "other").await;
    world.then.until_have("a", "other", 5).await;
    world.then.map("b", json!({"want": "1"})).await;
    world.then.until_have("b", "1", 5).await;
    assert!(replica.view.is_ready());
}

#[test]
fn a_list_that_is_older_than_what_is_known_replaces_it() {
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        changes(&world.now).await;
        world.restore();
        world.end_the_watch().await;
        goes_on(&world, &replica, 20).await;
    });
}

#[test]
fn versions_that_run_backwards_beside_an_open_watch_are_noticed() {
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        changes(&world.now).await;
        secs(1).await;
        world.restore();
        goes_on(&world, &replica, 15).await;
    });
}

/// The newest version that the replica has seen of maps: whatever answers with an older one is not believed.
fn newest(replica: &Replica) -> u64 {
    let stores = replica.view.stores();
    let maps = stores.iter().filter(|(key, _)| key.1 == kinds::CONFIG_MAP);
    maps.map(|(_, store)| store.version()).max().unwrap()
}

/// No object is older than it was: some are not there. Reads for reviews would be refused for as long as the backup is old.
#[test]
fn after_a_restore_that_only_lacks_objects_reads_are_believed_again() {
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        for n in 0..20 {
            let done = json!({"want": "1", "have": "1"});
            world.now.map(&format!("new-{n}"), done).await;
        }
        secs(1).await;
        let before = newest(&replica);
        world.restore();
        secs(15).await;
        assert_eq!(known(&replica, "new-0"), None, "there was none then");
        let (_, version) = known(&replica, "a").unwrap();
        assert!(version < before);
        assert_eq!(newest(&replica), version);
    });
}

/// The restored storage has given out as many versions as the one before it by the time the watch is opened again: no version
/// is older, but one object is, and what is written to it would be refused for ever.
#[test]
fn a_restore_that_no_watch_notices_is_seen_by_the_next_read() {
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        let patches = Match {
            verb: "patch".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        let faults = world.now.cluster.faults();
        faults.add(patches, Frequency::always(), Fault::Unreachable);
        world.now.want("a", "2").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (_, before) = known(&replica, "a").unwrap();
        for n in 0..10 {
            let done = json!({"want": "1", "have": "1"});
            world.then.map(&format!("other-{n}"), done).await;
        }
        world.restore();
        world.end_the_watch().await;
        secs(60).await;
        let (_, version) = known(&replica, "a").unwrap();
        assert!(version < before, "as it was then: {version} after {before}");
        world.then.want("a", "3").await;
        world.then.until_have("a", "3", 5).await;
    });
}

#[test]
fn what_was_decided_before_a_restore_is_not_acted_on() {
    virtually(async {
        let maps = [
            ("a", json!({"want": "1", "have": "1"})),
            ("b", json!({"want": "1", "have": "1"})),
        ];
        let world = Restored::new(&maps).await;
        let settings = Settings {
            concurrency: 1,
            ..alone()
        };
        let replica = world.start(settings);
        secs(1).await;
        changes(&world.now).await;
        // One plan for both; the first write hangs while the storage is restored.
        let late = Match {
            verb: "patch".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        let faults = world.now.cluster.faults();
        let hangs = Fault::Delay(Duration::from_secs(1_000));
        faults.add(late, Frequency::always(), hangs);
        world.now.want("a", "x").await;
        world.now.want("b", "x").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.restore();
        secs(300).await;
        let written = world.then.writes();
        assert!(written.is_empty(), "{written:#?}");
        for name in ["a", "b"] {
            let (have, _) = known(&replica, name).unwrap();
            assert_eq!(have.as_deref(), Some("1"), "{name}");
        }
    });
}

/// A list that was begun before a write of ours, and comes after its answer, is no restore.
#[test]
fn a_late_list_does_not_undo_our_own_write() {
    for delay in [100, 900, 3_000, 9_000] {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "1", "have": "1"})).await;
            let mut settings = alone();
            settings.relist = Duration::from_secs(20);
            let lists = Match {
                verb: "list".to_owned(),
                agent: "one".to_owned(),
                ..Match::default()
            };
            let faults = stage.cluster.faults();
            let late = Fault::Delay(Duration::from_millis(delay));
            faults.add(
                lists,
                Frequency::Count {
                    skip: 1,
                    times: 1_000,
                },
                late,
            );
            let replica = stage.start(settings, Toy::default());
            secs(1).await;
            let mut newest = 0;
            for n in 0..200 {
                stage.want("a", &n.to_string()).await;
                tokio::time::sleep(Duration::from_millis(470)).await;
                let (_, version) = known(&replica, "a").unwrap();
                assert!(version >= newest, "round {n}: {version} after {newest}");
                newest = version;
            }
            stage.until_have("a", "199", 30).await;
        });
    }
}
