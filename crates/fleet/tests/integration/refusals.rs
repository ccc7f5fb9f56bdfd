//! What the API of a workload cluster refuses is told where somebody waits for it.

use serde_json::{Value, json};

use crate::stage::{Fleet, of_cluster, rollout, secs, virtually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Makes berlin refuse what it took before; gives how to undo it.
async fn tighten(fleet: &Fleet, definition: &str, change: impl FnOnce(&mut Value)) -> Value {
    let at = format!("{DEFINITIONS}/{definition}");
    let before = fleet.leaves["berlin"].get(&at).await["spec"]["versions"].clone();
    let mut versions = before.clone();
    change(&mut versions[0]["schema"]["openAPIV3Schema"]);
    redefine(fleet, definition, &versions).await;
    before
}

async fn redefine(fleet: &Fleet, definition: &str, versions: &Value) {
    let at = format!("{DEFINITIONS}/{definition}");
    let patch = json!({"spec": {"versions": versions}});
    fleet.leaves["berlin"].patch(&at, &patch).await;
    secs(2).await;
}

/// A policy of one cluster is against a source: the Rollout stops there and says so, in the words of that API.
#[test]
fn a_source_that_a_cluster_refuses_stops_the_change_and_is_told() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let sources = "gitrepositories.source.toolkit.fluxcd.io";
        tighten(&fleet, sources, |schema| {
            schema["properties"]["spec"] = json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"url": {"type": "string", "pattern": "^https://git.internal/"}},
            });
        })
        .await;
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        let found = fleet
            .until("told", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let told = of_cluster(&found, "berlin");
                (told["reason"] == "RefusedByApi").then_some(found)
            })
            .await;
        let status = &found["status"];
        assert!(status.to_string().contains("git.internal"), "{status:#}");
        assert_eq!(
            status["waitingFor"][0]["reason"], "CanaryFailed",
            "{status:#}"
        );
    });
}

/// The Assemblage itself is refused: that is told on its `RemoteAssemblage`, and goes by itself.
#[test]
fn an_assemblage_that_a_cluster_refuses_is_told() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let assemblages = "assemblages.fleet.squaremo.dev";
        let before = tighten(&fleet, assemblages, |schema| {
            schema["properties"]["spec"]["required"] = json!(["syncs", "clusterName"]);
        })
        .await;
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "berlin").await?;
                let told = &found["status"]["syncs"][0];
                let message = told["message"].as_str()?;
                (told["reason"] == "RefusedByApi" && message.contains("clusterName")).then_some(())
            })
            .await;
        redefine(&fleet, assemblages, &before).await;
        fleet.until_ready("web", 300).await;
    });
}
