//! What an operator learns late: definitions that are applied after its start, answers to its own deletions.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use slipway_e2e::wire::Checkpoint;
use slipway_e2e::zones::{Place, Trace, definitions};

use crate::drop_in::BUDGETS;
use crate::evictions::{allowed_within, evict};
use crate::rollouts::tail;
use crate::stage::{NODES, SOON, Stage, budget, zones};

/// Within which time a new definition is seen, and what a loaded machine may take beside.
const SEEN: Duration = Duration::from_secs(10 + 5);

/// The definition of budgets and a budget are applied after the operator started: from then on one zone goes, and no
/// other.
pub(crate) fn definition(stage: &Stage) -> Result<()> {
    let cluster = &stage.cluster;
    cluster.kubectl(&["delete", "crd", BUDGETS, "--wait=true"])?;
    let played = defined_late(stage);
    // The others need it.
    cluster.apply(&definitions()?)?;
    played
}

fn defined_late(stage: &Stage) -> Result<()> {
    let place = stage.zones("late", 2, 2)?;
    let operator = place.guarded(&["pod-eviction"])?;
    // Who goes does not come back.
    stage.close(&place)?;
    place.cluster.apply(&definitions()?)?;
    let one = budget(&json!({"maxUnavailable": 1}));
    place.cluster.eventually("budgets are served", SOON, |_| {
        Ok(place.apply(std::slice::from_ref(&one)).ok())
    })?;
    allowed_within(&place, "mock-zone-a-0", SEEN).with_context(|| tail(&operator))?;
    let mut said = String::new();
    place
        .cluster
        .throughout("no second zone goes", SEEN, |_| {
            match evict(&place, "mock-zone-b-0")? {
                Ok(()) => Ok(false),
                Err((_, why)) => {
                    said = why;
                    Ok(true)
                }
            }
        })
        .with_context(|| tail(&operator))?;
    ensure!(
        said.ends_with("1 pod not ready in mock-zone-a"),
        "the budget is not what refuses: {said}"
    );
    stage.open(&place, &NODES)?;
    operator.terminate()
}

/// Under the original's Role, with and without its right to `ConfigMaps`: what is about to be deleted counts as gone
/// before the API server has answered, or even heard.
pub(crate) fn deletion(stage: &Stage) -> Result<()> {
    for (name, keeps_maps) in [("held", true), ("held-bare", false)] {
        let place = stage.zones(name, 2, 2)?;
        if !keeps_maps {
            without_maps(&place)?;
        }
        held(&place).with_context(|| format!("in {name}"))?;
    }
    Ok(())
}

fn held(place: &Place<'_>) -> Result<()> {
    let hooks = ["pod-eviction"];
    let checkpoint = Checkpoint::start(&place.account)?;
    place.register(&hooks)?;
    let operator = place.operator_by(checkpoint.kubeconfig(), &[])?;
    place.trusted(&hooks, SOON)?;
    place.reached(&operator, &hooks)?;
    place.apply(&[budget(&json!({"maxUnavailable": 1}))])?;
    let trace = Trace::start(place)?;
    checkpoint.hold_deletions();
    place.apply(&zones(2, 2, "app:2", 1))?;
    place
        .cluster
        .eventually("a pod of the first zone is on its way out", SOON, |_| {
            let held = checkpoint.held();
            Ok(held
                .iter()
                .any(|path| path.contains("zone-a"))
                .then_some(()))
        })
        .with_context(|| tail(&operator))?;
    let during = Duration::from_secs(5);
    place
        .cluster
        .throughout("no pod of the second zone goes", during, |_| {
            match evict(place, "mock-zone-b-0")? {
                Ok(()) => Ok(false),
                Err((code, why)) => {
                    ensure!(code == 429, "not with 429: {code} {why}");
                    Ok(true)
                }
            }
        })
        .with_context(|| tail(&operator))?;
    checkpoint.let_go();
    place
        .settled(4, "app:2", SOON)
        .with_context(|| tail(&operator))?;
    trace.judge(1)?;
    // What was held is let go when it is there again.
    allowed_within(place, "mock-zone-b-0", SOON).with_context(|| tail(&operator))?;
    operator.terminate()
}

/// Takes the right to `ConfigMaps` out of the Role.
fn without_maps(place: &Place<'_>) -> Result<()> {
    let mut role =
        place
            .cluster
            .json(&["-n", &place.name, "get", "role", "rollout-operator-role"])?;
    let rules = role["rules"]
        .as_array_mut()
        .context("a Role without rules")?;
    rules.retain(|rule| rule["resources"] != json!(["configmaps"]));
    let patch = json!({"rules": rules}).to_string();
    let object = ["patch", "role", "rollout-operator-role"];
    place.kubectl(&[&object[..], &["--type=merge", "-p", &patch]].concat())?;
    Ok(())
}
