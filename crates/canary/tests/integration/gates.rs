//! Webhooks: who is asked when, with what, and what their answers do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Replica, Stage, play, secs};

fn hook(kind: &str) -> Value {
    json!({"name": kind, "type": kind, "url": format!("http://hooks.test/{kind}"), "metadata": {"team": "a"}})
}

/// A new version, with webhooks of these kinds.
async fn roll(stage: &Stage, kinds: &[&str]) -> Replica {
    let hooks: Vec<Value> = kinds.iter().map(|kind| hook(kind)).collect();
    let spec = json!({"analysis": {"iterations": 2, "webhooks": hooks}});
    stage.roll(&spec).await
}

/// Scenarios 46 and 55: nothing begins before it is approved, and a webhook is sent what Flagger sends.
#[test]
fn nothing_is_scaled_before_the_rollout_is_confirmed() {
    play(|stage| async move {
        stage.world.say("/confirm-rollout", 403);
        let _operator = roll(&stage, &["confirm-rollout"]).await;
        stage.until("Waiting", 10).await;
        secs(60).await;
        assert_eq!(stage.replicas("web").await, 0);
        assert_eq!(stage.waits().await, ["RolloutGateClosed"]);
        let heard = stage.world.heard("/confirm-rollout");
        assert!(
            (6..=9).contains(&heard.len()),
            "once an interval: {}",
            heard.len()
        );
        let status = stage.status().await;
        assert_eq!(heard[0]["name"], "web");
        assert_eq!(heard[0]["namespace"], "default");
        assert_eq!(heard[0]["phase"], "Initialized");
        assert_eq!(heard[0]["metadata"], json!({"team": "a"}));
        assert_eq!(heard[0]["checksum"], heard[5]["checksum"]);
        assert_eq!(status["failedChecks"], 0);
        stage.world.say("/confirm-rollout", 200);
        stage.until("Succeeded", 120).await;
    });
}

/// Scenario 50: what waits for its promotion is still analysed.
#[test]
fn a_version_waits_for_leave_to_take_over() {
    play(|stage| async move {
        stage.world.say("/confirm-promotion", 403);
        let _operator = roll(&stage, &["confirm-promotion"]).await;
        stage.until("WaitingPromotion", 60).await;
        secs(120).await;
        assert_eq!(stage.phase().await, "WaitingPromotion");
        assert_eq!(stage.image("web-primary").await, "web:1");
        assert_eq!(stage.waits().await, ["PromotionGateClosed"]);
        stage.world.say("/confirm-promotion", 200);
        stage.until("Succeeded", 60).await;
        assert_eq!(stage.image("web-primary").await, "web:2");
    });
}

/// Scenario 58: each is asked as often as it should, the end is told once.
#[test]
fn each_webhook_has_its_time() {
    play(|stage| async move {
        let kinds = [
            "confirm-rollout",
            "pre-rollout",
            "rollout",
            "confirm-promotion",
            "post-rollout",
            "rollback",
        ];
        stage.world.say("/rollback", 403);
        let _operator = roll(&stage, &kinds).await;
        stage.until("Succeeded", 120).await;
        secs(60).await;
        let asked = |kind: &str| stage.world.heard(&format!("/{kind}"));
        let counts = kinds.map(|kind| asked(kind).len());
        assert_eq!(counts, [1, 1, 2, 1, 1, 3]);
        assert_eq!(asked("post-rollout")[0]["phase"], "Succeeded");
        assert_eq!(asked("rollout")[0]["phase"], "Progressing");
    });
}

/// Scenarios 48 and 51.
#[test]
fn a_webhook_sends_the_version_back() {
    play(|stage| async move {
        stage.world.say("/rollout", 500);
        let _operator = roll(&stage, &["rollout"]).await;
        stage.until("Failed", 60).await;
        let told = stage.events().await;
        // D11: what it said is told.
        assert!(
            told.iter().any(|one| one.contains("500 it is")),
            "{told:#?}"
        );
        assert_eq!(
            stage.world.heard("/rollout").len(),
            2,
            "as often as the threshold says"
        );
        secs(10).await;
        assert_eq!(stage.image("web-primary").await, "web:1");
    });
}

/// Scenario 53.
#[test]
fn a_webhook_is_asked_again_as_often_as_it_says() {
    play(|stage| async move {
        stage.world.say("/pre-rollout", 503);
        let mut hook = hook("pre-rollout");
        hook["retries"] = json!(2);
        let spec = json!({"analysis": {"iterations": 1, "threshold": 1, "webhooks": [hook]}});
        let _operator = stage.roll(&spec).await;
        stage.until("Failed", 60).await;
        assert_eq!(stage.world.heard("/pre-rollout").len(), 3);
        assert_eq!(stage.status().await["failedChecks"], 1);
    });
}

