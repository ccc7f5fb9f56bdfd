//! Claims: one zone of a group at a time, and never against another capability (Z7).

use serde_json::{Value, json};

use crate::objects::*;

const A: &str = "ingester-zone-a";
const B: &str = "ingester-zone-b";
const CLAIM: &str = "slipway.dev/disruption-claim";

fn claimed(mut set: Value, holder: &str, until: &str) -> Value {
    set["metadata"]["annotations"][CLAIM] =
        json!(json!({"holder": holder, "until": until}).to_string());
    set
}

#[test]
fn a_zone_is_claimed_before_its_first_pod_goes_and_released_when_it_is_done() {
    let mut stage = stage(&[outdated(A)]);
    let plan = stage.step();
    assert_eq!(
        (names(&plan, "claim"), deleted(&plan).len()),
        (vec![A.to_owned()], 0)
    );
    let plan = stage.step();
    assert_eq!((names(&plan, "claim").len(), deleted(&plan).len()), (0, 2));
    for ordinal in 0..3 {
        stage.put(pod(A, ordinal, "new"));
    }
    let plan = stage.step();
    assert_eq!((names(&plan, "release").len(), plan.statuses.len()), (0, 1));
    assert_eq!(names(&stage.step(), "release"), [A]);
    let last = stage.plan();
    assert!(names(&last, "release").is_empty() && names(&last, "claim").is_empty());
}

#[test]
fn the_next_zone_is_claimed_only_when_the_former_one_is_released() {
    let mut stage = stage(&[
        claimed(zone(A), "zones", "2026-03-04T12:09:00Z"),
        outdated(B),
    ]);
    let plan = stage.step();
    assert_eq!(
        (names(&plan, "release"), names(&plan, "claim").len()),
        (vec![A.to_owned()], 0)
    );
    let plan = stage.step();
    assert_eq!(names(&plan, "claim"), [B]);
    assert_eq!(deleted(&stage.step()).len(), 2);
}

#[test]
fn another_capability_s_claim_on_any_zone_is_waited_for_until_its_end() {
    for zones in [
        [
            claimed(zone(A), "restarts", "2026-03-04T12:03:00Z"),
            outdated(B),
        ],
        [
            zone(A),
            claimed(outdated(B), "restarts", "2026-03-04T12:03:00Z"),
        ],
    ] {
        let mut stage = stage(&zones);
        let plan = pass(&mut stage);
        assert_eq!(deleted(&plan).len(), 0);
        assert_eq!(names(&plan, "claim").len(), 0);
        assert!(reasons(&plan).contains(&"ClaimedByOther"));
        assert_eq!(plan.wake_at, Some(at("2026-03-04T12:03:00Z")));
        stage.now = at("2026-03-04T12:03:00Z");
        assert_eq!(deleted(&pass(&mut stage)).len(), 2);
    }
}

#[test]
fn a_claim_of_ours_that_ended_by_itself_is_taken_away_and_holds_nobody_up() {
    let ended = "2026-03-04T11:00:00Z";
    let done = stage(&[claimed(zone(A), "zones", ended), zone(B)]).plan();
    assert_eq!(names(&done, "release"), [A]);
    // Where there is work it is in nobody's way.
    let busy = stage(&[claimed(zone(A), "zones", ended), outdated(B)]).plan();
    assert_eq!(names(&busy, "claim"), [B]);
    // It is not ours to take away what others left.
    let theirs = stage(&[claimed(zone(A), "restarts", ended), zone(B)]).plan();
    assert!(names(&theirs, "release").is_empty());
}

#[test]
fn a_claim_is_renewed_in_time_and_not_before() {
    for (until, renewals) in [("2026-03-04T12:04:00Z", 1), ("2026-03-04T12:06:00Z", 0)] {
        let plan = stage(&[claimed(outdated(A), "zones", until)]).plan();
        assert_eq!(names(&plan, "claim").len(), renewals, "{until}");
        assert_eq!(deleted(&plan).len(), 2);
    }
}

#[test]
fn a_claim_is_kept_while_pods_of_the_zone_are_on_their_way_back() {
    let mut stage = stage(&[
        claimed(zone(A), "zones", "2026-03-04T12:08:00Z"),
        outdated(B),
    ]);
    unready(&mut stage, "ingester-zone-a-1");
    let plan = pass(&mut stage);
    assert!(names(&plan, "release").is_empty() && names(&plan, "claim").is_empty());
    assert_eq!(plan.wake_at, Some(at("2026-03-04T12:03:00Z")));
    stage.now = at("2026-03-04T12:03:00.5Z");
    assert_eq!(names(&stage.plan(), "claim"), [A]);
}

