//! Bootstrap: what is applied to clusters from the control plane, before there is any agent.

use serde_json::{Value, json};

use crate::stage::{CLUSTERS, Fleet, NAMESPACE, is_ready, module, rollout, secs, virtually};

const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/fleet/kustomizations";
const SOURCES: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/fleet/gitrepositories";

async fn made(fleet: &Fleet, cluster: &str, sync: &str) -> Option<Value> {
    made_of(fleet, &format!("{cluster}-bootstrap-{sync}")).await
}

/// A Kustomization of this name in the hub.
async fn made_of(fleet: &Fleet, name: &str) -> Option<Value> {
    fleet.hub.find(&format!("{KUSTOMIZATIONS}/{name}")).await
}

fn bootstrapping(strategy: &str, tag: &str) -> Value {
    let mut spec = rollout(strategy, tag);
    spec["targetKind"] = json!("BootstrapModule");
    spec["template"]["spec"]["controlPlaneBindings"] =
        json!([{"name": "C", "value": "$(CLUSTER_NAME)"}]);
    spec["template"]["spec"]["sync"]["package"]["kustomize"]["substitute"] =
        json!({"CLUSTER": "$(C)"});
    spec
}

#[test]
fn each_cluster_has_a_kustomization_with_its_kubeconfig_and_a_change_goes_one_by_one() {
    virtually(async {
        let fleet = Fleet::new().await;
        fleet
            .make("rollouts", "agent", &bootstrapping("Incremental", "v1"))
            .await;
        fleet.until_ready("agent", 120).await;
        for cluster in CLUSTERS {
            let found = made(&fleet, cluster, "agent").await.unwrap();
            let secret = if cluster == "rome" {
                cluster.to_owned()
            } else {
                format!("{cluster}-kubeconfig")
            };
            assert_eq!(
                found["spec"]["kubeConfig"]["secretRef"]["name"],
                secret.as_str()
            );
            assert_eq!(
                found["spec"]["postBuild"]["substitute"],
                json!({"CLUSTER": cluster})
            );
        }
        assert_eq!(fleet.hub.list(SOURCES).await.len(), 1);
        fleet.roll("agent", "v2").await;
        let mut most = 0;
        fleet
            .until("v2 everywhere", 120, async |fleet: &Fleet| {
                // Each on its own: no source is shared by two versions.
                let mut going = 0;
                for cluster in CLUSTERS {
                    let found = made(fleet, cluster, "agent").await?;
                    let generation = &found["metadata"]["generation"];
                    going += usize::from(found["status"]["observedGeneration"] != *generation);
                }
                most = most.max(going);
                let found = fleet.get("rollouts", "agent").await?;
                let sources = fleet.hub.list(SOURCES).await.len();
                let is_new = found["status"]["history"].as_array()?.len() == 2;
                (is_ready(&found) && is_new && sources == 1).then_some(())
            })
            .await;
        assert_eq!(most, 1);
        // Nothing of it is in the clusters' own assemblages.
        assert_eq!(fleet.get("remoteassemblages", "berlin").await, None);
    });
}

#[test]
fn a_bootstrap_module_with_a_selector_is_everywhere_and_goes_with_its_cluster() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut selecting = module("v1");
        selecting["selector"] = json!({});
        fleet.make("bootstrapmodules", "base", &selecting).await;
        fleet
            .until("everywhere", 60, async |fleet: &Fleet| {
                let found = fleet.get("bootstrapmodules", "base").await?;
                let is_done = is_ready(&found) && found["status"]["summary"]["succeeded"] == 3;
                is_done.then_some(())
            })
            .await;
        let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/clusters/paris");
        fleet.hub.delete(&path).await;
        fleet
            .until("gone with its cluster", 60, async |fleet: &Fleet| {
                let is_gone = made(fleet, "paris", "base").await.is_none();
                let assemblage = fleet.get("assemblages", "paris-bootstrap").await;
                (is_gone && assemblage.is_none()).then_some(())
            })
            .await;
        fleet.delete("bootstrapmodules", "base").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                fleet
                    .get("bootstrapmodules", "base")
                    .await
                    .is_none()
                    .then_some(())
            })
            .await;
        secs(10).await;
        assert_eq!(fleet.hub.list(KUSTOMIZATIONS).await.len(), 0);
        assert_eq!(fleet.hub.list(SOURCES).await.len(), 0);
    });
}

