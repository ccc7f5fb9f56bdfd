//! kube-controller-manager, kube-scheduler and KWOK carry out and roll workloads.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::stage::{NODES, Place, Stage, image, workload};

/// Ready pods, then others of a new version with the old set kept at zero.
pub(crate) fn deployment(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-deployment")?;
    let count = stage.crowd;
    place.apply(&workload("Deployment", "web", count, "app:1"))?;
    let before = place.settled("web", count, "app:1")?;
    roll(&place, "deployment/web")?;
    let after = place.settled("web", count, "app:2")?;
    ensure!(
        names(&before)
            .iter()
            .all(|name| !names(&after).contains(name)),
        "a rollout makes new pods"
    );
    let sets = place.of_app("replicasets", "web")?;
    let sizes: Vec<(&str, Option<i64>)> = sets
        .iter()
        .map(|set| (image(set), set["spec"]["replicas"].as_i64()))
        .collect();
    ensure!(
        sizes.len() == 2
            && sizes.contains(&("app:1", Some(0)))
            && sizes.contains(&("app:2", Some(i64::try_from(count)?))),
        "the old set is kept at 0: {sizes:?}"
    );
    place.kubectl(&["rollout", "undo", "deployment/web"])?;
    place.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"])?;
    place.settled("web", count, "app:1")?;
    let story = place.story(&after)?;
    place.say(&format!("{story}; rolled to app:2 and back"));
    Ok(())
}

/// Pods with names and an order, rolled from the last to the first.
pub(crate) fn statefulset(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-statefulset")?;
    place.apply(&workload("StatefulSet", "db", 3, "app:1"))?;
    let before = place.settled("db", 3, "app:1")?;
    ensure!(names(&before) == ["db-0", "db-1", "db-2"]);
    let watch = place.watch_pods()?;
    roll(&place, "statefulset/db")?;
    let after = place.settled("db", 3, "app:2")?;
    let order: Vec<String> = watch
        .events()
        .iter()
        .filter(|event| event.kind == "ADDED")
        .filter_map(|event| event.object.as_str().map(str::to_owned))
        .collect();
    ensure!(order == ["db-2", "db-1", "db-0"], "{order:?}");
    let revision = |set: &Value, which: &str| set["status"][which].as_str().map(str::to_owned);
    let set = place.eventually("one revision", || {
        let set = place.json(&["get", "statefulset", "db"])?;
        let is_one = revision(&set, "currentRevision") == revision(&set, "updateRevision");
        Ok(is_one.then_some(set))
    })?;
    ensure!(set["status"]["updatedReplicas"] == 3, "{}", set["status"]);
    let story = place.story(&after)?;
    place.say(&format!(
        "{story}; rolled in the order {}",
        order.join(", ")
    ));
    Ok(())
}

/// One pod on each node.
pub(crate) fn daemonset(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-daemonset")?;
    let count = usize::try_from(NODES)?;
    place.apply(&workload("DaemonSet", "agent", 0, "app:1"))?;
    place.settled("agent", count, "app:1")?;
    roll(&place, "daemonset/agent")?;
    let after = place.settled("agent", count, "app:2")?;
    let mut nodes: Vec<&str> = after
        .iter()
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    nodes.sort_unstable();
    ensure!(nodes == ["node-0", "node-1", "node-2"], "{nodes:?}");
    let story = place.story(&after)?;
    place.say(&format!("{story}; one on each of {count} nodes, rolled"));
    Ok(())
}

fn roll(place: &Place<'_>, what: &str) -> Result<()> {
    place.kubectl(&["set", "image", what, "app=app:2"])?;
    place.kubectl(&["rollout", "status", what, "--timeout=100s"])?;
    Ok(())
}

fn names(pods: &[Value]) -> Vec<&str> {
    pods.iter()
        .filter_map(|pod| pod["metadata"]["name"].as_str())
        .collect()
}
