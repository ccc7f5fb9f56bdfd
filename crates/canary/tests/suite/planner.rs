//! The planner as the runtime asks it: objects into stores, a world out of these, a plan out of the world.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::purpose::canary as purpose;
use slipway_canary::stage::Stage;
use slipway_canary::standalone::readiness::Workload;
use slipway_canary::{Canaries, Settings};
use slipway_kernel::fact::{Answer, Question, Request};
use slipway_kernel::fields::merge;
use slipway_kernel::question::{Reply, Text, Value as Read};
use slipway_kernel::{Action, Plan, Purpose};

pub(crate) fn canary(spec: &Value) -> Value {
    let mut whole = json!({
        "provider": "kubernetes",
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "service": {"port": 80},
        "analysis": {"interval": "10s", "threshold": 2, "iterations": 2},
    });
    merge(&mut whole, spec);
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-03-04T11:00:00Z"},
        "spec": whole,
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
    })
}

pub(crate) fn stage(spec: &Value) -> Stage {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let mut stage = Stage::new(Canaries::new(Settings::default()), now);
    stage.put(deployment());
    stage.put(canary(spec));
    controllers(&mut stage);
    stage
}

/// Workloads are at once what they are asked to be.
pub(crate) fn controllers(stage: &mut Stage) {
    for name in ["web", "web-primary"] {
        let Some(seen) = stage.get("Deployment", "shop", name) else {
            continue;
        };
        let replicas = seen["spec"]["replicas"].clone();
        let status = json!({"observedGeneration": seen["metadata"]["generation"], "replicas": replicas,
            "updatedReplicas": replicas, "availableReplicas": replicas});
        if seen["status"] != status {
            stage.patch("Deployment", "shop", name, &json!({"status": null}));
            stage.patch("Deployment", "shop", name, &json!({"status": status}));
        }
    }
    daemons(stage);
}

/// Whether a `DaemonSet` was put away.
pub(crate) fn is_away(stage: &Stage, name: &str) -> bool {
    let seen = stage.get("DaemonSet", "shop", name).unwrap();
    Workload::DaemonSet.size(seen) == 0
}

/// The same of `DaemonSet`s, on three nodes.
fn daemons(stage: &mut Stage) {
    for name in ["web", "web-primary"] {
        let Some(seen) = stage.get("DaemonSet", "shop", name) else {
            continue;
        };
        let pods = if is_away(stage, name) { 0 } else { 3 };
        let status = json!({"observedGeneration": seen["metadata"]["generation"],
            "desiredNumberScheduled": pods, "updatedNumberScheduled": pods, "numberAvailable": pods});
        if seen["status"] != status {
            stage.patch("DaemonSet", "shop", name, &json!({"status": status}));
        }
    }
}

pub(crate) fn questions(plan: &Plan) -> Vec<Question> {
    let asks = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Ask(question) => Some(question.clone()),
        _ => None,
    });
    asks.collect()
}

fn purposes(plan: &Plan) -> Vec<Purpose> {
    plan.steps
        .iter()
        .map(|step| step.action.purpose())
        .collect()
}

/// Steps until nothing comes of it at this moment; every question is answered with this code. Gives all plans.
pub(crate) fn settle(stage: &mut Stage, code: u16) -> Vec<Plan> {
    let mut all = Vec::new();
    for _ in 0..100 {
        let plan = stage.step();
        controllers(stage);
        stage.facts.answers.retain(|id, _| plan.keeps.contains(id));
        for question in questions(&plan) {
            let text = Text {
                text: String::new(),
                is_cut: false,
            };
            let reply = Reply {
                code,
                value: Read::Text(text),
            };
            let told = (stage.now, Answer::Read(reply));
            let before = stage.facts.answers.insert(question.id, told);
            assert!(before.is_none(), "nobody is asked what was answered");
        }
        let is_idle = plan.steps.is_empty() && plan.statuses.is_empty();
        all.push(plan);
        if is_idle {
            return all;
        }
    }
    panic!("it does not settle: {:#?}", all.last());
}

pub(crate) fn status(stage: &Stage) -> Value {
    stage.get("Canary", "shop", "web").unwrap()["status"].clone()
}

