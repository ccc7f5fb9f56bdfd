//! Canaries that nobody should write: each is refused or bounded with a word that says why, and none is in the way of another.

use serde_json::{Value, json};
use slipway_kernel::fields::merge;

use crate::spellings::{NO_ADDRESS, SPECIAL};
use crate::stage::{CANARIES, DEPLOYMENTS, SERVICES, Stage, play, secs};

/// What somebody wrote, the word for it, and a part of the sentence.
fn cases() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let hook = |fields: Value| {
        let mut hook = json!({"name": "gate", "url": "http://hooks.test/gate"});
        merge(&mut hook, &fields);
        json!({"analysis": {"webhooks": [hook]}})
    };
    let steps: Vec<i64> = (0..101).rev().collect();
    vec![
        (
            "steps",
            json!({"provider": "gatewayapi:v1", "analysis": {"iterations": null, "stepWeights": steps}}),
            "InvalidSpec",
            "stepWeights",
        ),
        (
            "kind",
            json!({"targetRef": {"kind": "Service"}}),
            "Unsupported",
            "Service",
        ),
        (
            "provider",
            json!({"provider": "x".repeat(10_000)}),
            "InvalidSpec",
            "provider",
        ),
        (
            "scaler",
            json!({"autoscalerRef": {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "s"}}),
            "Unsupported",
            "ScaledObject",
        ),
        (
            "type",
            hook(json!({"type": "\u{202e}\n"})),
            "InvalidSpec",
            "webhooks",
        ),
        (
            "signing",
            hook(json!({"signing": {"name": ""}})),
            "InvalidSpec",
            "signing",
        ),
        (
            "pauses",
            json!({"provider": "gatewayapi:v1", "analysis": {"iterations": null, "stepWeight": 10, "stepPauses": ["9999999999999999999h"]}}),
            "InvalidSpec",
            "stepPauses",
        ),
        (
            "replicas",
            json!({"provider": "kubernetes:replicas", "analysis": {"iterations": null, "stepWeight": 10}}),
            "InvalidSpec",
            "slipway.dev/canary",
        ),
        (
            "gateways",
            json!({"provider": "gatewayapi:v1", "analysis": {"iterations": null, "stepWeight": 10}}),
            "InvalidSpec",
            "gatewayRefs",
        ),
    ]
}

/// A workload of this name, whose pods have this label.
fn workload(name: &str, label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": label}},
            "template": {"metadata": {"labels": {"app": label}},
                "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
    })
}

async fn write(stage: &Stage, (name, target): (&str, &str), spec: &Value) {
    let mut whole = json!({
        "provider": "kubernetes",
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "service": {"port": 80},
        "analysis": {"interval": "10s", "threshold": 2, "iterations": 1},
    });
    merge(&mut whole, spec);
    let canary = json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": name}, "spec": whole});
    stage.create(CANARIES, &canary).await;
}

