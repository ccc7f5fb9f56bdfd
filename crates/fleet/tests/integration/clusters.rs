//! Clusters that come and go, are lost and come back, and are taken for others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::stage::{ADMIN, Fleet, NAMESPACE, is_ready, of_cluster, rollout, secs, virtually};

const CLUSTER: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters";

#[test]
fn a_cluster_that_cannot_be_reached_stops_nobody_and_catches_up() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet.cut("paris");
        fleet
            .until("seen as away", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let told = of_cluster(&found, "paris");
                (told["reason"] == "Unreachable").then_some(())
            })
            .await;
        fleet.roll("web", "v2").await;
        fleet
            .until("the others have it", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let is_ready = |name: &str| of_cluster(&found, name)["state"] == "Ready";
                (fleet.with_tag("web", "v2").await == 2 && is_ready("berlin") && is_ready("rome"))
                    .then_some(())
            })
            .await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert_eq!(of_cluster(&found, "paris")["reason"], "Unreachable");
        assert!(!is_ready(&found));
        // Its own agent goes on all the while.
        assert!(fleet.kustomization("paris", "web").await.is_some());
        fleet.mend("paris");
        fleet.until_ready("web", 180).await;
        assert_eq!(fleet.with_tag("web", "v2").await, 3);
    });
}

#[test]
fn a_deselected_cluster_loses_the_configuration_and_many_wait_for_a_persons_word() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        let labels = |env: &str| json!({"metadata": {"labels": {"env": env}}});
        fleet
            .hub
            .patch(&format!("{CLUSTER}/berlin"), &labels("dev"))
            .await;
        fleet
            .until("taken away", 60, async |fleet: &Fleet| {
                let is_gone = fleet.kustomization("berlin", "web").await.is_none();
                is_gone.then_some(())
            })
            .await;
        assert_eq!(fleet.assigned("berlin", "web").await, None);
        // Both others at once is too many.
        let nobody = json!({"spec": {"selector": {"matchLabels": {"env": "none"}}}});
        fleet.change("rollouts", "web", &nobody).await;
        secs(120).await;
        assert_eq!(fleet.with_tag("web", "v1").await, 2);
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert_eq!(
            found["status"]["waitingFor"][0]["reason"],
            "MassUnassignment"
        );
        let word =
            json!({"metadata": {"annotations": {"fleet.squaremo.dev/confirm-unassign": "2"}}});
        fleet.change("rollouts", "web", &word).await;
        fleet
            .until("followed", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let word = &found["metadata"]["annotations"]["fleet.squaremo.dev/confirm-unassign"];
                let is_followed = word.is_null() && fleet.with_tag("web", "v1").await == 0;
                is_followed.then_some(())
            })
            .await;
    });
}

#[test]
fn a_deleted_cluster_takes_its_assignments_with_it() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet.hub.delete(&format!("{CLUSTER}/paris")).await;
        fleet
            .until("forgotten", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let is_gone = fleet.get("remoteassemblages", "paris").await.is_none();
                (is_gone && found["status"]["counts"]["total"] == 2).then_some(())
            })
            .await;
        fleet.until_ready("web", 60).await;
        // The cluster itself was not touched.
        assert!(fleet.kustomization("paris", "web").await.is_some());
    });
}

#[test]
fn a_deleted_rollout_leaves_nothing_behind() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet
            .make("rollouts", "other", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("other", 60).await;
        fleet.delete("rollouts", "web").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                fleet.get("rollouts", "web").await.is_none().then_some(())
            })
            .await;
        secs(10).await;
        for cluster in crate::stage::CLUSTERS {
            assert_eq!(fleet.assigned(cluster, "web").await, None);
            assert!(fleet.kustomization(cluster, "web").await.is_none());
            assert!(fleet.kustomization(cluster, "other").await.is_some());
        }
        let path = format!("/apis/fleet.squaremo.dev/v1alpha1/namespaces/{NAMESPACE}/modules");
        let modules = fleet.hub.list(&path).await;
        assert!(
            modules
                .iter()
                .all(|module| module["metadata"]["name"] == "other")
        );
    });
}

#[test]
fn a_deleted_assemblage_clears_its_cluster_and_is_made_again() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        let before = fleet.get("remoteassemblages", "rome").await.unwrap();
        fleet.delete("remoteassemblages", "rome").await;
        fleet
            .until("made again", 120, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "rome").await?;
                (found["metadata"]["uid"] != before["metadata"]["uid"]).then_some(())
            })
            .await;
        fleet.until_ready("web", 120).await;
    });
}

