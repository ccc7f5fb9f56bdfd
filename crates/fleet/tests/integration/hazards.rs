//! What people and tools do to a fleet that works: Secrets are replaced, labels are lost, selectors are removed, names are taken. No
//! workload goes because of it that nobody wanted to go.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::stage::{
    ADMIN, CLUSTERS, Fleet, is_ready, module, of_cluster, rollout, secs, virtually,
};

const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";
const LABEL: &str = "fleet.squaremo.dev/cluster";

/// A fleet with two Rollouts that are ready, the second of which is paused.
pub(crate) async fn stage() -> Fleet {
    let fleet = Fleet::new().await;
    for name in ["web", "quiet"] {
        fleet
            .make("rollouts", name, &rollout("Replace", "v1"))
            .await;
        fleet.until_ready(name, 60).await;
    }
    fleet
        .change("rollouts", "quiet", &json!({"spec": {"paused": true}}))
        .await;
    secs(5).await;
    fleet
}

pub(crate) async fn uid(fleet: &Fleet, cluster: &str, sync: &str) -> Value {
    let found = fleet.kustomization(cluster, sync).await;
    found.unwrap_or_default()["metadata"]["uid"].clone()
}

/// `kubectl replace --force`, and tools that delete before they create.
#[test]
fn a_kubeconfig_that_is_made_anew_is_the_same_cluster() {
    virtually(async {
        for gap in [0, 10] {
            let fleet = stage().await;
            let before = [
                uid(&fleet, "rome", "web").await,
                uid(&fleet, "rome", "quiet").await,
            ];
            let remote = fleet.get("remoteassemblages", "rome").await.unwrap();
            fleet.hub.delete(&format!("{SECRETS}/rome")).await;
            secs(gap).await;
            fleet.register("rome").await;
            secs(120).await;
            let after = [
                uid(&fleet, "rome", "web").await,
                uid(&fleet, "rome", "quiet").await,
            ];
            assert_eq!(before, after, "{gap} s");
            assert!(before.iter().all(Value::is_string));
            let now = fleet.get("remoteassemblages", "rome").await.unwrap();
            assert_eq!(now["metadata"]["uid"], remote["metadata"]["uid"]);
            let secret = fleet.hub.get(&format!("{SECRETS}/rome")).await;
            assert_eq!(
                now["status"]["cluster"]["objectUid"],
                secret["metadata"]["uid"]
            );
            // And it still gets what comes.
            fleet.roll("web", "v2").await;
            fleet.until_ready("web", 120).await;
        }
    });
}

/// The Secret goes for good: that is a deleted cluster.
#[test]
fn a_kubeconfig_that_stays_away_takes_its_assignments_with_it() {
    virtually(async {
        let fleet = stage().await;
        fleet.hub.delete(&format!("{SECRETS}/rome")).await;
        fleet
            .until("forgotten", 120, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let is_gone = fleet.get("remoteassemblages", "rome").await.is_none();
                (is_gone && found["status"]["counts"]["total"] == 2).then_some(())
            })
            .await;
        assert!(fleet.kustomization("rome", "web").await.is_some());
    });
}

/// Somebody takes the label off and puts it on again.
#[test]
fn a_lost_label_deselects_and_forgets_nothing() {
    virtually(async {
        let fleet = stage().await;
        let before = uid(&fleet, "rome", "quiet").await;
        let remote = fleet.get("remoteassemblages", "rome").await.unwrap();
        let label = |value: Value| json!({"metadata": {"labels": {LABEL: value}}});
        let path = format!("{SECRETS}/rome");
        fleet.hub.patch(&path, &label(Value::Null)).await;
        fleet
            .until("deselected", 60, async |fleet: &Fleet| {
                fleet
                    .kustomization("rome", "web")
                    .await
                    .is_none()
                    .then_some(())
            })
            .await;
        secs(120).await;
        // Who is paused takes nothing away.
        assert_eq!(uid(&fleet, "rome", "quiet").await, before);
        let now = fleet.get("remoteassemblages", "rome").await.unwrap();
        assert_eq!(now["metadata"]["uid"], remote["metadata"]["uid"]);
        fleet.hub.patch(&path, &label(json!("true"))).await;
        fleet
            .until("selected again", 60, async |fleet: &Fleet| {
                (fleet.with_tag("web", "v1").await == 3).then_some(())
            })
            .await;
        assert_eq!(uid(&fleet, "rome", "quiet").await, before);
    });
}

