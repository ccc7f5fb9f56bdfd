//! Clusters and assemblages that go and come back: whoever has not said that workloads may go does not lose them, and what is gone is not
//! told as there.

use serde_json::{Value, json};

use crate::hazards::{stage, uid};
use crate::stage::{Fleet, is_ready, rollout, secs, virtually};

const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";
const FLEET: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet";
const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";

fn held(by: &[&str]) -> Value {
    json!({"metadata": {"finalizers": by}})
}

/// A tool makes a Secret anew, and is slower than we are patient: what is applied from here is forgotten, and the Secret is back before
/// that is done. Flux would reach the cluster again, and is told not to take anything away there.
#[test]
fn what_was_forgotten_is_not_pruned_when_its_cluster_is_back_in_that_moment() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut spec = rollout("Replace", "v1");
        spec["targetKind"] = json!("BootstrapModule");
        fleet.make("rollouts", "agent", &spec).await;
        fleet.until_ready("agent", 60).await;
        // As Flux holds what it has applied.
        let path = format!("{KUSTOMIZATIONS}/rome-bootstrap-agent");
        fleet.hub.patch(&path, &held(&["flux.dev/prune"])).await;
        fleet.hub.delete(&format!("{SECRETS}/rome")).await;
        let assemblage = format!("{FLEET}/assemblages/rome-bootstrap");
        fleet
            .until("forgotten", 60, async |fleet: &Fleet| {
                let found = fleet.hub.find(&assemblage).await?;
                let deleted = &found["metadata"]["deletionTimestamp"];
                deleted.is_string().then_some(())
            })
            .await;
        fleet.register("rome").await;
        let going = fleet
            .until("let go", 60, async |fleet: &Fleet| {
                let found = fleet.hub.find(&path).await?;
                let is_going = found["metadata"]["deletionTimestamp"].is_string();
                is_going.then_some(found)
            })
            .await;
        assert_eq!(going["spec"]["suspend"], true, "{going:#}");
        fleet.hub.patch(&path, &held(&[])).await;
        fleet
            .until("applied again", 120, async |fleet: &Fleet| {
                let made = fleet.hub.find(&path).await?;
                let is_new = made["metadata"]["uid"] != going["metadata"]["uid"];
                let found = fleet.get("rollouts", "agent").await?;
                (is_new && is_ready(&found)).then_some(())
            })
            .await;
    });
}

/// Whoever forgot it died before it was let go, and the cluster is back when somebody looks again.
#[test]
fn what_was_forgotten_is_let_go_also_when_its_cluster_is_back() {
    virtually(async {
        let mut fleet = stage().await;
        let before = uid(&fleet, "rome", "web").await;
        let remote = fleet.get("remoteassemblages", "rome").await.unwrap();
        fleet.hub.delete(&format!("{SECRETS}/rome")).await;
        secs(20).await;
        fleet.replica = None;
        secs(20).await;
        // As it is forgotten.
        fleet.delete("remoteassemblages", "rome").await;
        fleet.register("rome").await;
        fleet.start();
        fleet
            .until("another one", 120, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "rome").await?;
                let is_new = found["metadata"]["uid"] != remote["metadata"]["uid"];
                let found = fleet.get("rollouts", "web").await?;
                (is_new && is_ready(&found)).then_some(())
            })
            .await;
        assert_eq!(uid(&fleet, "rome", "web").await, before);
        assert!(before.is_string());
    });
}

/// Somebody deletes the Assemblage in a cluster, and something that was applied there goes slowly.
#[test]
fn an_assemblage_that_goes_in_its_cluster_is_told_at_once() {
    virtually(async {
        let fleet = Fleet::settled("Replace", "v1").await;
        let berlin = &fleet.leaves["berlin"];
        let path = format!("{KUSTOMIZATIONS}/berlin-web");
        berlin.patch(&path, &held(&["flux.dev/prune"])).await;
        let assemblage = format!("{FLEET}/assemblages/berlin");
        berlin.delete(&assemblage).await;
        fleet
            .until("told", 30, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                (found["status"]["counts"]["ready"] == 2).then_some(())
            })
            .await;
        secs(120).await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert!(!is_ready(&found), "{:#}", found["status"]);
        let going = berlin.get(&assemblage).await;
        assert_eq!(going["status"]["syncs"][0]["reason"], "Deleting");
        berlin.patch(&path, &held(&[])).await;
        fleet.until_ready("web", 60).await;
    });
}
