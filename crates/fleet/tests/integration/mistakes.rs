//! Mistakes that people and tools make with clusters: objects are restored, definitions are deleted, kubeconfigs are mixed up. Nothing
//! goes and nothing reaches another cluster because of it.

use serde_json::{Value, json};

use crate::hazards::{stage, uid};
use crate::stage::{Fleet, of_cluster, rollout, secs, virtually};

const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";

/// A tool that makes objects anew, each with another uid, restores the assemblage of a cluster.
#[test]
fn what_was_made_for_a_restored_assemblage_is_known_again() {
    virtually(async {
        let mut fleet = stage().await;
        let before = uid(&fleet, "rome", "web").await;
        fleet.replica = None;
        fleet.stop_agents();
        let all = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages";
        let path = format!("{all}/rome");
        let rome = fleet.leaves["rome"].clone();
        let old = rome.get(&path).await;
        rome.patch(&path, &json!({"metadata": {"finalizers": null}}))
            .await;
        rome.delete(&path).await;
        let metadata = json!({"name": "rome", "annotations": old["metadata"]["annotations"]});
        let restored = json!({
            "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": metadata, "spec": old["spec"],
        });
        let new = rome.create(all, &restored).await;
        assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
        fleet.start_agents();
        fleet.start();
        secs(60).await;
        assert_eq!(uid(&fleet, "rome", "web").await, before);
        let deleted = rome.records(|record| {
            record.verb == "delete" && record.resource.contains("kustomizations")
        });
        assert!(deleted.is_empty(), "{deleted:#?}");
        // Nobody else can be taken for its maker, and it still is changed and taken away.
        let found = fleet.kustomization("rome", "web").await.unwrap();
        assert_eq!(found["metadata"]["ownerReferences"], Value::Null);
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 120).await;
        assert_eq!(uid(&fleet, "rome", "web").await, before);
        fleet.delete("rollouts", "web").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                let found = fleet.kustomization("rome", "web").await;
                found.is_none().then_some(())
            })
            .await;
    });
}

/// Whoever takes the agent away with all that came with it, takes the definition of assemblages away too: that is nobody's wish to lose
/// what is applied.
#[test]
fn without_the_definition_of_assemblages_what_is_applied_stays() {
    virtually(async {
        let fleet = stage().await;
        let before = [
            uid(&fleet, "rome", "web").await,
            uid(&fleet, "rome", "quiet").await,
        ];
        let rome = &fleet.leaves["rome"];
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let path = format!("{definitions}/assemblages.fleet.squaremo.dev");
        rome.delete(&path).await;
        fleet
            .until("gone", 60, async |_: &Fleet| {
                rome.find(&path).await.is_none().then_some(())
            })
            .await;
        secs(60).await;
        for definition in crate::definitions::fleet() {
            if definition["spec"]["names"]["kind"] == "Assemblage" {
                rome.define(&definition).await;
            }
        }
        fleet.roll("web", "v2").await;
        fleet.until_ready("web", 180).await;
        let after = [
            uid(&fleet, "rome", "web").await,
            uid(&fleet, "rome", "quiet").await,
        ];
        assert_eq!(before, after);
        assert!(before.iter().all(Value::is_string));
    });
}

/// Leads a cluster's name to another cluster, as another kubeconfig in its Secret does.
fn lead(fleet: &Fleet, name: &str, to: &str) {
    let cluster = &fleet.leaves[to].cluster;
    fleet.lines.lead(&format!("fleet/{name}"), cluster);
}

/// Somebody replaces rome's Secret and puts paris's kubeconfig into it: nothing of rome reaches paris, and when it is put right
/// everything is as it was.
#[test]
fn a_secret_with_the_kubeconfig_of_another_cluster_needs_a_persons_word() {
    virtually(async {
        let fleet = stage().await;
        let remote = fleet.get("remoteassemblages", "rome").await.unwrap();
        let before = uid(&fleet, "rome", "web").await;
        let path = format!("{SECRETS}/rome");
        fleet.hub.delete(&path).await;
        lead(&fleet, "rome", "paris");
        fleet.register("rome").await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                let told = fleet.reachable("rome").await?;
                let reasons = ["TwoNames", "ClusterReplaced"];
                reasons.contains(&told["reason"].as_str()?).then_some(())
            })
            .await;
        fleet.roll("web", "v2").await;
        secs(120).await;
        let paris = &fleet.leaves["paris"];
        let kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";
        for found in paris.list(kustomizations).await {
            let name = found["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with("paris-"), "{name}");
        }
        fleet.hub.delete(&path).await;
        lead(&fleet, "rome", "rome");
        fleet.register("rome").await;
        fleet.until_ready("web", 180).await;
        assert_eq!(uid(&fleet, "rome", "web").await, before);
        let now = fleet.get("remoteassemblages", "rome").await.unwrap();
        assert_eq!(now["metadata"]["uid"], remote["metadata"]["uid"]);
    });
}

/// One kubeconfig under two names: the second gets nothing, and says why.
#[test]
fn a_cluster_has_one_name() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("paris").await;
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("web", 60).await;
        lead(&fleet, "rome", "paris");
        fleet.register("rome").await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                let told = fleet.reachable("rome").await?;
                (told["reason"] == "TwoNames").then_some(())
            })
            .await;
        secs(60).await;
        let paris = &fleet.leaves["paris"];
        let found = paris.list("/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages");
        assert_eq!(found.await.len(), 1);
        // The wrong one is taken back.
        lead(&fleet, "rome", "rome");
        let path = format!("{SECRETS}/rome");
        let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
        fleet.hub.patch(&path, &touched).await;
        fleet
            .until("there", 180, async |fleet: &Fleet| {
                fleet.kustomization("rome", "web").await.map(drop)
            })
            .await;
    });
}

/// Somebody makes the assemblage of one cluster with the kubeconfig of another, before anybody else does.
#[test]
fn an_assemblage_with_the_kubeconfig_of_another_cluster_gets_nothing() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("paris").await;
        fleet.register("berlin").await;
        let theirs =
            json!({"kubeconfigRef": {"name": "paris-kubeconfig"}, "assemblage": {"syncs": []}});
        fleet.make("remoteassemblages", "berlin", &theirs).await;
        lead(&fleet, "berlin", "paris");
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                let told = fleet.reachable("berlin").await?;
                let found = fleet.get("rollouts", "web").await?;
                let is_ready = of_cluster(&found, "paris")["state"] == "Ready";
                (told["reason"] == "OwnedByOther" && is_ready).then_some(())
            })
            .await;
        secs(60).await;
        let paris = &fleet.leaves["paris"];
        let found = paris.list("/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages");
        assert_eq!(found.await.len(), 1);
    });
}
