//! A cluster is known by the uid of its `kube-system` namespace, and nothing is written into another one.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_runtime::{Members, Settings};

use super::BAD;
use super::flock::Flock;
use super::herd::{Herd, NAME};
use super::stage::Fleet;
use crate::records::Records;
use crate::stage::{Replica, Stage, alone, secs, virtually};

pub(super) async fn uid(stage: &Stage) -> String {
    let namespace = stage.get("/api/v1/namespaces/kube-system").await;
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[test]
fn the_uid_of_a_member_is_recorded_before_anything_is_written_there() {
    virtually(async {
        let fleet = Fleet::new().await;
        let _replica = fleet.start(alone(), Herd::default());
        fleet.until(BAD, "1", 5).await;
        let recorded = fleet.home.entry(BAD, "uid").await;
        assert_eq!(recorded, Some(uid(&fleet.members[BAD]).await));
    });
}

#[test]
fn another_cluster_behind_the_same_name_gets_no_write_until_a_person_confirms_it() {
    virtually(async {
        let (mut fleet, replica, usual) = Fleet::running().await;
        let other = Stage::seeded(99).await;
        fleet.lines.lead(BAD, &other.cluster);
        let former = fleet.members.insert(BAD.to_owned(), other).unwrap();
        fleet.want(BAD, "29").await;
        fleet.goes_on(usual).await;
        assert_eq!(fleet.writes(BAD), 0, "nobody has confirmed it");
        assert_eq!(fleet.state(BAD).await, "ClusterReplaced");
        let blockers = replica.view.blockers();
        let replaced = blockers
            .iter()
            .find(|b| b.reason == "ClusterReplaced")
            .unwrap();
        let new = uid(&fleet.members[BAD]).await;
        assert!(
            replaced
                .unblock
                .ends_with(&format!("{CONFIRM_CLUSTER}={new}"))
        );
        let confirm = json!({"metadata": {"annotations": {CONFIRM_CLUSTER: new}}});
        fleet.patch(BAD, confirm).await;
        fleet.until(BAD, "29", 10).await;
        secs(1).await;
        assert_eq!(fleet.home.entry(BAD, "uid").await, Some(new));
        assert_eq!(
            former.have(NAME).await,
            "usual",
            "the former one is not written to"
        );
    });
}

/// Two writes of a plan are under way, and twenty wait, when the member is shut down in good order: what was sent is answered, and the
/// next connection leads to a cluster that takes its time to say who it is.
#[test]
fn another_cluster_behind_the_same_name_gets_nothing_of_a_plan_that_is_being_carried_out() {
    virtually(async {
        let fleet = Fleet::new().await;
        let settings = Settings {
            concurrency: 2,
            ..alone()
        };
        let herd = Herd {
            lambs: 20,
            ..Herd::default()
        };
        let _replica = fleet.start(settings, herd);
        fleet.until(BAD, "1", 20).await;
        secs(20).await;
        let other = Stage::seeded(99).await;
        let late = |stage: &Stage, about: Match, by: u64| {
            let delay = Fault::Delay(Duration::from_secs(by));
            let faults = stage.cluster.faults();
            faults.add(about, Frequency::always(), delay);
        };
        let writes = Match {
            verb: "patch".to_owned(),
            ..Match::default()
        };
        late(&fleet.members[BAD], writes, 2);
        late(&other, super::silence::identity(), 5);
        let before = fleet.writes(BAD);
        fleet.want(BAD, "2").await;
        secs(1).await;
        fleet.lines.hand_over(BAD, &other.cluster);
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
        secs(60).await;
        assert_eq!(fleet.writes(BAD), before + 2, "those were under way");
        let written = other.records(|r| r.context.starts_with("controller=herd"));
        assert!(written.is_empty(), "{written:?}");
    });
}

/// Whoever writes has to know it, and six who write at once need not ask six times.
#[test]
fn a_member_is_asked_once_for_all_that_a_plan_writes_there() {
    virtually(async {
        let fleet = Fleet::new().await;
        let settings = Settings {
            members: Members {
                // It is asked for nothing else meanwhile.
                check: Duration::from_mins(10),
                ..Members::default()
            },
            ..alone()
        };
        let herd = Herd {
            lambs: 5,
            ..Herd::default()
        };
        let _replica = fleet.start(settings, herd);
        fleet.until(BAD, "1", 20).await;
        // What it said then counts no more.
        secs(15).await;
        let asked = || {
            let questions = fleet.members[BAD].records(|record| {
                record.agent == "one" && record.verb == "get" && record.name == "kube-system"
            });
            questions.len()
        };
        let (before, written) = (asked(), fleet.writes(BAD));
        fleet.want(BAD, "2").await;
        fleet.until(BAD, "2", 5).await;
        secs(1).await;
        assert_eq!((asked() - before, fleet.writes(BAD) - written), (1, 6));
    });
}

#[test]
fn a_cluster_that_comes_back_in_the_place_of_another_one_goes_on_without_a_person() {
    virtually(async {
        let fleet = Fleet::new().await;
        let _replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        let other = Stage::seeded(99).await;
        fleet.lines.lead(BAD, &other.cluster);
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
        fleet.want(BAD, "2").await;
        fleet.lines.lead(BAD, &fleet.members[BAD].cluster);
        fleet.until(BAD, "2", 60).await;
        assert_eq!(other.have(NAME).await, "");
    });
}

#[test]
fn where_the_uid_may_not_be_read_nothing_is_written_and_the_right_is_named() {
    virtually(async {
        let fleet = Fleet::new().await;
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
        grant(&fleet.members[BAD], "herd", &rules).await;
        fleet.rotate(BAD, "weak").await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "ClusterUnidentified", 10).await;
        secs(300).await;
        assert_eq!(fleet.writes(BAD), 0);
        let blockers = replica.view.blockers();
        let hidden = blockers
            .iter()
            .find(|b| b.reason == "ClusterUnidentified")
            .unwrap();
        assert!(
            hidden.unblock.contains("get namespaces kube-system"),
            "{}",
            hidden.unblock
        );
        let rules = json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
        ]);
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/herd";
        let role = json!({"rules": rules});
        fleet.members[BAD].send("PATCH", path, &role).await;
        fleet.until(BAD, "1", 60).await;
    });
}

