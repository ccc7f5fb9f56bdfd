//! Missing rights and definitions turn features off, and nothing else (rule 12).

use serde_json::json;
use slipway_apiserver::faults::{Fault, Frequency, Match};
use slipway_apiserver::status::Status;
use slipway_kernel::interest::Need;

use crate::stage::{Stage, alone, one_of_many, secs, virtually};
use crate::toy::Toy;

fn forbid(stage: &Stage, resource: &str) {
    let about = Match {
        resource: resource.to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    };
    let status = Status::failure(403, "Forbidden", "not allowed");
    stage
        .cluster
        .faults()
        .add(about, Frequency::always(), Fault::Refuse(Box::new(status)));
}

#[test]
fn without_the_right_to_a_lease_one_replica_is_assumed() {
    virtually(async {
        let stage = Stage::new().await;
        forbid(&stage, "coordination.k8s.io/leases");
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(one_of_many("one"), Toy::default());
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(
            replica
                .view
                .metrics()
                .contains("slipway_feature_off{feature=\"lease toy\"} 1")
        );
        let before = stage.records(|r| r.resource.contains("leases")).len();
        secs(3_600).await;
        let asked = stage.records(|r| r.resource.contains("leases")).len() - before;
        assert!(asked <= 13, "{asked} in an hour: with every heartbeat");
        // The right is given: the lease is used from then on.
        stage.cluster.faults().clear();
        secs(301).await;
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
        stage.want("a", "2").await;
        stage.until_have("a", "2", 5).await;
        let last = stage.writes().last().unwrap().context.clone();
        assert!(last.contains("epoch=1;"), "{last}");
    });
}

#[test]
fn without_the_namespace_of_the_lease_one_replica_is_assumed() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let mut settings = one_of_many("one");
        settings.namespace = "nowhere".to_owned();
        let _replica = stage.start(settings, Toy::default());
        stage.until_have("a", "1", 5).await;
    });
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
        forbid(&stage, "events.k8s.io/events");
        for n in 0..10 {
            stage.map(&format!("m{n}"), json!({"want": "1"})).await;
        }
        let replica = stage.start(alone(), Toy::default());
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
        stage.cluster.faults().clear();
        secs(301).await;
        stage.want("m0", "3").await;
        stage.until_have("m0", "3", 5).await;
        secs(1).await;
        assert!(!replica.view.metrics().contains("slipway_feature_off{"));
    });
}

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn widgets() -> serde_json::Value {
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
        assert!(replica.view.facts().missing.contains("watch widgets"));
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
        forbid(&stage, "toy.dev/widgets");
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::Optional),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.view.facts().missing.contains("watch widgets"));
    });
}

#[test]
fn a_kind_that_is_defined_must_be_seen_or_nothing_is_done() {
    virtually(async {
        let stage = Stage::new().await;
        stage.create(DEFINITION, &widgets()).await;
        secs(1).await;
        forbid(&stage, "toy.dev/widgets");
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::WhereDefined),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        secs(120).await;
        assert!(!replica.view.is_ready());
        assert!(replica.view.facts().missing.is_empty());
        assert!(stage.writes().is_empty());
        stage.cluster.faults().clear();
        stage.until_have("a", "1", 400).await;
        assert!(replica.view.is_ready());
    });
}

#[test]
fn a_kind_that_is_defined_nowhere_holds_up_nothing() {
    virtually(async {
        let stage = Stage::new().await;
        stage.map("a", json!({"want": "1"})).await;
        let toy = Toy {
            widgets: Some(Need::WhereDefined),
            ..Toy::default()
        };
        let replica = stage.start(alone(), toy);
        stage.until_have("a", "1", 5).await;
        assert!(replica.view.is_ready());
        assert!(replica.view.facts().missing.contains("watch widgets"));
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
