//! Which Deployments are restarted, by default and by Flippers.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::SignedDuration;
use serde_json::{Value, json};
use slipway_api::names::LAST_RESTART;

use crate::stage::{SOON, Stage, flipper};

const OVERDUE: Option<SignedDuration> = Some(SignedDuration::from_mins(11));

/// D1, I1–I3: without a Flipper, Deployments labelled mesh=true are restarted ten minutes after their stamp, once.
pub(crate) fn default_criteria(stage: &Stage) -> Result<()> {
    stage.deployment("inventory", "orders", &json!({"mesh": "true"}), OVERDUE)?;
    stage.deployment(
        "inventory",
        "search",
        &json!({"mesh": "true"}),
        Some(SignedDuration::from_mins(1)),
    )?;
    stage.deployment("inventory", "fresh", &json!({"mesh": "true"}), None)?;
    stage.deployment("payment", "credits", &json!({"mesh": "false"}), OVERDUE)?;
    let before = stage.restarted_at("inventory", "orders")?;
    let operator = stage.operator(&[])?;
    stage.restart("inventory", "orders", before, SOON)?;
    stage
        .cluster
        .eventually("a stamp on inventory/fresh", SOON, |cluster| {
            let object = cluster.json(&["get", "deployment", "fresh", "-n", "inventory"])?;
            let stamp = object
                .pointer("/metadata/annotations")
                .and_then(|a| a.get(LAST_RESTART))
                .cloned();
            Ok(stamp)
        })?;
    stage
        .cluster
        .eventually("an event about the restart", SOON, |cluster| {
            let events = cluster.json(&[
                "get",
                "events",
                "-n",
                "inventory",
                "--field-selector=reason=RestartTriggered",
            ])?;
            let found = events["items"].as_array().is_some_and(|items| {
                items
                    .iter()
                    .any(|event| event["involvedObject"]["name"] == "orders")
            });
            Ok(found.then_some(()))
        })?;
    stage.no_restart("inventory", "orders", Duration::from_secs(4))?;
    stage.no_restart("inventory", "search", Duration::from_secs(1))?;
    stage.no_restart("payment", "credits", Duration::from_secs(1))?;
    ensure!(
        stage.restarted_at("inventory", "fresh")?.is_none(),
        "a Deployment was restarted when it was first seen"
    );
    let metrics = operator.get("/metrics").unwrap_or_default();
    ensure!(
        !metrics
            .lines()
            .any(|line| line.starts_with("slipway_feature_off{") && line.ends_with(" 1")),
        "the generated role is not enough:\n{metrics}"
    );
    operator.terminate()
}

/// D2–D4, I4: a Flipper takes the place of the default, its changes take hold, and with the last one the default
/// returns.
pub(crate) fn flipper_changes(stage: &Stage) -> Result<()> {
    let interval = SignedDuration::from_secs(5);
    stage.deployment("inventory", "orders", &json!({"mesh": "true"}), OVERDUE)?;
    stage.deployment("inventory", "tagged", &json!({"foo": "bar"}), None)?;
    stage.deployment("payment", "other", &json!({"tier": "back"}), None)?;
    stage.cluster.create(&flipper(
        "payment",
        "sample",
        &json!({"interval": "5s", "match": {"labels": {"foo": "bar"}, "namespaces": ["inventory"]}}),
    ))?;
    let operator = stage.operator(&[])?;
    let first = stage.restart("inventory", "tagged", None, SOON)?;
    let second = stage.restart("inventory", "tagged", Some(first), SOON)?;
    ensure!(
        second.duration_since(first) >= interval,
        "restarted at {first} and again at {second}"
    );
    stage.no_restart("payment", "other", Duration::from_secs(1))?;

    change(
        stage,
        &json!({"interval": "5s", "match": {"labels": {"tier": "back"}, "namespaces": ["payment"]}}),
    )?;
    let first = stage.restart("payment", "other", None, SOON)?;
    stage.no_restart("inventory", "tagged", Duration::from_secs(7))?;

    change(stage, &json!({"interval": "1h"}))?;
    let status = stage
        .cluster
        .eventually("the Flipper's status", SOON, |cluster| {
            let object = cluster.json(&["get", "flipper", "sample", "-n", "payment"])?;
            let current = object.pointer("/status/observedGeneration")
                == object.pointer("/metadata/generation");
            Ok(current.then(|| object["status"].clone()))
        })?;
    ensure!(status["matched"] == 1, "matched is not 1: {status}");
    ensure!(
        status["nextRestart"].is_string(),
        "there is no next restart: {status}"
    );
    // What the operator says of the change it acts on.
    ensure!(
        stage.restarted_at("payment", "other")? >= Some(first),
        "a restart was taken back"
    );
    stage.no_restart("payment", "other", Duration::from_secs(7))?;

    let before = stage.restarted_at("inventory", "orders")?;
    stage
        .cluster
        .kubectl(&["delete", "flipper", "sample", "-n", "payment"])?;
    stage.restart("inventory", "orders", before, SOON)?;
    stage.no_restart("payment", "other", Duration::from_secs(6))?;
    operator.terminate()
}

/// Gives the Flipper these fields; what is not named stays.
fn change(stage: &Stage, spec: &Value) -> Result<()> {
    let mut spec = spec.clone();
    // A merge patch adds labels; the old one has to go.
    if spec.pointer("/match/labels").is_some() {
        spec["match"]["labels"]["foo"] = Value::Null;
    }
    let patch = json!({ "spec": spec }).to_string();
    stage
        .cluster
        .kubectl(&[
            "patch",
            "flipper",
            "sample",
            "-n",
            "payment",
            "--type=merge",
            "-p",
            &patch,
        ])
        .map(drop)
}
