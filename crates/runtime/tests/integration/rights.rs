//! Missing rights and definitions turn features off, and nothing else.

use std::time::Duration;

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;
use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Need;

use crate::answers::{with_gadget, with_gadgets};
use crate::role::{grant, grant_everywhere, rule};
use crate::stage::{Stage, alone, one_of_many, only_one, secs, virtually};
use crate::toy::{GADGET, Toy, WIDGET};
use crate::webhook::guarding;

fn forbid(stage: &Stage, resource: &str) {
    forbid_to(stage, "", resource);
}

fn forbid_to(stage: &Stage, verb: &str, resource: &str) {
    let about = Match {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    };
    stage.refuse(about, 403, "Forbidden", Frequency::always());
}

/// All but Leases: the rights of the toy, and of the webhook beside it.
async fn grant_maps(stage: &Stage) {
    let maps = rule("", "configmaps", &["get", "list", "watch", "patch"]);
    let events = rule("events.k8s.io", "events", &["create"]);
    let namespaces = rule("", "namespaces", &["get"]);
    grant_everywhere(stage, "toy", vec![maps, events, namespaces]).await;
}

async fn grant_leases(stage: &Stage) {
    let verbs = &["get", "create", "update"];
    let leases = rule("coordination.k8s.io", "leases", verbs);
    grant_everywhere(stage, "leases", vec![leases]).await;
}

#[test]
fn without_the_right_to_a_lease_the_only_replica_acts() {
    virtually(async {
        let stage = Stage::new().await;
        grant_maps(&stage).await;
        stage.map("a", json!({"want": "1"})).await;
        let (replica, hook) = guarding(stage.weak_client("one"), only_one("one"));
        // One refusal may be an accident: not so when there has been nothing else for as long as a lease lasts.
        for _ in 0..14 {
            secs(1).await;
            assert!(replica.view.is_ready() && hook.is_answered().await);
        }
        assert_eq!(stage.have("a").await, "", "never during this time");
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready() && hook.is_answered().await);
        assert!(
            replica
                .view
                .metrics()
                .contains("slipway_feature_off{feature=\"lease toy\"} 1")
        );
        let before = stage.records(|r| r.resource.contains("leases")).len();
        secs(3_600).await;
        let asked = stage.records(|r| r.resource.contains("leases")).len() - before;
        assert!(asked <= 61, "{asked} in an hour: with every minute");
        // The right is given: the lease is used from then on.
        grant_leases(&stage).await;
        secs(301).await;
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
        stage.want("a", "2").await;
        stage.until_have("a", "2", 5).await;
        let last = stage.writes().last().unwrap().context.clone();
        assert!(last.contains("epoch=1;"), "{last}");
    });
}

/// Two replicas that may not use their Lease would both act.
#[test]
fn one_of_many_without_the_right_to_its_lease_does_nothing_and_says_so() {
    virtually(async {
        let stage = Stage::new().await;
        grant_maps(&stage).await;
        stage.map("a", json!({"want": "1"})).await;
        let (a, of_a) = guarding(stage.weak_client("one"), one_of_many("one"));
        let (b, of_b) = guarding(stage.weak_client("two"), one_of_many("two"));
        secs(600).await;
        assert!(stage.writes().is_empty(), "{:#?}", stage.writes());
        for (replica, hook) in [(&a, &of_a), (&b, &of_b)] {
            assert!(replica.view.is_ready() && replica.is_running());
            assert!(hook.is_answered().await);
            let text = replica.view.metrics();
            assert!(text.contains("slipway_feature_off{feature=\"lease toy\"} 1"));
            let why = replica.view.blockers();
            let why = why.iter().find(|b| b.reason == "LeaseUnusable").unwrap();
            assert!(why.message.contains("slipway-system/toy"), "{why:?}");
            assert!(why.message.contains("cannot get resource"), "{why:?}");
        }
        let events = "/apis/events.k8s.io/v1/namespaces/slipway-system/events";
        let told = stage.get(events).await;
        assert_eq!(told["items"].as_array().unwrap().len(), 2, "one each");
        assert_eq!(told["items"][0]["reason"], "LeaseUnusable");
        // The right is given: one of them acts.
        grant_leases(&stage).await;
        stage.until_have("a", "1", 60).await;
        // The other one looks again a little later.
        secs(5).await;
        assert!(a.view.is_leader("toy") != b.view.is_leader("toy"));
        let waits = [a.view.blockers(), b.view.blockers()].concat();
        assert!(!waits.iter().any(|b| b.reason == "LeaseUnusable"));
    });
}

