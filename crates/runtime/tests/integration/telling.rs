//! Where events may not be told, and where they may.

use serde_json::{Value, json};
use slipway_apiserver::faults::{Frequency, Match};
use slipway_kernel::fact::Right;

use crate::role::{grant, grant_everywhere, rule};
use crate::stage::{Stage, alone, secs, virtually};
use crate::toy::Toy;

async fn told(stage: &Stage, namespace: &str) -> Vec<Value> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let list = stage.get(&path).await;
    list["items"].as_array().unwrap().clone()
}

#[test]
fn events_that_may_not_be_told_in_one_namespace_are_told_in_another() {
    virtually(async {
        let stage = Stage::new().await;
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
        stage.create("/api/v1/namespaces", &other).await;
        let maps = rule("", "configmaps", &["get", "list", "watch", "patch"]);
        grant_everywhere(&stage, "maps", vec![maps]).await;
        let events = rule("events.k8s.io", "events", &["create"]);
        grant(&stage, "events", vec![events]).await;
        let replica = stage.start_weak(alone(), Toy::default());
        secs(1).await;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"want": "1"}});
        let path = "/api/v1/namespaces/other/configmaps";
        stage.create(path, &map).await;
        secs(2).await;
        let written = stage.get(&format!("{path}/b")).await;
        assert_eq!(written["data"]["have"], "1");
        let missing = replica.view.facts().missing;
        let places: Vec<&str> = missing.iter().map(|one| one.namespace.as_str()).collect();
        assert!(replica.lacks("events") && places == ["other"]);
        stage.map("a", json!({"want": "1"})).await;
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        let all = told(&stage, "default").await;
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0]["regarding"]["name"], "a");
        assert!(told(&stage, "other").await.is_empty());
        assert!(replica.lacks("events"), "still so in the other one");
    });
}

#[test]
fn events_that_a_quota_refuses_are_told_again_soon_and_no_right_is_missing() {
    virtually(async {
        let stage = Stage::new().await;
        let about = Match {
            verb: "create".to_owned(),
            resource: "events.k8s.io/events".to_owned(),
            agent: "one".to_owned(),
            ..Match::default()
        };
        stage.refuse(about, 403, "Forbidden", Frequency::once());
        stage.map("a", json!({"want": "1"})).await;
        let replica = stage.start(alone(), Toy::default());
        stage.until_have("a", "1", 5).await;
        secs(1).await;
        assert!(!replica.lacks("events"));
        assert!(told(&stage, "default").await.is_empty());
        secs(30).await;
        stage.want("a", "2").await;
        stage.until_have("a", "2", 5).await;
        secs(1).await;
        assert_eq!(told(&stage, "default").await.len(), 1);
    });
}

/// Of so many it is said, and the work goes on in all of them.
#[test]
fn namespaces_that_come_and_go_without_events_are_not_all_remembered() {
    virtually(async {
        let stage = Stage::new().await;
        let maps = rule("", "configmaps", &["get", "list", "watch", "patch"]);
        grant_everywhere(&stage, "maps", vec![maps]).await;
        let replica = stage.start_weak(alone(), Toy::default());
        secs(1).await;
        let kept = || {
            let missing = replica.view.facts().missing;
            let told_of = missing.iter().filter(|one| one.right == Right::Tell);
            told_of.count()
        };
        for n in 0..80 {
            let name = format!("passing-{n}");
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            stage.create("/api/v1/namespaces", &namespace).await;
            let path = format!("/api/v1/namespaces/{name}/configmaps");
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"want": "1"}});
            stage.create(&path, &map).await;
            secs(2).await;
            let written = stage.get(&format!("{path}/b")).await;
            assert_eq!(written["data"]["have"], "1", "{name}");
            assert!(told(&stage, &name).await.is_empty());
            assert_eq!(kept(), usize::min(64, n + 1), "{name}");
            let path = format!("/api/v1/namespaces/{name}");
            stage.send("DELETE", &path, &Value::Null).await;
        }
    });
}
