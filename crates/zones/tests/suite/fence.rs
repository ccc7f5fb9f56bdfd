//! What a new leader touches before it acts.

use serde_json::json;
use slipway_kernel::{Controller, Fence};

use crate::objects::*;

const A: &str = "ingester-zone-a";
const B: &str = "ingester-zone-b";

fn touched(stage: &slipway_kernel::stage::Stage<slipway_zones::Zones>) -> Vec<String> {
    let stores = stage.stores();
    let planner = &stage.planner;
    let keys = Controller::keys(planner, &stores);
    let targets = keys
        .iter()
        .flat_map(|key| Controller::objects_to_bump(planner, &stores, key));
    targets.map(|target| target.object().name.clone()).collect()
}

#[test]
fn the_pods_of_a_group_with_pending_work_are_touched_in_all_zones() {
    let stage = stage(&[outdated(A), zone(B)]);
    assert_eq!(Controller::fence(&stage.planner), Fence::BumpVersions);
    let all: Vec<String> = [A, B]
        .iter()
        .flat_map(|zone| (0..3).map(move |n| format!("{zone}-{n}")))
        .collect();
    assert_eq!(touched(&stage), all);
}

#[test]
fn a_group_without_work_is_left_alone() {
    assert!(touched(&stage(&[zone(A), zone(B)])).is_empty());
}

#[test]
fn a_claimed_zone_is_pending_also_where_it_looks_done_and_the_claim_has_run_out() {
    let mut claimed = zone(A);
    let claim = json!({"holder": "zones", "until": "2026-03-04T11:00:00Z"}).to_string();
    claimed["metadata"]["annotations"]["slipway.dev/disruption-claim"] = json!(claim);
    assert_eq!(touched(&stage(&[claimed, zone(B)])).len(), 6);
}

#[test]
fn neither_terminating_pods_nor_those_of_others_are_touched() {
    let mut stage = stage(&[outdated(A)]);
    terminate(&mut stage, "ingester-zone-a-0");
    let nobody = json!({"metadata": {"ownerReferences": null}});
    change(&mut stage, "Pod", "ingester-zone-a-1", &nobody);
    assert_eq!(touched(&stage), ["ingester-zone-a-2"]);
}

#[test]
fn a_zone_that_we_scale_is_touched_also_without_other_work() {
    let mut follower = zone(B);
    follower["metadata"]["annotations"]["grafana.com/rollout-downscale-leader"] = json!(A);
    assert_eq!(touched(&stage(&[zone(A), follower])), [B]);
}

/// Whatever a plan would delete or scale is among what is touched.
#[test]
fn what_a_plan_would_hit_is_touched() {
    for zones in [
        vec![outdated(A), outdated(B)],
        vec![zone(A), outdated(B)],
        vec![outdated(A), zone(B)],
    ] {
        let mut stage = stage(&zones);
        stage.step();
        let plan = stage.plan();
        let touched = touched(&stage);
        assert!(!deleted(&plan).is_empty());
        for pod in deleted(&plan) {
            assert!(touched.contains(&pod), "{pod} of {touched:?}");
        }
    }
}
