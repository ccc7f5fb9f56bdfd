//! What is not remembered, or was defined once: nothing goes because somebody does not know of it any more.

use serde_json::{Value, json};

use crate::stage::{CLUSTERS, DEFINITIONS, Fleet, is_ready, module, rollout, secs, virtually};

const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";

const SOURCES: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/fleet/gitrepositories";

async fn uids(fleet: &Fleet, sync: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for cluster in CLUSTERS {
        let found = fleet.kustomization(cluster, sync).await;
        all.push(found.unwrap_or_default()["metadata"]["uid"].clone());
    }
    all
}

async fn until_gone(fleet: &Fleet, sync: &str) {
    fleet
        .until("gone", 60, async |fleet: &Fleet| {
            (uids(fleet, sync).await == vec![Value::Null; 3]).then_some(())
        })
        .await;
}

/// The control plane is put back, and is changed as often as it had been before anybody reaches a cluster.
#[test]
fn a_control_plane_that_was_put_back_and_changed_takes_nothing_away() {
    virtually(async {
        let mut fleet = Fleet::settled("Replace", "v1").await;
        let earlier = fleet.hub.cluster.snapshot();
        fleet
            .make("rollouts", "late", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("late", 60).await;
        let before = uids(&fleet, "late").await;
        let generation = |found: Option<Value>| found.unwrap()["metadata"]["generation"].clone();
        let last = generation(fleet.get("remoteassemblages", "rome").await);
        fleet.replica = None;
        fleet.hub.cluster.restore(&earlier);
        for cluster in CLUSTERS {
            fleet.cut(cluster);
        }
        fleet.roll("web", "v2").await;
        fleet.start();
        fleet
            .until("assigned", 60, async |fleet: &Fleet| {
                (fleet.with_tag("web", "v2").await == 3).then_some(())
            })
            .await;
        let now = generation(fleet.get("remoteassemblages", "rome").await);
        assert_eq!(now, last, "how often it was changed tells nothing");
        for cluster in CLUSTERS {
            fleet.mend(cluster);
        }
        fleet.until_ready("web", 180).await;
        secs(60).await;
        assert_eq!(uids(&fleet, "late").await, before);
        let found = fleet.get("remoteassemblages", "rome").await.unwrap();
        let told = found["status"]["conditions"].as_array().unwrap();
        let kept = told.iter().find(|one| one["type"] == "Assigned").unwrap();
        assert!(kept["message"].as_str().unwrap().contains("late"), "{kept}");
    });
}

/// A Rollout is deleted while a cluster is away, and the process dies: the cluster loses it when it is back.
#[test]
fn what_was_taken_away_from_a_cluster_that_was_lost_goes_when_it_is_back() {
    virtually(async {
        let mut fleet = Fleet::new().await;
        for name in ["web", "late"] {
            fleet
                .make("rollouts", name, &rollout("Replace", "v1"))
                .await;
            fleet.until_ready(name, 60).await;
        }
        fleet.cut("rome");
        secs(60).await;
        fleet.delete("rollouts", "late").await;
        fleet
            .until("deleted", 60, async |fleet: &Fleet| {
                fleet.get("rollouts", "late").await.is_none().then_some(())
            })
            .await;
        fleet.replica = None;
        fleet.start();
        secs(60).await;
        assert!(fleet.kustomization("rome", "late").await.is_some());
        fleet.mend("rome");
        until_gone(&fleet, "late").await;
        assert!(fleet.kustomization("rome", "web").await.is_some());
        fleet.until_ready("web", 60).await;
        let found = fleet.get("remoteassemblages", "rome").await.unwrap();
        assert_eq!(found["status"]["syncs"].as_array().unwrap().len(), 1);
    });
}

/// Whoever deletes the definition of Rollouts has not said that clusters are to lose anything.
#[test]
fn without_the_definition_of_rollouts_clusters_keep_what_they_have() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        let before = uids(&fleet, "web").await;
        let path = format!("{DEFINITIONS}/rollouts.fleet.squaremo.dev");
        fleet.hub.delete(&path).await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                fleet.hub.find(&path).await.is_none().then_some(())
            })
            .await;
        secs(120).await;
        assert_eq!(uids(&fleet, "web").await, before);
        assert_eq!(fleet.with_tag("web", "v1").await, 3);
        for definition in crate::definitions::fleet() {
            if definition["spec"]["names"]["kind"] == "Rollout" {
                fleet.hub.define(&definition).await;
            }
        }
        secs(60).await;
        // Who comes by this name has it, and may take it away.
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v2"))
            .await;
        fleet.until_ready("web", 180).await;
        assert_eq!(uids(&fleet, "web").await, before);
        fleet.delete("rollouts", "web").await;
        until_gone(&fleet, "web").await;
    });
}

#[test]
fn without_the_definition_of_modules_clusters_keep_what_they_have() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut selecting = module("v1");
        selecting["selector"] = json!({});
        fleet.make("modules", "all", &selecting).await;
        fleet
            .until("everywhere", 60, async |fleet: &Fleet| {
                let found = fleet.get("modules", "all").await?;
                let is_done = is_ready(&found) && found["status"]["summary"]["succeeded"] == 3;
                is_done.then_some(())
            })
            .await;
        let before = uids(&fleet, "all").await;
        let path = format!("{DEFINITIONS}/modules.fleet.squaremo.dev");
        fleet.hub.delete(&path).await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                fleet.hub.find(&path).await.is_none().then_some(())
            })
            .await;
        secs(120).await;
        assert_eq!(uids(&fleet, "all").await, before);
    });
}

