//! Third parties: whoever writes assignments of their own is left alone, and hears how far each is.

use serde_json::{Value, json};

use crate::stage::{Fleet, is_ready, module, of_cluster, rollout, secs, virtually};

const REMOTES: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/remoteassemblages";

/// What somebody else assigns to a cluster: only the name of a module and its revision.
fn naming(cluster: &str, module: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage", "metadata": {"name": cluster},
        "spec": {
            "kubeconfigRef": {"name": format!("{cluster}-kubeconfig")},
            "assemblage": {"syncs": [{"name": "app", "module": {"name": module, "revision": revision}}]},
        },
    })
}

async fn state(fleet: &Fleet, cluster: &str, sync: &str) -> Option<Value> {
    let found = fleet.get("remoteassemblages", cluster).await?;
    let all = found["status"]["syncs"].as_array()?.clone();
    all.into_iter().find(|one| one["name"] == sync)
}

#[test]
fn a_module_that_is_only_named_is_filled_in_and_the_name_stays_as_it_was_written() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut first = module("v1");
        first["controlPlaneBindings"] = json!([{"name": "C", "value": "$(CLUSTER_NAME)"}]);
        first["sync"]["package"]["kustomize"]["substitute"] = json!({"CLUSTER": "$(C)"});
        fleet.make("modules", "app-1", &first).await;
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("web", 60).await;
        let revision = fleet
            .until("the module has a revision", 30, async |fleet: &Fleet| {
                let found = fleet.get("modules", "app-1").await?;
                found["status"]["revision"].as_str().map(str::to_owned)
            })
            .await;
        let assigned = naming("berlin", "app-1", &revision);
        fleet
            .hub
            .apply(&format!("{REMOTES}/berlin"), "pipeline", &assigned)
            .await;
        fleet
            .until("applied", 60, async |fleet: &Fleet| {
                let told = state(fleet, "berlin", "app").await?;
                (told["state"] == "succeeded").then_some(())
            })
            .await;
        let made = fleet.kustomization("berlin", "app").await.unwrap();
        assert_eq!(
            made["spec"]["postBuild"]["substitute"],
            json!({"CLUSTER": "berlin"})
        );
        let entry = fleet.assigned("berlin", "app").await.unwrap();
        assert_eq!(
            entry,
            json!({"name": "app", "module": {"name": "app-1", "revision": revision}})
        );
        fleet
            .until("told on the module", 10, async |fleet: &Fleet| {
                let found = fleet.get("modules", "app-1").await?;
                (found["status"]["summary"]["succeeded"] == 1).then_some(())
            })
            .await;
        // A revision that is not there changes nothing, and that is told.
        let missing = naming("berlin", "app-1", "0000000000");
        fleet
            .hub
            .apply(&format!("{REMOTES}/berlin"), "pipeline", &missing)
            .await;
        fleet
            .until("blocked", 30, async |fleet: &Fleet| {
                let told = state(fleet, "berlin", "app").await?;
                (told["state"] == "blocked" && told["reason"] == "RevisionGone").then_some(())
            })
            .await;
        let still = fleet.kustomization("berlin", "app").await.unwrap();
        assert_eq!(
            still["metadata"]["generation"],
            made["metadata"]["generation"]
        );
        // A rollout of ours does not touch it.
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 60).await;
        assert!(fleet.assigned("berlin", "app").await.is_some());
    });
}

