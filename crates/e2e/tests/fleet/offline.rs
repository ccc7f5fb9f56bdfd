//! Clusters that are away.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::rollouts::{images, web};
use crate::stage::{PLACE, SOON, Stage};

/// A leaf's API server is stopped before a change and comes back during it.
pub(crate) fn leaf(stage: &Stage) -> Result<()> {
    let (lost, others) = stage.leaves.split_last().context("there are no leaves")?;
    lost.stop()?;
    stage.eventually("it is told that the leaf is away", || {
        let remote = stage.find("remoteassemblages.fleet.squaremo.dev", &lost.name)?;
        let conditions = remote
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        let away = conditions.any(|one| one["type"] == "Reachable" && one["status"] == "False");
        Ok(away.then_some(()))
    })?;
    web(stage, "v1")?;
    for other in others {
        stage.eventually(
            &format!("{} gets it although another is away", other.name),
            || {
                let image = other.web()?.map(|(image, _)| image);
                Ok((image.as_deref() == Some("web:v1")).then_some(()))
            },
        )?;
    }
    lost.start()?;
    stage.eventually("the leaf catches up", || {
        let image = lost.web().ok().flatten().map(|(image, _)| image);
        Ok((image.as_deref() == Some("web:v1")).then_some(()))
    })?;
    stage.done("web").map(drop)
}

/// The operator in the hub is stopped: what is assigned in a leaf is still expanded, and its status told there.
pub(crate) fn hub(stage: &Stage) -> Result<()> {
    stage.stop()?;
    let leaf = stage.leaves.first().context("there are no leaves")?;
    let own = json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "Assemblage",
        "metadata": {"name": "own", "namespace": PLACE},
        "spec": {"syncs": [{
            "name": "plain", "source": {"git": {"url": stage.repository.url(), "version": {"tag": "v4"}}},
            "package": {"kustomize": {"path": "plain", "targetNamespace": "own"}},
        }]},
    });
    leaf.cluster().apply(&own.to_string())?;
    leaf.cluster().eventually("the leaf goes on", SOON, |_| {
        let found = leaf.find("configmap", "own", "plain")?;
        Ok(found
            .filter(|found| found["data"]["version"] == "v4")
            .map(drop))
    })?;
    let before = images(stage)?;
    stage.start()?;
    web(stage, "v2")?;
    stage.done("web")?;
    ensure!(images(stage)? != before, "the hub goes on as well");
    Ok(())
}
