//! After a restore of the API's storage to an older version, what was known and decided before is not believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_kernel::Purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::capability::{Controller, Fence, Gauge};
use slipway_kernel::fact::Facts;
use slipway_kernel::identity::{ClusterId, Key, kinds};
use slipway_kernel::interest::{Interest, Need};
use slipway_kernel::plan::Plan;
use slipway_kernel::store::Stores;
use slipway_runtime::{Backoff, Environment, Operator, Settings};
use tokio::time::sleep;

use crate::contact::Lines;
use crate::evictions::Scene;
use crate::rights::{DEFINITION, widgets};
use crate::stage::{Replica, Stage, alone, epoch, one_of_many, secs, virtually};
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
        self.of(|stage| stage.client("one"))
    }

    /// What reaches the one before the restore, and the other after it.
    fn of(&self, client: impl Fn(&Stage) -> Client) -> Client {
        let (now, then) = (client(&self.now), client(&self.then));
        let is_over = self.is_over.clone();
        let service = tower::service_fn(move |request| {
            let restored = is_over.load(Ordering::Acquire);
            let client = if restored { then.clone() } else { now.clone() };
            async move { client.send(request).await.map_err(tower::BoxError::from) }
        });
        Client::new(service, "default")
    }

    fn start(&self, settings: Settings) -> Replica {
        self.start_with(settings, Toy::default())
    }

    fn start_with(&self, settings: Settings, controller: impl Controller + 'static) -> Replica {
        let environment = Environment::virtual_from(epoch(), 7);
        let operator = Operator::new(environment, self.client(), settings);
        Replica::run(operator.with(Arc::new(controller)))
    }

    fn restore(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The open watch ends.
    async fn end_the_watch(&self) {
        self.break_the_watch(WatchFault::Close).await;
    }

    /// The open watch has expired, and a list follows.
    async fn relist(&self) {
        self.break_the_watch(WatchFault::Gone).await;
    }

    async fn break_the_watch(&self, how: WatchFault) {
        let faults = self.now.cluster.faults();
        faults.add_watch(maps("", ""), Frequency::always(), how);
        self.now
            .map("last", json!({"want": "1", "have": "1"}))
            .await;
    }
}

/// Requests about config maps.
fn maps(verb: &str, agent: &str) -> Match {
    Match {
        verb: verb.to_owned(),
        resource: "/configmaps".to_owned(),
        agent: agent.to_owned(),
        ..Match::default()
    }
}

/// How often a restore was noticed: each time is another history.
fn noticed(lines: &Lines) -> usize {
    let lines = lines.0.lock().unwrap();
    let of_restores = lines.iter().filter(|line| line.contains("run backwards"));
    of_restores.count()
}

/// Whether the replica says that it does nothing because of a restore.
fn is_waiting(replica: &Replica) -> bool {
    let blockers = replica.view.blockers();
    blockers.iter().any(|one| one.reason == "StorageRestored")
}

