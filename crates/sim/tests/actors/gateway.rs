//! A gateway, by what whoever writes routes would notice.

use serde_json::{Value, json};

use crate::stage::{Stage, play};

const GATEWAY: &str = "gateway: {within: 5s}";

fn split(weight: i64) -> Value {
    json!({"service": "web", "backends": [{"service": "new", "weight": weight}, {"service": "old", "weight": 100 - weight}]})
}

async fn share(stage: &Stage) -> Option<Value> {
    let all = stage.list("Taken").await;
    let taken = all
        .iter()
        .find(|one| one["metadata"]["name"] == "trafficsplits.web")?;
    Some(taken["spec"]["rules"][0]["shares"]["new"].clone())
}

/// How many seconds after it was written a split is taken, twice; and that nothing happens afterwards.
fn taken(seed: u64) -> [u64; 2] {
    play(seed, GATEWAY, |stage| async move {
        let object = json!({
            "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
            "metadata": {"name": "web"}, "spec": split(20),
        });
        stage.create(object).await;
        let mut waits = [0, 0];
        for (weight, wait) in [20, 50].into_iter().zip(&mut waits) {
            stage
                .patch("TrafficSplit", "web", json!({"spec": split(weight)}))
                .await;
            let wanted = Some(json!(weight * 100));
            while share(&stage).await != wanted {
                stage.pass(1).await;
                *wait += 1;
            }
        }
        let before = stage.requests().len();
        stage.pass(3600).await;
        assert_eq!(stage.requests().len(), before);
        stage.delete("TrafficSplit", "web").await;
        stage.pass(6).await;
        assert_eq!(share(&stage).await, None);
        waits
    })
}

#[test]
fn what_is_written_is_taken_some_time_later_and_within_its_time() {
    let all: Vec<[u64; 2]> = (0..8).map(taken).collect();
    let waits: Vec<u64> = all.into_iter().flatten().collect();
    assert!(waits.iter().all(|wait| *wait <= 5), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait >= 3), "{waits:?}");
}

#[test]
fn of_an_http_route_it_says_which_generation_it_has_taken() {
    play(1, GATEWAY, |stage| async move {
        let rules = |weight: i64| json!([{"backendRefs": [{"name": "new", "weight": weight}, {"name": "old", "weight": 100 - weight}]}]);
        let object = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "web"},
            "spec": {"parentRefs": [{"name": "public"}], "rules": rules(0)},
        });
        stage.create(object).await;
        let seen = |route: &Value| {
            let condition = &route["status"]["parents"][0]["conditions"][0];
            (
                condition["type"].clone(),
                condition["observedGeneration"].clone(),
            )
        };
        let mut generations = Vec::new();
        for weight in [10, 40] {
            stage
                .patch(
                    "HTTPRoute",
                    "web",
                    json!({"spec": {"rules": rules(weight)}}),
                )
                .await;
            let route = stage.get("HTTPRoute", "web").await;
            assert_ne!(seen(&route).1, route["metadata"]["generation"]);
            stage.settle().await;
            let route = stage.get("HTTPRoute", "web").await;
            let generation = route["metadata"]["generation"].clone();
            assert_eq!(seen(&route), (json!("Accepted"), generation.clone()));
            generations.push(generation);
        }
        assert_eq!(generations, [2, 3]);
    });
}
