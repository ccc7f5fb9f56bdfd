//! Laws over random histories: a cluster in which pods come and go, templates change, and the process dies at any step.
//!
//! Z1 to Z7 are judged on the objects alone, by an oracle written anew here.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_kernel::stage::Stage;
use slipway_kernel::store::StoreKey;
use slipway_kernel::{Action, ClusterId, Controller, Plan, Stores};
use slipway_zones::Zones;

use crate::objects::*;

const ZONES: [&str; 3] = ["z-a", "z-b", "z-c"];
const PODS: i64 = 3;

/// Something that happens in a cluster.
#[derive(Debug, Clone)]
enum Happening {
    /// Time passes.
    Seconds(i64),
    /// A new template; its pods may be bad.
    Template(usize, bool),
    /// The controller of a zone makes the pods that are missing, and counts.
    Controller(usize),
    /// The controller of a zone counts, without having seen the last changes.
    Stale(usize),
    /// Pods that can become ready do.
    Kubelet(usize),
    /// A pod fails by itself.
    Fails(usize, i64),
    /// A person deletes a pod, gracefully.
    Leaves(usize, i64),
    /// A zone is paused or goes on.
    Pause(usize, bool),
    /// A zone allows so many.
    Most(usize, String),
    /// The plan is made and carried out to this many steps: the process dies then.
    Pass(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let zone = 0..ZONES.len();
    let most = prop_oneof![
        Just("1"),
        Just("2"),
        Just("50%"),
        Just("0"),
        Just("x"),
        Just("9")
    ];
    prop_oneof![
        2 => (1_i64..400).prop_map(Happening::Seconds),
        2 => (zone.clone(), any::<bool>()).prop_map(|(z, bad)| Happening::Template(z, bad)),
        6 => zone.clone().prop_map(Happening::Controller),
        2 => zone.clone().prop_map(Happening::Stale),
        6 => zone.clone().prop_map(Happening::Kubelet),
        1 => (zone.clone(), 0..PODS).prop_map(|(z, p)| Happening::Fails(z, p)),
        1 => (zone.clone(), 0..PODS).prop_map(|(z, p)| Happening::Leaves(z, p)),
        1 => (zone.clone(), any::<bool>()).prop_map(|(z, on)| Happening::Pause(z, on)),
        1 => (zone, most).prop_map(|(z, most)| Happening::Most(z, most.to_owned())),
        12 => (0_usize..6).prop_map(Happening::Pass),
    ]
}

fn cluster() -> Stage<Zones> {
    let mut zones = Vec::new();
    for name in ZONES {
        let mut set = zone(name);
        set["status"]["currentRevision"] = json!("0g");
        set["status"]["updateRevision"] = json!("0g");
        zones.push(set);
    }
    stage(&zones)
}

fn pod_name(zone: usize, ordinal: i64) -> String {
    format!("{}-{ordinal}", ZONES[zone])
}

fn is_ready(stage: &Stage<Zones>, zone: usize, ordinal: i64) -> bool {
    stage
        .get("Pod", NS, &pod_name(zone, ordinal))
        .is_some_and(|pod| {
            pod.pointer("/metadata/deletionTimestamp").is_none()
                && pod.pointer("/status/conditions/0/status") == Some(&json!("True"))
        })
}

/// The oracle's view of a zone: which ordinals are down (Z6: also a terminating pod).
fn down(stage: &Stage<Zones>, zone: usize) -> Vec<i64> {
    (0..PODS).filter(|o| !is_ready(stage, zone, *o)).collect()
}

/// Z3, written anew.
fn most(stage: &Stage<Zones>, zone: usize) -> usize {
    let set = stage.get("StatefulSet", NS, ZONES[zone]).unwrap();
    match set["metadata"]["annotations"]["rollout-max-unavailable"]
        .as_str()
        .unwrap()
    {
        "2" => 2,
        "9" => 3,
        // 1, half of three, and what is no number.
        _ => 1,
    }
}

fn count(stage: &mut Stage<Zones>, zone: usize, with_generation: bool) {
    let set = stage.get("StatefulSet", NS, ZONES[zone]).unwrap();
    let generation = set["metadata"]["generation"].clone();
    let pods = (0..PODS).filter(|o| stage.get("Pod", NS, &pod_name(zone, *o)).is_some());
    let ready = (0..PODS).filter(|o| is_ready(stage, zone, *o)).count();
    let mut status = json!({"replicas": pods.count(), "readyReplicas": ready});
    if with_generation {
        status["observedGeneration"] = generation;
    }
    change(
        stage,
        "StatefulSet",
        ZONES[zone],
        &json!({"status": status}),
    );
}

fn controller(stage: &mut Stage<Zones>, zone: usize) {
    let set = stage.get("StatefulSet", NS, ZONES[zone]).unwrap();
    let revision = set["status"]["updateRevision"].as_str().unwrap().to_owned();
    for ordinal in 0..PODS {
        let name = pod_name(zone, ordinal);
        let found = stage.get("Pod", NS, &name);
        if found.is_some_and(|pod| pod.pointer("/metadata/deletionTimestamp").is_some()) {
            stage.delete("Pod", NS, &name);
        }
        if stage.get("Pod", NS, &name).is_none() {
            let mut made = pod(ZONES[zone], ordinal, &revision);
            let version =
                stage.get("StatefulSet", NS, ZONES[zone]).unwrap()["metadata"]["resourceVersion"]
                    .clone();
            made["metadata"]["uid"] = json!(format!("{name}-{revision}-{version}"));
            made["status"] =
                json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]});
            stage.put(made);
        }
    }
    count(stage, zone, true);
}