/// What the replica knows of a map: what it has, and at which version.
fn known(replica: &Replica, name: &str) -> Option<(Option<String>, u64)> {
    let stores = replica.view.stores();
    let cluster = ClusterId::local();
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
        sleep(Duration::from_millis(500)).await;
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

/// Two maps that were changed since, and a plan for both, of which the first write is answered six seconds later.
async fn in_the_middle_of_a_plan() -> (Restored, Replica) {
    let done = json!({"want": "1", "have": "1"});
    let world = Restored::new(&[("a", done.clone()), ("b", done)]).await;
    let settings = Settings {
        concurrency: 1,
        ..alone()
    };
    let replica = world.start(settings);
    secs(1).await;
    changes(&world.now).await;
    let late = Fault::Delay(Duration::from_secs(6));
    let faults = world.now.cluster.faults();
    faults.add(maps("patch", "one"), Frequency::always(), late);
    world.now.want("a", "x").await;
    world.now.want("b", "x").await;
    sleep(Duration::from_millis(500)).await;
    world.restore();
    world.relist().await;
    (world, replica)
}

/// The first write of a plan is answered well, by the storage that is no more, after the restore was noticed; the second one
/// is not sent.
#[test]
fn what_was_decided_before_a_restore_is_not_acted_on() {
    virtually(async {
        let (world, replica) = in_the_middle_of_a_plan().await;
        secs(4).await;
        let before = world.now.have("a").await;
        assert_ne!(before, "x", "the first one is on its way");
        secs(300).await;
        assert_eq!(world.now.have("a").await, "x", "it was done");
        let written = world.then.writes();
        assert!(written.is_empty(), "{written:#?}");
        let written = world.now.writes();
        let b = written.iter().filter(|record| record.name == "b");
        assert_eq!(b.count(), 0, "{written:#?}");
        for name in ["a", "b"] {
            let (have, _) = known(&replica, name).unwrap();
            assert_eq!(have.as_deref(), Some("1"), "{name}");
        }
    });
}

/// An answer of the storage that is no more comes when everything has been listed again. What it says has a higher version
/// than anything that there is: whoever believed it would see no change of the object any more.
#[test]
fn an_answer_from_before_a_restore_does_not_bring_back_what_is_gone() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let (world, replica) = in_the_middle_of_a_plan().await;
        secs(3).await;
        assert_eq!(noticed(&lines), 1);
        assert_eq!(known(&replica, "a").unwrap().0.as_deref(), Some("1"));
        for second in 0..90 {
            secs(1).await;
            let (have, _) = known(&replica, "a").unwrap();
            assert_eq!(have.as_deref(), Some("1"), "after {second} s");
        }
        assert_eq!(world.now.have("a").await, "x", "there was such an answer");
        assert!(noticed(&lines) <= 2, "{}", noticed(&lines));
        assert!(!is_waiting(&replica));
        world.then.want("a", "other").await;
        world.then.until_have("a", "other", 5).await;
    });
}

/// A write that was sent before the restore was noticed, and done to the restored storage after that was listed. Its answer is
/// of nobody's history, and the watch is late: so it is listed once more before anything is decided.
#[test]
fn what_was_done_to_the_restored_storage_before_that_was_noticed_is_seen() {
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        changes(&world.now).await;
        let faults = world.then.cluster.faults();
        let late = Fault::Delay(Duration::from_secs(6));
        faults.add(maps("patch", "one"), Frequency::always(), late);
        let silent = WatchFault::Delay(Duration::from_secs(100_000));
        faults.add_watch(maps("watch", "one"), Frequency::always(), silent);
        world.restore();
        let mirrored = json!({"want": "1", "have": "1", "mirror": "copy"});
        world.now.map("original", mirrored).await;
        sleep(Duration::from_millis(500)).await;
        world.relist().await;
        secs(4).await;
        assert_eq!(world.then.entry("copy", "of").await, None);
        assert!(known(&replica, "original").is_none(), "it was listed");
        secs(3).await;
        let copied = world.then.entry("copy", "of").await;
        assert_eq!(copied.as_deref(), Some("original"));
        assert!(known(&replica, "copy").is_some());
    });
}

/// Deletes every map that does not have what the map `template` wants: a decision on two objects, of which only one is in
/// the preconditions of the request.
#[derive(Debug)]
struct Rollout;