/// What the API says of a quota that is used up has the code and the reason of a missing right.
fn exceeded(name: &str) -> Fault {
    let text = format!(
        "leases.coordination.k8s.io \"{name}\" is forbidden: exceeded quota: objects, requested: count/leases=1, used: count/leases=3, limited: count/leases=3"
    );
    Fault::Refuse(Box::new(Status::failure(403, "Forbidden", &text)))
}

/// A quota keeps one replica from its Lease, and another one has it tomorrow: not even the only one acts.
#[test]
fn a_quota_on_leases_is_no_missing_right() {
    virtually(async {
        let stage = Stage::new().await;
        let about = Match {
            verb: "create".to_owned(),
            resource: "coordination.k8s.io/leases".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        faults.add(about, Frequency::always(), exceeded("toy"));
        stage.map("a", json!({"want": "1"})).await;
        let (replica, hook) = guarding(stage.client("one"), only_one("one"));
        secs(600).await;
        assert!(stage.writes().is_empty(), "{:#?}", stage.writes());
        assert!(replica.view.is_ready() && replica.view.is_healthy());
        assert!(hook.is_answered().await);
        let why = replica.view.blockers();
        assert!(why.iter().any(|b| b.message.contains("exceeded quota")));
        stage.cluster.faults().clear();
        stage.until_have("a", "1", 5).await;
    });
}

/// 9: three refusals in 0.4 s at the start made a second leader, which nobody fenced off, for a minute.
#[test]
fn refusals_of_a_moment_make_no_second_leader() {
    for seconds in [1, 5, 14] {
        virtually(async {
            let stage = Stage::new().await;
            grant_maps(&stage).await;
            grant_leases(&stage).await;
            stage.map("a", json!({"want": "1"})).await;
            let a = stage.start_weak(only_one("a"), Toy::default());
            stage.until_have("a", "1", 5).await;
            forbid(&stage, "coordination.k8s.io/leases");
            let (b, hook) = guarding(stage.weak_client("one"), only_one("one"));
            for _ in 0..seconds * 10 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(!b.view.is_leader("toy"), "never during this time");
            }
            assert!(b.view.is_ready() && hook.is_answered().await);
            stage.cluster.faults().clear();
            for _ in 0..120 {
                secs(1).await;
                assert!(a.view.is_leader("toy") && !b.view.is_leader("toy"));
            }
        });
    }
}

#[test]
fn without_the_namespace_of_the_lease_the_only_replica_acts_and_no_other() {
    for (settings, acts) in [(only_one("one"), true), (one_of_many("one"), false)] {
        virtually(async {
            let stage = Stage::new().await;
            stage.map("a", json!({"want": "1"})).await;
            let mut settings = settings;
            settings.namespace = "nowhere".to_owned();
            let _replica = stage.start(settings, Toy::default());
            secs(20).await;
            assert_eq!(stage.have("a").await == "1", acts);
        });
    }
}

#[test]
fn a_right_that_is_lost_later_stops_the_leader_rather_than_making_two() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(one_of_many("one"), Toy::default());
        stage.until_have("a", "1", 5).await;
        forbid(&stage, "coordination.k8s.io/leases");
        secs(15).await;
        assert!(!replica.view.is_leader("toy"));
        stage.want("a", "2").await;
        secs(300).await;
        assert_eq!(stage.have("a").await, "1", "never during this time");
        stage.cluster.faults().clear();
        stage.until_have("a", "2", 40).await;
    });
}

