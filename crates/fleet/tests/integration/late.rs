//! What a Rollout waits for comes at last: it goes on at once, and not with the next heartbeat.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::stage::{Fleet, is_ready, rollout, secs, virtually};

fn waits_for(rollout: &Value, reason: &str) -> bool {
    let waiting = rollout["status"]["waitingFor"].as_array();
    waiting.is_some_and(|all| all.iter().any(|one| one["reason"] == reason))
}

/// The list of Assemblages is empty in a cluster that has just got their definition: no object of it says that it is there.
#[test]
fn a_rollout_goes_on_when_more_clusters_know_what_an_assemblage_is() {
    virtually(async {
        let fleet = Fleet::bare().await;
        fleet
            .make("rollouts", "web", &rollout("Incremental", "v1"))
            .await;
        secs(60).await;
        fleet.leaves["berlin"].define_assemblages().await;
        fleet
            .until("begun with one of three", 30, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                waits_for(&found, "TooManyUnreachable").then_some(())
            })
            .await;
        secs(60).await;
        assert_eq!(fleet.with_tag("web", "v1").await, 0);
        for cluster in ["paris", "rome"] {
            fleet.leaves[cluster].define_assemblages().await;
        }
        fleet.until_ready("web", 60).await;
        assert_eq!(fleet.with_tag("web", "v1").await, 3);
    });
}

/// A Rollout tells of what is on its way every five seconds at most; what the next plan rests on is written at once.
#[test]
fn a_version_that_takes_the_place_of_another_does_not_wait_for_a_status_to_have_its_turn() {
    virtually(async {
        let fleet = Fleet::settled("Incremental", "v1").await;
        fleet.roll("web", "bad-v2").await;
        fleet
            .until("a first cluster", 30, async |fleet: &Fleet| {
                (fleet.with_tag("web", "bad-v2").await == 1).then_some(())
            })
            .await;
        let began = Instant::now();
        fleet.roll("web", "v3").await;
        fleet
            .until("the next version", 30, async |fleet: &Fleet| {
                (fleet.with_tag("web", "v3").await == 1).then_some(())
            })
            .await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "it took {took:?}");
        fleet
            .until("ready", 60, async |fleet: &Fleet| {
                let found = fleet.get("rollouts", "web").await?;
                (is_ready(&found) && fleet.with_tag("web", "v3").await == 3).then_some(())
            })
            .await;
    });
}