impl Controller for Rollout {
    fn name(&self) -> &'static str {
        "rollout"
    }

    fn interests(&self) -> Vec<Interest> {
        let interest = Interest::of::<Map>(kinds::CONFIG_MAP, |_, _, _| vec![everything()]);
        vec![interest]
    }

    fn lease(&self) -> &'static str {
        "rollout"
    }

    fn fence(&self) -> Fence {
        Fence::WaitOut
    }

    fn keys(&self, _: &Stores) -> Vec<Key> {
        vec![everything()]
    }

    fn plan(&self, stores: &Stores, _: &Facts, key: &Key, _: Timestamp) -> Option<Plan> {
        let mut plan = Plan::default();
        let store = stores.typed::<Map>(&key.cluster, &kinds::CONFIG_MAP)?;
        let find = |name| stores.get::<Map>(&key.cluster, &kinds::CONFIG_MAP, "default", name);
        let (template, pod) = (find("template")?, find("pod")?);
        if template.body.want != pod.body.have {
            let target = Target::seen(store.reference(pod.meta), pod.meta);
            let purpose = Purpose::new("roll");
            plan.act(Action::Delete { target, purpose });
        }
        Some(plan)
    }

    fn gauges(&self, _: &Stores, _: Timestamp) -> Vec<Gauge> {
        Vec::new()
    }
}

fn everything() -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: "rollout",
        namespace: "default".to_owned(),
        name: String::new(),
    }
}

/// The template was changed after the snapshot, and the pod is the same in both histories: a deletion that was decided on
/// the template of before would be carried out.
#[test]
fn nothing_is_decided_after_a_restore_before_everything_has_been_listed_again() {
    virtually(async {
        let done = json!({"want": "1", "have": "1"});
        let maps_of_both = [("template", done.clone()), ("pod", done)];
        let world = Restored::new(&maps_of_both).await;
        let wait = Duration::from_mins(1);
        let settings = Settings {
            backoff: Backoff {
                first: wait,
                most: wait,
            },
            ..alone()
        };
        // What was refused is tried again after a minute, or after a restore.
        let deletions = maps("delete", "one");
        world
            .now
            .refuse(deletions, 403, "Forbidden", Frequency::always());
        let replica = world.start_with(settings, Rollout);
        secs(1).await;
        world.now.want("template", "2").await;
        secs(2).await;
        let deletions = |stage: &Stage| stage.records(|r| r.verb == "delete" && r.agent == "one");
        assert_eq!(deletions(&world.now).len(), 1);
        let faults = world.then.cluster.faults();
        let late = Fault::Delay(Duration::from_secs(2));
        faults.add(maps("list", "one"), Frequency::always(), late);
        world.restore();
        let mut waited = 0;
        for _ in 0..300 {
            sleep(Duration::from_millis(100)).await;
            waited += usize::from(is_waiting(&replica));
        }
        assert!((10..50).contains(&waited), "said for {waited} looks");
        assert!(!is_waiting(&replica));
        let deleted = deletions(&world.then);
        assert!(deleted.is_empty(), "{deleted:#?}");
        world.then.want("template", "3").await;
        secs(3).await;
        assert_eq!(deletions(&world.then).len(), 1, "it goes on");
    });
}

/// A deletion that was sent before a restore was noticed and is answered after it counts for as long as the API server may
/// work on it. Whoever took the end of that time for now would take the clock for set, and move all that waits.
#[test]
fn a_deletion_that_outlives_a_restore_is_bounded_and_sets_no_clock() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let done = json!({"want": "1", "have": "1"});
        let maps_of_both = [("template", done.clone()), ("pod", done.clone())];
        let world = Restored::new(&maps_of_both).await;
        let late = Fault::Delay(Duration::from_secs(6));
        let faults = world.now.cluster.faults();
        faults.add(maps("delete", "one"), Frequency::always(), late);
        let replica = world.start_with(alone(), Rollout);
        secs(1).await;
        for n in 0..20 {
            world.now.map(&format!("new-{n}"), done.clone()).await;
        }
        world.now.want("template", "2").await;
        sleep(Duration::from_millis(500)).await;
        let held = || replica.view.facts().deletions;
        let is_open = || held().values().any(|until| *until == Timestamp::MAX);
        assert!(is_open(), "it is on its way");
        world.restore();
        world.relist().await;
        secs(3).await;
        assert_eq!(noticed(&lines), 1);
        assert!(is_open(), "it is not answered yet");
        secs(4).await;
        assert!(!is_open() && held().len() == 1, "{:?}", held());
        let lines = lines.0.lock().unwrap();
        let set = lines
            .iter()
            .filter(|line| line.contains("the clock was set"));
        assert_eq!(set.count(), 0, "{lines:#?}");
    });
}

