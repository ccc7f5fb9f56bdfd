//! Many Deployments that are all due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::SignedDuration;
use serde_json::{Value, json};
use slipway_e2e::watch::Watch;

use crate::stage::{Stage, deployment, flipper, restarted_at};

/// How many may roll at once.
const LIMIT: usize = 5;

/// R2: all of them are restarted, never more than five rolling at once, on every state that the API showed.
pub(crate) fn max_concurrent(stage: &Stage) -> Result<()> {
    // The simulated kubelet takes its time; KWOK takes none.
    let count = if stage.real { 500 } else { 40 };
    let overdue = Some(SignedDuration::from_hours(2));
    let all: Vec<Value> = (0..count)
        .map(|index| {
            deployment(
                "many",
                &format!("d-{index:03}"),
                &json!({"crowd": "yes"}),
                overdue,
                1,
            )
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    stage.cluster.create(&list.to_string())?;
    stage.cluster.eventually(
        "all Deployments are available",
        Duration::from_mins(4),
        |cluster| {
            let list = cluster.raw("/apis/apps/v1/namespaces/many/deployments")?;
            let ready = list["items"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|d| !is_rolling(d))
                .count();
            Ok((ready == count).then_some(()))
        },
    )?;
    let first = stage.restarted_at("many", "d-000")?;
    let watch = Watch::start(
        &stage.cluster,
        "/apis/apps/v1/namespaces/many/deployments",
        |object| object,
    )?;
    stage.cluster.create(&flipper(
        "many",
        "crowd",
        &json!({"interval": "1h", "maxConcurrent": LIMIT, "match": {"labels": {"crowd": "yes"}}}),
    ))?;
    let operator = stage.operator(&[])?;
    let done = stage
        .cluster
        .eventually("all have been restarted", Duration::from_mins(6), |_| {
            let restarted: BTreeSet<String> = watch
                .events()
                .iter()
                .filter(|event| restarted_at(&event.object).ok().flatten() > first)
                .filter_map(|event| {
                    event
                        .object
                        .pointer("/metadata/name")?
                        .as_str()
                        .map(str::to_owned)
                })
                .collect();
            Ok((restarted.len() == count).then_some(()))
        });
    let (most, restarts) = replay(&watch, first)?;
    done?;
    ensure!(most <= LIMIT, "{most} Deployments were rolling at once");
    ensure!(most > 1, "the limit of {LIMIT} was never used");
    ensure!(
        restarts.values().all(|times| times.len() == 1),
        "a Deployment was restarted twice: {restarts:?}"
    );
    operator.terminate()
}

/// Goes through all events: the largest number rolling after our restart, and the restarts of each Deployment.
fn replay(
    watch: &Watch,
    first: Option<jiff::Timestamp>,
) -> Result<(usize, BTreeMap<String, BTreeSet<jiff::Timestamp>>)> {
    let mut rolling: BTreeSet<String> = BTreeSet::new();
    let mut restarts: BTreeMap<String, BTreeSet<jiff::Timestamp>> = BTreeMap::new();
    let mut most = 0;
    for event in watch.events() {
        let Some(name) = event
            .object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
        else {
            continue;
        };
        let Some(at) = restarted_at(&event.object)?.filter(|at| Some(*at) > first) else {
            continue;
        };
        restarts.entry(name.to_owned()).or_default().insert(at);
        if is_rolling(&event.object) {
            rolling.insert(name.to_owned());
        } else {
            rolling.remove(name);
        }
        most = most.max(rolling.len());
    }
    Ok((most, restarts))
}

/// Whether a Deployment's rollout is unfinished, by its own status.
fn is_rolling(object: &Value) -> bool {
    let number = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let replicas = number("/spec/replicas");
    number("/status/observedGeneration") < number("/metadata/generation")
        || number("/status/updatedReplicas") < replicas
        || number("/status/replicas") > number("/status/updatedReplicas")
        || number("/status/availableReplicas") < replicas
}