/// Where the right to patch is missing, pods go without a claim.
#[test]
fn a_refused_claim_does_not_stop_the_rollout() {
    let mut stage = stage(&[zone(A), outdated(B)]);
    refuse(&mut stage, B);
    let plan = stage.plan();
    assert_eq!((names(&plan, "claim").len(), deleted(&plan).len()), (0, 2));
}

#[test]
fn a_busy_server_is_no_reason_to_go_without_a_claim() {
    let mut stage = stage(&[zone(A), outdated(B)]);
    refuse_for(&mut stage, B, slipway_kernel::fact::Cause::Busy);
    let plan = stage.plan();
    assert_eq!((names(&plan, "claim").len(), deleted(&plan).len()), (0, 0));
    assert!(reasons(&plan).contains(&"RefusedByApi"));
}

/// The clock of a former leader was an hour ahead, or somebody wrote it.
#[test]
fn a_status_from_the_future_is_brought_up_to_date() {
    let mut stage = stage(&[zone(A), zone(B)]);
    stage.step();
    let map = json!({"data": {"updatedAt": "2031-01-01T00:00:00Z"}});
    stage.patch("ConfigMap", NS, "slipway-zones-ingester", &map);
    unready(&mut stage, "ingester-zone-a-0");
    let plan = stage.step();
    assert_eq!(names(&plan, "status"), ["slipway-zones-ingester"]);
    // From then on it is our own time, and rarely.
    stage.now = noon() + jiff::SignedDuration::from_secs(5);
    unready(&mut stage, "ingester-zone-a-1");
    assert!(names(&stage.step(), "status").is_empty());
    stage.now = noon() + jiff::SignedDuration::from_secs(10);
    assert_eq!(names(&stage.step(), "status").len(), 1);
}

/// G2: when nothing happens, nothing is written or told.
#[test]
fn a_quiet_group_writes_and_tells_nothing() {
    let mut stage = stage(&[zone(A), zone(B)]);
    assert_eq!(names(&stage.step(), "status"), ["slipway-zones-ingester"]);
    for minutes in 1..10 {
        stage.now = noon() + jiff::SignedDuration::from_mins(minutes);
        let plan = stage.step();
        assert!(plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty());
        let beat = stage.now + jiff::SignedDuration::from_mins(5);
        assert_eq!(
            plan.wake_at,
            Some(beat),
            "the heartbeat of the last-success gauge"
        );
    }
}

#[test]
fn the_status_of_a_group_is_written_on_change_and_at_most_every_ten_seconds() {
    let mut stage = stage(&[zone(A), zone(B)]);
    stage.step();
    unready(&mut stage, "ingester-zone-a-1");
    stage.now = noon() + jiff::SignedDuration::from_secs(3);
    let plan = stage.step();
    assert_eq!(names(&plan, "status").len(), 0);
    assert_eq!(
        plan.wake_at,
        Some(noon() + jiff::SignedDuration::from_secs(10))
    );
    stage.now = noon() + jiff::SignedDuration::from_secs(10);
    assert_eq!(names(&stage.step(), "status").len(), 1);
    let map = stage
        .get("ConfigMap", NS, "slipway-zones-ingester")
        .unwrap();
    let status: Value = serde_json::from_str(map["data"]["status"].as_str().unwrap()).unwrap();
    assert_eq!(status["zones"][0]["unavailable"], 1);
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["waitingFor"][0]["reason"], "NotReady");
}

#[test]
fn the_beginning_and_the_end_of_a_rollout_are_told_once() {
    let mut stage = stage(&[outdated(A)]);
    let told = |stage: &mut slipway_kernel::stage::Stage<slipway_zones::Zones>| {
        stage.now += jiff::SignedDuration::from_secs(20);
        let plan = stage.step();
        plan.events.iter().map(|e| e.reason).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut stage), ["RolloutStarted"]);
    assert!(told(&mut stage).is_empty());
    for ordinal in 0..3 {
        stage.put(pod(A, ordinal, "new"));
    }
    assert_eq!(told(&mut stage), ["RolloutFinished"]);
    assert!(told(&mut stage).is_empty());
}

/// Found by the simulation: `zone-order`, the release answered with 500.
#[test]
fn z7_a_claim_that_cannot_be_given_up_keeps_the_next_zone_waiting() {
    let mut stage = stage(&[
        claimed(zone(A), "zones", "2026-03-04T12:09:00Z"),
        outdated(B),
    ]);
    refuse(&mut stage, A);
    let plan = stage.plan();
    assert!(names(&plan, "release").is_empty() && names(&plan, "claim").is_empty());
    assert!(deleted(&plan).is_empty());
    let why: Vec<&str> = plan.blockers.iter().map(|b| b.reason).collect();
    assert!(why.contains(&"RefusedByApi"), "{why:?}");
}