/// Each kind that did not notice it would otherwise take its next look for another restore.
#[test]
fn one_restore_is_noticed_once_however_many_kinds_are_watched() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        for stage in [&world.now, &world.then] {
            stage.create(DEFINITION, &widgets()).await;
        }
        let toy = Toy {
            widgets: Some(Need::Required),
            ..Toy::default()
        };
        let replica = world.start_with(alone(), toy);
        secs(1).await;
        changes(&world.now).await;
        secs(15).await;
        world.restore();
        secs(90).await;
        assert_eq!(noticed(&lines), 1);
        assert!(!is_waiting(&replica));
        let lists = world.then.records(|record| {
            record.agent == "one" && record.verb == "list" && record.uri.contains("limit=50")
        });
        assert!((2..=4).contains(&lists.len()), "{lists:#?}");
    });
}

/// Versions that run backwards again and again are not listed as often; until they are, nothing is done.
#[test]
fn a_second_restore_within_a_minute_is_noticed_and_listed_when_the_minute_is_over() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    virtually(async {
        let world = Restored::new(&[("a", json!({"want": "1", "have": "1"}))]).await;
        let replica = world.start(alone());
        secs(1).await;
        changes(&world.now).await;
        world.restore();
        world.relist().await;
        secs(3).await;
        assert_eq!(noticed(&lines), 1);
        assert!(!is_waiting(&replica));
        let snapshot = world.then.cluster.snapshot();
        world.then.want("a", "gone").await;
        world.then.until_have("a", "gone", 5).await;
        secs(1).await;
        world.then.cluster.restore(&snapshot);
        secs(15).await;
        assert_eq!(noticed(&lines), 2);
        assert!(is_waiting(&replica));
        let before = world.then.writes().len();
        world.then.want("a", "2").await;
        secs(20).await;
        assert_eq!(world.then.writes().len(), before, "nothing is done");
        assert_eq!(noticed(&lines), 2);
        secs(30).await;
        assert!(!is_waiting(&replica));
        assert_eq!(world.then.have("a").await, "2");
        assert_eq!(noticed(&lines), 2);
        assert!(replica.view.is_ready());
    });
}

/// As above, but nothing is written here: what is read for a review shows it, also on a replica that does not act.
#[test]
fn a_restore_that_no_watch_notices_is_seen_by_the_read_for_a_review() {
    virtually(async {
        let world = Restored {
            now: Scene::quiet_stage().await,
            then: Scene::quiet_stage().await,
            is_over: Arc::default(),
        };
        let client = world.of(|stage| {
            let service = stage.cluster.service("weak").with_agent("one");
            Client::new(service, "default")
        });
        // It has no right to the Lease, and is told that there may be others: so it follows.
        let scene = Scene::start_with(world.now.clone(), client, one_of_many("one")).await;
        let pod = "/api/v1/namespaces/default/pods/ingester-zone-a-0";
        for n in 0..5 {
            let label = json!({"metadata": {"labels": {"changed": n.to_string()}}});
            world.now.send("PATCH", pod, &label).await;
        }
        secs(1).await;
        for n in 0..20 {
            world.then.map(&format!("other-{n}"), json!({})).await;
        }
        world.restore();
        secs(30).await;
        let refused = scene.evict("ingester-zone-b-0").await;
        if let Some(why) = refused {
            assert!(why.contains("restore"), "{why}");
        }
        secs(5).await;
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
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
                sleep(Duration::from_millis(470)).await;
                let (_, version) = known(&replica, "a").unwrap();
                assert!(version >= newest, "round {n}: {version} after {newest}");
                newest = version;
            }
            stage.until_have("a", "199", 30).await;
        });
    }
}
