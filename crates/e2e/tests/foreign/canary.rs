//! Flagger: a canary without a mesh.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::stage::{Place, Stage, image, managers, workload};

/// A new image is tried in a second Deployment and then becomes the primary's.
pub(crate) fn promote(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-canary")?;
    place.apply(&workload("Deployment", "shop", 2, "app:1"))?;
    place.apply(&json!({
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "shop"},
        "spec": {
            "provider": "kubernetes",
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
            "progressDeadlineSeconds": 120,
            "service": {"port": 80, "targetPort": 8080},
            // Flagger does not go below 10 s.
            "analysis": {"interval": "10s", "threshold": 3, "iterations": 1},
        },
    }))?;
    let mut phases = BTreeSet::new();
    until(&place, "Initialized", &mut phases)?;
    let primary = primary(&place)?;
    ensure!(image(&primary) == "app:1");
    ensure!(
        managers(&primary).any(|who| who == "flagger"),
        "flagger made the primary: {primary}"
    );
    place.kubectl(&["set", "image", "deployment/shop", "app=app:2"])?;
    until(&place, "Succeeded", &mut phases)?;
    place.settled("shop-primary", 2, "app:2")?;
    place.settled("shop", 0, "app:2")?;
    let services = place.json(&["get", "services"])?;
    let names: Vec<&str> = services["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|service| service["metadata"]["name"].as_str())
        .collect();
    ensure!(
        names == ["shop", "shop-canary", "shop-primary"],
        "{names:?}"
    );
    let phases: Vec<String> = phases.into_iter().collect();
    place.say(&format!(
        "flagger made shop-primary and the services {}, promoted app:2 through {}, and scaled the canary to 0",
        names.join(", "),
        phases.join(", ")
    ));
    Ok(())
}

fn primary(place: &Place<'_>) -> Result<Value> {
    place.json(&["get", "deployment", "shop-primary"])
}

fn until(place: &Place<'_>, wanted: &str, phases: &mut BTreeSet<String>) -> Result<()> {
    place.eventually(&format!("the canary is {wanted}"), || {
        let canary = place.json(&["get", "canary", "shop"])?;
        let phase = canary.pointer("/status/phase").and_then(Value::as_str);
        phases.extend(phase.map(str::to_owned));
        Ok((phase == Some(wanted)).then_some(()))
    })
}
