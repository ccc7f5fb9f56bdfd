//! All worlds of up to three workloads, by state, age and limit: R1, R2 and R3 hold in every one.

use serde_json::{Value, json};
use slipway_restarts::stage::Stage;

use crate::objects::*;

/// What a workload's status and spec can say.
const STATES: [&str; 8] = [
    "healthy",
    "unknown",
    "rolling",
    "lagging",
    "failed",
    "unavailable",
    "paused",
    "empty",
];

/// How long ago a workload was restarted, in seconds; the interval is ten minutes.
const AGES: [i64; 3] = [599, 600, 4_000];

fn build(name: &str, state: &str, age: i64) -> Value {
    let stamp = slipway_restarts::render::stamp_of(start() - jiff::SignedDuration::from_secs(age));
    let mut object = deployment("d", name, MESH, Some(&stamp));
    object["metadata"]["generation"] = json!(5);
    object["spec"]["replicas"] = json!(2);
    let done = json!({"observedGeneration": 5, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
        "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]});
    object["status"] = done;
    match state {
        "unknown" => object["status"] = json!({}),
        "rolling" => object["status"]["updatedReplicas"] = json!(1),
        "lagging" => object["status"]["observedGeneration"] = json!(4),
        "failed" => {
            object["status"]["updatedReplicas"] = json!(1);
            object["status"]["conditions"] = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        }
        "unavailable" => object["status"]["availableReplicas"] = json!(1),
        "paused" => object["spec"]["paused"] = json!(true),
        "empty" => object["spec"]["replicas"] = json!(0),
        _ => {}
    }
    object
}

fn start() -> jiff::Timestamp {
    at("2026-03-04T12:00:00Z")
}

/// Whether a workload takes a place among those that may roll. Written anew here, as the oracle.
fn takes_a_place(state: &str, age: i64) -> bool {
    match state {
        "rolling" | "lagging" | "failed" => true,
        "unknown" => age < 600,
        _ => false,
    }
}

fn may_restart(state: &str, age: i64) -> bool {
    age >= 600 && matches!(state, "healthy" | "unknown")
}

#[test]
fn every_small_world() {
    let mut worlds = 0;
    let kinds: Vec<(&str, i64)> = STATES
        .iter()
        .flat_map(|state| AGES.iter().map(move |age| (*state, *age)))
        .collect();
    let mut all: Vec<Vec<(&str, i64)>> = vec![Vec::new()];
    for size in 1..=3 {
        let smaller: Vec<_> = all
            .iter()
            .filter(|w| w.len() == size - 1)
            .cloned()
            .collect();
        for world in smaller {
            // Workloads differ by name only, so worlds that differ by order only are one.
            for kind in kinds
                .iter()
                .filter(|kind| world.last().is_none_or(|last| *kind >= last))
            {
                let mut next = world.clone();
                next.push(*kind);
                all.push(next);
            }
        }
    }
    for world in &all {
        for limit in [None, Some(1), Some(2)] {
            worlds += 1;
            check(world, limit);
        }
    }
    assert!(worlds > 8_700, "{worlds}");
}

fn check(world: &[(&str, i64)], limit: Option<usize>) {
    let mut stage = Stage::new(
        slipway_restarts::Restarts::new(slipway_restarts::Settings::drop_in()),
        start(),
    );
    stage.put(flipper("default", "f", &json!({"maxConcurrent": limit})));
    for (place, (state, age)) in world.iter().enumerate() {
        stage.put(build(&format!("w{place}"), state, *age));
    }
    let plan = stage.plan();
    let begun = restarted(&plan);
    let able = world.iter().filter(|(s, a)| may_restart(s, *a)).count();
    let taken = world.iter().filter(|(s, a)| takes_a_place(s, *a)).count();
    let expected = limit.map_or(able, |limit| able.min(limit.saturating_sub(taken)));
    assert_eq!(begun.len(), expected, "{world:?} with {limit:?}");
    for name in &begun {
        let place: usize = name.trim_start_matches("d/w").parse().unwrap();
        let (state, age) = world[place];
        assert!(may_restart(state, age), "{world:?} with {limit:?}: {name}");
    }
    // Carried out, and with nothing else happening, no workload is restarted again (R1), nor one more begun (R2).
    stage.execute(&plan);
    let again = restarted(&stage.plan());
    assert!(again.is_empty(), "{world:?} with {limit:?}: {again:?}");
}