fn kubelet(stage: &mut Stage<Zones>, zone: usize) {
    for ordinal in 0..PODS {
        let name = pod_name(zone, ordinal);
        let Some(found) = stage.get("Pod", NS, &name) else {
            continue;
        };
        let is_good = found["metadata"]["labels"]["controller-revision-hash"]
            .as_str()
            .unwrap()
            .ends_with('g');
        if is_good && found.pointer("/metadata/deletionTimestamp").is_none() {
            let ready = json!({"status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z"}],
                "containerStatuses": [{"name": "c", "ready": true, "state": {"running": {}}}],
            }});
            change(stage, "Pod", &name, &ready);
        }
    }
}

fn template(stage: &mut Stage<Zones>, zone: usize, bad: bool) {
    let set = stage.get("StatefulSet", NS, ZONES[zone]).unwrap();
    let version = set["metadata"]["resourceVersion"].as_str().unwrap();
    let revision = format!("{version}{}", if bad { "b" } else { "g" });
    let spec = json!({"spec": {"template": {"metadata": {"annotations": {"v": revision}}}}});
    change(stage, "StatefulSet", ZONES[zone], &spec);
    // The status follows later: until then nothing may go (Z4).
    change(
        stage,
        "StatefulSet",
        ZONES[zone],
        &json!({"status": {"updateRevision": revision}}),
    );
}

/// Carries out the first steps of a plan, as the runtime does: each deletion is judged before.
fn carry_out(stage: &mut Stage<Zones>, mut plan: Plan, steps: usize) -> Result<(), TestCaseError> {
    plan.steps.truncate(steps);
    for step in plan.steps.clone() {
        if let Action::Delete { target, .. } = &step.action {
            judge(stage, &target.object().name)?;
        }
        let one = Plan {
            steps: vec![step],
            ..Plan::default()
        };
        stage.execute(&one);
    }
    if steps > 4 {
        let rest = Plan {
            statuses: plan.statuses,
            ..Plan::default()
        };
        stage.execute(&rest);
    }
    Ok(())
}

/// Z1, Z2, Z4, Z5 and Z12, on what is there when a pod is deleted.
fn judge(stage: &Stage<Zones>, name: &str) -> Result<(), TestCaseError> {
    let (set, ordinal) = name.rsplit_once('-').unwrap();
    let zone = ZONES.iter().position(|z| *z == set).unwrap();
    for other in (0..ZONES.len()).filter(|z| *z != zone) {
        prop_assert!(
            down(stage, other).is_empty(),
            "Z1: {name} while {other} is down"
        );
    }
    for name in ZONES {
        let set = stage.get("StatefulSet", NS, name).unwrap();
        prop_assert_eq!(
            &set["metadata"]["generation"],
            &set["status"]["observedGeneration"],
            "Z4"
        );
    }
    let found = stage.get("Pod", NS, name).unwrap();
    let set = stage.get("StatefulSet", NS, set).unwrap();
    let revision = &found["metadata"]["labels"]["controller-revision-hash"];
    prop_assert_ne!(revision, &set["status"]["updateRevision"], "Z5");
    prop_assert!(found.pointer("/metadata/deletionTimestamp").is_none(), "Z6");
    prop_assert_ne!(
        &set["metadata"]["annotations"]["grafana.com/rollout-paused"],
        &json!("true"),
        "Z12"
    );
    let ordinal: i64 = ordinal.parse().unwrap();
    let before = down(stage, zone);
    if !before.contains(&ordinal) {
        prop_assert!(
            before.len() < most(stage, zone),
            "Z2: {name} while {before:?} are down"
        );
    }
    Ok(())
}

/// Z7: the zones that hold our claim now.
fn claims(stage: &Stage<Zones>) -> usize {
    let held = |name: &&&str| {
        let set = stage.get("StatefulSet", NS, name).unwrap();
        let claim = set["metadata"]["annotations"]["slipway.dev/disruption-claim"].as_str();
        claim
            .and_then(|claim| slipway_kernel::claim::Claim::read(claim, stage.now))
            .is_some()
    };
    ZONES.iter().filter(held).count()
}

fn is_settled(stage: &Stage<Zones>) -> bool {
    ZONES.iter().enumerate().all(|(zone, name)| {
        let status = &stage.get("StatefulSet", NS, name).unwrap()["status"];
        status["currentRevision"] == status["updateRevision"] && down(stage, zone).is_empty()
    })
}

