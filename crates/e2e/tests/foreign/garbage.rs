//! kube-controller-manager's garbage collector.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::stage::{Place, Stage, workload};

/// The owner goes at once, its dependents after it.
pub(crate) fn background(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-background")?;
    place.apply(&workload("Deployment", "web", 2, "app:1"))?;
    place.settled("web", 2, "app:1")?;
    place.kubectl(&["delete", "deployment", "web", "--cascade=background"])?;
    gone(&place)?;
    place.say("kube-controller-manager collected 1 replicaset and 2 pods of a deleted deployment, kwok let the pods go");
    Ok(())
}

/// The owner stays until its dependents are gone.
pub(crate) fn foreground(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-foreground")?;
    place.apply(&workload("Deployment", "web", 2, "app:1"))?;
    let pods = place.settled("web", 2, "app:1")?;
    // A pod that someone holds on to keeps its owners there.
    let held = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
    let hold = |finalizers: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
        place.kubectl(&["patch", "pod", held, "--type=merge", "-p", &patch])
    };
    hold(r#"["example.com/hold"]"#)?;
    place.kubectl(&[
        "delete",
        "deployment",
        "web",
        "--cascade=foreground",
        "--wait=false",
    ])?;
    place.eventually("only the held pod is left", || {
        let pods = place.of_app("pods", "web")?;
        Ok((pods.len() == 1 && pods[0]["metadata"]["name"] == held).then_some(()))
    })?;
    let owner = place.find("deployment", "web")?;
    ensure!(
        owner
            .as_ref()
            .and_then(|owner| owner.pointer("/metadata/finalizers/0"))
            == Some(&Value::from("foregroundDeletion")),
        "the owner waits for its dependents: {owner:?}"
    );
    hold("[]")?;
    gone(&place)?;
    place.say("kube-controller-manager kept a deployment until its held pod was let go, and then let it go too");
    Ok(())
}

/// Dependents stay and no longer name the owner.
pub(crate) fn orphan(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-orphan")?;
    place.apply(&workload("Deployment", "web", 2, "app:1"))?;
    let before = place.settled("web", 2, "app:1")?;
    place.kubectl(&["delete", "deployment", "web", "--cascade=orphan"])?;
    place.eventually("a replicaset without an owner", || {
        let sets = place.of_app("replicasets", "web")?;
        let is_free = sets.len() == 1 && sets[0].pointer("/metadata/ownerReferences").is_none();
        Ok(is_free.then_some(()))
    })?;
    let after = place.settled("web", 2, "app:1")?;
    let uids = |pods: &[Value]| -> Vec<Value> {
        pods.iter()
            .map(|pod| pod["metadata"]["uid"].clone())
            .collect()
    };
    ensure!(uids(&before) == uids(&after), "the pods are the same");
    place.say("kube-controller-manager freed a replicaset of its deleted deployment and left its 2 pods alone");
    Ok(())
}

fn gone(place: &Place<'_>) -> Result<()> {
    place.eventually("no deployment, replicaset or pod is left", || {
        let mut left = 0;
        for kind in ["deployments", "replicasets", "pods"] {
            left += place.of_app(kind, "web")?.len();
        }
        Ok((left == 0).then_some(()))
    })
}