/// That credentials cannot be used for a while says nothing of what is in the cluster.
#[test]
fn an_assemblage_that_goes_waits_for_credentials_that_can_be_used() {
    virtually(async {
        let fleet = stage().await;
        let path = format!("{SECRETS}/rome");
        fleet
            .hub
            .patch(&path, &json!({"data": {"value": null}}))
            .await;
        secs(30).await;
        let before = fleet.get("remoteassemblages", "rome").await.unwrap();
        fleet.delete("remoteassemblages", "rome").await;
        secs(120).await;
        let going = fleet.get("remoteassemblages", "rome").await.unwrap();
        assert_eq!(going["metadata"]["uid"], before["metadata"]["uid"]);
        let leaf = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/rome";
        assert!(fleet.leaves["rome"].find(leaf).await.is_some());
        let value = json!({"data": {"value": STANDARD.encode(ADMIN)}});
        fleet.hub.patch(&path, &value).await;
        fleet
            .until("cleared and made again", 180, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "rome").await?;
                let is_new = found["metadata"]["uid"] != before["metadata"]["uid"];
                let found = fleet.get("rollouts", "web").await?;
                (is_new && is_ready(&found)).then_some(())
            })
            .await;
    });
}

fn with_secret(mut spec: Value) -> Value {
    spec["controlPlaneBindings"] = json!([
        {"name": "DOOR", "objectFieldRef": {"kind": "Secret", "name": "door", "fieldPath": "/data/token"}},
    ]);
    spec["sync"]["package"]["kustomize"]["substitute"] = json!({"DOOR": "$(DOOR)"});
    spec
}

async fn door(fleet: &Fleet) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "door"}, "data": {"token": STANDARD.encode("hunter2")},
    });
    fleet.hub.create(SECRETS, &secret).await;
}

/// Two assemblages for one cluster: the Secrets of one are nothing to the other.
#[test]
fn secrets_of_one_assemblage_are_left_alone_by_another() {
    virtually(async {
        let fleet = Fleet::new().await;
        door(&fleet).await;
        let mut spec = rollout("Replace", "v1");
        spec["template"]["spec"] = with_secret(module("v1"));
        fleet.make("rollouts", "web", &spec).await;
        fleet.until_ready("web", 60).await;
        let extra = json!({
            "clusterName": "berlin", "kubeconfigRef": {"name": "berlin-kubeconfig"},
            "assemblage": {"syncs": [{
                "name": "app", "source": {"git": {"url": "https://example.com/app.git", "version": {"tag": "v1"}}},
            }]},
        });
        fleet.make("remoteassemblages", "extra", &extra).await;
        secs(60).await;
        let berlin = &fleet.leaves["berlin"];
        let deleted =
            berlin.records(|record| record.verb == "delete" && record.resource.contains("secrets"));
        assert!(deleted.is_empty(), "{deleted:#?}");
        fleet.delete("remoteassemblages", "extra").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                let is_gone = fleet.get("remoteassemblages", "extra").await.is_none();
                is_gone.then_some(())
            })
            .await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert_eq!(of_cluster(&found, "berlin")["state"], "Ready");
    });
}

/// What a third party names is filled in where it is expanded, secret values too; its source is fetched once and kept.
#[test]
fn a_bootstrap_entry_that_names_a_module_gets_its_secret_values() {
    virtually(async {
        let fleet = Fleet::new().await;
        door(&fleet).await;
        let mut spec = rollout("External", "v1");
        spec["template"]["spec"] = with_secret(module("v1"));
        spec["targetKind"] = json!("BootstrapModule");
        fleet.make("rollouts", "base", &spec).await;
        // The heartbeat would be too late for this.
        fleet.until_ready("base", 120).await;
        let kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";
        let made = fleet.hub.list(kustomizations).await;
        assert_eq!(made.len(), 3);
        let name = made[0]["spec"]["postBuild"]["substituteFrom"][0]["name"]
            .as_str()
            .unwrap();
        let secret = fleet.hub.get(&format!("{SECRETS}/{name}")).await;
        assert_eq!(secret["data"]["DOOR"], STANDARD.encode("hunter2").as_str());
        let sources = fleet.hub.records(|record| {
            record.verb == "delete" && record.resource.contains("gitrepositories")
        });
        assert!(sources.is_empty(), "{sources:#?}");
    });
}

