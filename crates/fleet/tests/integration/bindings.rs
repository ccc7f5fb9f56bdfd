//! Values of every origin reach Flux, a changed one is rolled out, and a secret one is in no object but Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::definitions::gadgets;
use crate::stage::{CLUSTERS, Fleet, NAMESPACE, rollout, secs, virtually};

const MAPS: &str = "/api/v1/namespaces/fleet/configmaps";
const SECRETS: &str = "/api/v1/namespaces/fleet/secrets";

fn secret(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "data": {"token": STANDARD.encode(value)},
    })
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

async fn stage() -> Fleet {
    let fleet = Fleet::new().await;
    fleet.hub.define(&gadgets()).await;
    fleet
        .hub
        .create(MAPS, &map("common", "$(not expanded)"))
        .await;
    fleet.hub.create(SECRETS, &secret("door", "hunter2")).await;
    let gadget = json!({
        "apiVersion": "toys.example.com/v1", "kind": "Gadget", "metadata": {"name": "spinner"}, "spec": {"speed": 3},
    });
    let path = "/apis/toys.example.com/v1/namespaces/fleet/gadgetry";
    fleet.hub.create(path, &gadget).await;
    for cluster in CLUSTERS {
        let leaf = &fleet.leaves[cluster];
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        leaf.create("/api/v1/namespaces", &namespace).await;
        leaf.create(MAPS, &map("local", &format!("in {cluster}")))
            .await;
        leaf.create(SECRETS, &secret("cellar", "swordfish")).await;
    }
    fleet
}

fn spec() -> Value {
    let mut spec = rollout("Incremental", "v1");
    spec["template"]["spec"]["controlPlaneBindings"] = json!([
        {"name": "NAME", "value": "$(CLUSTER_NAME)"},
        {"name": "ENV", "value": "$(CLUSTER_LABEL[env])"},
        {"name": "COMMON", "objectFieldRef": {"kind": "ConfigMap", "name": "common", "fieldPath": "/data/value"}},
        {"name": "SPEED", "objectFieldRef": {"apiVersion": "toys.example.com/v1", "kind": "Gadget", "name": "spinner", "fieldPath": "/spec/speed"}},
        {"name": "PLAIN", "objectFieldRef": {"kind": "Gadget", "name": "spinner", "fieldPath": "/metadata/name"}},
        {"name": "DOOR", "objectFieldRef": {"kind": "Secret", "name": "door", "fieldPath": "/data/token"}},
        {"name": "NONE", "objectFieldRef": {"kind": "ConfigMap", "name": "none", "fieldPath": "/data/x"}, "default": "nothing"},
    ]);
    let sync = &mut spec["template"]["spec"]["sync"];
    sync["bindings"] = json!([
        {"name": "LOCAL", "objectFieldRef": {"kind": "ConfigMap", "name": "local", "fieldPath": "/data/value"}},
        {"name": "CELLAR", "objectFieldRef": {"kind": "Secret", "name": "cellar", "fieldPath": "/data/token"}},
        {"name": "BOTH", "value": "$(NAME) $(LOCAL)"},
    ]);
    sync["package"]["kustomize"]["substitute"] = json!({
        "NAME": "$(NAME)", "ENV": "$(ENV)", "COMMON": "$(COMMON)", "SPEED": "$(SPEED)", "PLAIN": "$(PLAIN)",
        "NONE": "$(NONE)", "LOCAL": "$(LOCAL)", "BOTH": "$(BOTH)", "DOOR": "$(DOOR)!", "CELLAR": "$(CELLAR)",
    });
    spec
}

/// The data of the Secret that a cluster's Kustomization is substituted from.
async fn hidden(fleet: &Fleet, cluster: &str) -> Value {
    let made = fleet.kustomization(cluster, "web").await.unwrap();
    let name = made["spec"]["postBuild"]["substituteFrom"][0]["name"]
        .as_str()
        .unwrap();
    let found = fleet.leaves[cluster]
        .get(&format!("{SECRETS}/{name}"))
        .await;
    found["data"].clone()
}

#[test]
fn values_of_every_origin_reach_flux() {
    virtually(async {
        let fleet = stage().await;
        fleet.make("rollouts", "web", &spec()).await;
        fleet.until_ready("web", 120).await;
        for cluster in CLUSTERS {
            let made = fleet.kustomization(cluster, "web").await.unwrap();
            let local = format!("in {cluster}");
            assert_eq!(
                made["spec"]["postBuild"]["substitute"],
                json!({
                    "NAME": cluster, "ENV": "prod", "COMMON": "$(not expanded)", "SPEED": "3", "PLAIN": "spinner",
                    "NONE": "nothing", "LOCAL": local, "BOTH": format!("{cluster} {local}"),
                })
            );
            let secret = json!({"DOOR": STANDARD.encode("hunter2!"), "CELLAR": STANDARD.encode("swordfish")});
            assert_eq!(hidden(&fleet, cluster).await, secret);
        }
    });
}