/// Scenario 53: an answer that may pass is asked for again, and the next one counts.
#[test]
fn a_webhook_that_says_500_once_is_asked_again_and_believed() {
    play(|stage| async move {
        stage.world.say_once("/pre-rollout", 500);
        let mut hook = hook("pre-rollout");
        hook["retries"] = json!(1);
        let spec = json!({"analysis": {"iterations": 1, "threshold": 1, "webhooks": [hook]}});
        let _operator = stage.roll(&spec).await;
        stage.until("Succeeded", 60).await;
        let heard = stage.world.heard("/pre-rollout");
        assert_eq!(heard.len(), 2);
        assert_eq!(heard[0], heard[1], "it is the same question");
        assert_eq!(stage.status().await["failedChecks"], 0);
        assert_eq!(stage.image("web-primary").await, "web:2");
    });
}

/// What is asked is signed with a key that nobody is told; without the key nobody is asked, and nothing goes on.
#[test]
fn a_webhook_is_signed_and_its_key_is_told_nobody() {
    play(|stage| async move {
        let path = "/confirm-rollout";
        let mut signed = hook("confirm-rollout");
        signed["signing"] = json!({"name": "hmac"});
        let hooks = [signed, hook("rollout")];
        let spec = json!({"analysis": {"iterations": 1, "webhooks": hooks}});
        let _operator = stage.roll(&spec).await;
        stage.until("Waiting", 60).await;
        assert_eq!(stage.world.heard(path).len(), 0);
        let key = "a key that is long enough";
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hmac"}, "stringData": {"key": key}});
        stage
            .create("/api/v1/namespaces/default/secrets", &secret)
            .await;
        stage.until("Succeeded", 120).await;
        let signatures = stage.world.signatures(path);
        let signature = signatures[0].as_deref().unwrap();
        assert!(signature.starts_with("v2=") && signature.len() == 3 + 64);
        assert_eq!(stage.world.signatures("/rollout"), [None]);
        let told = stage.events().await.join(" ") + &stage.status().await.to_string();
        assert!(
            told.contains("default/hmac"),
            "why nobody was asked: {told}"
        );
        assert!(!told.contains(key), "{told}");
        let heard = format!("{:?}", stage.world.heard(path));
        assert!(!heard.contains(key), "{heard}");
    });
}

/// Who takes longer than an interval is waited for, and not asked again meanwhile.
#[test]
fn a_slow_webhook_is_asked_once_a_check() {
    play(|stage| async move {
        stage.world.delay(Duration::from_secs(35));
        let mut hook = hook("rollout");
        hook["timeout"] = json!("60s");
        let spec = json!({"analysis": {"iterations": 2, "webhooks": [hook]}});
        let _operator = stage.roll(&spec).await;
        stage.until("Succeeded", 300).await;
        assert_eq!(stage.world.heard("/rollout").len(), 2);
    });
}

/// An address that is none is told, and counts as a refusal.
#[test]
fn a_webhook_without_an_address_fails_its_check() {
    play(|stage| async move {
        let mut hook = hook("pre-rollout");
        hook["url"] = json!("no address");
        let spec = json!({"analysis": {"iterations": 1, "webhooks": [hook]}});
        let _operator = stage.roll(&spec).await;
        stage.until("Failed", 60).await;
        let told = stage.events().await;
        assert!(told.iter().any(|one| one.contains("url")), "{told:#?}");
    });
}

/// Promote, abort and retry by annotation, with who asked and why.
#[test]
fn commands_are_followed_once() {
    play(|stage| async move {
        stage.world.say("/confirm-promotion", 403);
        let _operator = roll(&stage, &["confirm-promotion"]).await;
        stage.until("WaitingPromotion", 60).await;
        stage.command("abort", "1").await;
        stage.until("Failed", 10).await;
        secs(60).await;
        assert_eq!(stage.phase().await, "Failed");
        stage.command("retry", "2").await;
        stage.until("WaitingPromotion", 60).await;
        stage.command("promote", "3").await;
        stage.until("Succeeded", 60).await;
        assert_eq!(stage.image("web-primary").await, "web:2");
        let told = stage.events().await;
        assert!(
            told.iter().any(|one| one.contains("by ann: because")),
            "{told:#?}"
        );
    });
}
