//! `Fence::BumpVersions`: the enumeration of D-2 again, without any wait. A's renewals fail from the start, and it sleeps at its
//! k-th write for almost as long as a request may take; meanwhile B takes over, touches, and acts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Frequency, Match};
use slipway_apiserver::trace::Record;
use slipway_kernel::Fence;
use slipway_runtime::{Environment, Operator};

use crate::fencing::{Of, When, no_renewals, sleep_at, slow, start};
use crate::stage::{Replica, Stage, committed, epoch, one_of_many, secs, virtually};
use crate::toy::Toy;

const FENCE: &str = "slipway.dev/fence";

fn toy() -> Toy {
    Toy {
        fence: Fence::BumpVersions,
        ..Toy::default()
    }
}

/// B goes the other way, one step at a time.
fn other_way(toy: &Toy) -> Toy {
    Toy {
        budget: 1,
        reverse: true,
        ..toy.clone()
    }
}

fn is_touch(write: &Record) -> bool {
    write.context.contains("purpose=fence")
}

fn is_by(write: &Record, replica: &str) -> bool {
    write.context.contains(&format!("replica={replica};"))
}

/// What A has done after B began to act.
fn late_writes(stage: &Stage) -> usize {
    let done: Vec<Record> = stage.writes().into_iter().filter(committed).collect();
    let acts = |w: &Record| is_by(w, "b") && !is_touch(w);
    let first = done.iter().position(acts).expect("B acts");
    done[first..].iter().filter(|w| is_by(w, "a")).count()
}

fn refuse(stage: &Stage, verb: &str, code: u16, reason: &str, frequency: Frequency) {
    let about = Match {
        agent: "b".to_owned(),
        verb: verb.to_owned(),
        resource: "/configmaps".to_owned(),
        ..Match::default()
    };
    stage.refuse(about, code, reason, frequency);
}

/// One schedule; gives how often A wrote, and what it did too late.
fn schedule(
    at: u64,
    when: When,
    toy: &Toy,
    data: &serde_json::Value,
    allowed: bool,
) -> (u64, usize) {
    virtually(async {
        let stage = Stage::new().await;
        for n in 0..60 {
            stage.map(&format!("m{n:02}"), data.clone()).await;
        }
        no_renewals(&stage);
        for verb in ["patch", "delete"] {
            slow(&stage, "a", verb, 300);
            slow(&stage, "b", verb, 200);
        }
        if !allowed {
            refuse(&stage, "patch", 403, "Forbidden", Frequency::always());
        }
        let (a, count) = start(&stage, (Of::Writes, at), when, toy.clone());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let b = stage.start(one_of_many("b"), other_way(toy));
        sleep_at(&a, &count, at).await;
        secs(60).await;
        for n in 0..60 {
            let name = format!("m{n:02}");
            let done = match data["want"].as_str() {
                Some(want) => stage.have(&name).await == want,
                None => stage.maps().get_opt(&name).await.unwrap().is_none(),
            };
            assert!(done, "{name} at {at} {when:?}");
        }
        drop((a, b));
        (count.load(Ordering::Relaxed), late_writes(&stage))
    })
}

fn schedules(writes: u64) -> impl Iterator<Item = (u64, When)> {
    let at = (0..16).step_by(5).chain(16..writes);
    at.flat_map(|at| [(at, When::Before), (at, When::After)])
}

#[test]
fn nothing_that_a_former_leader_sent_is_done_after_the_next_one_acts_d2() {
    let want = json!({"want": "1"});
    let (writes, _) = schedule(u64::MAX, When::After, &toy(), &want, true);
    assert!(writes > 30, "{writes}");
    for (at, when) in schedules(writes) {
        let (_, late) = schedule(at, when, &toy(), &want, true);
        assert_eq!(late, 0, "at {at} {when:?}");
    }
}

/// The same schedules find it when nothing is touched: they can fail.
#[test]
fn without_touches_the_same_schedules_let_a_former_leader_act() {
    let careless = Toy {
        careless: true,
        ..toy()
    };
    let want = json!({"want": "1"});
    let late: usize = (28..33)
        .map(|at| schedule(at, When::Before, &careless, &want, true).1)
        .sum();
    assert!(late > 0);
}

