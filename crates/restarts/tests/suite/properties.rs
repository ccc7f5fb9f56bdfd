//! Laws over random worlds.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use slipway_kernel::store::Meta;
use slipway_kernel::{ClusterId, Controller, Facts, Plan, Stores};
use slipway_restarts::policy::Policy;
use slipway_restarts::stage::Stage;

use crate::objects::*;

/// Something that happens in a cluster.
#[derive(Debug, Clone)]
enum Happening {
    /// Time passes, also backwards: another replica's clock.
    Seconds(i64),
    /// A person restarts a workload.
    ByHand(usize),
    /// A person sets the interval, in minutes.
    Interval(i64),
    /// The workload's controller comes to this state.
    Rollout(usize, usize),
    /// The Flipper goes or comes back.
    Toggle,
    /// The label of a workload goes or comes back.
    Label(usize, bool),
    /// The plan is made and carried out to this many steps: the process dies then.
    Pass(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (-20_i64..600).prop_map(Happening::Seconds),
        1 => (0_usize..4).prop_map(Happening::ByHand),
        1 => (1_i64..20).prop_map(Happening::Interval),
        3 => (0_usize..4, 0_usize..4).prop_map(|(which, state)| Happening::Rollout(which, state)),
        1 => Just(Happening::Toggle),
        1 => (0_usize..4, any::<bool>()).prop_map(|(which, on)| Happening::Label(which, on)),
        8 => (0_usize..5).prop_map(Happening::Pass),
    ]
}

fn status(state: usize, generation: i64) -> Value {
    match state {
        0 => {
            json!({"observedGeneration": generation, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2})
        }
        1 => {
            json!({"observedGeneration": generation, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2})
        }
        2 => {
            json!({"observedGeneration": generation - 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2})
        }
        _ => {
            json!({"observedGeneration": generation, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]})
        }
    }
}

fn cluster(limit: usize) -> Stage {
    let mut stage = stage();
    let spec =
        json!({"interval": "10m", "maxConcurrent": limit, "match": {"labels": {"mesh": "true"}}});
    stage.put(flipper("default", "f", &spec));
    for which in 0..4 {
        let mut object = deployment("d", &format!("w{which}"), MESH, Some(&ago(9)));
        object["spec"]["replicas"] = json!(2);
        object["metadata"]["generation"] = json!(5);
        object["status"] = status(0, 5);
        stage.put(object);
    }
    stage
}

fn set_status(stage: &mut Stage, which: usize, state: usize) {
    let name = format!("w{which}");
    let mut object = stage.get("Deployment", "d", &name).unwrap().clone();
    object["status"] = status(state, Meta::of(&object).generation);
    stage.put(object);
}

fn happen(stage: &mut Stage, interval: &mut i64, what: &Happening) -> Plan {
    match what {
        Happening::Seconds(seconds) => stage.now += SignedDuration::from_secs(*seconds),
        Happening::ByHand(which) => {
            let at = slipway_restarts::render::stamp_of(stage.now);
            let template =
                json!({"metadata": {"annotations": {slipway_api::names::RESTARTED_AT: at}}});
            let name = format!("w{which}");
            stage.patch(
                "Deployment",
                "d",
                &name,
                &json!({"spec": {"template": template}}),
            );
        }
        Happening::Interval(minutes) => {
            *interval = *minutes;
            let spec = json!({"spec": {"interval": format!("{minutes}m")}});
            stage.patch("Flipper", "default", "f", &spec);
        }
        Happening::Rollout(which, state) => set_status(stage, *which, *state),
        Happening::Toggle => {
            let suspended =
                stage.get("Flipper", "default", "f").unwrap()["spec"]["suspend"] == true;
            stage.patch(
                "Flipper",
                "default",
                "f",
                &json!({"spec": {"suspend": !suspended}}),
            );
        }
        Happening::Label(which, on) => {
            let value = if *on { json!("true") } else { Value::Null };
            let name = format!("w{which}");
            stage.patch(
                "Deployment",
                "d",
                &name,
                &json!({"metadata": {"labels": {"mesh": value}}}),
            );
        }
        Happening::Pass(steps) => {
            let mut plan = stage.plan();
            plan.steps.truncate(*steps);
            stage.execute(&plan);
            return plan;
        }
    }
    Plan::default()
}

