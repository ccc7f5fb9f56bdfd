//! What a replica has seen may be older than a review: nothing is let go on it.

use slipway_kernel::admission::{Collection, Reading};
use slipway_kernel::fact::{Answer, Question, Unseen};
use slipway_zones::observe::ZONE_BUDGET;

use super::*;

/// Asks a replica that has seen the first world, while there is the second.
fn ask_late(seen: &World, there: &World, facts: &Facts) -> Served {
    let stores = (&seen.stores(), &there.stores());
    let review = review("a", 0);
    serve_late(
        &PodEviction::default(),
        &review,
        stores,
        facts,
        &mut Api::default(),
    )
}

#[test]
fn an_eviction_is_not_let_through_on_what_was_seen_before_it_was_asked_for() {
    let seen = guarded(&json!({"maxUnavailable": 1}));
    let mut there = seen.clone();
    there.fail("b", 1);
    let text = "1 pod not ready in ingester-zone-b";
    let served = ask_late(&seen, &there, &Facts::default());
    assert_eq!(served.denial(), (Some(429), text));
    there.pods.remove("ingester-zone-b-1");
    let text = "1 pod unknown in ingester-zone-b";
    let served = ask_late(&seen, &there, &Facts::default());
    assert_eq!(served.denial(), (Some(429), text));
    let mut dry = review("a", 0);
    dry.is_dry_run = true;
    let stores = (&seen.stores(), &there.stores());
    let served = serve_late(
        &PodEviction::default(),
        &dry,
        stores,
        &Facts::default(),
        &mut Nobody,
    );
    assert_eq!(
        served.denial(),
        (Some(429), text),
        "a dry run says the same"
    );
}

/// The definition of budgets was applied a moment ago, or the watch has lost them for a moment.
#[test]
fn a_budget_that_nobody_has_seen_yet_counts() {
    let mut seen = World::healthy(&["a", "b", "c"]);
    let mut there = guarded(&json!({"maxUnavailable": 1}));
    there.fail("c", 0);
    let text = "1 pod not ready in ingester-zone-c";
    let served = ask_late(&seen, &there, &Facts::default());
    assert_eq!(served.denial(), (Some(429), text));
    // A budget that is gone holds nobody back.
    std::mem::swap(&mut seen, &mut there);
    there
        .pods
        .clone_from(&World::healthy(&["a", "b", "c"]).pods);
    seen.pods.clone_from(&there.pods);
    let served = ask_late(&seen, &there, &Facts::default());
    assert_eq!(pair(&served), "pod-not-in-scope/200");
}

/// A replica that has not heard from the API for a while does not let the successor of a pod go that it saw failing.
#[test]
fn a_pod_that_was_seen_idle_is_looked_at_again() {
    let there = guarded(&json!({"maxUnavailable": 0}));
    let mut seen = there.clone();
    seen.pod_mut("a", 0)["status"]["phase"] = json!("Pending");
    let served = ask_late(&seen, &there, &Facts::default());
    assert_eq!(served.denial(), (Some(403), "max unavailable = 0"));
    // A pod that has come since is there.
    seen.pods.remove("ingester-zone-a-0");
    let there = guarded(&json!({"maxUnavailable": 1}));
    assert!(ask_late(&seen, &there, &Facts::default()).is_allowed());
}

/// Answers reads as told, and counts them.
struct Reads(fn(&Collection) -> Reading, usize);

impl Peer for Reads {
    fn answer(&mut self, question: &Question) -> Answer {
        panic!("asked {} {}", question.method(), question.address());
    }

    fn read(&mut self, collection: &Collection, _: &Facts) -> Reading {
        self.1 += 1;
        (self.0)(collection)
    }
}

#[test]
fn what_cannot_be_read_lets_nobody_go() {
    let failing: [fn(&Collection) -> Reading; 4] = [
        |_| Reading::Failed("boom".to_owned()),
        |of| match &*of.kind.plural {
            "pods" => Reading::Failed("boom".to_owned()),
            _ => Reading::Current,
        },
        |of| match &*of.kind.plural {
            "statefulsets" => Reading::Failed("boom".to_owned()),
            _ => Reading::Current,
        },
        |of| match &*of.kind.plural {
            "zoneawarepoddisruptionbudgets" => Reading::Failed("boom".to_owned()),
            _ => Reading::Current,
        },
    ];
    for world in [guarded(&json!({})), World::healthy(&["a", "b"])] {
        for (place, reading) in failing.into_iter().enumerate() {
            let is_guarded = !world.budgets.is_empty();
            if !is_guarded && (1..3).contains(&place) {
                continue; // Where there are no budgets, pods and zones do not matter.
            }
            let mut peer = Reads(reading, 0);
            let stores = world.stores();
            let review = review("a", 0);
            let served = serve(
                &PodEviction::default(),
                &review,
                &stores,
                &Facts::default(),
                &mut peer,
            );
            let text = "unable to determine pod status in related StatefulSet: boom";
            assert_eq!(served.denial(), (Some(500), text), "{place}");
            assert_eq!(pair(&served), "sts-pod-status-not-determined/500");
        }
    }
}

/// "Not defined" is the API's word and the watch's: one alone may be a mistake of a moment.
#[test]
fn budgets_that_only_one_word_calls_undefined_let_nobody_go() {
    let world = guarded(&json!({}));
    let mut peer = Reads(
        |of| match &*of.kind.plural {
            "zoneawarepoddisruptionbudgets" => Reading::Undefined,
            _ => Reading::Current,
        },
        0,
    );
    let stores = world.stores();
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut peer,
    );
    assert_eq!(served.denial().0, Some(429));
    let facts = without(Unseen::Absent, &ZONE_BUDGET);
    let world = World::healthy(&["a", "b"]);
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &world.stores(),
        &facts,
        &mut peer,
    );
    assert_eq!(pair(&served), "pod-not-in-scope/200");
}

#[test]
fn a_refusal_that_is_tried_again_costs_no_read() {
    let mut world = guarded(&json!({"maxUnavailable": 1}));
    world.fail("b", 1);
    let mut peer = Reads(|_| Reading::Current, 0);
    let stores = world.stores();
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut peer,
    );
    assert_eq!(served.denial().0, Some(429));
    assert_eq!(peer.1, 0);
}

/// Where there are no budgets, the pods of the namespace are not read: there may be many.
#[test]
fn without_budgets_only_these_are_read() {
    let world = World::healthy(&["a", "b"]);
    let mut peer = Reads(|_| Reading::Current, 0);
    let stores = world.stores();
    let served = serve(
        &PodEviction::default(),
        &review("a", 0),
        &stores,
        &Facts::default(),
        &mut peer,
    );
    assert!(served.is_allowed());
    assert_eq!(peer.1, 1);
}
