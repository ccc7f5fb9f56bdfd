//! Intervals that somebody stored before there was a rule against them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use serde_json::{Value, json};

use slipway_e2e::install::printed;

use crate::stage::{SOON, Stage, flipper};

/// B1, B3: an interval that is no duration, zero or negative is reported on its Flipper and hurts nobody else; `1d` is
/// 24 hours.
pub(crate) fn bad_intervals(stage: &Stage) -> Result<()> {
    let definition = printed(&["crds"])?
        .into_iter()
        .find(|crd| crd["metadata"]["name"] == "flippers.flipper.io.github.com")
        .context("slipway crds prints no Flipper")?;
    stage
        .cluster
        .apply(&without_rules(definition.clone()).to_string())?;
    for (name, interval) in [("garbage", "soon"), ("negative", "-5m"), ("zero", "0s")] {
        let spec = json!({"interval": interval, "match": {"labels": {"bad": name}, "namespaces": ["payment"]}});
        let made =
            stage
                .cluster
                .eventually("the definition without rules is served", SOON, |cluster| {
                    Ok(cluster.create(&flipper("payment", name, &spec)).ok())
                });
        made.with_context(|| format!("storing the interval {interval:?}"))?;
    }
    stage.cluster.apply(&definition.to_string())?;
    stage.cluster.create(&flipper(
        "payment",
        "daily",
        &json!({"interval": "1d", "match": {"labels": {"daily": "yes"}}}),
    ))?;
    stage.deployment(
        "inventory",
        "old",
        &json!({"daily": "yes"}),
        Some(SignedDuration::from_hours(25)),
    )?;
    stage.deployment(
        "inventory",
        "young",
        &json!({"daily": "yes"}),
        Some(SignedDuration::from_hours(23)),
    )?;
    stage.deployment(
        "payment",
        "unlucky",
        &json!({"bad": "negative"}),
        Some(SignedDuration::from_hours(25)),
    )?;
    let before = stage.restarted_at("inventory", "old")?;
    let operator = stage.operator(&[])?;
    stage.restart("inventory", "old", before, SOON)?;
    for name in ["garbage", "negative"] {
        let (status, message) =
            stage
                .cluster
                .eventually(&format!("Accepted=False on {name}"), SOON, |_| {
                    stage.condition("payment", name, "Accepted")
                })?;
        ensure!(status == "False", "{name} was accepted: {message}");
        ensure!(
            message.contains("spec.interval"),
            "the field is not named: {message}"
        );
    }
    let (_, message) = stage.cluster.eventually("a report on zero", SOON, |_| {
        stage.condition("payment", "zero", "Accepted")
    })?;
    ensure!(
        message.contains("10m"),
        "nothing says which interval is used: {message}"
    );
    stage.no_restart("inventory", "young", Duration::from_secs(3))?;
    stage.no_restart("payment", "unlucky", Duration::from_secs(3))?;
    let refused = stage
        .cluster
        .create(&flipper("payment", "late", &json!({"interval": "-5m"})));
    ensure!(
        refused.is_err(),
        "the schema lets a negative interval through"
    );
    operator.terminate()
}

/// The definition as the controller that this replaces had it, less the format: whatever is a string is stored.
fn without_rules(mut definition: Value) -> Value {
    if let Some(schema) =
        definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties")
    {
        schema["spec"] = json!({
            "type": "object",
            "properties": {
                "interval": {"type": "string"},
                "match": {
                    "type": "object",
                    "properties": {
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "namespaces": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        });
    }
    definition
}