/// Whether a workload counts as rolling, judged by its status alone.
fn is_rolling(object: &Value) -> bool {
    let number = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    number("/status/observedGeneration") < number("/metadata/generation")
        || number("/status/updatedReplicas") < 2
        || number("/status/replicas") > number("/status/updatedReplicas")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// R1, R2 and R3 under any order of events, crashes and clocks.
    #[test]
    fn never_twice_within_an_interval_and_never_more_than_may_roll(
        limit in 1_usize..4,
        events in prop::collection::vec(happening(), 1..60),
    ) {
        let mut stage = cluster(limit);
        let mut interval = 10;
        let mut last: BTreeMap<String, Timestamp> = BTreeMap::new();
        for what in &events {
            let before: BTreeMap<String, Value> = (0..4)
                .map(|which| format!("d/w{which}"))
                .map(|name| (name.clone(), stage.get("Deployment", "d", &name[2..]).unwrap().clone()))
                .collect();
            let plan = happen(&mut stage, &mut interval, what);
            for name in restarted(&plan) {
                let now = slipway_restarts::due::second(stage.now);
                if let Some(last) = last.insert(name.clone(), now) {
                    prop_assert!(now.duration_since(last) >= minutes(interval), "{name} at {now} after {last}");
                }
                prop_assert!(!is_rolling(&before[&name]), "{name} was rolling");
            }
            if !restarted(&plan).is_empty() {
                let taken = (0..4).filter(|which| {
                    let name = format!("w{which}");
                    let object = stage.get("Deployment", "d", &name).unwrap();
                    // One that is not matched any more is not of this policy; one that somebody else broke does not roll.
                    let is_ours = own_stamp(&stage, "d", &name) == template_stamp(&stage, "d", &name);
                    object["metadata"]["labels"]["mesh"] == "true"
                        && is_rolling(object)
                        && (is_ours || object["status"]["conditions"].is_null())
                });
                prop_assert!(taken.count() <= limit);
            }
        }
    }

    /// After a plan has been carried out, and nothing else has happened, there is nothing to do and nothing to say.
    #[test]
    fn a_second_pass_does_nothing(events in prop::collection::vec(happening(), 1..40), later in 0_i64..3) {
        let mut stage = cluster(2);
        let mut interval = 10;
        for what in &events {
            happen(&mut stage, &mut interval, what);
        }
        // A stamp may come before a restart, and the status tells of both only afterwards.
        let is_quiet = (0..4).any(|_| stage.step().steps.is_empty());
        prop_assert!(is_quiet, "{:?}", stage.plan().steps);
        let before = stage.plan();
        stage.execute(&before);
        if before.wake_at.is_none_or(|at| at > stage.now + SignedDuration::from_secs(later)) {
            stage.now += SignedDuration::from_secs(later);
        }
        let plan = stage.plan();
        prop_assert!(plan.steps.is_empty(), "{:?}", plan.steps);
        prop_assert!(plan.statuses.is_empty(), "{:?}", plan.statuses);
        prop_assert!(plan.events.is_empty(), "{:?}", plan.events);
    }

    /// The order in which objects are told of makes no difference.
    #[test]
    fn order_makes_no_difference(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut stage = stage();
        for number in 0..3 {
            let spec = json!({"interval": "10m", "maxConcurrent": 1, "match": {"labels": {"n": number.to_string()}}});
            stage.put(flipper("default", &format!("f{number}"), &spec));
        }
        for number in 0..9 {
            let label = (number % 3).to_string();
            stage.put(deployment("d", &format!("w{number}"), ("n", &label), Some(&ago(11 + number))));
        }
        let straight = stage.plan();
        let mut stores = Stores::default();
        let mut keys = BTreeMap::new();
        for interest in Controller::interests(&stage.planner) {
            let key = stores.open(&ClusterId::local(), &interest);
            stores.store_mut(&key).unwrap().observe_list(&[], "0");
            keys.insert(interest.kind.kind.to_string(), key);
        }
        for at in order {
            let (kind, object) = if at < 3 {
                ("Flipper", stage.get("Flipper", "default", &format!("f{at}")).unwrap())
            } else {
                ("Deployment", stage.get("Deployment", "d", &format!("w{}", at - 3)).unwrap())
            };
            stores.store_mut(&keys[kind]).unwrap().observe(object);
        }
        let key = slipway_restarts::observe::sweep(&ClusterId::local());
        let shuffled = Controller::plan(&stage.planner, &stores, &Facts::default(), &key, stage.now).unwrap();
        prop_assert_eq!(shuffled.steps, straight.steps);
        prop_assert_eq!(shuffled.statuses, straight.statuses);
        prop_assert_eq!(shuffled.events, straight.events);
        prop_assert_eq!(shuffled.wake_at, straight.wake_at);
    }

    /// No spec, however bad, stops anything: it is read or it is reported, and everybody else goes on.
    #[test]
    fn any_spec_is_followed_or_reported(spec in anything(), name in "[a-z]{1,8}") {
        let mut stage = stage();
        stage.put(flipper("default", &name, &spec));
        stage.put(flipper("good", "good", &json!({"match": {"labels": {"sure": "yes"}, "namespaces": ["e"]}})));
        stage.put(deployment("e", "sure", ("sure", "yes"), Some(&ago(11))));
        stage.put(deployment("d", "a", MESH, Some(&ago(11))));
        let plan = stage.step();
        prop_assert!(restarted(&plan).contains(&"e/sure".to_owned()));
        let accepted = condition(&stage, "default", &name, "Accepted").unwrap().0;
        prop_assert_eq!(accepted == "True", Policy::read(&spec).is_ok());
    }

    /// No workload, however odd its annotations and status, stops anything.
    #[test]
    fn any_workload_is_borne(odd in anything(), stamp in "\\PC{0,24}", replicas in any::<i64>()) {
        let mut stage = stage();
        let mut object = deployment("d", "odd", MESH, Some(&stamp));
        object["spec"]["replicas"] = json!(replicas);
        object["status"] = odd.clone();
        object["metadata"]["managedFields"] = odd.clone();
        object["metadata"]["ownerReferences"] = odd;
        for name in [slipway_api::names::RESTART_INTERVAL, slipway_api::names::RESTART_NOT_BEFORE, slipway_api::names::DISRUPTION_CLAIM] {
            object["metadata"]["annotations"][name] = json!(stamp);
        }
        stage.put(object);
        stage.put(deployment("d", "even", MESH, Some(&ago(11))));
        prop_assert!(restarted(&stage.step()).contains(&"d/even".to_owned()));
    }
}

/// Any JSON, with the names of the spec's fields in the places where they matter. None of it asks for a workload with the
/// labels and namespace of another policy's, at the same rank.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        "\\PC{0,12}".prop_map(|s| json!(s)),
        "[0-9]{1,3}(ns|ms|s|m|h|d|w)".prop_map(|s| json!(s)),
        "[0-9*/,-]{1,4}( [0-9*/,-]{1,4}){4}".prop_map(|s| json!(s)),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}".prop_map(|s| json!(s)),
        Just(json!("Europe/Berlin")),
        Just(json!("Deployment")),
    ];
    let name = prop::sample::select(vec![
        "interval",
        "match",
        "labels",
        "namespaces",
        "kinds",
        "schedule",
        "cron",
        "timeZone",
        "windows",
        "duration",
        "excludeDates",
        "jitter",
        "maxConcurrent",
        "whenRolloutInProgress",
        "respectPodDisruptionBudgets",
        "dryRun",
        "suspend",
        "conditions",
        "type",
        "manager",
        "fieldsV1",
        "time",
    ]);
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..7)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