/// Grants the weak user of a cluster something.
pub(super) async fn grant(stage: &Stage, name: &str, rules: &serde_json::Value) {
    let api = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules,
    });
    let root = format!("/apis/{api}/v1");
    stage.create(&format!("{root}/clusterroles"), &role).await;
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": "weak"}],
    });
    let path = format!("{root}/clusterrolebindings");
    stage.create(&path, &binding).await;
}

#[test]
fn credentials_that_are_revoked_stop_a_member_and_new_ones_start_it_again() {
    virtually(async {
        let fleet = Fleet::new().await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "Ready", 5).await;
        fleet.rotate(BAD, "nobody").await;
        fleet.until_state(BAD, "CredentialsRefused", 60).await;
        fleet.want(BAD, "2").await;
        secs(60).await;
        assert_eq!(fleet.members[BAD].have(NAME).await, "1");
        fleet.rotate(BAD, crate::stage::ADMIN).await;
        fleet.until(BAD, "2", 10).await;
        fleet.rotate(BAD, "").await;
        fleet.until_state(BAD, "CredentialsMissing", 10).await;
        let blockers = replica.view.blockers();
        let missing = blockers
            .iter()
            .find(|b| b.reason == "CredentialsMissing")
            .unwrap();
        assert!(
            missing.unblock.contains("Secret default/north"),
            "{}",
            missing.unblock
        );
    });
}

/// What people without a right to Secrets can read where an operator writes.
async fn readable(stage: &Stage) -> String {
    let mut all = String::new();
    for path in [
        "/api/v1/configmaps",
        "/api/v1/events",
        "/apis/events.k8s.io/v1/events",
        "/apis/coordination.k8s.io/v1/leases",
    ] {
        all += &stage.get(path).await.to_string();
    }
    all
}

