//! Replace: all at once; and modules with a selector, which do the same.

use serde_json::json;

use crate::stage::{CLUSTERS, Fleet, is_ready, module, secs, virtually};

#[test]
fn all_clusters_get_a_change_at_once_and_its_module_is_changed_in_place() {
    virtually(async {
        let fleet = Fleet::settled("Replace", "v1").await;
        let made = fleet.get("modules", "web").await.unwrap();
        fleet.roll("web", "v2").await;
        let mut seen = Vec::new();
        fleet
            .until("v2 everywhere", 30, async |fleet: &Fleet| {
                let count = fleet.with_tag("web", "v2").await;
                seen.push(count);
                (count == 3).then_some(())
            })
            .await;
        fleet.until_ready("web", 60).await;
        let changed = fleet.get("modules", "web").await.unwrap();
        assert_eq!(changed["metadata"]["uid"], made["metadata"]["uid"]);
        assert_eq!(
            changed["spec"]["sync"]["source"]["git"]["version"]["tag"],
            "v2"
        );
        let path = "/apis/apps/v1/namespaces/fleet/controllerrevisions";
        assert_eq!(fleet.hub.list(path).await.len(), 2);
    });
}

#[test]
fn a_module_with_a_selector_is_everywhere_and_one_without_nowhere() {
    virtually(async {
        let mut fleet = Fleet::empty().await;
        fleet.register("berlin").await;
        fleet.register("paris").await;
        fleet.start();
        let mut selecting = module("v1");
        selecting["selector"] = json!({});
        fleet.make("modules", "all", &selecting).await;
        fleet.make("modules", "none", &module("v1")).await;
        let ready = async |fleet: &Fleet, total: i64| {
            let found = fleet.get("modules", "all").await?;
            let summary = &found["status"]["summary"];
            (is_ready(&found) && summary["total"] == total && summary["succeeded"] == total)
                .then_some(())
        };
        fleet
            .until("in two clusters", 60, async |fleet: &Fleet| {
                ready(fleet, 2).await
            })
            .await;
        fleet.register("rome").await;
        fleet
            .until("in three clusters", 60, async |fleet: &Fleet| {
                ready(fleet, 3).await
            })
            .await;
        for cluster in CLUSTERS {
            assert_eq!(fleet.tag(cluster, "all").await.as_deref(), Some("v1"));
            assert_eq!(fleet.assigned(cluster, "none").await, None);
        }
        let patch = json!({"spec": {"sync": {"source": {"git": {"version": {"tag": "v2"}}}}}});
        fleet.change("modules", "all", &patch).await;
        secs(5).await;
        assert_eq!(fleet.with_tag("all", "v2").await, 3);
        fleet.delete("modules", "all").await;
        fleet
            .until("gone", 60, async |fleet: &Fleet| {
                let is_gone = fleet.get("modules", "all").await.is_none();
                is_gone.then_some(())
            })
            .await;
        assert_eq!(fleet.assigned("berlin", "all").await, None);
        fleet
            .until("taken away in the cluster", 60, async |fleet: &Fleet| {
                fleet
                    .kustomization("berlin", "all")
                    .await
                    .is_none()
                    .then_some(())
            })
            .await;
    });
}