#[test]
fn without_the_right_to_events_the_work_goes_on() {
    virtually(async {
        let stage = Stage::new().await;
        let maps = rule("", "configmaps", &["get", "list", "watch", "patch"]);
        grant_everywhere(&stage, "maps", vec![maps]).await;
        for n in 0..10 {
            stage.map(&format!("m{n}"), json!({"want": "1"})).await;
        }
        let replica = stage.start_weak(alone(), Toy::default());
        for n in 0..10 {
            stage.until_have(&format!("m{n}"), "1", 5).await;
        }
        secs(1).await;
        stage.want("m0", "2").await;
        stage.until_have("m0", "2", 5).await;
        assert!(replica.view.is_ready());
        assert!(
            replica
                .view
                .metrics()
                .contains("slipway_feature_off{feature=\"events\"} 1")
        );
        let asked = stage.records(|r| r.resource.contains("events")).len();
        assert!(
            asked <= 10,
            "{asked}: not asked again before the next heartbeat"
        );
        let events = rule("events.k8s.io", "events", &["create"]);
        grant_everywhere(&stage, "events", vec![events]).await;
        secs(301).await;
        stage.want("m0", "3").await;
        stage.until_have("m0", "3", 5).await;
        secs(1).await;
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
    });
}

pub(crate) const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn widgets() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.toy.dev"},
        "spec": {
            "group": "toy.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

#[test]
fn an_optional_kind_may_be_missing_come_and_go_e5() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        let off = "slipway_feature_off{feature=\"watch widgets\"} 1";
        assert!(replica.view.metrics().contains(off));
        assert!(replica.lacks("watch widgets"));
        secs(3_600).await;
        let asked = stage
            .records(|r| r.agent == "one" && r.uri.contains("widgets"))
            .len();
        assert!(asked <= 14, "{asked} in an hour");
        stage.create(DEFINITION, &widgets()).await;
        secs(302).await;
        assert!(!replica.view.metrics().contains(off));
        assert!(replica.view.facts().missing.is_empty());
        assert!(replica.view.is_ready());
    });
}

#[test]
fn an_optional_kind_that_is_forbidden_holds_up_nothing() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        grant_maps(&stage).await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = stage.start_weak(alone(), toy);
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.lacks("watch widgets"));
    });
}

/// An authorizer that does not answer forbids as well, and what the kind could forbid would go on.
#[test]
fn a_refusal_that_is_no_missing_right_makes_no_kind_absent() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        forbid(&stage, "toy.dev/widgets");
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        for _ in 0..60 {
            secs(1).await;
            assert!(!replica.lacks("watch widgets"));
        }
        assert!(stage.writes().is_empty(), "nobody knows whether there are");
        assert!(replica.view.is_ready());
        stage.cluster.faults().clear();
        stage.until_have("a", "1", 10).await;
        assert!(!replica.lacks("watch widgets"));
    });
}

#[test]
fn a_right_that_is_missing_in_one_namespace_is_there_in_another() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
        stage.create("/api/v1/namespaces", &other).await;
        secs(1).await;
        grant_maps(&stage).await;
        let widgets = rule("toy.dev", "widgets", &["list", "watch"]);
        grant(&stage, "widgets", vec![widgets.clone()]).await;
        let widget =
            json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
        for namespace in ["default", "other"] {
            stage.create(&WIDGET.path(namespace), &widget).await;
        }
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let mut settings = alone();
        settings.namespaces = vec!["default".to_owned(), "other".to_owned()];
        let replica = stage.start_weak(settings, toy);
        stage.until_have("a", "1", 5).await;
        let known = || {
            let stores = replica.view.stores();
            let mut all = stores.iter();
            let (_, store) = all.find(|((_, kind, _), _)| *kind == WIDGET)?;
            store.is_synced().then(|| store.len())
        };
        let absent_in = |namespace| {
            let facts = replica.view.facts();
            facts.is_absent_in(&ClusterId::local(), &WIDGET, namespace)
        };
        for _ in 0..60 {
            assert!(!absent_in("default") && absent_in("other"));
            let facts = replica.view.facts();
            assert!(!facts.is_absent(&ClusterId::local(), &WIDGET));
            assert_eq!(known(), Some(1), "what may be seen is known");
            assert!(replica.lacks("watch widgets"), "and it is shown");
            secs(1).await;
        }
        grant_everywhere(&stage, "widgets", vec![widgets]).await;
        secs(301).await;
        assert!(!absent_in("other") && !replica.lacks("watch widgets"));
        assert_eq!(known(), Some(2));
    });
}

