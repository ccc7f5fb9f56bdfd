//! Versions that go from leaf to leaf.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::watch::Watch;

use crate::stage::{Stage, is_ready};

/// How long is looked that nothing goes on.
const QUIET: Duration = Duration::from_secs(20);
const ROLLOUTS: &str = "rollouts.fleet.squaremo.dev";

/// The Rollout that most tests are about, at a version.
pub(crate) fn web(stage: &Stage, version: &str) -> Result<()> {
    stage.rollout(
        "web",
        &json!({
            "selector": {"matchLabels": {"env": "prod"}},
            "strategy": "Incremental",
            "rollout": {"maxUnreadyClusters": 1},
            "template": {"spec": {"sync": stage.sync(version, "deploy", &json!({}))}},
        }),
    )
}

/// Which leaf has which image.
pub(crate) fn images(stage: &Stage) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for leaf in &stage.leaves {
        let image = leaf.web()?.map(|(image, _)| image).unwrap_or_default();
        all.insert(leaf.name.clone(), image);
    }
    Ok(all)
}

fn count(images: &BTreeMap<String, String>, image: &str) -> usize {
    images.values().filter(|found| *found == image).count()
}

/// From v1 to v2: the Deployments and Kustomizations stay the objects that they are, every assemblage always has exactly one
/// entry, and never more than one leaf is on its way.
pub(crate) fn incremental(stage: &Stage) -> Result<()> {
    web(stage, "v1")?;
    stage.done("web")?;
    ensure!(
        count(&images(stage)?, "web:v1") == stage.leaves.len(),
        "all have v1: {:?}",
        images(stage)?
    );
    let mut before = Vec::new();
    for leaf in &stage.leaves {
        let (_, deployment) = leaf.web()?.context("there is no Deployment")?;
        let kustomization = leaf
            .kustomization("web")?
            .context("there is no Kustomization")?;
        before.push((deployment, kustomization["metadata"]["uid"].clone()));
    }
    let remotes = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/remoteassemblages";
    let watch = Watch::start(&stage.hub, remotes, |object| object)?;
    web(stage, "v2")?;
    stage.done("web")?;
    ensure!(
        count(&images(stage)?, "web:v2") == stage.leaves.len(),
        "all have v2: {:?}",
        images(stage)?
    );
    for (leaf, (deployment, kustomization)) in stage.leaves.iter().zip(&before) {
        let (_, now) = leaf.web()?.context("there is no Deployment")?;
        ensure!(
            now == *deployment,
            "the Deployment of {} became another",
            leaf.name
        );
        let now = leaf
            .kustomization("web")?
            .context("there is no Kustomization")?;
        ensure!(
            now["metadata"]["uid"] == *kustomization,
            "the Kustomization of {} became another",
            leaf.name
        );
    }
    let mut unready: BTreeMap<String, bool> = BTreeMap::new();
    for event in watch.events() {
        let name = event.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let entries = event
            .object
            .pointer("/spec/assemblage/syncs")
            .and_then(Value::as_array);
        let own: Vec<&Value> = entries
            .into_iter()
            .flatten()
            .filter(|entry| entry["name"] == "web")
            .collect();
        ensure!(own.len() == 1, "{name} has {} entries of web", own.len());
        let statuses = event
            .object
            .pointer("/status/syncs")
            .and_then(Value::as_array);
        let mut statuses = statuses.into_iter().flatten();
        let told = statuses.find(|told| told["name"] == "web");
        let is_ready = told.is_some_and(|told| {
            told["state"] == "succeeded"
                && Some(&told["observedRevision"]) == own.first().map(|entry| &entry["revision"])
        });
        unready.insert(name, !is_ready);
        let count = unready.values().filter(|unready| **unready).count();
        ensure!(count <= 1, "{count} leaves were on their way: {unready:?}");
    }
    Ok(())
}

/// A version that never becomes ready stops at one leaf; the fix goes there first, and then to all.
pub(crate) fn stopped(stage: &Stage) -> Result<()> {
    web(stage, "v3")?;
    stage.eventually("the first leaf has failed", || {
        let found = stage.find(ROLLOUTS, "web")?;
        let waits = found
            .pointer("/status/waitingFor")
            .and_then(Value::as_array);
        let mut waits = waits.into_iter().flatten();
        Ok(waits
            .any(|one| one["reason"] == "CanaryFailed")
            .then_some(()))
    })?;
    stage
        .hub
        .throughout("no other leaf gets the bad version", QUIET, |_| {
            Ok(count(&images(stage)?, "web:v3") == 1)
        })?;
    let bad = images(stage)?;
    let first = bad.iter().find(|(_, image)| *image == "web:v3");
    let first = first
        .map(|(name, _)| name.clone())
        .context("nobody has it")?;
    web(stage, "v4")?;
    stage.eventually("the fix goes to the leaf that needs it first", || {
        let now = images(stage)?;
        let others = now
            .iter()
            .filter(|(name, image)| **name != first && *image == "web:v4")
            .count();
        let healed = now.get(&first).is_some_and(|image| image == "web:v4");
        ensure!(
            healed || others == 0,
            "others got it before {first}: {now:?}"
        );
        Ok(healed.then_some(()))
    })?;
    let done = stage.done("web")?;
    ensure!(
        is_ready(&done) && count(&images(stage)?, "web:v4") == stage.leaves.len(),
        "{done}"
    );
    Ok(())
}
