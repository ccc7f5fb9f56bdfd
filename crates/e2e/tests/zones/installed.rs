//! Installed as `slipway manifests` prints it, and then the operator does not run: what its webhooks guard waits, and
//! nothing else.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use slipway_e2e::documents::documents;
use slipway_e2e::install::printed;
use slipway_e2e::zones::{Place, ZONES};

use crate::stage::{SOON, Stage};

/// Where the operator would run.
const HOME: &str = "installed-home";

/// A Deployment that is nobody's zone, with one pod.
fn unlabelled(place: &Place<'_>) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "plain"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "plain"}},
            "template": {
                "metadata": {"labels": {"app": "plain", "place": place.name}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

/// The operator is installed for one namespace and does not run. In others everything works, also for zones; in its own
/// everything but zones; and its own Deployment can be repaired.
pub(crate) fn stopped(stage: &Stage) -> Result<()> {
    let guarded = stage.zones("installed", 1, 2)?;
    let other = stage.zones("installed-not", 1, 2)?;
    for place in [&guarded, &other] {
        place.apply(&[unlabelled(place)])?;
    }
    let manifests = printed(&[
        "manifests",
        "--controllers",
        "zones",
        "--webhooks",
        "--no-crds",
        "-n",
        &guarded.name,
        "--operator-namespace",
        HOME,
    ])?;
    let played = stage
        .cluster
        .apply(&documents(&manifests))
        .and_then(|_| works(stage, &guarded, &other));
    // Webhooks first: the rest would be refused.
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    let ours = format!("--selector=grafana.com/namespace={HOME}");
    stage.cluster.kubectl(&["delete", kinds, &ours])?;
    stage
        .cluster
        .kubectl(&["delete", "namespace", HOME, "--wait=false"])?;
    played
}

fn works(stage: &Stage, guarded: &Place<'_>, other: &Place<'_>) -> Result<()> {
    // The guard is up: it learns of nothing, and lets nothing go.
    let down = ["scale", "statefulset", ZONES[0], "--replicas=1"];
    guarded
        .cluster
        .eventually("zones are held while the operator is stopped", SOON, |_| {
            let dry = [&down[..], &["--dry-run=server"]].concat();
            Ok(guarded.kubectl(&dry).is_err().then_some(()))
        })?;
    other.kubectl(&["set", "image", "statefulset", ZONES[0], "app=app:2"])?;
    other.kubectl(&down).context("in another namespace")?;
    drained(stage, other)?;
    for place in [guarded, other] {
        place
            .kubectl(&["set", "image", "deployment/plain", "app=app:2"])
            .with_context(|| format!("an unlabelled workload in {}", place.name))?;
    }
    let own = stage
        .cluster
        .kubectl(&["-n", HOME, "get", "deployments", "-o", "name"])?;
    let own = own
        .lines()
        .next()
        .context("the operator has no Deployment")?;
    for words in [
        &["set", "image", own, "*=slipway:repaired"][..],
        &["scale", own, "--replicas=3"],
        &["rollout", "restart", own],
    ] {
        let words = [&["-n", HOME][..], words].concat();
        stage
            .cluster
            .kubectl(&words)
            .context("the operator itself")?;
    }
    guarded.refused(&down).map(drop)
}

/// Drains the node of a zone's pod of a place, of its pods only.
fn drained(stage: &Stage, place: &Place<'_>) -> Result<()> {
    let pod = format!("{}-0", ZONES[0]);
    let node = place.kubectl(&["get", "pod", &pod, "-o", "jsonpath={.spec.nodeName}"])?;
    ensure!(!node.is_empty(), "{pod} is on no node");
    let selector = format!("--pod-selector=place={}", place.name);
    let drain = [
        "drain",
        &node,
        "--ignore-daemonsets",
        "--force",
        "--timeout=60s",
        &selector,
    ];
    let drained = stage.cluster.kubectl(&drain);
    stage.cluster.kubectl(&["uncordon", &node])?;
    drained.context("draining another namespace")?;
    Ok(())
}