pub(crate) fn phase(stage: &Stage) -> String {
    status(stage)["phase"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(crate) fn push(stage: &mut Stage, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch("Deployment", "shop", "web", &patch);
    controllers(stage);
}

/// Time passes, as often as the plan asks for, until a phase is reached.
pub(crate) fn until(stage: &mut Stage, wanted: &str) -> Vec<Plan> {
    let mut all = Vec::new();
    for _ in 0..100 {
        let plans = settle(stage, 200);
        let wake = plans.last().and_then(|plan| plan.wake_at);
        all.extend(plans);
        if phase(stage) == wanted {
            return all;
        }
        stage.now = wake.unwrap_or_else(|| panic!("nothing to wait for: {:#}", status(stage)));
    }
    panic!("it is not {wanted}: {:#}", status(stage));
}

#[test]
fn what_is_to_be_done_is_remembered_before_it_is_done() {
    let mut stage = stage(&json!({}));
    let plans = until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    let more = until(&mut stage, "Succeeded");
    for plan in plans.iter().chain(&more) {
        if plan.prepares {
            assert!(plan.steps.is_empty(), "an intent comes alone: {plan:#?}");
            assert_eq!(plan.statuses.len(), 1);
        }
    }
    let first = &plans[0];
    assert!(first.prepares && first.statuses[0].body["phase"] == "Initializing");
    let image = &stage.get("Deployment", "shop", "web-primary").unwrap()["spec"]["template"]["spec"]
        ["containers"][0]["image"];
    assert_eq!(image, "web:2");
}

#[test]
fn steps_have_their_purposes_and_each_object_is_written_once_a_plan() {
    let mut stage = stage(&json!({}));
    let mut plans = until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    plans.extend(until(&mut stage, "Succeeded"));
    let mut seen = BTreeSet::new();
    for plan in &plans {
        let objects: Vec<_> = plan
            .steps
            .iter()
            .filter_map(|step| step.action.object())
            .collect();
        let different: BTreeSet<_> = objects.iter().collect();
        assert_eq!(objects.len(), different.len(), "{plan:#?}");
        seen.extend(purposes(plan));
    }
    for purpose in [purpose::SERVE, purpose::SIZE, purpose::LEAD] {
        assert!(seen.contains(&purpose), "{purpose}");
    }
}

#[test]
fn nothing_is_applied_by_force() {
    let mut stage = stage(&json!({}));
    let plans = until(&mut stage, "Initialized");
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    for step in steps {
        if let Action::Apply { by, .. } = &step.action {
            assert!(!by.force, "{step:#?}");
        }
    }
}

#[test]
fn a_plan_that_was_carried_out_is_not_made_again() {
    let mut stage = stage(&json!({}));
    until(&mut stage, "Initialized");
    let plan = stage.plan();
    assert!(plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty());
    assert_eq!(
        (plan.wake_at, plan.blockers.len()),
        (None, 0),
        "an idle Canary costs nothing"
    );
}

#[test]
fn a_canary_that_cannot_be_read_is_told_and_stops_nobody() {
    let mut stage = stage(&json!({}));
    stage.patch(
        "Canary",
        "shop",
        "web",
        &json!({"spec": {"targetRef": "web"}}),
    );
    let plan = stage.plan();
    assert!(plan.steps.is_empty() && plan.statuses.is_empty());
    assert_eq!(plan.blockers[0].reason, "InvalidSpec");
    assert!(plan.blockers[0].message.contains("cannot be read"));
}

#[test]
fn a_service_of_somebody_else_is_left_alone() {
    let mut stage = stage(&json!({}));
    let owner = json!({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other", "controller": true});
    stage.put(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web-canary", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {"ports": [], "selector": {}}}));
    for _ in 0..5 {
        let plan = stage.step();
        let names = plan.steps.iter().filter_map(|step| step.action.object());
        assert!(
            names.into_iter().all(|object| object.name != "web-canary"),
            "{plan:#?}"
        );
        controllers(&mut stage);
    }
    let waits = &status(&stage)["waitingFor"];
    assert_eq!(waits[0]["reason"], "NotOurs", "{waits}");
    assert_eq!(
        stage.get("Deployment", "shop", "web").unwrap()["spec"]["replicas"],
        3
    );
}

#[test]
fn a_question_has_one_name_and_another_one_has_another() {
    let hooks = json!([{"name": "gate", "type": "pre-rollout", "url": "http://gate.test/a"}]);
    let mut stage = stage(&json!({"analysis": {"webhooks": hooks}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    let asked = loop {
        let plan = stage.step();
        controllers(&mut stage);
        if let [question] = questions(&plan).as_slice() {
            break question.clone();
        }
    };
    // It is asked again by the same name until it has an answer, also after a while.
    stage.now += Duration::from_secs(3);
    assert_eq!(questions(&stage.plan())[0].id, asked.id);
    let Request::Outside(call) = &asked.request else {
        panic!("{asked:?}");
    };
    assert!(
        call.body.contains(r#""phase":"Progressing""#),
        "{}",
        call.body
    );
    // Somebody changes the webhook meanwhile: that is another question.
    let hooks = json!([{"name": "gate", "type": "pre-rollout", "url": "http://gate.test/b"}]);
    stage.patch(
        "Canary",
        "shop",
        "web",
        &json!({"spec": {"analysis": {"webhooks": hooks}}}),
    );
    stage.step();
    let other = questions(&stage.plan());
    assert_ne!(other[0].id, asked.id);
}

#[test]
fn an_answer_is_kept_for_as_long_as_it_is_needed() {
    let hooks = json!([{"name": "gate", "type": "confirm-rollout", "url": "http://gate.test/a"}]);
    let mut stage = stage(&json!({"analysis": {"webhooks": hooks}}));
    until(&mut stage, "Initialized");
    push(&mut stage, "web:2");
    settle(&mut stage, 403);
    assert_eq!(phase(&stage), "Waiting");
    for _ in 0..50 {
        stage.now += Duration::from_secs(10);
        settle(&mut stage, 403);
        assert!(stage.facts.answers.len() <= 2, "{:?}", stage.facts.answers);
    }
    assert_eq!(
        status(&stage)["waitingFor"][0]["reason"],
        "RolloutGateClosed"
    );
    stage.now += Duration::from_secs(10);
    until(&mut stage, "Succeeded");
    assert!(stage.facts.answers.is_empty(), "{:?}", stage.facts.answers);
}

#[test]
fn what_serves_is_not_sent_a_status_that_says_the_same() {
    let mut stage = stage(&json!({"suspend": true}));
    let plans = settle(&mut stage, 200);
    assert!(plans.len() <= 4, "{plans:#?}");
    let version = |stage: &Stage| {
        stage.get("Canary", "shop", "web").unwrap()["metadata"]["resourceVersion"].clone()
    };
    let before = version(&stage);
    for _ in 0..10 {
        stage.now += Duration::from_mins(1);
        settle(&mut stage, 200);
    }
    assert_eq!(version(&stage), before);
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "Suspended");
}

#[test]
fn a_workload_that_another_capability_disrupts_is_left_to_it() {
    let mut stage = stage(&json!({}));
    until(&mut stage, "Initialized");
    let until_then = stage.now + Duration::from_mins(1);
    let claim = json!({"holder": "restarts", "until": until_then.to_string()}).to_string();
    let claimed = json!({"metadata": {"annotations": {"slipway.dev/disruption-claim": claim}}});
    stage.patch("Deployment", "shop", "web", &claimed);
    controllers(&mut stage);
    push(&mut stage, "web:2");
    let plans = settle(&mut stage, 200);
    assert_eq!(
        stage.get("Deployment", "shop", "web").unwrap()["spec"]["replicas"],
        0
    );
    let last = plans.last().unwrap();
    assert!(
        last.blockers
            .iter()
            .any(|one| one.reason == "ClaimedByOther"),
        "{last:#?}"
    );
    assert!(last.wake_at.is_some_and(|at| at <= until_then));
    stage.now = until_then;
    settle(&mut stage, 200);
    let target = stage.get("Deployment", "shop", "web").unwrap();
    assert_eq!(target["spec"]["replicas"], 3);
    let ours = target["metadata"]["annotations"]["slipway.dev/disruption-claim"]
        .as_str()
        .unwrap();
    assert!(ours.contains("canary"), "{ours}");
    until(&mut stage, "Succeeded");
    let target = stage.get("Deployment", "shop", "web").unwrap();
    assert_eq!(
        target["metadata"]["annotations"].get("slipway.dev/disruption-claim"),
        None
    );
}