/// A token that is refused, and one that is none: what is made of either is told in every way there is.
#[test]
fn what_is_out_of_a_secret_is_in_no_fact_store_blocker_metric_log_line_or_object() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    virtually(async {
        let fleet = Fleet::new().await;
        let marker = "marker-out-of-a-secret";
        fleet.rotate(BAD, marker).await;
        let replica = fleet.start(alone(), Herd::default());
        fleet.until_state(BAD, "CredentialsRefused", 60).await;
        let mut seen = format!(
            "{:?} {:?} {:?} {}",
            replica.view.facts(),
            replica.view.stores(),
            replica.view.blockers(),
            replica.view.metrics()
        );
        let path = format!("/api/v1/namespaces/default/secrets/{BAD}");
        let body = json!({"data": {"token": null, "other": STANDARD.encode(marker)}});
        fleet.home.send("PATCH", &path, &body).await;
        fleet.until_state(BAD, "CredentialsMissing", 60).await;
        let (facts, blockers) = (replica.view.facts(), replica.view.blockers());
        seen.extend([format!("{facts:?}"), format!("{blockers:?}")]);
        seen += &readable(&fleet.home).await;
        for member in fleet.members.values() {
            seen += &readable(member).await;
        }
        let logged = records.all();
        assert!(
            logged
                .iter()
                .any(|line| line.contains("CredentialsMissing"))
        );
        // The server is of this process and tells what it is sent; whoever runs the operator does not run it.
        let ours = logged
            .iter()
            .filter(|line| !line.starts_with("slipway_apiserver"));
        seen.extend(ours.map(String::as_str));
        for form in [marker, &STANDARD.encode(marker)] {
            assert!(!seen.contains(form), "{form} is told");
        }
    });
}

/// A question is under way when another cluster takes the place of the one that was asked: the answer is no fact of that one, which
/// is asked itself.
#[test]
fn what_the_former_cluster_is_still_asked_is_no_fact_of_the_one_in_its_place() {
    virtually(async {
        let (mut fleet, _replica, _) = Fleet::running().await;
        let other = Stage::seeded(99).await;
        for (stage, who) in [(&fleet.members[BAD], "former"), (&other, "latter")] {
            stage.map("who", json!({"who": who})).await;
        }
        let question = Match {
            agent: "one".to_owned(),
            verb: "get".to_owned(),
            name: "who".to_owned(),
            ..Match::default()
        };
        let late = Fault::Delay(Duration::from_secs(100));
        let faults = fleet.members[BAD].cluster.faults();
        faults.add(question, Frequency::always(), late);
        fleet.patch(BAD, json!({"data": {"asks": "yes"}})).await;
        secs(1).await;
        fleet.lines.lead(BAD, &other.cluster);
        let former = fleet.members.insert(BAD.to_owned(), other).unwrap();
        fleet.until_state(BAD, "ClusterReplaced", 60).await;
        let new = uid(&fleet.members[BAD]).await;
        let confirm = json!({"metadata": {"annotations": {CONFIRM_CLUSTER: new}}});
        fleet.patch(BAD, confirm).await;
        fleet.until(BAD, "usual", 30).await;
        let told = async |stage: &Stage| stage.entry(NAME, "told").await.unwrap_or_default();
        let mut waited = 0;
        while told(&fleet.members[BAD]).await.is_empty() {
            assert!(waited < 120, "nobody is asked");
            secs(1).await;
            waited += 1;
        }
        assert_eq!(told(&fleet.members[BAD]).await, "latter");
        assert_eq!(told(&former).await, "");
    });
}

/// Two capabilities name one cluster, each by an object of its own, and both have recorded it. Another one takes its place, and a
/// person confirms that to one of them.
async fn confirmed_to_one(object: &str) -> (String, String) {
    let mut fleet = Fleet::new().await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "flock", "labels": {"flock": "true"}},
        "data": {"cluster": BAD, "want": "1"},
    });
    let path = "/api/v1/namespaces/default/configmaps";
    fleet.home.create(path, &map).await;
    let operator = fleet.operator(alone());
    let operator = operator.with(Arc::new(Herd::default()));
    let _replica = Replica::run(operator.with(Arc::new(Flock)));
    fleet.until(BAD, "1", 10).await;
    fleet.members[BAD].until_have("flock", "1", 10).await;
    let other = Stage::seeded(99).await;
    fleet.lines.lead(BAD, &other.cluster);
    fleet.members.insert(BAD.to_owned(), other);
    fleet.until_state(BAD, "ClusterReplaced", 60).await;
    let new = uid(&fleet.members[BAD]).await;
    let confirm = json!({"metadata": {"annotations": {CONFIRM_CLUSTER: new}}});
    fleet.patch(object, confirm).await;
    secs(60).await;
    let stage = &fleet.members[BAD];
    (stage.have(NAME).await, stage.have("flock").await)
}

#[test]
fn what_a_person_confirms_to_one_capability_opens_a_cluster_to_no_other() {
    let both = |herd: &str, flock: &str| (herd.to_owned(), flock.to_owned());
    assert_eq!(virtually(confirmed_to_one("flock")), both("", "1"));
    assert_eq!(virtually(confirmed_to_one(BAD)), both("1", ""));
}
