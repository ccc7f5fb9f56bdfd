#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "tests"
)]

use proptest::prelude::*;
use slipway_kernel::capability::Lane;

use super::*;

fn key(cluster: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::remote(cluster),
        controller: "toy",
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn queue() -> Queue {
    Queue::new(
        Duration::from_millis(100),
        Backoff::default(),
        Sharing::new(|_| Lane::Cluster),
    )
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn changes_within_the_debounce_time_are_one() {
    let (mut q, t) = (queue(), Instant::now());
    let a = key("", "a");
    for n in 0..50 {
        q.changed(&a, t + ms(n));
    }
    assert_eq!(
        q.next_due(),
        Some(t + ms(100)),
        "the first change counts: a stream of them delays nothing"
    );
    assert_eq!(q.take(t + ms(99)), None);
    assert_eq!(q.take(t + ms(100)), Some(a.clone()));
    q.finish(&a, Requeue::Done, t + ms(100));
    assert_eq!(q.next_due(), None);
}

#[test]
fn a_change_during_the_work_is_taken_after_it() {
    let (mut q, t) = (queue(), Instant::now());
    let a = key("", "a");
    q.at_once(&a, t);
    assert_eq!(q.take(t), Some(a.clone()));
    q.changed(&a, t + ms(1));
    assert_eq!(q.take(t + ms(500)), None, "its lane is busy");
    q.finish(&a, Requeue::Done, t + ms(500));
    assert_eq!(q.take(t + ms(500)), Some(a));
}

#[test]
fn a_wake_up_replaces_the_one_before_and_is_exact() {
    let (mut q, t) = (queue(), Instant::now());
    let a = key("", "a");
    q.wake(&a, t + ms(10));
    q.wake(&a, t + ms(700));
    assert_eq!(q.take(t + ms(699)), None);
    assert_eq!(q.next_due(), Some(t + ms(700)));
    assert_eq!(q.take(t + ms(700)), Some(a));
}

#[test]
fn failures_back_off_to_the_cap_and_a_change_waits_ten_seconds_at_most() {
    let (mut q, mut t) = (queue(), Instant::now());
    let a = key("", "a");
    q.at_once(&a, t);
    let mut waits = Vec::new();
    for _ in 0..11 {
        q.take(t).unwrap();
        q.finish(&a, Requeue::Failed, t);
        let due = q.next_due().unwrap();
        waits.push((due - t).as_secs());
        t = due;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Failed, t);
    q.changed(&a, t);
    assert_eq!(q.next_due(), Some(t + Duration::from_secs(10)));
    q.clear_backoff(&a.cluster);
    assert_eq!(q.take(t + ms(100)), Some(a));
}

/// A plan that prepares the same thing over and over must not keep a processor, or the API, busy.
#[test]
fn preparations_go_on_at_once_but_not_for_ever() {
    let (mut q, t) = (queue(), Instant::now());
    let a = key("", "a");
    q.at_once(&a, t);
    for _ in 0..PREPARATIONS {
        q.take(t).unwrap();
        q.finish(&a, Requeue::Prepared, t);
    }
    assert_eq!(q.take(t), Some(a.clone()));
    q.finish(&a, Requeue::Prepared, t);
    assert_eq!(q.next_due(), Some(t + Duration::from_secs(1)));
    let t = t + Duration::from_secs(1);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Prepared, t);
    assert_eq!(q.next_due(), Some(t + Duration::from_secs(2)));
    let t = t + Duration::from_secs(2);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Done, t);
    q.at_once(&a, t);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Prepared, t);
    assert_eq!(q.take(t), Some(a), "success has ended the row");
}

#[test]
fn the_first_collision_is_tried_again_at_once_the_others_later() {
    let (mut q, t) = (queue(), Instant::now());
    let a = key("", "a");
    q.at_once(&a, t);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Collided, t);
    assert_eq!(q.take(t), Some(a.clone()));
    q.finish(&a, Requeue::Collided, t);
    assert_eq!(q.next_due(), Some(t + Duration::from_secs(1)));
    let t = t + Duration::from_secs(1);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Done, t);
    q.at_once(&a, t);
    q.take(t).unwrap();
    q.finish(&a, Requeue::Collided, t);
    assert_eq!(q.take(t), Some(a), "success has ended the row");
}

