//! Clusters and assemblages that go and come back: whoever has not said that workloads may go does not lose them, and what is gone is not
//! told as there.

use serde_json::{Value, json};

use crate::stage::{Fleet, is_ready, rollout, secs, virtually};

const FLEET: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet";
const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";

fn held(by: &[&str]) -> Value {
    json!({"metadata": {"finalizers": by}})
}

/// Somebody deletes the Assemblage in a cluster, and something that was applied there goes slowly.
#[test]
fn an_assemblage_that_goes_in_its_cluster_is_told_at_once() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("web", 60).await;
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
