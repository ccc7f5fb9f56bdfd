//! What the API of a workload cluster refuses is told where somebody waits for it.

use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;

use crate::stage::{DEFINITIONS, Fleet, of_cluster, rollout, secs, virtually};

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

/// A cluster takes no more Secrets: who needs one waits there, and nobody else does.
#[test]
fn a_secret_that_a_cluster_refuses_stops_only_who_needs_it() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        let door = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door"}, "data": {"token": "aHVudGVyMg=="},
        });
        let secrets = "/api/v1/namespaces/fleet/secrets";
        fleet.hub.create(secrets, &door).await;
        let about = Match {
            resource: "/secrets".to_owned(),
            verb: "patch".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        let status = Status::failure(403, "Forbidden", "exceeded quota: secrets");
        let refuse = Fault::Refuse(Box::new(status));
        let berlin = &fleet.leaves["berlin"].cluster;
        berlin.faults().add(about, Frequency::always(), refuse);
        fleet.start();
        let mut secretive = rollout("Replace", "v1");
        let spec = &mut secretive["template"]["spec"];
        spec["controlPlaneBindings"] = json!([
            {"name": "DOOR", "objectFieldRef": {"kind": "Secret", "name": "door", "fieldPath": "/data/token"}},
        ]);
        spec["sync"]["package"]["kustomize"]["substitute"] = json!({"DOOR": "$(DOOR)"});
        fleet.make("rollouts", "vault", &secretive).await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "vault").await?;
                (of_cluster(&found, "berlin")["reason"] == "RefusedByApi").then_some(())
            })
            .await;
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        fleet.until_ready("web", 60).await;
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 60).await;
        fleet.leaves["berlin"].cluster.faults().clear();
        fleet.until_ready("vault", 360).await;
    });
}
