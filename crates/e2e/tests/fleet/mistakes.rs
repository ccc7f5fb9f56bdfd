//! What people get wrong, where only the program itself shows what becomes of it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::registry::{CLUSTER, secret};
use crate::stage::Stage;

const BROKEN: &str = "broken";

/// A Secret stands for a cluster and has no kubeconfig in it: that is told, the leaves get what they get, and when it goes all is
/// well.
pub(crate) fn kubeconfig(stage: &Stage) -> Result<()> {
    let labels = json!({CLUSTER: "", "leaf": BROKEN});
    stage
        .hub
        .apply(&secret(BROKEN, &labels, "{no kubeconfig"))?;
    let sync = stage.sync("v1", "plain", &json!({"targetNamespace": "mistakes"}));
    let selector = json!({"matchExpressions": [{"key": "leaf", "operator": "Exists"}]});
    stage.rollout(
        "mistakes",
        &json!({"selector": selector, "strategy": "Replace", "template": {"spec": {"sync": sync}}}),
    )?;
    stage.eventually("it is told that there is no kubeconfig", || {
        let remote = stage.find_any("remoteassemblages.fleet.squaremo.dev", BROKEN)?;
        let told = remote
            .as_ref()
            .and_then(|remote| remote.pointer("/status/conditions"));
        let mut told = told.and_then(Value::as_array).into_iter().flatten();
        let told = told.find(|one| one["type"] == "Reachable" && one["status"] == "False");
        let message = told.and_then(|told| told["message"].as_str());
        let is_clear = message.is_some_and(|message| message.contains("kubeconfig"));
        Ok(is_clear.then_some(()))
    })?;
    for leaf in &stage.leaves {
        stage.eventually(&format!("{} gets it", leaf.name), || {
            Ok(leaf.find("configmap", "mistakes", "plain")?.map(drop))
        })?;
    }
    stage
        .hub
        .kubectl(&["delete", "secret", BROKEN, "-n", crate::stage::PLACE])?;
    stage.done("mistakes")?;
    stage.eventually("nothing of it is left", || {
        let remote = stage.find_any("remoteassemblages.fleet.squaremo.dev", BROKEN)?;
        Ok(remote.is_none().then_some(()))
    })
}