#[test]
fn another_cluster_behind_the_same_name_is_not_written_to() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        let berlin = fleet.leaves["berlin"].cluster.clone();
        fleet.lines.lead("fleet/rome", &berlin);
        secs(120).await;
        fleet.roll("web", "v2").await;
        secs(60).await;
        let found = fleet.get("remoteassemblages", "rome").await.unwrap();
        let conditions = found["status"]["conditions"].as_array().unwrap();
        let reachable = conditions
            .iter()
            .find(|one| one["type"] == "Reachable")
            .unwrap();
        assert_eq!(reachable["status"], "False");
        assert_eq!(reachable["reason"], "ClusterReplaced");
        let path = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/rome";
        assert_eq!(fleet.leaves["berlin"].find(path).await, None);
    });
}

/// A Cluster wins over a Secret of its name, also where only the Secret is what somebody selects.
#[test]
fn a_cluster_is_selected_by_the_object_that_wins() {
    virtually(async {
        let fleet = Fleet::new().await;
        let labels = json!({"fleet.squaremo.dev/cluster": "", "env": "edge"});
        for name in ["paris", "rome"] {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
                "data": {"value": STANDARD.encode(ADMIN)},
            });
            let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
            match name {
                "rome" => drop(fleet.hub.patch(&format!("{path}/rome"), &secret).await),
                _ => drop(fleet.hub.create(&path, &secret).await),
            }
        }
        let mut spec = rollout("Replace", "v1");
        spec["selector"] = json!({"matchLabels": {"env": "edge"}});
        fleet.make("rollouts", "web", &spec).await;
        let found = fleet.until_ready("web", 60).await;
        assert_eq!(found["status"]["counts"]["total"], 1);
        assert!(fleet.assigned("rome", "web").await.is_some());
        assert!(fleet.assigned("paris", "web").await.is_none());
        // The other one is what somebody selects now, and both stand for what they did.
        spec["selector"] = json!({"matchLabels": {"env": "prod", "name": "paris"}});
        fleet
            .change("rollouts", "web", &json!({"spec": spec}))
            .await;
        fleet
            .until("moved", 60, async |fleet: &Fleet| {
                let has = fleet.assigned("paris", "web").await.is_some();
                (has && fleet.assigned("rome", "web").await.is_none()).then_some(())
            })
            .await;
    });
}

/// All that was told of it stays, and none of it says how it is now.
#[test]
fn a_cluster_that_may_not_be_looked_at_any_more_is_not_said_to_be_reachable() {
    const RESOURCES: [(&str, &str); 2] = [
        ("fleet.squaremo.dev/assemblages", "AgentMissing"),
        ("/secrets", "NotSynced"),
    ];
    for (resource, reason) in RESOURCES {
        virtually(async {
            let fleet = Fleet::settled("Incremental", "v1").await;
            let berlin = &fleet.leaves["berlin"];
            berlin.forbid(resource);
            let is = |status: &'static str, reason: &'static str| {
                async move |fleet: &Fleet| {
                    let told = fleet.reachable("berlin").await?;
                    (told["status"] == status && told["reason"] == reason).then_some(())
                }
            };
            // The streams that are open end within five minutes.
            fleet.until("told", 400, is("False", reason)).await;
            let found = fleet.get("rollouts", "web").await.unwrap();
            assert!(of_cluster(&found, "berlin")["revision"].is_string());
            secs(100).await;
            assert_eq!(fleet.reachable("berlin").await.unwrap()["reason"], reason);
            assert_eq!(fleet.reachable("paris").await.unwrap()["status"], "True");
            berlin.cluster.faults().clear();
            fleet.until("told again", 20, is("True", "Reached")).await;
            fleet.roll("web", "v2").await;
            fleet.until_ready("web", 60).await;
        });
    }
}

/// Whoever deletes it wants what is in its cluster to go. Who began after the right was taken away sees nothing there, and must not
/// take that for nothing.
#[test]
fn a_deleted_assemblage_waits_for_a_cluster_that_may_not_be_looked_at() {
    virtually(async {
        let mut fleet = Fleet::settled("Incremental", "v1").await;
        let berlin = fleet.leaves["berlin"].clone();
        fleet.replica = None;
        berlin.forbid("fleet.squaremo.dev/assemblages");
        fleet.start();
        fleet
            .until("told", 60, async |fleet: &Fleet| {
                let told = fleet.reachable("berlin").await?;
                (told["reason"] == "AgentMissing").then_some(())
            })
            .await;
        let before = fleet.get("remoteassemblages", "berlin").await.unwrap();
        fleet.delete("remoteassemblages", "berlin").await;
        secs(60).await;
        let still = fleet.get("remoteassemblages", "berlin").await.unwrap();
        assert_eq!(still["metadata"]["uid"], before["metadata"]["uid"]);
        let path = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/berlin";
        assert!(berlin.find(path).await.is_some());
        berlin.cluster.faults().clear();
        fleet
            .until("cleared and made anew", 120, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "berlin").await?;
                (found["metadata"]["uid"] != before["metadata"]["uid"]).then_some(())
            })
            .await;
        fleet.until_ready("web", 180).await;
    });
}
