//! Values that differ from leaf to leaf.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::stage::{PLACE, Stage};

const SECRET: &str = "open-sesame-31";

/// A literal, properties of the cluster, fields of objects in the hub and in the leaf, of another module's object, and a
/// Secret's value, which is nowhere but in Secrets.
pub(crate) fn all(stage: &Stage) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "control", "namespace": PLACE}, "data": {"of": "the hub"}});
    stage.hub.apply(&map.to_string())?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens", "namespace": PLACE}, "stringData": {"token": SECRET}});
    stage.hub.apply(&secret.to_string())?;
    for leaf in &stage.leaves {
        let local = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local", "namespace": PLACE}, "data": {"of": leaf.name}});
        leaf.cluster().apply(&local.to_string())?;
    }
    let plain = stage.sync("v1", "plain", &json!({}));
    stage.rollout(
        "plain",
        &json!({"selector": {}, "strategy": "Replace", "template": {"spec": {"sync": plain}}}),
    )?;
    let substitute = json!({
        "LITERAL": "$(host):$(port)", "CLUSTER": "$(cluster)", "LABEL": "$(label)", "CONTROL": "$(control)",
        "LOCAL": "$(local)", "MODULE": "$(module)", "TOKEN": "$(token)",
    });
    let mut sync = stage.sync("v1", "values", &json!({ "substitute": substitute }));
    sync["bindings"] = json!([
        {"name": "local", "objectFieldRef": {"kind": "ConfigMap", "name": "local", "fieldPath": "/data/of"}},
        {"name": "module", "moduleFieldRef": {"module": "plain", "kind": "ConfigMap", "name": "plain", "fieldPath": "/data/version"}},
    ]);
    let spec = json!({
        "controlPlaneBindings": [
            {"name": "host", "value": "example"}, {"name": "port", "value": 3030},
            {"name": "cluster", "value": "$(CLUSTER_NAMESPACE)/$(CLUSTER_NAME)"},
            {"name": "label", "value": "$(CLUSTER_LABEL[leaf])"},
            {"name": "control", "objectFieldRef": {"kind": "ConfigMap", "name": "control", "fieldPath": "/data/of"}},
            {"name": "token", "objectFieldRef": {"kind": "Secret", "name": "tokens", "fieldPath": "/data/token"}},
        ],
        "sync": sync,
    });
    stage.rollout(
        "values",
        &json!({"selector": {}, "strategy": "Replace", "template": {"spec": spec}}),
    )?;
    stage.done("values")?;
    for leaf in &stage.leaves {
        let found = leaf
            .find("configmap", "default", "values")?
            .context("there are no values")?;
        let wanted = json!({
            "literal": "example:3030", "cluster": format!("{PLACE}/{}", leaf.name), "label": leaf.name,
            "control": "the hub", "local": leaf.name, "module": "v1",
        });
        ensure!(
            found["data"] == wanted,
            "{}: {} instead of {wanted}",
            leaf.name,
            found["data"]
        );
        let token = leaf
            .find("secret", "default", "token")?
            .context("there is no token")?;
        let token = token
            .pointer("/data/token")
            .and_then(Value::as_str)
            .unwrap_or_default();
        ensure!(
            BASE64_STANDARD.decode(token)? == SECRET.as_bytes(),
            "the token is another"
        );
        for kinds in [
            "assemblages.fleet.squaremo.dev",
            "kustomizations.kustomize.toolkit.fluxcd.io",
            "events",
        ] {
            let all = leaf
                .cluster()
                .kubectl(&["get", kinds, "-A", "-o", "json"])?;
            ensure!(!tells(&all), "{kinds} of {} tell the secret", leaf.name);
        }
    }
    for kinds in ["rollouts", "modules", "remoteassemblages", "assemblages"] {
        let all = stage.hub.kubectl(&[
            "get",
            &format!("{kinds}.fleet.squaremo.dev"),
            "-A",
            "-o",
            "json",
        ])?;
        ensure!(!tells(&all), "{kinds} tell the secret");
    }
    // A value that changes is brought to all.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "control", "namespace": PLACE}, "data": {"of": "the hub, again"}});
    stage.hub.apply(&map.to_string())?;
    for leaf in &stage.leaves {
        stage.eventually(
            &format!("{} gets the value that changed", leaf.name),
            || {
                let found = leaf.find("configmap", "default", "values")?;
                Ok(found
                    .filter(|found| found["data"]["control"] == "the hub, again")
                    .map(drop))
            },
        )?;
    }
    Ok(())
}

fn tells(text: &str) -> bool {
    text.contains(SECRET) || text.contains(&BASE64_STANDARD.encode(SECRET))
}