/// A module without its selector selects nothing.
#[test]
fn a_module_that_loses_its_selector_leaves_nothing_behind() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        fleet.start();
        let mut selecting = module("v1");
        selecting["selector"] = json!({});
        fleet.make("modules", "all", &selecting).await;
        fleet
            .until("there", 60, async |fleet: &Fleet| {
                fleet.kustomization("berlin", "all").await.map(drop)
            })
            .await;
        fleet
            .change("modules", "all", &json!({"spec": {"selector": null}}))
            .await;
        fleet
            .until("taken away and let go", 60, async |fleet: &Fleet| {
                let is_gone = fleet.kustomization("berlin", "all").await.is_none();
                let found = fleet.get("modules", "all").await?;
                let finalizers = found["metadata"]["finalizers"].as_array();
                (is_gone && finalizers.is_none_or(Vec::is_empty)).then_some(())
            })
            .await;
        assert_eq!(fleet.assigned("berlin", "all").await, None);
    });
}

/// Somebody has a Module of the Rollout's name: it is neither taken over nor deleted, and the Rollout says what it waits for.
#[test]
fn a_module_of_somebody_else_is_not_taken_over() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet.make("modules", "web", &module("v1")).await;
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        secs(30).await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert!(!is_ready(&found));
        assert_eq!(
            found["status"]["waitingFor"][0]["reason"], "OwnedByOther",
            "{}",
            found["status"]
        );
        let theirs = fleet.get("modules", "web").await.unwrap();
        assert_eq!(theirs["metadata"]["ownerReferences"], Value::Null);
        fleet.delete("rollouts", "web").await;
        secs(30).await;
        assert!(fleet.get("modules", "web").await.is_some());
        for cluster in CLUSTERS {
            assert_eq!(fleet.assigned(cluster, "web").await, None);
        }
    });
}

/// An assemblage by the name of one cluster and for another one.
#[test]
fn what_is_for_one_cluster_does_not_reach_another() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("paris").await;
        let theirs = json!({
            "clusterName": "paris", "kubeconfigRef": {"name": "paris-kubeconfig"}, "assemblage": {"syncs": []},
        });
        fleet.make("remoteassemblages", "berlin", &theirs).await;
        fleet.register("berlin").await;
        fleet.start();
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        fleet
            .until("told", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let is_told = of_cluster(&found, "berlin")["reason"] == "OwnedByOther";
                (is_told && of_cluster(&found, "paris")["state"] == "Ready").then_some(())
            })
            .await;
        assert_eq!(fleet.assigned("berlin", "web").await, None);
    });
}

/// `kubectl label clusters --all env-` is one request after the other.
#[test]
fn labels_that_are_taken_off_one_after_the_other_empty_no_fleet() {
    virtually(async {
        let fleet = Fleet::settled("Replace", "v1").await;
        let clusters = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters";
        for name in CLUSTERS {
            let path = match name {
                "rome" => format!("{SECRETS}/{name}"),
                _ => format!("{clusters}/{name}"),
            };
            let label = json!({"metadata": {"labels": {"env": null}}});
            fleet.hub.patch(&path, &label).await;
            secs(1).await;
        }
        secs(600).await;
        let mut left = 0;
        for name in CLUSTERS {
            left += usize::from(fleet.kustomization(name, "web").await.is_some());
        }
        assert_eq!(left, 2, "one is usual");
        let found = fleet.get("rollouts", "web").await.unwrap();
        let waiting = &found["status"]["waitingFor"];
        assert_eq!(waiting[0]["reason"], "MassUnassignment", "{waiting}");
    });
}
