//! Moving over: one of the two is stopped without warning with a Canary in each of its phases, and the other goes on to the right end.
//!
//! All of them are in one namespace, each held where it is to be stopped by its own gate, or by pods that fit nowhere; the one that
//! nothing can hold is let go last.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::canary::{canary, deployment, image, phase, weight};
use slipway_e2e::operator::Operator;

use crate::stage::{Programs, RUN, Stage, Story, WEB};

/// What is held where, by its name: the phase that it is stopped in.
const STOPS: &[(&str, &str)] = &[
    ("initializing", "Initializing"),
    ("initialized", "Initialized"),
    ("waiting", "Waiting"),
    ("progressing", "Progressing"),
    ("weighted", "Progressing"),
    ("waiting-promotion", "WaitingPromotion"),
    ("promoting", "Promoting"),
    ("succeeded", "Succeeded"),
    ("failed", "Failed"),
    (LAST, "Finalising"),
];
/// The one that nothing holds.
const LAST: &str = "finalising";
/// Those that nothing new has come to.
const IDLE: [&str; 4] = ["initializing", "initialized", "succeeded", "failed"];
/// How long is looked that one who is idle stays so: longer than the two intervals after Flagger's last write in which ours waits.
const QUIET: Duration = Duration::from_secs(25);

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Flagger,
    Ours,
}

/// Flagger is stopped, and ours goes on.
pub(crate) fn over(stage: &Stage) -> Result<()> {
    hand_over(
        &Story::begin(stage, "moving-over")?,
        Who::Flagger,
        Who::Ours,
    )
}

/// Ours is stopped, and Flagger goes on.
pub(crate) fn back(stage: &Stage) -> Result<()> {
    hand_over(
        &Story::begin(stage, "moving-back")?,
        Who::Ours,
        Who::Flagger,
    )
}

fn start(story: &Story<'_>, who: Who) -> Result<()> {
    let mut operator = match who {
        Who::Ours => return story.operate(),
        Who::Flagger => {
            let flagger = Programs::flagger()?;
            let flags = flags(story);
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            Operator::flagger(Some(&flagger), &story.stage.cluster.kubeconfig, &flags)?
        }
    };
    operator.wait_until_healthy(RUN)?;
    story.keep(operator);
    Ok(())
}

fn flags(story: &Story<'_>) -> Vec<String> {
    vec![
        format!("-namespace={}", story.name),
        "-mesh-provider=kubernetes".to_owned(),
        "-control-loop-interval=1s".to_owned(),
        "-log-level=info".to_owned(),
        // Nobody asks it.
        "-metrics-server=http://127.0.0.1:9".to_owned(),
    ]
}

/// How many checks may fail, and how long pods may take, of whom is held there: longer than all of it takes on a loaded machine.
const MANY: u32 = 500;
const LONG: u32 = 3_600;

/// What each is held by.
fn made(story: &Story<'_>, name: &str) -> Value {
    let mut made = held(story, name);
    made["spec"]["progressDeadlineSeconds"] = json!(LONG);
    made
}

fn held(story: &Story<'_>, name: &str) -> Value {
    let gate = |kind: &str| json!([story.gates.webhook(kind, name)]);
    let (threshold, webhooks) = match name {
        "waiting" => (MANY, gate("confirm-rollout")),
        "progressing" => (MANY, gate("rollout")),
        "failed" => (1, gate("rollout")),
        "waiting-promotion" | "promoting" | LAST => (MANY, gate("confirm-promotion")),
        "weighted" => (MANY, gate("confirm-traffic-increase")),
        _ => (MANY, json!([])),
    };
    let mut analysis = json!({"interval": "10s", "threshold": threshold, "webhooks": webhooks});
    if name == "weighted" {
        analysis["stepWeights"] = json!([50]);
        let mut made = canary(name, "gatewayapi:v1", &analysis);
        made["spec"]["service"]["gatewayRefs"] = json!([{"name": "front"}]);
        return made;
    }
    analysis["iterations"] = json!(1);
    canary(name, "kubernetes", &analysis)
}

/// A label of a node without which some pods fit nowhere.
fn label(story: &Story<'_>, name: &str) -> String {
    format!("slipway.dev/{}-{name}", story.name)
}

fn put_label(story: &Story<'_>, name: &str, is_there: bool) -> Result<()> {
    let value = if is_there { json!("yes") } else { Value::Null };
    let labels = json!({"metadata": {"labels": {label(story, name): value}}});
    story.merge("/api/v1/nodes/node-0", &labels)
}

fn selecting(story: &Story<'_>, name: &str) -> Value {
    json!({"nodeSelector": {label(story, name): "yes"}})
}

fn until_phase(story: &Story<'_>, name: &str, wanted: &[&str]) -> Result<()> {
    let what = format!("{name} is {}", wanted.join(" or "));
    story.until(&what, || {
        let found = story.canary(name)?;
        Ok(wanted.contains(&phase(&found)).then_some(()))
    })
}