/// What is under way at the moment still counts against budgets (found by seed 4096 of the simulation).
#[test]
fn a_kind_that_may_not_be_seen_any_more_is_not_forgotten() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        let widget =
            json!({"apiVersion": "toy.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
        stage
            .create("/apis/toy.dev/v1/namespaces/default/widgets", &widget)
            .await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        let known = || {
            let stores = replica.view.stores();
            let mut all = stores.iter();
            all.any(|((_, kind, _), store)| {
                kind.plural == "widgets" && store.is_synced() && store.len() == 1
            })
        };
        assert!(known());
        forbid(&stage, "toy.dev/widgets");
        secs(400).await;
        assert!(known(), "what was seen last counts");
        let missing = replica.view.facts().missing;
        assert!(replica.lacks("see widgets"), "{missing:?}");
        assert!(replica.view.is_ready());
        stage.cluster.faults().clear();
        secs(60).await;
        assert!(replica.view.facts().missing.is_empty());
    });
}

/// The capability is told so: it must not take it for "there are none".
#[test]
fn a_kind_that_is_defined_and_may_not_be_seen_is_a_fact_and_no_obstacle() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        forbid(&stage, "toy.dev/widgets");
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::RequiredIfServed),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        let off = "slipway_feature_off{feature=\"see widgets\"} 1";
        for _ in 0..60 {
            assert!(replica.view.is_ready());
            assert!(replica.view.metrics().contains(off));
            assert!(!replica.lacks("watch widgets"));
            secs(2).await;
        }
        stage.cluster.faults().clear();
        secs(31).await;
        assert!(!replica.view.metrics().contains(off));
        assert!(replica.view.facts().missing.is_empty());
    });
}

#[test]
fn a_kind_that_is_defined_nowhere_holds_up_nothing() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::RequiredIfServed),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.lacks("watch widgets"));
    });
}

#[test]
fn a_kind_that_is_needed_makes_it_wait_unready() {
    virtually(async {
        let stage = Stage::new().await;
        forbid(&stage, "/configmaps");
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        secs(120).await;
        assert!(!replica.view.is_ready());
        assert!(stage.writes().is_empty());
        stage.cluster.faults().clear();
        stage.until_have("a", "1", 40).await;
        assert!(replica.view.is_ready());
    });
}

#[test]
fn only_watched_namespaces_are_seen() {
    virtually(async {
        let stage = Stage::new().await;
        for name in ["x", "y"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            stage.create("/api/v1/namespaces", &namespace).await;
        }
        for name in ["default", "x", "y"] {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"want": "1"}});
            stage
                .create(&format!("/api/v1/namespaces/{name}/configmaps"), &map)
                .await;
        }
        let mut settings = alone();
        settings.namespaces = vec!["x".to_owned(), "y".to_owned()];
        let _replica = stage.start(settings, Toy::default());
        secs(10).await;
        let written: Vec<String> = stage.writes().iter().map(|w| w.namespace.clone()).collect();
        assert_eq!(written, ["x", "y"]);
        // One namespace is listed again: the other one's objects stay.
        secs(3_600).await;
        assert_eq!(stage.writes().len(), 2);
        let wide =
            stage.records(|r| r.agent == "one" && r.verb == "list" && r.namespace.is_empty());
        assert!(wide.is_empty(), "{wide:#?}");
    });
}

