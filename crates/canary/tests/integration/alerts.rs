//! Who is told what, and that nothing waits for it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Stage, play, secs};

const PROVIDERS: &str = "/apis/flagger.app/v1beta1/namespaces/default/alertproviders";

async fn set_up(stage: &Stage) {
    let provider = json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "AlertProvider", "metadata": {"name": "chat"},
        "spec": {"type": "generic", "address": "http://hooks.test/chat"},
    });
    stage.create(PROVIDERS, &provider).await;
    stage.workload("web:1").await;
    let hooks = json!([
        {"name": "check", "type": "rollout", "url": "http://hooks.test/check"},
        {"name": "told", "type": "event", "url": "http://hooks.test/told"},
    ]);
    let alerts = json!([{"name": "chat", "severity": "error", "providerRef": {"name": "chat"}}]);
    stage
        .canary(&json!({"analysis": {"iterations": 2, "webhooks": hooks, "alerts": alerts}}))
        .await;
}

fn messages(all: &[Value]) -> Vec<String> {
    let each = all.iter();
    each.map(|one| one["metadata"]["eventMessage"].as_str().unwrap().to_owned())
        .collect()
}

/// Scenarios 56, 83 and 113.
#[test]
fn everything_is_told_once_and_what_is_loud_to_those_who_want_it() {
    play(|stage| async move {
        stage.world.say("/check", 500);
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        stage.until("Failed", 120).await;
        secs(20).await;
        let told = stage.world.heard("/told");
        let texts = messages(&told);
        for text in [
            "Initialization done",
            "New revision detected!",
            "Rolling back",
        ] {
            let times = texts.iter().filter(|one| one.contains(text)).count();
            assert_eq!(times, 1, "{text}: {texts:#?}");
        }
        let last = told.last().unwrap();
        assert_eq!(last["metadata"]["eventType"], "Warning");
        assert_eq!(last["phase"], "Failed");
        assert!(
            last["metadata"]["timestamp"]
                .as_str()
                .unwrap()
                .parse::<i64>()
                .is_ok()
        );
        let alerts = stage.world.heard("/chat");
        assert_eq!(alerts.len(), 1, "{alerts:#?}");
        assert_eq!(alerts[0]["severity"], "error");
        assert!(
            alerts[0]["message"]
                .as_str()
                .unwrap()
                .contains("Rolling back")
        );
        assert_eq!(stage.status().await["untold"], Value::Null);
    });
}

/// D17, scenario 62.
#[test]
fn a_slow_sink_delays_no_decision() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.world.delay_at("/told", Duration::from_secs(9));
        stage.push("web:2").await;
        let took = stage.until("Succeeded", 120).await;
        assert!(took <= 60, "two iterations of ten seconds took {took} s");
    });
}

/// Somebody who is not there is told again for a while, and then given up.
#[test]
fn a_sink_that_is_away_is_given_up() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let hooks = json!([{"name": "told", "type": "event", "url": "http://nobody.test/told"}]);
        stage
            .canary(&json!({"analysis": {"iterations": 1, "webhooks": hooks}}))
            .await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(300).await;
        assert_eq!(stage.status().await["untold"], Value::Null);
    });
}
