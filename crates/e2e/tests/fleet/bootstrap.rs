//! Before anything runs in a leaf: what is applied to it from the hub.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::leaf::AGENT_NAMESPACE;
use crate::stage::{SOON, Stage, is_ready};

/// The agent's manifests and the definition of `Assemblage` come into all leaves, one first; then the agents run.
pub(crate) fn agents(stage: &Stage) -> Result<()> {
    let sync = stage.sync(
        "v1",
        "agent",
        &json!({"targetNamespace": AGENT_NAMESPACE, "wait": false}),
    );
    stage.rollout(
        "agent",
        &json!({
            "selector": {}, "targetKind": "BootstrapModule", "strategy": "Incremental",
            "template": {"spec": {"sync": sync}},
        }),
    )?;
    let done = stage.done("agent")?;
    ensure!(
        done.pointer("/status/counts/ready") == Some(&json!(stage.leaves.len())),
        "all leaves have it: {done}"
    );
    for leaf in &stage.leaves {
        let accounts = leaf
            .cluster()
            .json(&["get", "serviceaccounts", "-n", AGENT_NAMESPACE])?;
        let names = accounts["items"].as_array().into_iter().flatten();
        let mut names =
            names.filter_map(|one| one.pointer("/metadata/name").and_then(Value::as_str));
        let account = names
            .find(|name| *name != "default")
            .context("the agent has no account")?;
        leaf.cluster()
            .eventually("the definition is served", SOON, |cluster| {
                let definition = cluster.json(&["get", "crd", "assemblages.fleet.squaremo.dev"]);
                Ok(definition.ok().filter(is_established).map(drop))
            })?;
        leaf.start_agent(account)?;
    }
    // In the hub, the objects that applied it are Flux's, and told of.
    for leaf in &stage.leaves {
        let assemblage = stage.find(
            "assemblages.fleet.squaremo.dev",
            &format!("{}-bootstrap", leaf.name),
        )?;
        ensure!(is_ready(&assemblage), "{assemblage}");
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Established" && one["status"] == "True")
}