#[test]
fn where_a_status_cannot_be_patched_it_is_replaced() {
    virtually(async {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let stage = with_gadget(open, json!({"status": {}})).await;
        let path = format!("{}/g", GADGET.path("default"));
        let kept = json!({"status": {"others": "words"}});
        stage.send("PATCH", &format!("{path}/status"), &kept).await;
        forbid_to(&stage, "patch", "toy.dev/gadgets/status");
        let replica = stage.start(alone(), with_gadgets());
        secs(5).await;
        let status = stage.get(&path).await["status"].clone();
        assert_eq!(
            (&status["seen"], &status["others"]),
            (&json!(2), &json!("words"))
        );
        let off = "slipway_feature_off{feature=\"patch gadgets/status\"} 1";
        assert!(replica.view.metrics().contains(off));
        assert!(replica.view.is_ready());
        for size in 3..6 {
            let spec = json!({"spec": {"size": size}});
            stage.send("PATCH", &path, &spec).await;
            secs(6).await;
            assert_eq!(stage.get(&path).await["status"]["seen"], size);
        }
        let tried = || {
            let all = stage.records(|r| r.agent == "one" && r.verb == "patch");
            all.len()
        };
        assert_eq!(tried(), 1, "remembered");
        // The right is given: it is used from then on.
        stage.cluster.faults().clear();
        secs(301).await;
        stage
            .send("PATCH", &path, &json!({"spec": {"size": 7}}))
            .await;
        secs(6).await;
        assert_eq!(stage.get(&path).await["status"]["seen"], 7);
        assert_eq!(tried(), 2);
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
    });
}

#[test]
fn a_status_is_not_replaced_on_an_object_that_has_changed_meanwhile() {
    virtually(async {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let stage = with_gadget(open, json!({"status": {}})).await;
        let path = format!("{}/g", GADGET.path("default"));
        forbid_to(&stage, "patch", "toy.dev/gadgets/status");
        let late = Match {
            verb: "update".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        let faults = stage.cluster.faults();
        let delay = Fault::Delay(Duration::from_secs(2));
        faults.add(late, Frequency::once(), delay);
        let _replica = stage.start(alone(), with_gadgets());
        secs(1).await;
        let said = json!({"status": {"others": "words"}});
        stage.send("PATCH", &format!("{path}/status"), &said).await;
        stage
            .send("PATCH", &path, &json!({"spec": {"size": 9}}))
            .await;
        secs(10).await;
        let status = stage.get(&path).await["status"].clone();
        assert_eq!(
            (&status["seen"], &status["others"]),
            (&json!(9), &json!("words"))
        );
    });
}

#[test]
fn where_a_kind_cannot_be_watched_it_is_listed_again_and_again() {
    virtually(async {
        let stage = Stage::new().await;
        forbid_to(&stage, "watch", "/configmaps");
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 6).await;
        secs(60).await;
        assert!(replica.view.is_ready() && replica.view.is_healthy());
        let off = "slipway_feature_off{feature=\"stream configmaps\"} 1";
        assert!(replica.view.metrics().contains(off));
        assert!(!replica.lacks("watch configmaps"));
        for value in ["2", "3"] {
            stage.want("a", value).await;
            stage.until_have("a", value, 6).await;
        }
        let before = stage.records(|r| r.agent == "one").len();
        secs(600).await;
        let asked = stage.records(|r| r.agent == "one").len() - before;
        assert!((100..=130).contains(&asked), "{asked} in ten minutes");
        assert_eq!(stage.writes().len(), 3, "a list without news is no work");
        // The right is given: within a heartbeat it is used.
        stage.cluster.faults().clear();
        secs(320).await;
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
        stage.want("a", "4").await;
        let took = stage.until_have("a", "4", 2).await;
        assert!(took.as_millis() < 1_000, "{took:?}");
    });
}
