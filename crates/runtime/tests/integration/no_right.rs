//! A missing right, and what looks like one.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;
use slipway_kernel::Purpose;
use slipway_kernel::fact::{Answer, Cause, Question, QuestionId, Request};
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use slipway_runtime::gather::{Gather, Gatherer};

use crate::role::{grant, grant_everywhere, rule};
use crate::stage::{Stage, alone, secs, virtually};
use crate::toy::Toy;
use crate::webhook::NoPods;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn asked(method: &'static str, path: &str) -> Question {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let id = QuestionId {
        controller: "toy",
        uid: "u".to_owned(),
        purpose: Purpose::new("ask"),
        attempt: 0,
        due: Timestamp::UNIX_EPOCH,
    };
    let request = Request::Api {
        method,
        path: path.to_owned(),
        body: if method == "POST" { map } else { Value::Null },
    };
    Question::new(id, request, Duration::from_secs(5))
}

/// On whose behalf.
fn key() -> Key {
    Key {
        cluster: ClusterId::local(),
        controller: "toy",
        namespace: "default".to_owned(),
        name: "k".to_owned(),
    }
}

fn weak(stage: &Stage) -> Gatherer {
    let service = stage.cluster.service("weak").with_agent("one");
    Gatherer::new(Client::new(service, "default"), Arc::new(NoPods))
}

/// What the API says when a quota is used up.
fn exhaust(stage: &Stage) {
    let about = Match {
        resource: "/configmaps".to_owned(),
        agent: "one".to_owned(),
        verb: "create".to_owned(),
        ..Match::default()
    };
    let text = "configmaps \"x\" is forbidden: exceeded quota: objects, requested: configmaps=1, used: configmaps=9, limited: configmaps=9";
    let status = Status::failure(403, "Forbidden", text);
    let fault = Fault::Refuse(Box::new(status));
    stage
        .cluster
        .faults()
        .add(about, Frequency::always(), fault);
}

fn reviews(stage: &Stage) -> usize {
    let all = stage.records(|r| r.resource.contains("selfsubjectaccessreviews"));
    all.len()
}

#[test]
fn a_missing_right_is_told_from_a_quota_by_the_apis_own_word() {
    virtually(async {
        let stage = Stage::new().await;
        let gatherer = weak(&stage);
        for (method, path) in [("GET", format!("{MAPS}/x")), ("POST", MAPS.to_owned())] {
            let answer = gatherer.gather(&key(), asked(method, &path)).await;
            assert!(
                matches!(&answer, Answer::NoRight(why) if why.contains("weak")),
                "{answer:?}"
            );
        }
        // Asked once in a while, not with every question.
        assert_eq!(reviews(&stage), 2);
        gatherer.gather(&key(), asked("POST", MAPS)).await;
        assert_eq!(reviews(&stage), 2);
        let maps = rule("", "configmaps", &["get", "create"]);
        grant(&stage, "maps", vec![maps]).await;
        exhaust(&stage);
        secs(11).await;
        let answer = gatherer.gather(&key(), asked("POST", MAPS)).await;
        assert!(
            matches!(&answer, Answer::Said { code: 403, body } if body.contains("exceeded quota")),
            "{answer:?}"
        );
    });
}

/// Who cannot be asked says nothing.
#[test]
fn without_an_answer_about_rights_none_counts_as_missing() {
    virtually(async {
        let stage = Stage::new().await;
        let about = Match {
            resource: "authorization.k8s.io/selfsubjectaccessreviews".to_owned(),
            ..Match::default()
        };
        stage.refuse(about, 403, "Forbidden", Frequency::always());
        let answer = weak(&stage).gather(&key(), asked("POST", MAPS)).await;
        assert!(
            matches!(answer, Answer::Said { code: 403, .. }),
            "{answer:?}"
        );
    });
}

/// The same for what plans write.
#[test]
fn a_write_that_a_quota_refuses_has_another_cause_than_one_without_the_right() {
    let cause = |is_granted: bool| {
        virtually(async {
            let stage = Stage::new().await;
            let mut verbs = vec!["get", "list", "watch"];
            if is_granted {
                verbs.push("patch");
            }
            let rules = vec![rule("", "configmaps", &verbs)];
            grant_everywhere(&stage, "toy", rules).await;
            if is_granted {
                let about = Match {
                    verb: "patch".to_owned(),
                    agent: "one".to_owned(),
                    ..Match::default()
                };
                stage.refuse(about, 403, "Forbidden", Frequency::always());
            }
            stage.map("a", json!({"want": "1"})).await;
            let replica = stage.start_weak(alone(), Toy::default());
            secs(5).await;
            let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "a");
            let refusal = replica.view.facts().refusals[&object].clone();
            (refusal.reason, refusal.cause)
        })
    };
    assert_eq!(cause(false), ("Forbidden".to_owned(), Cause::NoRight));
    assert_eq!(cause(true), ("Forbidden".to_owned(), Cause::Rejected));
}

/// A role lets maps be changed and neither read nor listed, since a moment ago; one answer is lost. It cannot be looked up, and after a
/// minute the API server is not at work on it any more.
#[test]
fn a_lost_answer_that_may_not_be_looked_up_stops_its_lane_for_a_minute_and_not_for_ever() {
    virtually(async {
        let stage = Stage::new().await;
        let maps = |verbs: &[&str]| rule("", "configmaps", verbs);
        let all = maps(&["get", "list", "watch", "patch"]);
        let events = rule("events.k8s.io", "events", &["create"]);
        grant_everywhere(&stage, "toy", vec![all, events.clone()]).await;
        let toy = Toy {
            budget: 1,
            ..Toy::default()
        };
        let _replica = stage.start_weak(alone(), toy);
        secs(5).await;
        let lost = Match {
            verb: "patch".to_owned(),
            name: "a".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        faults.add(lost, Frequency::once(), Fault::Lose);
        let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/toy";
        let rules = json!({"rules": [maps(&["watch", "patch"]), events]});
        stage.send("PATCH", role, &rules).await;
        for name in ["a", "b"] {
            stage.map(name, json!({"want": "1"})).await;
        }
        secs(55).await;
        assert_eq!(stage.have("a").await, "1", "its answer was lost");
        assert_eq!(stage.have("b").await, "", "never during this time");
        stage.until_have("b", "1", 120).await;
    });
}