#[test]
fn a_cluster_without_our_definition_gets_it_from_the_control_plane_and_then_the_rest() {
    virtually(async {
        let fleet = Fleet::new().await;
        let paris = &fleet.leaves["paris"];
        paris.undefine_assemblages().await;
        secs(10).await;
        fleet
            .make("rollouts", "web", &rollout("Replace", "v1"))
            .await;
        fleet
            .until("waiting for the definition", 120, async |fleet: &Fleet| {
                let reachable = fleet.reachable("paris").await?;
                (reachable["reason"] == "AgentMissing").then_some(())
            })
            .await;
        fleet
            .make("rollouts", "agent", &bootstrapping("Incremental", "v1"))
            .await;
        fleet.until_ready("agent", 120).await;
        // That is what it would have brought.
        paris.define_assemblages().await;
        fleet.until_ready("web", 180).await;
    });
}

const ASSEMBLAGES: &str = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/assemblages";

/// An assemblage that names berlin.
fn tools() -> Value {
    let source = json!({"git": {"url": "https://example.com/tools.git", "version": {"tag": "v1"}}});
    json!({
        "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": "Assemblage", "metadata": {"name": "tools"},
        "spec": {
            "clusterName": "berlin", "kubeconfigRef": {"name": "berlin-kubeconfig"},
            "syncs": [{"name": "a", "source": source, "package": {"kustomize": {"path": "./a"}}}],
        },
    })
}

/// Who makes an assemblage that names a cluster calls it as they like. It waits for the cluster to say which one it is, and is told
/// when it does, not with the next heartbeat.
#[test]
fn an_assemblage_of_any_name_is_looked_at_when_its_cluster_says_which_one_it_is() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        fleet.hub.create(ASSEMBLAGES, &tools()).await;
        fleet.cut("berlin");
        fleet.start();
        secs(120).await;
        let uid = async |fleet: &Fleet| {
            let found = fleet.get("assemblages", "tools").await?;
            let uid = found["status"]["cluster"]["uid"].as_str()?;
            Some(uid.to_owned())
        };
        assert_eq!(uid(&fleet).await, None);
        fleet.mend("berlin");
        let told = fleet.until("known", 45, uid).await;
        let system = fleet.leaves["berlin"]
            .get("/api/v1/namespaces/kube-system")
            .await;
        assert_eq!(system["metadata"]["uid"], told.as_str());
    });
}

/// Whoever deletes it wants what was applied to go, in a cluster that is ours. Who began after the right to see was taken away does
/// not know that it is.
#[test]
fn a_deleted_bootstrap_waits_for_a_cluster_that_may_not_be_looked_at() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        fleet.hub.create(ASSEMBLAGES, &tools()).await;
        fleet.start();
        let applied = async |fleet: &Fleet| {
            let found = made_of(fleet, "tools-a").await?;
            let uid = found["metadata"]["uid"].as_str()?;
            Some(uid.to_owned())
        };
        let before = fleet.until("applied", 60, applied).await;
        secs(30).await;
        fleet.replica = None;
        let berlin = fleet.leaves["berlin"].clone();
        berlin.forbid("fleet.squaremo.dev/assemblages");
        fleet.start();
        secs(60).await;
        fleet.delete("assemblages", "tools").await;
        fleet
            .until("told", 60, async |fleet: &Fleet| {
                let found = fleet.get("assemblages", "tools").await?;
                (found["status"]["syncs"][0]["reason"] == "AgentMissing").then_some(())
            })
            .await;
        secs(60).await;
        let still = made_of(&fleet, "tools-a").await.unwrap();
        assert_eq!(still["metadata"]["uid"], before.as_str());
        assert_eq!(still["metadata"]["deletionTimestamp"], Value::Null);
        berlin.cluster.faults().clear();
        // A right is looked for again with growing pauses, up to every heartbeat.
        fleet
            .until("gone", 400, async |fleet: &Fleet| {
                let is_gone = made_of(fleet, "tools-a").await.is_none();
                let assemblage = fleet.get("assemblages", "tools").await;
                (is_gone && assemblage.is_none()).then_some(())
            })
            .await;
    });
}