/// Why a Canary waits.
async fn waits(stage: &Stage, name: &str) -> (String, String) {
    let canary = stage.get(&format!("{CANARIES}/{name}")).await;
    let first = &canary["status"]["waitingFor"][0];
    let text = |field: &str| first[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn one_bad_canary_stops_no_other_and_says_what_is_wrong() {
    play(|stage| async move {
        for (name, spec, ..) in cases() {
            stage.create(DEPLOYMENTS, &workload(name, name)).await;
            write(&stage, (name, name), &spec).await;
        }
        let _operator = stage.roll(&json!({"analysis": {"iterations": 2}})).await;
        stage.until("Succeeded", 120).await;
        assert_eq!(stage.image("web-primary").await, "web:2");
        for (name, _, reason, part) in cases() {
            let (found, message) = waits(&stage, name).await;
            assert_eq!(found, reason, "{name}: {message}");
            assert!(message.contains(part), "{name}: {message}");
            assert!(message.len() < 2_000, "{name}: {}", message.len());
            assert_eq!(stage.replicas(name).await, 1, "{name}");
            let copy = format!("{DEPLOYMENTS}/{name}-primary");
            assert!(stage.find(&copy).await.is_none(), "{name}");
        }
    });
}

/// Numbers without bounds, and what every check fails for: it runs, and comes to an end.
#[test]
fn what_has_no_bounds_is_bounded() {
    play(|stage| async move {
        let odd = json!({
            "progressDeadlineSeconds": i64::MAX,
            "analysis": {"interval": "1s", "threshold": -1, "iterations": 1, "maxWeight": -7,
                "stepWeightPromotion": i64::MIN, "primaryReadyThreshold": 1_000,
                "webhooks": [{"name": "gate", "type": "post-rollout", "url": "file:///etc/passwd",
                    "timeout": "999999999h", "retries": i64::MAX, "metadata": {"{{ name }}": "\u{0}"}}]},
        });
        stage.workload("web:1").await;
        stage.canary(&odd).await;
        let endless = json!({"analysis": {"interval": "87600h", "iterations": i64::MAX}});
        stage.create(DEPLOYMENTS, &workload("slow", "slow")).await;
        write(&stage, ("slow", "slow"), &endless).await;
        let broken = json!({"analysis": {"metrics": [{"name": "m", "query": "{{ ".repeat(10_000), "thresholdRange": {"min": 1e308, "max": -1e308}}]}});
        stage
            .create(DEPLOYMENTS, &workload("broken", "broken"))
            .await;
        write(&stage, ("broken", "broken"), &broken).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(20).await;
        for name in ["broken", "slow"] {
            let containers = json!([{"name": "c", "image": "web:2"}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
            stage.patch(&format!("{DEPLOYMENTS}/{name}"), &patch).await;
        }
        stage.push("web:2").await;
        stage.until("Succeeded", 120).await;
        // Two ticks more, until the second check that failed.
        secs(30).await;
        let phase = |canary: Value| canary["status"]["phase"].clone();
        let broken = stage.get(&format!("{CANARIES}/broken")).await;
        assert_eq!(phase(broken), json!("Failed"));
        let slow = stage.get(&format!("{CANARIES}/slow")).await;
        assert_eq!(phase(slow), json!("Progressing"));
    });
}

/// Each is to be asked whether the version goes back, and whoever cannot be asked does not send it back.
#[test]
fn nobody_is_called_where_nobody_may_be() {
    play(|stage| async move {
        let special = SPECIAL
            .iter()
            .map(|(host, _)| format!("http://{host}/latest"));
        let no_address = NO_ADDRESS.iter().map(|url| (*url).to_owned());
        let hook = |url: &str| json!({"name": url, "type": "rollback", "url": url});
        let mut hooks: Vec<Value> = no_address.chain(special).map(|url| hook(&url)).collect();
        hooks.push(hook("http://hooks.test/alarm"));
        stage.world.say("/alarm", 403);
        let spec = json!({"analysis": {"iterations": 1, "webhooks": hooks}});
        let _operator = stage.roll(&spec).await;
        stage.until("Succeeded", 600).await;
        let called = stage.world.called();
        assert!(!called.is_empty(), "the last one is asked after all others");
        let is_good = |url: &String| url == "http://hooks.test/alarm";
        assert!(called.iter().all(is_good), "{called:?}");
    });
}

/// What a version is measured at, with a part of what is said of it.
#[test]
fn a_measure_at_an_address_that_may_not_be_called_fails_and_says_why() {
    play(|stage| async move {
        let cases = [
            ("a", "http://169.254.169.254/", "metadata"),
            ("b", "http://[::ffff:127.0.0.1]:9090", "IPv4 in IPv6"),
            ("c", "http://2130706433/", "metricsServer"),
            ("d", "http://user:word@prometheus.test/", "metricsServer"),
        ];
        let metrics = json!([{"name": "up", "query": "up", "thresholdRange": {"min": 1}}]);
        for (name, server, _) in cases {
            stage.create(DEPLOYMENTS, &workload(name, name)).await;
            let spec = json!({"metricsServer": server, "analysis": {"metrics": metrics}});
            write(&stage, (name, name), &spec).await;
        }
        stage.workload("web:1").await;
        stage.canary(&json!({"analysis": {"iterations": 1}})).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(20).await;
        for (name, ..) in cases {
            let containers = json!([{"name": "c", "image": "web:2"}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
            stage.patch(&format!("{DEPLOYMENTS}/{name}"), &patch).await;
        }
        stage.push("web:2").await;
        stage.until("Succeeded", 120).await;
        secs(60).await;
        for (name, server, part) in cases {
            let canary = stage.get(&format!("{CANARIES}/{name}")).await;
            let status = &canary["status"];
            assert_eq!(status["phase"], "Failed", "{server}: {status:#}");
            let message = status["checks"][0]["message"].as_str().unwrap();
            assert!(message.contains(part), "{server}: {message}");
            assert!(!message.contains("word@"), "{message}");
        }
        assert_eq!(stage.world.called(), Vec::<String>::new());
    });
}

/// Whoever is asked says more than anybody wants to hear, or points to where nobody may be sent.
#[test]
fn what_a_webhook_answers_is_bounded_and_leads_nowhere_else() {
    for path in ["/flood", "/moved"] {
        play(move |stage| async move {
            stage.world.say("/flood", 500);
            stage
                .world
                .say_much("/flood", "no\u{202e}{{ ".repeat(100_000));
            stage.world.say("/moved", 303);
            stage
                .world
                .point("/moved", "http://169.254.169.254/latest/meta-data");
            let url = format!("http://hooks.test{path}");
            let hook = json!({"name": "gate", "type": "rollout", "url": url});
            stage.workload("web:1").await;
            stage
                .canary(&json!({"analysis": {"iterations": 3, "webhooks": [hook]}}))
                .await;
            let _operator = stage.operate();
            stage.until("Initialized", 60).await;
            stage.push("web:2").await;
            stage.until("Failed", 120).await;
            secs(10).await;
            let called = stage.world.called();
            assert!(called.len() >= 2, "{called:?}");
            assert!(called.iter().all(|one| *one == url), "{called:?}");
            let status = stage.status().await.to_string();
            assert!(status.len() < 20_000, "{}", status.len());
            for told in stage.events().await {
                assert!(told.len() <= 1_024, "{}", told.len());
            }
            assert_eq!(stage.image("web-primary").await, "web:1");
        });
    }
}

/// Names from which no others can be made any more: nothing is taken, and it is said which one is refused.
#[test]
fn names_at_the_limit_are_refused_before_anything_is_taken() {
    play(|stage| async move {
        let long = "n".repeat(250);
        let label = "l".repeat(60);
        let service = "s".repeat(60);
        stage.create(DEPLOYMENTS, &workload(&long, "short")).await;
        write(
            &stage,
            ("name", &long),
            &json!({"service": {"name": "short"}}),
        )
        .await;
        stage
            .create(DEPLOYMENTS, &workload("labelled", &label))
            .await;
        write(&stage, ("label", "labelled"), &json!({})).await;
        stage
            .create(DEPLOYMENTS, &workload("served", "served"))
            .await;
        write(
            &stage,
            ("service", "served"),
            &json!({"service": {"name": service}}),
        )
        .await;
        stage.workload("web:1").await;
        stage.canary(&json!({"analysis": {"iterations": 1}})).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(120).await;
        for (name, target) in [
            ("name", long.as_str()),
            ("label", "labelled"),
            ("service", "served"),
        ] {
            let (reason, message) = waits(&stage, name).await;
            assert_eq!(reason, "RefusedByApi", "{name}: {message}");
            assert_eq!(stage.replicas(target).await, 1, "{name}");
            let canary = stage.get(&format!("{CANARIES}/{name}")).await;
            assert_eq!(canary["status"]["phase"], "Initializing", "{name}");
        }
        let apex = stage.find(&format!("{SERVICES}/labelled")).await;
        assert!(apex.is_none(), "nobody is led to what cannot be made");
    });
}
