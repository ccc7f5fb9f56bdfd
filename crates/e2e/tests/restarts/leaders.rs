//! Two replicas, and what happens when one ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_api::names::RESTARTS_LEASE;
use slipway_e2e::operator::Operator;
use slipway_e2e::watch::Watch;

use crate::stage::{SOON, Stage, flipper, restarted_at};

/// Short terms, so that twenty of them fit into a test.
const TERMS: &[&str] = &["--lease-duration", "2s", "--request-timeout", "1s"];

const KILLS: usize = 20;

/// R1: with the leader killed again and again, no Deployment is restarted twice within its interval, and restarts go
/// on.
pub(crate) fn leader_killed(stage: &Stage) -> Result<()> {
    let interval = SignedDuration::from_secs(6);
    for index in 0..5 {
        stage.deployment(
            "inventory",
            &format!("d-{index}"),
            &json!({"ha": "yes"}),
            Some(interval),
        )?;
    }
    stage.cluster.create(&flipper(
        "inventory",
        "often",
        &json!({"interval": "6s", "match": {"labels": {"ha": "yes"}}}),
    ))?;
    let watch = Watch::start(
        &stage.cluster,
        "/apis/apps/v1/namespaces/inventory/deployments",
        |object| object,
    )?;
    let mut running: BTreeMap<String, Operator> = BTreeMap::new();
    for number in 0..2 {
        let name = format!("replica-{number}");
        running.insert(name.clone(), replica(stage, &name)?);
    }
    let mut last = String::new();
    for kill in 0..KILLS {
        let leader = stage.cluster.eventually("a leader", SOON, |_| {
            Ok(holder(stage)?.filter(|holder| *holder != last && running.contains_key(holder)))
        })?;
        // Time to act, different each time, so that kills hit different moments.
        std::thread::sleep(Duration::from_millis(100 + 173 * (kill as u64 % 11)));
        running
            .remove(&leader)
            .context("the leader is not ours")?
            .kill()?;
        last = leader;
        let name = format!("replica-{}", kill + 2);
        running.insert(name.clone(), replica(stage, &name)?);
    }
    let mut restarts: BTreeMap<String, BTreeSet<Timestamp>> = BTreeMap::new();
    for event in watch.events() {
        let name = event
            .object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if let Some(at) = restarted_at(&event.object)? {
            restarts.entry(name.to_owned()).or_default().insert(at);
        }
    }
    for (name, times) in &restarts {
        let times: Vec<&Timestamp> = times.iter().collect();
        for pair in times.windows(2) {
            let [before, after] = pair else { continue };
            ensure!(
                after.duration_since(**before) >= interval,
                "{name} was restarted at {before} and again at {after}"
            );
        }
    }
    let total: usize = restarts.values().map(BTreeSet::len).sum();
    ensure!(
        total >= KILLS,
        "only {total} restarts happened: the work did not go on"
    );
    running.into_values().try_for_each(Operator::terminate)
}

/// L-6: an operator that is asked to end leaves with 0 and lets the lease go.
pub(crate) fn drain(stage: &Stage) -> Result<()> {
    let operator = stage.operator(&["--replica", "draining"])?;
    stage.cluster.eventually("it leads", SOON, |_| {
        Ok(holder(stage)?.filter(|holder| holder == "draining"))
    })?;
    operator.terminate()?;
    ensure!(holder(stage)?.is_none(), "the lease is still held");
    Ok(())
}

fn replica(stage: &Stage, name: &str) -> Result<Operator> {
    let mut arguments = vec!["--replica", name];
    arguments.extend(TERMS);
    stage.operator(&arguments)
}

/// Who holds the lease.
fn holder(stage: &Stage) -> Result<Option<String>> {
    let text = stage.cluster.kubectl(&[
        "get",
        "lease",
        RESTARTS_LEASE,
        "-n",
        "rollout",
        "--ignore-not-found",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ])?;
    Ok((!text.is_empty()).then_some(text))
}
