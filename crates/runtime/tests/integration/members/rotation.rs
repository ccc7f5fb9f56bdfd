//! Credentials that change, or are taken away, while something is under way: nothing is done with the former ones any more.

use std::time::Duration;

use serde_json::json;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_apiserver::faults::{Fault, Frequency, Match};

use super::BAD;
use super::herd::{Herd, NAME};
use super::identity::{grant, uid};
use super::line::Mode;
use super::stage::Fleet;
use crate::records::Records;
use crate::stage::{ADMIN, Stage, alone, secs, virtually};

/// What the replica sends about an object of this name is late.
fn late(stage: &Stage, verb: &str, resource: &str, by: u64) {
    let about = Match {
        agent: "one".to_owned(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        ..Match::default()
    };
    let delay = Fault::Delay(Duration::from_secs(by));
    let faults = stage.cluster.faults();
    faults.add(about, Frequency::always(), delay);
}

/// The Secret is being read when the person confirms the cluster that it leads to. What is watched from then on is watched with
/// what is in it: the former credentials can be revoked, which was the point.
#[test]
fn credentials_that_come_while_a_cluster_is_confirmed_are_those_that_it_is_watched_with() {
    virtually(async {
        let mut fleet = Fleet::new().await;
        let other = Stage::seeded(99).await;
        let rules = json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        ]);
        for stage in [&fleet.members[BAD], &other] {
            grant(stage, "herd", &rules).await;
        }
        fleet.rotate(BAD, "weak").await;
        let _replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 10).await;
        fleet.lines.lead(BAD, &other.cluster);
        fleet.members.insert(BAD.to_owned(), other);
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
        late(&fleet.home, "get", "/secrets", 5);
        fleet.rotate(BAD, ADMIN).await;
        secs(1).await;
        let stage = &fleet.members[BAD];
        let confirm = json!({"metadata": {"annotations": {CONFIRM_CLUSTER: uid(stage).await}}});
        fleet.patch(BAD, confirm).await;
        fleet.until(BAD, "1", 30).await;
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/herd";
        stage.send("DELETE", role, &json!(null)).await;
        fleet.lines.set(BAD, Mode::Refused);
        secs(1).await;
        fleet.lines.set(BAD, Mode::Up);
        fleet.want(BAD, "2").await;
        fleet.until(BAD, "2", 60).await;
        fleet.until_state(BAD, "Ready", 10).await;
    });
}

/// As people do after a restore. What is watched with the new ones is listed anew, and nothing waits for the lists of before.
#[test]
fn credentials_that_change_while_a_restored_member_is_listed_leave_no_blocker_of_that() {
    virtually(async {
        let (fleet, replica, _) = Fleet::running().await;
        let stage = &fleet.members[BAD];
        let before = stage.cluster.snapshot();
        for round in ["a", "b", "c"] {
            fleet.follow(&[BAD], round).await;
        }
        late(stage, "list", "/configmaps", 8);
        stage.cluster.restore(&before);
        fleet.want(BAD, "after").await;
        let is_said = || {
            let blockers = replica.view.blockers();
            blockers.iter().any(|b| b.reason == "StorageRestored")
        };
        let mut waited = 0;
        while !is_said() {
            assert!(waited < 600, "nobody has noticed");
            tokio::time::sleep(Duration::from_millis(100)).await;
            waited += 1;
        }
        let path = format!("/api/v1/namespaces/default/secrets/{BAD}");
        let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
        fleet.home.send("PATCH", &path, &touched).await;
        secs(1).await;
        stage.cluster.faults().clear();
        fleet.until(BAD, "after", 30).await;
        // What was restored is noticed once more, by the new watches, and listed at once: the list of before was never made.
        fleet.until_state(BAD, "Ready", 30).await;
        secs(10).await;
        assert!(!is_said(), "{:?}", replica.view.blockers());
    });
}

/// A write is under way when the Secret is deleted, to take the right away; what is told of it afterwards asks the member who it
/// is, and opens it to nobody.
#[test]
fn nothing_is_done_with_credentials_that_are_not_there_any_more() {
    virtually(async {
        let (fleet, _replica, _) = Fleet::running().await;
        secs(20).await;
        let stage = &fleet.members[BAD];
        late(stage, "patch", "/configmaps", 3);
        let last = json!({"data": {"want": "2", "tells": "that it is so"}});
        fleet.patch(BAD, last).await;
        secs(1).await;
        let secret = format!("/api/v1/namespaces/default/secrets/{BAD}");
        fleet.home.send("DELETE", &secret, &json!(null)).await;
        fleet.until_state(BAD, "CredentialsMissing", 5).await;
        secs(5).await;
        stage.cluster.faults().clear();
        fleet.want(BAD, "3").await;
        for _ in 0..90 {
            secs(1).await;
            assert_ne!(stage.have(NAME).await, "3");
            assert_eq!(fleet.state(BAD).await, "CredentialsMissing");
        }
        fleet.credentials(BAD, ADMIN).await;
        fleet.until(BAD, "3", 20).await;
    });
}

/// A person makes the Secret that there was none of, and it is of no use: that is what they have to hear.
#[test]
fn what_is_wrong_with_credentials_now_is_said_and_logged_and_not_what_was_wrong_first() {
    virtually(async {
        let records = Records::default();
        let _guard = tracing::subscriber::set_default(records.clone());
        let (fleet, replica, _) = Fleet::running().await;
        let secret = format!("/api/v1/namespaces/default/secrets/{BAD}");
        fleet.home.send("DELETE", &secret, &json!(null)).await;
        fleet.until_state(BAD, "CredentialsMissing", 5).await;
        let said = |what: &str| {
            let blockers = replica.view.blockers();
            let mut missing = blockers.iter().filter(|b| b.reason == "CredentialsMissing");
            missing.any(|b| b.message.contains(what))
        };
        assert!(said("there is none"), "{:?}", replica.view.blockers());
        fleet.credentials(BAD, "").await;
        secs(5).await;
        let what = "there is nothing in it";
        assert!(said(what) && !said("there is none"));
        let logged = records.all();
        assert!(logged.iter().any(|line| line.contains(what)));
        assert_eq!(fleet.state(BAD).await, "CredentialsMissing");
    });
}