#[test]
fn a_changed_value_is_rolled_out_within_the_budget_and_a_changed_secret_too() {
    virtually(async {
        let fleet = stage().await;
        fleet.make("rollouts", "web", &spec()).await;
        fleet.until_ready("web", 120).await;
        let change = json!({"data": {"value": "changed"}});
        fleet.hub.patch(&format!("{MAPS}/common"), &change).await;
        let mut seen = Vec::new();
        fleet
            .until("changed everywhere", 120, async |fleet: &Fleet| {
                let mut count = 0;
                for cluster in CLUSTERS {
                    let made = fleet.kustomization(cluster, "web").await?;
                    let value = &made["spec"]["postBuild"]["substitute"]["COMMON"];
                    count += usize::from(value == "changed");
                }
                if seen.last() != Some(&count) {
                    seen.push(count);
                }
                (count == 3).then_some(())
            })
            .await;
        assert_eq!(seen, [0, 1, 2, 3]);
        fleet.until_ready("web", 60).await;
        let token = json!({"data": {"token": STANDARD.encode("correct horse")}});
        fleet.hub.patch(&format!("{SECRETS}/door"), &token).await;
        fleet
            .until("another secret everywhere", 120, async |fleet: &Fleet| {
                for cluster in CLUSTERS {
                    if hidden(fleet, cluster).await["DOOR"] != STANDARD.encode("correct horse!") {
                        return None;
                    }
                }
                Some(())
            })
            .await;
        fleet.until_ready("web", 60).await;
        secs(10).await;
        // What was made for the values before is collected: one for each cluster is left here, and one each there.
        let labelled = format!("{SECRETS}?labelSelector=fleet.squaremo.dev/values-for");
        assert_eq!(fleet.hub.list(&labelled).await.len(), 3);
        for cluster in CLUSTERS {
            let leaf = &fleet.leaves[cluster];
            assert_eq!(leaf.list(&labelled).await.len(), 1, "{cluster}");
            let made = format!("{SECRETS}?labelSelector=fleet.squaremo.dev/assemblage");
            assert_eq!(leaf.list(&made).await.len(), 1, "{cluster}");
        }
    });
}

/// Somebody keeps what a cluster has under a name of their own, and takes the cluster out of the Rollout: what that needs stays.
#[test]
fn a_secret_that_another_sync_refers_to_stays_when_its_cluster_is_deselected() {
    virtually(async {
        let fleet = stage().await;
        fleet.make("rollouts", "web", &spec()).await;
        fleet.until_ready("web", 120).await;
        let mut pinned = fleet.assigned("berlin", "web").await.unwrap();
        let fields = pinned.as_object_mut().unwrap();
        fields.insert("name".to_owned(), json!("pinned"));
        fields.remove("assignedBy");
        let kind = "RemoteAssemblage";
        let object = json!({
            "apiVersion": "fleet.squaremo.dev/v1alpha1", "kind": kind, "metadata": {"name": "berlin"},
            "spec": {"assemblage": {"syncs": [pinned]}},
        });
        let path = "/apis/fleet.squaremo.dev/v1alpha1/namespaces/fleet/remoteassemblages/berlin";
        fleet.hub.apply(path, "somebody", &object).await;
        let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/clusters/berlin";
        let labels = json!({"metadata": {"labels": {"env": "test"}}});
        fleet.hub.patch(path, &labels).await;
        fleet
            .until("taken away", 60, async |fleet: &Fleet| {
                let is_left = fleet.assigned("berlin", "web").await.is_some();
                (!is_left).then_some(())
            })
            .await;
        secs(30).await;
        assert!(fleet.assigned("berlin", "pinned").await.is_some());
        let labelled = format!("{SECRETS}?labelSelector=fleet.squaremo.dev/values-for");
        assert_eq!(fleet.hub.list(&labelled).await.len(), 3);
    });
}

#[test]
fn secret_values_are_in_no_object_but_secrets() {
    virtually(async {
        let fleet = stage().await;
        fleet.make("rollouts", "web", &spec()).await;
        fleet.until_ready("web", 120).await;
        let words: Vec<String> = ["hunter2", "swordfish"]
            .iter()
            .flat_map(|word| {
                [
                    (*word).to_owned(),
                    STANDARD.encode(word),
                    STANDARD.encode(format!("{word}!")),
                ]
            })
            .collect();
        let paths = [
            "/apis/fleet.squaremo.dev/v1alpha1/rollouts",
            "/apis/fleet.squaremo.dev/v1alpha1/modules",
            "/apis/fleet.squaremo.dev/v1alpha1/remoteassemblages",
            "/apis/fleet.squaremo.dev/v1alpha1/assemblages",
            "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations",
            "/apis/source.toolkit.fluxcd.io/v1/gitrepositories",
            "/apis/events.k8s.io/v1/events",
            "/apis/apps/v1/controllerrevisions",
            "/api/v1/configmaps",
        ];
        let servers = fleet.leaves.values().chain([&fleet.hub]);
        for server in servers {
            for path in paths {
                let text = server.get(path).await.to_string();
                for word in &words {
                    assert!(!text.contains(word.as_str()), "{path} has {word}");
                }
            }
        }
    });
}