fn hand_over(story: &Story<'_>, first: Who, second: Who) -> Result<()> {
    for (name, _) in STOPS {
        let mut workload = deployment(name, 1, "app:1");
        if *name == "initializing" {
            workload["spec"]["template"]["spec"]["nodeSelector"] =
                selecting(story, name)["nodeSelector"].clone();
        }
        story.apply(&workload)?;
        story.apply(&made(story, name))?;
    }
    put_label(story, "promoting", true)?;
    start(story, first)?;
    stop_each(story, first)?;
    story.kill()?;
    let mut phases = Vec::new();
    for (name, wanted) in STOPS {
        let found = story.canary(name)?;
        let stopped = phase(&found);
        // Nothing holds the last one, and ours does not wait in that phase.
        let is_over = (*name, first, stopped) == (LAST, Who::Ours, "Succeeded");
        ensure!(
            stopped == *wanted || is_over,
            "{name} was stopped in {stopped}: {}",
            story.situation()
        );
        phases.push(format!("{name} {stopped}"));
    }
    story.say(&format!("{first:?} was stopped: {}", phases.join(", ")));
    put_label(story, "initializing", true)?;
    put_label(story, "promoting", true)?;
    start(story, second)?;
    go_on(story, second)
}

/// Brings each to where it is to be stopped.
fn stop_each(story: &Story<'_>, first: Who) -> Result<()> {
    for (name, _) in STOPS.iter().filter(|(name, _)| *name != "initializing") {
        until_phase(story, name, &["Initialized"])?;
    }
    for (name, _) in STOPS {
        story.gates.set(name, *name == "weighted");
        match *name {
            "initializing" | "initialized" => {}
            "promoting" => story.release(name, "app:2", &selecting(story, name))?,
            _ => story.release(name, "app:2", &json!({}))?,
        }
    }
    story.until("one version has half of the traffic", || {
        Ok((weight(&story.canary("weighted")?) == 50).then_some(()))
    })?;
    story.gates.set("weighted", false);
    until_phase(story, "promoting", &["WaitingPromotion"])?;
    // What is promoted fits nowhere: the promotion goes on until it does.
    put_label(story, "promoting", false)?;
    story.gates.set("promoting", true);
    for (name, wanted) in STOPS.iter().filter(|(name, _)| *name != LAST) {
        until_phase(story, name, &[*wanted])?;
    }
    until_phase(story, LAST, &["WaitingPromotion"])?;
    story.gates.set(LAST, true);
    match first {
        Who::Flagger => until_phase(story, LAST, &["Finalising"]),
        // Ours does not wait in this phase.
        Who::Ours => until_phase(story, LAST, &["Finalising", "Succeeded"]),
    }
}

/// The other one takes each to its end.
fn go_on(story: &Story<'_>, second: Who) -> Result<()> {
    if second == Who::Ours {
        // Nothing new has come to these, and adopting them is no news.
        story.throughout("who is idle stays so", QUIET, || are_idle(story))?;
    }
    for (name, _) in STOPS {
        story.gates.set(name, true);
    }
    for (name, _) in STOPS.iter().filter(|(name, _)| !IDLE.contains(name)) {
        ended(story, name, "app:2")?;
    }
    if second == Who::Ours {
        let steps = story.plane.ledger.steps();
        let shares: Vec<u32> = steps.iter().map(|step| step.share).collect();
        ensure!(
            shares == [0, 50, 0],
            "the weight was taken over, and kept until the end: {shares:?}"
        );
    }
    if second == Who::Ours {
        ensure!(are_idle(story)?, "a run began: {}", story.situation());
    }
    until_phase(story, "initializing", &["Initialized", "Succeeded"])?;
    for name in IDLE {
        story.release(name, "app:3", &json!({}))?;
    }
    for name in IDLE {
        ended(story, name, "app:3")?;
    }
    story.say(&format!("{second:?} brought all of them to their end"));
    Ok(())
}

/// Whether those that nothing new has come to are where they were.
fn are_idle(story: &Story<'_>) -> Result<bool> {
    let idle = STOPS.iter().filter(|(name, _)| IDLE.contains(name));
    for (name, wanted) in idle.filter(|(name, _)| *name != "initializing") {
        if phase(&story.canary(name)?) != *wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A version serves, and what it came from is at zero.
fn ended(story: &Story<'_>, name: &str, wanted: &str) -> Result<()> {
    story.until(&format!("{wanted} serves {name}"), || {
        let found = story.canary(name)?;
        let (source, target) = (
            story.workload(&format!("{name}-primary"))?,
            story.workload(name)?,
        );
        let is_ended = phase(&found) == "Succeeded"
            && image(&source) == wanted
            && source["status"]["readyReplicas"] == 1
            && target["spec"]["replicas"] == 0;
        Ok(is_ended.then_some(()))
    })
}

/// Ours with Flagger's flags, in its place.
pub(crate) fn drop_in(stage: &Stage) -> Result<()> {
    let story = Story::begin(stage, "drop-in")?;
    let analysis = json!({"interval": "10s", "threshold": 2, "iterations": 2});
    story.apply(&deployment(WEB, 1, "app:1"))?;
    story.apply(&canary(WEB, "kubernetes", &analysis))?;
    let flags = flags(&story);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut operator = Operator::flagger(None, &stage.cluster.kubeconfig, &flags)?;
    operator.wait_until_healthy(RUN)?;
    story.keep(operator);
    until_phase(&story, WEB, &["Initialized"])?;
    story.release_web("app:2")?;
    ended(&story, WEB, "app:2")
}
