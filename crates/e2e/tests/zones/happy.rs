//! A rollout of zones with one pod each that do not become ready until they are told to.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::operator::Operator;
use slipway_e2e::zones::{Place, Trace, ZONES};
use std::time::Duration;

use crate::stage::{SOON, Stage, budget, zones};

/// Scenario 1.
pub(crate) fn plain(stage: &Stage) -> Result<()> {
    let place = stage.zones("happy", 3, 1)?;
    let operator = place.operator(&["-server-tls.enabled=false"])?;
    roll(&place, operator)
}

/// Scenario 2: the same under a budget, with its webhooks in use.
pub(crate) fn with_budget(stage: &Stage) -> Result<()> {
    let place = stage.zones("happy-zpdb", 3, 1)?;
    let operator = place.operator(&[])?;
    let hooks = ["zpdb-validation", "pod-eviction"];
    place.register(&hooks)?;
    place.trusted(&hooks, Duration::from_secs(30))?;
    place.reached(&operator, &hooks)?;
    place.apply(&[budget(&json!({"maxUnavailable": 1}))])?;
    roll(&place, operator)
}

fn roll(place: &Place<'_>, operator: Operator) -> Result<()> {
    let trace = Trace::start(place)?;
    let mut second = zones(3, 1, "app:2", 1);
    for zone in &mut second {
        // What holds a pod back until somebody lets it go: the mock's `/ready`.
        zone["spec"]["template"]["spec"]["schedulingGates"] = json!([{"name": "e2e/ready"}]);
    }
    place.apply(&second)?;
    for (index, zone) in ZONES.iter().enumerate() {
        let pod = format!("{zone}-0");
        place
            .cluster
            .eventually(&format!("{pod} has the new version"), SOON, |_| {
                Ok((image(place, &pod)?.as_deref() == Some("app:2")).then_some(()))
            })?;
        // Those before it are new, those after it are not touched while it is not ready.
        place
            .cluster
            .throughout("no other zone rolls", Duration::from_secs(2), |_| {
                let expected: Vec<(String, String)> = ZONES
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != index)
                    .map(|(other, zone)| {
                        let image = if other < index { "app:2" } else { "app:1" };
                        (format!("{zone}-0"), image.to_owned())
                    })
                    .collect();
                Ok(place.ready()? == expected)
            })?;
        let release = r#"[{"op": "remove", "path": "/spec/schedulingGates"}]"#;
        place.kubectl(&["patch", "pod", &pod, "--type=json", "-p", release])?;
    }
    place.settled(3, "app:2", SOON)?;
    let seen = trace.judge(1)?;
    ensure!(
        seen.order == ZONES,
        "zones went in the order {:?}",
        seen.order
    );
    operator.terminate()
}

/// The image of a pod that stays, ready or not.
fn image(place: &Place<'_>, name: &str) -> Result<Option<String>> {
    let pods = place.list("/api/v1/pods")?;
    let found = pods.iter().find(|pod| {
        pod["metadata"]["name"] == name && pod.pointer("/metadata/deletionTimestamp").is_none()
    });
    let image = found.and_then(|pod| pod.pointer("/spec/containers/0/image"));
    Ok(image.and_then(Value::as_str).map(str::to_owned))
}