#[test]
fn a_value_that_is_missing_blocks_its_cluster_only_and_goes_on_when_it_is_there() {
    virtually(async {
        let fleet = Fleet::new().await;
        for cluster in ["berlin", "rome"] {
            fleet
                .hub
                .create(MAPS, &map(&format!("ip-{cluster}"), "10.0.0.1"))
                .await;
        }
        let mut spec = rollout("Incremental", "v1");
        spec["template"]["spec"]["controlPlaneBindings"] = json!([
            {"name": "IP", "objectFieldRef": {"kind": "ConfigMap", "name": "ip-$(CLUSTER_NAME)", "fieldPath": "/data/value"}},
        ]);
        fleet.make("rollouts", "web", &spec).await;
        fleet
            .until("two of three", 90, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let counts = &found["status"]["counts"];
                (counts["ready"] == 2 && counts["blocked"] == 1).then_some(())
            })
            .await;
        let found = fleet.get("rollouts", "web").await.unwrap();
        let told = crate::stage::of_cluster(&found, "paris");
        assert_eq!(told["reason"], "BindingUnresolved");
        assert!(
            told["message"].as_str().unwrap().contains("ip-paris"),
            "{told}"
        );
        fleet.hub.create(MAPS, &map("ip-paris", "10.0.0.2")).await;
        fleet.until_ready("web", 60).await;
    });
}

#[test]
fn a_value_of_another_modules_object_is_found_by_what_that_module_applied() {
    virtually(async {
        let fleet = stage().await;
        for cluster in CLUSTERS {
            let leaf = &fleet.leaves[cluster];
            leaf.create(MAPS, &map("made", &format!("db of {cluster}")))
                .await;
        }
        let mut web = rollout("Replace", "v1");
        let sync = &mut web["template"]["spec"]["sync"];
        sync["bindings"] = json!([
            {"name": "DB", "moduleFieldRef": {"module": "db", "kind": "ConfigMap", "name": "made", "fieldPath": "/data/value"}},
        ]);
        sync["package"]["kustomize"]["substitute"] = json!({"DB": "$(DB)"});
        sync["package"]["kustomize"]["targetNamespace"] = json!("web");
        fleet.make("rollouts", "web", &web).await;
        fleet
            .until("blocked", 60, async |fleet: &Fleet| {
                let found = fleet.get("remoteassemblages", "berlin").await?;
                let told = &found["status"]["syncs"][0];
                (told["state"] == "blocked" && told["reason"] == "BindingUnresolved").then_some(())
            })
            .await;
        fleet
            .make("rollouts", "db", &rollout("Replace", "v1"))
            .await;
        fleet.until_ready("db", 60).await;
        fleet.until_ready("web", 60).await;
        for cluster in CLUSTERS {
            let made = fleet.kustomization(cluster, "web").await.unwrap();
            let substitute = &made["spec"]["postBuild"]["substitute"];
            assert_eq!(*substitute, json!({"DB": format!("db of {cluster}")}));
            // The namespace that it is to be in was made.
            let namespace = fleet.leaves[cluster].find("/api/v1/namespaces/web").await;
            assert!(namespace.is_some(), "{cluster}");
        }
    });
}

/// Cluster API is not installed in workload clusters: what may be missing there is missing, and no right would help.
#[test]
fn a_kind_of_the_fleet_that_is_not_installed_is_not_there() {
    virtually(async {
        let fleet = Fleet::new().await;
        let mut spec = rollout("Replace", "v1");
        let sync = &mut spec["template"]["spec"]["sync"];
        let versioned = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "none", "fieldPath": "/metadata/uid",
        });
        sync["bindings"] = json!([
            {"name": "ANY", "objectFieldRef": {"kind": "Cluster", "name": "none", "fieldPath": "/metadata/uid"}, "default": "no"},
            {"name": "ONE", "objectFieldRef": versioned, "default": "none"},
        ]);
        sync["package"]["kustomize"]["substitute"] = json!({"ANY": "$(ANY)", "ONE": "$(ONE)"});
        fleet.make("rollouts", "web", &spec).await;
        fleet.until_ready("web", 120).await;
        let made = fleet.kustomization("berlin", "web").await.unwrap();
        assert_eq!(
            made["spec"]["postBuild"]["substitute"],
            json!({"ANY": "no", "ONE": "none"})
        );
    });
}