fn bootstrapping(tag: &str) -> Value {
    let mut spec = rollout("Replace", tag);
    spec["targetKind"] = json!("BootstrapModule");
    spec
}

async fn bootstrapped(fleet: &Fleet, cluster: &str) -> Option<Value> {
    let path = format!("{KUSTOMIZATIONS}/{cluster}-bootstrap-agent");
    fleet.hub.find(&path).await
}

async fn told(fleet: &Fleet, cluster: &str) -> Option<Value> {
    let path = format!(
        "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/{cluster}-bootstrap"
    );
    let found = fleet.hub.find(&path).await?;
    Some(found["status"]["syncs"][0]["reason"].clone())
}

/// One kubeconfig under two names: what is applied from here reaches the cluster under the first, and who gives the second up takes
/// nothing away.
#[test]
fn a_cluster_has_one_name_also_for_what_is_applied_from_here() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("paris").await;
        fleet.start();
        fleet.make("rollouts", "agent", &bootstrapping("v1")).await;
        fleet.until_ready("agent", 60).await;
        let paris = fleet.leaves["paris"].cluster.clone();
        fleet.lines.lead("fleet/rome", &paris);
        fleet.register("rome").await;
        fleet
            .until("told", 120, async |fleet: &Fleet| {
                (told(fleet, "rome").await? == "TwoNames").then_some(())
            })
            .await;
        assert_eq!(bootstrapped(&fleet, "rome").await, None);
        assert!(bootstrapped(&fleet, "paris").await.is_some());
        let label = json!({"metadata": {"labels": {"env": null}}});
        fleet
            .hub
            .patch("/api/v1/namespaces/fleet/secrets/rome", &label)
            .await;
        fleet.until_ready("agent", 120).await;
        assert!(bootstrapped(&fleet, "paris").await.is_some());
    });
}

/// What is in a cluster belongs to another control plane: nothing is applied to it from here before a person says so.
#[test]
fn what_another_control_plane_has_is_not_applied_to_from_here() {
    virtually(async {
        let mut fleet = Fleet::settled("Replace", "v1").await;
        let mut other = fleet.another_hub().await;
        other.register("rome").await;
        other.start();
        other.make("rollouts", "agent", &bootstrapping("v1")).await;
        other
            .until("told", 120, async |other: &Fleet| {
                (told(other, "rome").await? == "OtherHub").then_some(())
            })
            .await;
        assert_eq!(other.hub.list(SOURCES).await.len(), 0);
        fleet.replica = None;
        let system = fleet.hub.get("/api/v1/namespaces/kube-system").await;
        let hub = system["metadata"]["uid"].as_str().unwrap();
        let word = json!({"metadata": {"annotations": {"fleet.squaremo.dev/take-over": hub}}});
        let path = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/rome-bootstrap";
        other.hub.patch(path, &word).await;
        other
            .until("fetched", 120, async |other: &Fleet| {
                (other.hub.list(SOURCES).await.len() == 1).then_some(())
            })
            .await;
    });
}

/// A later version told of one sync in a word of its own, and was taken back: which cluster this is stays what it was. Another one
/// answers under its name by then, or none.
#[test]
fn what_cannot_be_read_of_one_sync_does_not_make_another_cluster_the_right_one() {
    for is_cut in [false, true] {
        virtually(async {
            let mut fleet = Fleet::settled("Replace", "v1").await;
            fleet.replica = None;
            let path = format!("{DEFINITIONS}/remoteassemblages.fleet.squaremo.dev");
            let mut versions = fleet.hub.get(&path).await["spec"]["versions"].clone();
            let status = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"];
            let state = &mut status["properties"]["syncs"]["items"]["properties"]["state"];
            assert!(state.as_object_mut().unwrap().remove("enum").is_some());
            let later = json!({"spec": {"versions": versions}});
            fleet.hub.patch(&path, &later).await;
            secs(2).await;
            let found = fleet.get("remoteassemblages", "rome").await.unwrap();
            let record = found["status"]["cluster"].clone();
            assert!(record["uid"].is_string());
            let mut syncs = found["status"]["syncs"].clone();
            syncs[0]["state"] = json!("suspended");
            let told = json!({"status": {"syncs": syncs}});
            let path =
                "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/remoteassemblages/rome/status";
            fleet.hub.patch(path, &told).await;
            if is_cut {
                fleet.cut("rome");
            } else {
                let berlin = fleet.leaves["berlin"].cluster.clone();
                fleet.lines.lead("fleet/rome", &berlin);
            }
            fleet.start();
            secs(120).await;
            let found = fleet.get("remoteassemblages", "rome").await.unwrap();
            assert_eq!(found["status"]["cluster"], record, "{is_cut}");
            let path = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages/rome";
            assert_eq!(fleet.leaves["berlin"].find(path).await, None);
        });
    }
}