/// The design's Role has no `patch` on pods.
#[test]
fn where_touching_is_forbidden_the_former_leader_is_waited_out() {
    let delete = json!({"delete": "yes"});
    let (writes, _) = schedule(u64::MAX, When::After, &toy(), &delete, false);
    assert!(writes > 30, "{writes}");
    for (at, when) in schedules(writes).filter(|(at, _)| at % 3 == 2) {
        let (_, late) = schedule(at, when, &toy(), &delete, false);
        assert_eq!(late, 0, "at {at} {when:?}");
    }
}

/// A stage whose leader has died before it could do anything about one of two maps.
async fn bereft() -> Stage {
    let stage = Stage::new().await;
    stage.map("done", json!({"want": "1", "have": "1"})).await;
    let a = stage.start(one_of_many("a"), toy());
    secs(1).await;
    drop(a);
    stage.map("todo", json!({"want": "1"})).await;
    stage
}

#[test]
fn pending_objects_are_touched_once_and_the_lease_is_all_that_is_waited_for() {
    virtually(async {
        let stage = bereft().await;
        let b = stage.start(one_of_many("b"), toy());
        let took = stage.until_have("todo", "1", 40).await;
        assert!(took < Duration::from_secs(19), "{took:?}");
        secs(60).await;
        let touches: Vec<String> = stage
            .writes()
            .iter()
            .filter(|w| is_touch(w))
            .map(|w| w.name.clone())
            .collect();
        assert_eq!(touches, ["todo"]);
        let map = stage.maps().get("todo").await.unwrap();
        assert_eq!(map.metadata.annotations.unwrap()[FENCE], "2");
        assert!(!b.view.metrics().contains("slipway_feature_off{"));
    });
}

#[test]
fn a_touch_that_fails_is_repeated_and_one_that_may_not_be_is_shown() {
    for (code, reason) in [
        (409, "Conflict"),
        (500, "InternalError"),
        (429, "TooManyRequests"),
    ] {
        virtually(async {
            let stage = bereft().await;
            refuse(&stage, "patch", code, reason, Frequency::once());
            let _b = stage.start(one_of_many("b"), toy());
            let took = stage.until_have("todo", "1", 40).await;
            assert!(took < Duration::from_secs(20), "{took:?} after {code}");
            let touches = stage.records(|r| is_touch(r) && r.agent == "b");
            assert_eq!(touches.len(), 2, "{code}");
        });
    }
    virtually(async {
        let stage = bereft().await;
        refuse(&stage, "patch", 403, "Forbidden", Frequency::once());
        let b = stage.start(one_of_many("b"), toy());
        let took = stage.until_have("todo", "1", 60).await;
        assert!(took > Duration::from_secs(26), "{took:?}: waited out");
        let off = "slipway_feature_off{feature=\"fence configmaps\"} 1";
        assert!(b.view.metrics().contains(off));
        assert!(b.view.is_ready());
    });
}

/// A time server sets the clock of a leader that touches objects: by that clock its lease is over, until it is renewed.
#[test]
fn a_clock_that_is_set_while_objects_are_touched_leaves_a_leader_that_acts() {
    virtually(async {
        let stage = bereft().await;
        for n in 0..40 {
            stage.map(&format!("m{n:02}"), json!({"want": "1"})).await;
        }
        slow(&stage, "b", "patch", 600);
        let environment = Environment::virtual_from(epoch(), 7);
        let operator = Operator::new(environment.clone(), stage.client("b"), one_of_many("b"));
        let _b = Replica::run(operator.with(Arc::new(toy())));
        let touches = || stage.records(|r| is_touch(r) && r.agent == "b").len();
        let mut waited = 0;
        while touches() == 0 {
            assert!(waited < 400, "nothing is touched");
            tokio::time::sleep(Duration::from_millis(100)).await;
            waited += 1;
        }
        environment.set_clock_by(3_600);
        for name in ["m00", "m39", "todo"] {
            stage.until_have(name, "1", 60).await;
        }
    });
}

#[test]
fn who_was_given_the_lease_touches_nothing() {
    virtually(async {
        let stage = Stage::new().await;
        let lazy = Toy { budget: 0, ..toy() };
        let a = stage.start(one_of_many("a"), lazy);
        secs(1).await;
        let _b = stage.start(one_of_many("b"), toy());
        stage.map("todo", json!({"want": "1"})).await;
        secs(1).await;
        a.stop().await;
        stage.until_have("todo", "1", 10).await;
        assert!(stage.writes().iter().all(|w| !is_touch(w)));
    });
}