#[test]
fn an_external_rollout_gives_new_clusters_something_and_moves_nobody() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet
            .make("rollouts", "app", &rollout("External", "v1"))
            .await;
        let found = fleet.until_ready("app", 60).await;
        let first = found["status"]["targetRevision"]
            .as_str()
            .unwrap()
            .to_owned();
        fleet.roll("app", "v2").await;
        let second = fleet
            .until("another revision", 30, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "app").await?;
                let target = found["status"]["targetRevision"].as_str()?.to_owned();
                let made = fleet.get("modules", &format!("app-{target}")).await;
                (target != first && made.is_some()).then_some(target)
            })
            .await;
        secs(60).await;
        for cluster in crate::stage::CLUSTERS {
            let entry = fleet.assigned(cluster, "app").await.unwrap();
            assert_eq!(entry["module"]["revision"], first.as_str());
        }
        // Somebody with rights to assemblages only moves one cluster.
        let path = format!("{REMOTES}/berlin");
        let mut moved = naming("berlin", &format!("app-{second}"), &second);
        moved["spec"]["assemblage"]["syncs"][0]["assignedBy"] = json!("Rollout/app");
        let forced = format!("{path}?fieldManager=pipeline&force=true");
        let sent = fleet.hub.apply_at(&forced, &moved).await;
        assert_eq!(
            sent["spec"]["assemblage"]["syncs"][0]["module"]["revision"],
            second.as_str()
        );
        fleet
            .until("moved", 60, async |fleet: &Fleet| {
                let made = fleet.kustomization("berlin", "app").await?;
                let applied = made["status"]["lastAppliedRevision"].as_str()?;
                applied.starts_with("v2@").then_some(())
            })
            .await;
        // Both modules tell so, also the one that the entry names no more.
        for (revision, total) in [(&first, 2), (&second, 1)] {
            let module = format!("app-{revision}");
            fleet
                .until("told on both modules", 10, async |fleet: &Fleet| {
                    let found = fleet.get("modules", &module).await?;
                    (found["status"]["summary"]["total"] == total).then_some(())
                })
                .await;
        }
        secs(30).await;
        let entry = fleet.assigned("paris", "app").await.unwrap();
        assert_eq!(entry["module"]["revision"], first.as_str());
        let entry = fleet.assigned("berlin", "app").await.unwrap();
        assert_eq!(entry["module"]["revision"], second.as_str());
    });
}

#[test]
fn an_assignment_of_the_same_name_that_somebody_else_made_is_left_alone() {
    virtually(async {
        let fleet = Fleet::new().await;
        let theirs = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage", "metadata": {"name": "berlin"},
            "spec": {"kubeconfigRef": {"name": "berlin-kubeconfig"}, "assemblage": {"syncs": [{
                "name": "web", "source": {"git": {"url": "https://example.com/theirs.git", "version": {"tag": "t1"}}},
            }]}},
        });
        fleet
            .hub
            .apply(&format!("{REMOTES}/berlin"), "pipeline", &theirs)
            .await;
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        fleet
            .until("the others have it", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let counts = &found["status"]["counts"];
                (counts["ready"] == 2 && counts["blocked"] == 1 && !is_ready(&found)).then_some(())
            })
            .await;
        assert_eq!(fleet.tag("berlin", "web").await.as_deref(), Some("t1"));
        let told = state(&fleet, "berlin", "web").await.unwrap();
        assert_eq!(told["state"], "succeeded");
    });
}

#[test]
fn an_invalid_rollout_says_so_and_stops_no_other() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut broken = rollout("Incremental", "v1");
        broken["template"]["spec"]["sync"]["package"]["kustomize"]["substitute"] =
            json!({"a.b": "c"});
        fleet.make("rollouts", "broken", &broken).await;
        let mut circle = rollout("Replace", "v1");
        circle["template"]["spec"]["controlPlaneBindings"] =
            json!([{"name": "A", "value": "$(B)"}, {"name": "B", "value": "$(A)"}]);
        fleet.make("rollouts", "circle", &circle).await;
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("web", 60).await;
        let found = fleet.get("rollouts", "broken").await.unwrap();
        let stalled = found["status"]["conditions"].as_array().unwrap().iter();
        let mut stalled = stalled.filter(|one| one["type"] == "Stalled");
        assert_eq!(stalled.next().unwrap()["reason"], "InvalidRollout");
        let found = fleet.get("rollouts", "circle").await.unwrap();
        assert_eq!(found["status"]["counts"]["blocked"], 3);
        assert_eq!(found["status"]["clusters"][0]["reason"], "CircularBinding");
    });
}

