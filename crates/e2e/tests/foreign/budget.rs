//! kube-controller-manager's disruption controller.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use crate::stage::{Place, SOON, Stage, workload};

/// The status counts the pods; the API server refuses what the budget does not allow.
pub(crate) fn status(stage: &Stage) -> Result<()> {
    let place = stage.place("foreign-budget")?;
    place.apply(&json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }))?;
    place.apply(&workload("Deployment", "web", 3, "app:1"))?;
    place.settled("web", 3, "app:1")?;
    let allowed = counted(&place, (3, 3, 2, 1))?;
    place.kubectl(&["scale", "deployment", "web", "--replicas=2"])?;
    let pods = place.settled("web", 2, "app:1")?;
    let refused = counted(&place, (2, 2, 2, 0))?;
    let pod = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
    match evict(&place, pod) {
        Err(error) if format!("{error:#}").contains("disruption budget") => {}
        other => bail!("an eviction below the budget is refused, not {other:?}"),
    }
    place.kubectl(&["scale", "deployment", "web", "--replicas=3"])?;
    place.settled("web", 3, "app:1")?;
    counted(&place, (3, 3, 2, 1))?;
    evict(&place, pod)?;
    let after = place.settled("web", 3, "app:1")?;
    ensure!(
        after.iter().all(|other| other["metadata"]["name"] != pod),
        "{pod} was evicted"
    );
    place.say(&format!(
        "kube-controller-manager counted {allowed} with 3 pods and {refused} with 2, and made a pod for the evicted one"
    ));
    Ok(())
}

/// Waits for these counts: pods, healthy ones, wanted ones, allowed disruptions.
fn counted(place: &Place<'_>, wanted: (i64, i64, i64, i64)) -> Result<String> {
    place.eventually(&format!("a budget of {wanted:?} within {SOON:?}"), || {
        let budget = place.json(&["get", "poddisruptionbudget", "web"])?;
        let count = |name: &str| budget["status"][name].as_i64().unwrap_or(-1);
        let found = (
            count("expectedPods"),
            count("currentHealthy"),
            count("desiredHealthy"),
            count("disruptionsAllowed"),
        );
        let is_seen = budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
        Ok((found == wanted && is_seen).then(|| format!("{} allowed disruptions", found.3)))
    })
}

fn evict(place: &Place<'_>, pod: &str) -> Result<String> {
    let eviction: Value = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": place.name},
    });
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", place.name);
    place.raw(&path, &eviction)
}
