//! What people do to a workload between two restarts: it counts, and nobody fights over it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_api::names::LAST_RESTART;
use slipway_e2e::operator::Operator;

use crate::stage::{SOON, Stage, flipper};

/// Between two restarts.
const INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// Times are stamped in whole seconds.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A Deployment that has just been restarted, because it was overdue; and when.
fn restarted_once(stage: &Stage) -> Result<(Operator, Timestamp)> {
    let overdue = Some(SignedDuration::from_mins(11));
    stage.deployment("inventory", "orders", &json!({"people": "yes"}), overdue)?;
    stage.cluster.create(&flipper(
        "inventory",
        "often",
        &json!({"interval": "30s", "match": {"labels": {"people": "yes"}}}),
    ))?;
    let before = stage.restarted_at("inventory", "orders")?;
    let operator = stage.operator(&[])?;
    let first = stage.restart("inventory", "orders", before, SOON)?;
    Ok((operator, first))
}

/// B11: going back to a version from before a restart is a restart, after which the interval begins again.
pub(crate) fn undo(stage: &Stage) -> Result<()> {
    let (operator, first) = restarted_once(stage)?;
    let later = SOON + INTERVAL.unsigned_abs();
    let second = stage.restart("inventory", "orders", Some(first), later)?;
    stage.cluster.kubectl(&[
        "-n",
        "inventory",
        "rollout",
        "status",
        "deployment/orders",
        "--timeout=60s",
    ])?;
    let undone = Timestamp::now();
    stage
        .cluster
        .kubectl(&["-n", "inventory", "rollout", "undo", "deployment/orders"])?;
    let now = stage.restarted_at("inventory", "orders")?;
    ensure!(
        now == Some(first),
        "{now:?} is not the version before: {first}"
    );
    // The template's own time is long past its interval.
    stage.no_restart("inventory", "orders", Duration::from_secs(15))?;
    let third = stage.restart("inventory", "orders", Some(second), later)?;
    ensure!(
        third.duration_since(undone) + SECOND >= INTERVAL,
        "undone at {undone} and restarted at {third}"
    );
    operator.terminate()
}

/// B17: a stamp that somebody takes off is not put on again; the restart comes when it is due by the template.
pub(crate) fn removed_stamp(stage: &Stage) -> Result<()> {
    let (operator, first) = restarted_once(stage)?;
    let remove = format!("{LAST_RESTART}-");
    stage.cluster.kubectl(&[
        "-n",
        "inventory",
        "annotate",
        "deployment",
        "orders",
        &remove,
    ])?;
    let stamp = || -> Result<Option<Value>> {
        let object = stage
            .cluster
            .json(&["-n", "inventory", "get", "deployment", "orders"])?;
        let annotations = object.pointer("/metadata/annotations");
        Ok(annotations.and_then(|all| all.get(LAST_RESTART)).cloned())
    };
    let waiting = stage
        .cluster
        .eventually("the Flipper says why", SOON, |cluster| {
            let object = cluster.json(&["-n", "inventory", "get", "flipper", "often"])?;
            let waiting = object.pointer("/status/waitingFor").map(Value::to_string);
            Ok(waiting.filter(|text| text.contains("StampRemoved")))
        });
    stage
        .cluster
        .throughout("no new stamp", Duration::from_secs(10), |_| {
            // The next restart brings one.
            Ok(stamp()?.is_none() || stage.restarted_at("inventory", "orders")? > Some(first))
        })?;
    let later = SOON + INTERVAL.unsigned_abs();
    let second = stage.restart("inventory", "orders", Some(first), later)?;
    ensure!(
        second.duration_since(first) >= INTERVAL,
        "restarted at {first} and again at {second}"
    );
    waiting.context("nothing tells that the stamp was removed")?;
    operator.terminate()
}