#[test]
fn a_held_or_paused_lane_gives_nothing_and_others_go_on() {
    let (mut q, t) = (queue(), Instant::now());
    let (a, b) = (key("a", "x"), key("b", "x"));
    q.at_once(&a, t);
    q.at_once(&b, t);
    q.hold(&post(&a), true);
    assert_eq!(q.take(t), Some(b.clone()));
    q.finish(&b, Requeue::Done, t);
    assert_eq!(q.next_due(), None);
    q.hold(&post(&a), false);
    q.pause(&post(&a), t + ms(5000));
    assert_eq!(q.next_due(), Some(t + ms(5000)));
    assert_eq!(q.take(t + ms(4999)), None);
    assert_eq!(q.take(t + ms(5000)), Some(a));
}

#[derive(Debug, Clone)]
enum Op {
    Change(u8, u8),
    Wake(u8, u8, u16),
    Pass(u16),
    Take,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0..3u8, 0..4u8).prop_map(|(c, n)| Op::Change(c, n)),
        (0..3u8, 0..4u8, 0..2000u16).prop_map(|(c, n, at)| Op::Wake(c, n, at)),
        (1..300u16).prop_map(Op::Pass),
        Just(Op::Take),
    ];
    prop::collection::vec(op, 1..120)
}

proptest! {
    /// Against the simplest model: per key the time of its first change and of its last wake-up.
    #[test]
    fn nothing_is_taken_early_twice_or_out_of_turn(ops in ops()) {
        let mut q = queue();
        let mut now = Instant::now();
        let mut model: BTreeMap<Key, (Option<Instant>, Option<Instant>)> = BTreeMap::new();
        for op in ops {
            match op {
                Op::Change(c, n) => {
                    let key = key(&c.to_string(), &n.to_string());
                    q.changed(&key, now);
                    let at = now + ms(100);
                    let slot = model.entry(key).or_default();
                    slot.0 = Some(slot.0.map_or(at, |known| known.min(at)));
                }
                Op::Wake(c, n, after) => {
                    let key = key(&c.to_string(), &n.to_string());
                    let at = now + ms(u64::from(after));
                    q.wake(&key, at);
                    model.entry(key).or_default().1 = Some(at);
                }
                Op::Pass(by) => now += ms(u64::from(by)),
                Op::Take => {
                    let due = |slot: &(Option<Instant>, Option<Instant>)| slot.0.into_iter().chain(slot.1).min();
                    let want: BTreeSet<Key> = model.iter()
                        .filter(|(_, slot)| due(slot).is_some_and(|at| at <= now))
                        .map(|(key, _)| key.clone()).collect();
                    match q.take(now) {
                        None => prop_assert!(want.is_empty(), "due and not given: {want:?}"),
                        Some(key) => {
                            prop_assert!(want.contains(&key));
                            let mine = model.remove(&key).unwrap();
                            // Within its cluster, nobody has waited longer.
                            for (other, slot) in &model {
                                if other.cluster == key.cluster {
                                    prop_assert!(due(slot) >= due(&mine));
                                }
                            }
                            q.finish(&key, Requeue::Done, now);
                        }
                    }
                }
            }
            let earliest = model.values().filter_map(|slot| slot.0.into_iter().chain(slot.1).min()).min();
            prop_assert_eq!(q.next_due(), earliest, "the wake-up is exact");
        }
    }

    /// However much one cluster has to do, another's key waits for one turn of each.
    #[test]
    fn clusters_take_turns(crowd in 1..50u8) {
        let mut q = queue();
        let t = Instant::now();
        for n in 0..crowd {
            q.at_once(&key("busy", &n.to_string()), t);
        }
        let (one, two) = (key("a", "x"), key("z", "x"));
        q.at_once(&one, t + ms(1));
        q.at_once(&two, t + ms(1));
        let mut order = Vec::new();
        while let Some(key) = q.take(t + ms(1)) {
            q.finish(&key, Requeue::Done, t);
            order.push(key);
        }
        prop_assert_eq!(order.len(), usize::from(crowd) + 2);
        prop_assert!(order.iter().position(|k| *k == one).unwrap() < 3);
        prop_assert!(order.iter().position(|k| *k == two).unwrap() < 3);
    }
}

