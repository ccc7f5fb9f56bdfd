//! Somebody else's rollout: a script with kubectl that may write assemblages, and nothing else.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;

use crate::stage::{PLACE, Stage};

const ACCOUNT: &str = "third-party";

/// It moves one leaf after the other, each when it reads that the one before is there.
pub(crate) fn drives(stage: &Stage) -> Result<()> {
    let sync = stage.sync("v1", "plain", &json!({"targetNamespace": "external"}));
    stage.rollout(
        "external",
        &json!({"selector": {}, "strategy": "External", "template": {"spec": {"sync": sync}}}),
    )?;
    for leaf in &stage.leaves {
        version(stage, leaf, "v1")?;
    }
    let module = json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "external-next", "namespace": PLACE},
        "spec": {"sync": stage.sync("v2", "plain", &json!({"targetNamespace": "external"}))},
    });
    stage.hub.apply(&module.to_string())?;
    let script = stage.hub.other(&account(stage)?)?;
    refused(&script)?;
    for leaf in &stage.leaves {
        let secret = leaf.name.clone();
        let entry = json!({"name": "external", "module": {"name": "external-next"}});
        let remote = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage",
            "metadata": {"name": leaf.name, "namespace": PLACE},
            "spec": {"kubeconfigRef": {"name": secret}, "assemblage": {"syncs": [entry]}},
        });
        script.apply(&remote.to_string())?;
        version(stage, leaf, "v2")?;
        script.eventually(
            "its status is told where it is",
            crate::stage::SOON,
            |script| {
                let remote = script.json(&[
                    "get",
                    "remoteassemblages.fleet.squaremo.dev",
                    &leaf.name,
                    "-n",
                    PLACE,
                ])?;
                let statuses = remote.pointer("/status/syncs").and_then(Value::as_array);
                let mut statuses = statuses.into_iter().flatten();
                let told = statuses.find(|told| told["name"] == "external");
                Ok(told.filter(|told| told["state"] == "succeeded").map(drop))
            },
        )?;
    }
    // Nobody moves them back, and the assignments of others are as they were.
    for leaf in &stage.leaves {
        version(stage, leaf, "v2")?;
        let remote = stage.find("remoteassemblages.fleet.squaremo.dev", &leaf.name)?;
        let entries = remote
            .pointer("/spec/assemblage/syncs")
            .and_then(Value::as_array);
        let own = entries
            .into_iter()
            .flatten()
            .find(|entry| entry["name"] == "external");
        let own = own.context("there is no entry")?;
        ensure!(
            own.get("source").is_none(),
            "what was filled in was written back: {own}"
        );
    }
    Ok(())
}

fn version(stage: &Stage, leaf: &crate::leaf::Leaf, wanted: &str) -> Result<()> {
    stage.eventually(&format!("{} has {wanted}", leaf.name), || {
        let found = leaf.find("configmap", "external", "plain")?;
        Ok(found
            .filter(|found| found["data"]["version"] == wanted)
            .map(drop))
    })
}

/// A kubeconfig of somebody who may write assemblages.
fn account(stage: &Stage) -> Result<std::path::PathBuf> {
    let meta = json!({"name": ACCOUNT, "namespace": PLACE});
    let rule = json!({"apiGroups": ["fleet.squaremo.dev"], "resources": ["remoteassemblages"], "verbs": ["get", "list", "watch", "patch"]});
    for object in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": [rule]}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": PLACE}],
        }),
    ] {
        stage.hub.apply(&object.to_string())?;
    }
    stage.hub.service_account(PLACE, ACCOUNT)
}

fn refused(script: &Cluster) -> Result<()> {
    let secrets = script.kubectl(&["get", "secrets", "-n", PLACE]);
    ensure!(secrets.is_err(), "it may read kubeconfigs");
    Ok(())
}
