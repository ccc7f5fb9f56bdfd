//! Values of Secrets: they go where they are sent, and are told nobody else.

use serde_json::json;

use crate::records::Records;
use crate::stage::{CANARIES, CONFIG_MAPS, DEPLOYMENTS, SERVICES, Stage, play, secs};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TEMPLATES: &str = "/apis/flagger.app/v1beta1/namespaces/default/metrictemplates";
const PROVIDERS: &str = "/apis/flagger.app/v1beta1/namespaces/default/alertproviders";

/// Each Secret, its key, and what of its value is nobody's business; the same in base64, as the API has it.
const VALUES: [(&str, &str, &str, &str); 4] = [
    (
        "pods",
        "k",
        "what-the-pods-are-told",
        "d2hhdC10aGUtcG9kcy1hcmUtdG9sZA==",
    ),
    (
        "login",
        "token",
        "a-token-to-measure",
        "YS10b2tlbi10by1tZWFzdXJl",
    ),
    (
        "hmac",
        "key",
        "a-key-to-sign-calls",
        "YS1rZXktdG8tc2lnbi1jYWxscw==",
    ),
    (
        "room",
        "address",
        "https://hooks.test/room-of-the-team",
        "aHR0cHM6Ly9ob29rcy50ZXN0L3Jvb20tb2YtdGhlLXRlYW0=",
    ),
];

/// A Canary that needs all of them: its pods, its measure, its webhook and its alert.
async fn set_up(stage: &Stage) {
    for (name, key, _, encoded) in VALUES {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {key: encoded}});
        stage.create(SECRETS, &secret).await;
    }
    let provider = json!({"type": "prometheus", "address": "https://prometheus.test", "secretRef": {"name": "login"}});
    let template = json!({"apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate",
        "metadata": {"name": "errors"}, "spec": {"provider": provider, "query": "errors"}});
    stage.create(TEMPLATES, &template).await;
    let chat = json!({"apiVersion": "flagger.app/v1beta1", "kind": "AlertProvider",
        "metadata": {"name": "chat"}, "spec": {"type": "generic", "secretRef": {"name": "room"}}});
    stage.create(PROVIDERS, &chat).await;
    stage.workload("web:1").await;
    let containers =
        json!([{"name": "c", "image": "web:1", "envFrom": [{"secretRef": {"name": "pods"}}]}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch(&format!("{DEPLOYMENTS}/web"), &patch).await;
    let hook = json!({"name": "check", "type": "rollout", "url": "http://hooks.test/check", "signing": {"name": "hmac"}});
    let metric =
        json!({"name": "errors", "templateRef": {"name": "errors"}, "thresholdRange": {"max": 1}});
    let alert = json!({"name": "chat", "severity": "info", "providerRef": {"name": "chat"}});
    let analysis =
        json!({"iterations": 2, "webhooks": [hook], "metrics": [metric], "alerts": [alert]});
    stage.canary(&json!({"analysis": analysis})).await;
}

/// All that anybody can read who may not read Secrets, but for what is sent to whom they are meant for.
async fn told(stage: &Stage, records: &Records) -> Vec<String> {
    let mut all = Vec::new();
    for path in [
        CANARIES,
        CONFIG_MAPS,
        DEPLOYMENTS,
        SERVICES,
        TEMPLATES,
        PROVIDERS,
        "/api/v1/namespaces/default/pods",
        "/apis/apps/v1/namespaces/default/replicasets",
        "/apis/events.k8s.io/v1/namespaces/default/events",
    ] {
        all.push(stage.get(path).await.to_string());
    }
    let asked = stage.asked_since(0);
    all.extend(asked.iter().map(|record| format!("{record:?}")));
    let bodies = stage.world.heard("/check").into_iter();
    let bodies = bodies.chain(stage.world.heard("/room-of-the-team"));
    all.extend(bodies.map(|body| body.to_string()));
    all.extend(stage.world.queries());
    all.extend(records.all());
    all
}

#[test]
fn no_value_of_a_secret_is_told() {
    let records = Records::default();
    let _guard = tracing::subscriber::set_default(records.clone());
    play(|stage| async move {
        set_up(&stage).await;
        stage.world.measure("0");
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        stage.until("Succeeded", 120).await;
        // And one that goes back, with all that is said of that.
        stage.world.measure("9");
        stage.push("web:3").await;
        stage.until("Failed", 120).await;
        stage.world.say("/check", 500);
        stage.push("web:4").await;
        stage.until("Progressing", 60).await;
        stage.until("Failed", 120).await;
        secs(30).await;
        // All of them were used.
        let copy = stage.get(&format!("{SECRETS}/pods-primary")).await;
        assert_eq!(copy["data"]["k"], VALUES[0].3);
        assert!(!stage.world.queries().is_empty());
        let signatures = stage.world.signatures("/check");
        assert!(!signatures.is_empty() && signatures.iter().all(Option::is_some));
        assert!(!stage.world.heard("/room-of-the-team").is_empty());
        let told = told(&stage, &records).await;
        assert!(told.len() > 100, "{}", told.len());
        for (name, _, value, encoded) in VALUES {
            for text in [value, encoded, "room-of-the-team"] {
                let mut leaks = told.iter().filter(|one| one.contains(text));
                assert_eq!(leaks.next(), None, "{name}");
            }
        }
    });
}