fn shared_by(lane: impl Fn(&Key) -> Lane + Send + Sync + 'static) -> Queue {
    Queue::new(ms(100), Backoff::default(), Sharing::new(lane))
}

#[test]
fn keys_that_share_nothing_are_taken_together_and_those_of_a_group_one_by_one() {
    let t = Instant::now();
    let keys = ["a1", "a2", "b1"].map(|name| key("", name));
    let taken = |mut q: Queue| {
        for key in &keys {
            q.at_once(key, t);
        }
        let taken = std::iter::from_fn(|| q.take(t)).map(|key| key.name);
        taken.collect::<Vec<_>>()
    };
    assert_eq!(taken(shared_by(|_| Lane::Key)), ["a1", "a2", "b1"]);
    let by_letter = |key: &Key| Lane::Group(key.name[..1].to_owned());
    assert_eq!(taken(shared_by(by_letter)), ["a1", "b1"]);
    assert_eq!(taken(shared_by(|_| Lane::Cluster)), ["a1"]);
}

#[test]
fn who_is_held_or_paused_is_in_all_lanes_and_in_one_cluster() {
    let (mut q, t) = (shared_by(|_| Lane::Key), Instant::now());
    let keys = [key("a", "x"), key("a", "y"), key("b", "x")];
    for key in &keys {
        q.at_once(key, t);
    }
    q.hold(&post(&keys[0]), true);
    assert_eq!(q.take(t), Some(keys[2].clone()));
    assert_eq!(q.take(t), None);
    q.hold(&post(&keys[0]), false);
    q.pause(&post(&keys[0]), t + ms(50));
    assert_eq!(q.take(t), None);
    assert_eq!(q.take(t + ms(50)), Some(keys[0].clone()));
    assert_eq!(q.take(t + ms(50)), Some(keys[1].clone()));
}

#[test]
fn nothing_is_left_of_a_cluster_that_was_dropped_and_no_other_notices() {
    let (mut q, t) = (shared_by(|_| Lane::Key), Instant::now());
    let (gone, stays) = (key("a", "x"), key("b", "x"));
    q.hold(&post(&gone), true);
    q.pause(&post(&gone), t + ms(50));
    for key in [&gone, &stays] {
        q.at_once(key, t);
        q.wake(key, t + ms(500));
    }
    q.hold(&post(&gone), false);
    assert_eq!(q.take(t + ms(50)), Some(gone.clone()));
    assert_eq!(q.take(t + ms(50)), Some(stays.clone()));
    q.finish(&stays, Requeue::Failed, t + ms(50));
    q.drop_cluster(&gone.cluster);
    q.finish(&gone, Requeue::Failed, t + ms(60));
    assert!(q.lanes.keys().all(|lane| lane.cluster == stays.cluster));
    assert!(q.entries.keys().all(|key| *key == stays));
    assert!(q.failed.iter().all(|key| *key == stays));
    assert!(q.paused.is_empty() && q.held.is_empty());
    assert_eq!(q.depth(t + ms(60)).get("toy"), Some(&0));
    q.clear_backoff(&stays.cluster);
    assert_eq!(q.take(t + ms(60)), Some(stays));
    assert_eq!(q.next_due(), None);
}

#[test]
fn keys_that_are_due_are_counted_once_each() {
    let (mut q, t) = (queue(), Instant::now());
    for name in ["a", "b", "c"] {
        q.at_once(&key("", name), t);
        q.wake(&key("", name), t);
    }
    q.wake(&key("", "later"), t + ms(500));
    assert_eq!(q.depth(t).get("toy"), Some(&3));
    let taken = q.take(t).unwrap();
    assert_eq!(q.depth(t).get("toy"), Some(&2));
    q.finish(&taken, Requeue::Done, t);
    assert_eq!(q.depth(t + ms(500)).get("toy"), Some(&3));
}