fn happen(stage: &mut Stage<Zones>, what: &Happening) -> Result<(), TestCaseError> {
    match what {
        Happening::Seconds(seconds) => stage.now += SignedDuration::from_secs(*seconds),
        Happening::Template(zone, bad) => template(stage, *zone, *bad),
        Happening::Controller(zone) => controller(stage, *zone),
        Happening::Stale(zone) => count(stage, *zone, false),
        Happening::Kubelet(zone) => kubelet(stage, *zone),
        Happening::Fails(zone, ordinal) => unready(stage, &pod_name(*zone, *ordinal)),
        Happening::Leaves(zone, ordinal) => terminate(stage, &pod_name(*zone, *ordinal)),
        Happening::Pause(zone, on) => {
            let patch = json!({"metadata": {"annotations": {"grafana.com/rollout-paused": on.to_string()}}});
            change(stage, "StatefulSet", ZONES[*zone], &patch);
        }
        Happening::Most(zone, most) => {
            let patch = json!({"metadata": {"annotations": {"rollout-max-unavailable": most}}});
            change(stage, "StatefulSet", ZONES[*zone], &patch);
        }
        Happening::Pass(steps) => {
            let plan = stage.plan();
            carry_out(stage, plan, *steps)?;
        }
    }
    prop_assert!(claims(stage) <= 1, "Z7");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Z1 to Z7 and Z12 in every history.
    #[test]
    fn no_history_breaks_a_guarantee(history in proptest::collection::vec(happening(), 1..80)) {
        let mut stage = cluster();
        for what in &history {
            happen(&mut stage, what)?;
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Liveness: whatever has happened, when templates are good, nobody pauses and the others do their work, all pods are
    /// of the new revision and ready in the end, and then nothing is written any more.
    #[test]
    fn every_history_can_still_be_finished(history in proptest::collection::vec(happening(), 1..40)) {
        let mut stage = cluster();
        for what in &history {
            happen(&mut stage, what)?;
        }
        for zone in 0..ZONES.len() {
            template(&mut stage, zone, false);
            happen(&mut stage, &Happening::Pause(zone, false))?;
        }
        // Two zones that were broken by others stay as they are until somebody repairs them: Z1 allows nothing else.
        for zone in 0..ZONES.len() {
            if (0..ZONES.len()).filter(|z| !down(&stage, *z).is_empty()).count() > 1 {
                for ordinal in 0..PODS {
                    stage.delete("Pod", NS, &pod_name(zone, ordinal));
                }
            }
            controller(&mut stage, zone);
            kubelet(&mut stage, zone);
            count(&mut stage, zone, true);
        }
        for _ in 0..60 {
            if is_settled(&stage) {
                break;
            }
            happen(&mut stage, &Happening::Seconds(11))?;
            happen(&mut stage, &Happening::Pass(100))?;
            for zone in 0..ZONES.len() {
                controller(&mut stage, zone);
                kubelet(&mut stage, zone);
                count(&mut stage, zone, true);
            }
        }
        prop_assert!(is_settled(&stage));
        // The last claim is given up, and the last status written.
        for _ in 0..3 {
            happen(&mut stage, &Happening::Seconds(11))?;
            stage.step();
        }
        happen(&mut stage, &Happening::Seconds(11))?;
        let plan = stage.plan();
        prop_assert!(plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty(), "{:?}", plan);
    }

    /// The order in which objects arrive changes nothing, and a plan made twice is the same.
    #[test]
    fn plans_do_not_depend_on_the_order_of_arrival(history in proptest::collection::vec(happening(), 1..40)) {
        let mut stage = cluster();
        for what in &history {
            happen(&mut stage, what)?;
        }
        let mut stores = Stores::default();
        let mut all: Vec<Value> = Vec::new();
        for (zone, name) in ZONES.iter().enumerate() {
            all.extend(stage.get("StatefulSet", NS, name).cloned());
            all.extend((0..PODS).filter_map(|o| stage.get("Pod", NS, &pod_name(zone, o)).cloned()));
        }
        all.extend(stage.get("ConfigMap", NS, "slipway-zones-ingester").cloned());
        all.reverse();
        for interest in Controller::interests(&stage.planner) {
            let key: StoreKey = stores.open(&ClusterId::local(), &interest);
            let store = stores.store_mut(&key).unwrap();
            for object in all.iter().filter(|o| o["kind"] == interest.kind.kind.as_ref()) {
                store.observe(object);
            }
            store.set_synced(true);
        }
        let keys = Controller::keys(&stage.planner, &stores);
        let plan = Controller::plan(&stage.planner, &stores, &stage.facts, &keys[0], stage.now).unwrap();
        let other = stage.plan();
        prop_assert_eq!(&plan.steps, &other.steps);
        prop_assert_eq!(&plan.blockers, &other.blockers);
        prop_assert_eq!(&plan.statuses, &other.statuses);
    }
}