#[test]
fn somebody_else_may_have_an_assemblage_of_their_own_for_a_cluster() {
    virtually(async {
        let fleet = Fleet::settled("Replace", "v1").await;
        let extra = json!({
            "clusterName": "berlin", "kubeconfigRef": {"name": "berlin-kubeconfig"},
            "assemblage": {"syncs": [{
                "name": "app", "source": {"git": {"url": "https://example.com/app.git", "version": {"revision": "0123abc"}}},
            }]},
        });
        fleet.make("remoteassemblages", "extra", &extra).await;
        fleet
            .until("applied", 60, async |fleet: &Fleet| {
                let told = state(fleet, "extra", "app").await?;
                (told["state"] == "succeeded").then_some(())
            })
            .await;
        let path = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";
        let berlin = &fleet.leaves["berlin"];
        assert!(berlin.find(&format!("{path}/extra-app")).await.is_some());
        assert!(berlin.find(&format!("{path}/berlin-web")).await.is_some());
        fleet.delete("remoteassemblages", "extra").await;
        fleet
            .until("cleared", 60, async |fleet: &Fleet| {
                let is_gone = fleet.get("remoteassemblages", "extra").await.is_none();
                is_gone.then_some(())
            })
            .await;
        assert!(berlin.find(&format!("{path}/extra-app")).await.is_none());
        assert!(berlin.find(&format!("{path}/berlin-web")).await.is_some());
    });
}

/// Somebody else has taken an entry of one Rollout over: that one waits there, and no other does, nor what is told of the cluster.
#[test]
fn an_entry_that_somebody_else_has_taken_over_keeps_no_other_rollout_waiting() {
    virtually(async {
        let fleet = Fleet::new().await;
        for name in ["web", "api"] {
            fleet
                .make("rollouts", name, &rollout("Replace", "v1"))
                .await;
            fleet.until_ready(name, 60).await;
        }
        let theirs = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "RemoteAssemblage", "metadata": {"name": "berlin"},
            "spec": {"assemblage": {"syncs": [{
                "name": "web", "source": {"git": {"url": "https://example.com/web.git", "version": {"tag": "t1"}}},
            }]}},
        });
        let forced = format!("{REMOTES}/berlin?fieldManager=pipeline&force=true");
        fleet.hub.apply_at(&forced, &theirs).await;
        fleet.roll("web", "v2").await;
        fleet
            .until("told", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                (of_cluster(&found, "berlin")["reason"] == "RefusedByApi").then_some(())
            })
            .await;
        // By now it is tried only every five minutes.
        secs(700).await;
        fleet.roll("api", "v2").await;
        fleet.until_ready("api", 30).await;
        secs(60).await;
        fleet.cut("berlin");
        fleet
            .until("told that it is away", 60, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "berlin").await?;
                let all = found["status"]["conditions"].as_array()?.clone();
                let told = all.into_iter().find(|one| one["type"] == "Reachable")?;
                (told["status"] == "False").then_some(())
            })
            .await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert_eq!(of_cluster(&found, "paris")["state"], "Ready");
        assert_eq!(fleet.tag("berlin", "web").await.as_deref(), Some("t1"));
    });
}

/// What Replace has kept is no module that an entry could name.
#[test]
fn from_replace_to_external_a_new_cluster_gets_what_is_there() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        fleet.start();
        fleet
            .make("rollouts", "app", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("app", 60).await;
        let external = json!({"spec": {"strategy": "External"}});
        fleet.change("rollouts", "app", &external).await;
        fleet.register("paris").await;
        fleet
            .until("ready in the new one", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "app").await?;
                (of_cluster(&found, "paris")["state"] == "Ready").then_some(())
            })
            .await;
        let entry = fleet.assigned("paris", "app").await.unwrap();
        assert!(entry["module"]["name"].is_string(), "{entry}");
        // And back.
        let replace = json!({"spec": {"strategy": "Replace"}});
        fleet.change("rollouts", "app", &replace).await;
        fleet.roll("app", "v2").await;
        fleet.until_ready("app", 60).await;
    });
}
