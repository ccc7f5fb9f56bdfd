//! Incremental: one cluster first, then within the budget; a bad version stops at the first, and is healed by the next.

use serde_json::{Value, json};

use crate::stage::{CLUSTERS, Fleet, is_ready, of_cluster, secs, virtually};

/// How many clusters have the tag and are not ready with it.
async fn unready(fleet: &Fleet, tag: &str) -> usize {
    let mut count = 0;
    for cluster in CLUSTERS {
        if fleet.tag(cluster, "web").await.as_deref() != Some(tag) {
            continue;
        }
        let found = fleet.get("remoteassemblages", cluster).await.unwrap();
        let told = &found["status"]["syncs"][0];
        let entry = &found["spec"]["assemblage"]["syncs"][0];
        let is_there =
            told["state"] == "succeeded" && told["observedRevision"] == entry["revision"];
        count += usize::from(!is_there);
    }
    count
}

#[test]
fn a_change_reaches_one_cluster_first_and_then_the_others_within_the_budget() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        let mut uids = Vec::new();
        for cluster in CLUSTERS {
            assert_eq!(fleet.tag(cluster, "web").await.as_deref(), Some("v1"));
            let made = fleet.kustomization(cluster, "web").await.unwrap();
            uids.push(made["metadata"]["uid"].clone());
        }
        let before = fleet.hub.writes().len();
        fleet.roll("web", "v2").await;
        let mut seen = Vec::new();
        fleet
            .until("v2 everywhere", 60, async |fleet: &Fleet| {
                let unready = unready(fleet, "v2").await;
                assert!(unready <= 1, "{unready} are unready at once");
                let count = fleet.with_tag("web", "v2").await;
                if seen.last() != Some(&count) {
                    seen.push(count);
                }
                let found = fleet.get("rollouts", "web").await?;
                (count == 3 && is_ready(&found)).then_some(())
            })
            .await;
        assert_eq!(seen, [0, 1, 2, 3]);
        for (cluster, uid) in CLUSTERS.iter().zip(uids) {
            let made = fleet.kustomization(cluster, "web").await.unwrap();
            assert_eq!(made["metadata"]["uid"], uid, "another Kustomization");
        }
        // One write for each switch.
        let writes = fleet.hub.writes().split_off(before);
        let switches = writes
            .iter()
            .filter(|write| write.context.contains("purpose=assign"));
        assert_eq!(switches.count(), 3, "{writes:#?}");
        let found = fleet.get("rollouts", "web").await.unwrap();
        let history = found["status"]["history"].as_array().unwrap();
        assert_eq!(history.len(), 2);
        assert!(history.iter().all(|past| past["outcome"] == "Succeeded"));
        // Old sources are collected.
        for cluster in CLUSTERS {
            let path = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories";
            assert_eq!(fleet.leaves[cluster].list(path).await.len(), 1);
        }
    });
}

#[test]
fn a_bad_version_stops_at_the_first_cluster_and_the_next_one_mends_it() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet.roll("web", "bad-v2").await;
        let canary = fleet
            .until("stopped at the canary", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                let canary = found["status"]["run"]["canary"].as_str()?;
                let told = of_cluster(&found, canary);
                (told["state"] == "Failed").then(|| canary.to_owned())
            })
            .await;
        secs(600).await;
        assert_eq!(fleet.with_tag("web", "bad-v2").await, 1);
        assert_eq!(fleet.with_tag("web", "v1").await, 2);
        let found = fleet.get("rollouts", "web").await.unwrap();
        assert!(!is_ready(&found));
        assert_eq!(found["status"]["waitingFor"][0]["reason"], "CanaryFailed");
        assert_eq!(
            found["status"]["waitingFor"][0]["object"]["name"],
            canary.as_str()
        );
        // What was applied before is what the others still have.
        fleet.roll("web", "v3").await;
        let found = fleet.until_ready("web", 60).await;
        assert_eq!(fleet.with_tag("web", "v3").await, 3);
        let history = found["status"]["history"].as_array().unwrap();
        let outcomes: Vec<&Value> = history.iter().map(|past| &past["outcome"]).collect();
        assert_eq!(outcomes, ["Succeeded", "Superseded", "Succeeded"]);
    });
}

#[test]
fn a_source_that_cannot_be_fetched_stops_at_the_first_cluster_and_changes_nothing_there() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet.roll("web", "missing").await;
        secs(120).await;
        assert_eq!(fleet.with_tag("web", "missing").await, 1);
        for cluster in CLUSTERS {
            let made = fleet.kustomization(cluster, "web").await.unwrap();
            let applied = made["status"]["lastAppliedRevision"].as_str().unwrap();
            assert!(applied.starts_with("v1@"), "{applied}");
            assert_eq!(made["metadata"]["generation"], 1);
        }
    });
}

#[test]
fn when_nothing_is_to_be_done_nothing_is_written() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        secs(60).await;
        let count = |fleet: &Fleet| {
            let leaves: usize = fleet.leaves.values().map(|leaf| leaf.writes().len()).sum();
            fleet.hub.writes().len() + leaves
        };
        let before = count(&fleet);
        fleet.stop_flux();
        secs(3_600).await;
        let writes = fleet.hub.writes();
        assert_eq!(count(&fleet), before, "{:#?}", writes.last());
    });
}

#[test]
fn a_paused_rollout_changes_nothing_and_goes_on_where_it_was() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet
            .change("rollouts", "web", &json!({"spec": {"paused": true}}))
            .await;
        fleet.roll("web", "v2").await;
        secs(120).await;
        assert_eq!(fleet.with_tag("web", "v2").await, 0);
        fleet
            .change("rollouts", "web", &json!({"spec": {"paused": false}}))
            .await;
        fleet.until_ready("web", 60).await;
        assert_eq!(fleet.with_tag("web", "v2").await, 3);
    });
}

#[test]
fn a_new_process_goes_on_where_the_last_one_was() {
    virtually(async {
        let mut fleet = Fleet::settled("Incremental", "v1").await;
        fleet.roll("web", "v2").await;
        fleet
            .until("the canary has it", 30, async |fleet: &Fleet| {
                (fleet.with_tag("web", "v2").await == 1).then_some(())
            })
            .await;
        fleet.replica = None;
        secs(30).await;
        assert_eq!(fleet.with_tag("web", "v2").await, 1);
        fleet.start();
        let mut most = 0;
        fleet
            .until("v2 everywhere", 120, async |fleet: &Fleet| {
                most = most.max(unready(fleet, "v2").await);
                let found = fleet.get("rollouts", "web").await?;
                (fleet.with_tag("web", "v2").await == 3 && is_ready(&found)).then_some(())
            })
            .await;
        assert!(most <= 1, "{most}");
    });
}
