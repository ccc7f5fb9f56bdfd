//! What a version is configured with belongs to it.

use serde_json::{Value, json};

use crate::stage::{CONFIG_MAPS, DEPLOYMENTS, SERVICES, Stage, play, secs};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn set_up(stage: &Stage) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"},
        "data": {"k": "1"}, "binaryData": {"b": "AAEC"}});
    stage.create(CONFIG_MAPS, &map).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "s"}});
    stage.create(SECRETS, &secret).await;
    stage.workload("web:1").await;
    let env = json!([{"configMapRef": {"name": "conf"}}, {"secretRef": {"name": "key"}}]);
    let containers = json!([{"name": "c", "image": "web:1", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch(&format!("{DEPLOYMENTS}/web"), &patch).await;
    stage.canary(&json!({"analysis": {"iterations": 1}})).await;
}

async fn uses(stage: &Stage, name: &str) -> Value {
    let found = stage.get(&format!("{DEPLOYMENTS}/{name}")).await;
    found["spec"]["template"]["spec"]["containers"][0]["envFrom"].clone()
}

/// A change of a `ConfigMap` is a new version, and the copy that serves has copies (D15: with binary data).
#[test]
fn a_changed_config_is_analysed_and_promoted() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        let copies = json!([{"configMapRef": {"name": "conf-primary"}}, {"secretRef": {"name": "key-primary"}}]);
        assert_eq!(uses(&stage, "web-primary").await, copies);
        let copy = stage.get(&format!("{CONFIG_MAPS}/conf-primary")).await;
        assert_eq!(
            (&copy["data"]["k"], &copy["binaryData"]["b"]),
            (&json!("1"), &json!("AAEC"))
        );
        assert_eq!(copy["metadata"]["ownerReferences"][0]["kind"], "Canary");
        let secret = stage.get(&format!("{SECRETS}/key-primary")).await;
        assert_eq!(secret["data"]["k"], "cw==");
        assert_eq!(secret["type"], "Opaque");
        stage
            .patch(&format!("{CONFIG_MAPS}/conf"), &json!({"data": {"k": "2"}}))
            .await;
        stage.until("Progressing", 10).await;
        let copy = stage.get(&format!("{CONFIG_MAPS}/conf-primary")).await;
        assert_eq!(
            copy["data"]["k"], "1",
            "what serves keeps its own until then"
        );
        stage.until("Succeeded", 120).await;
        let copy = stage.get(&format!("{CONFIG_MAPS}/conf-primary")).await;
        assert_eq!(copy["data"]["k"], "2");
    });
}

/// A config that is missing is named, and nothing is made before it is there.
#[test]
fn a_missing_config_is_named() {
    play(|stage| async move {
        set_up(&stage).await;
        stage
            .send("DELETE", &format!("{CONFIG_MAPS}/conf"), &Value::Null)
            .await;
        let _operator = stage.operate();
        secs(30).await;
        assert_eq!(stage.waits().await, ["ConfigNotFound"]);
        assert!(stage.find(&format!("{SERVICES}/web")).await.is_none());
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"k": "1"}});
        stage.create(CONFIG_MAPS, &map).await;
        stage.until("Initialized", 60).await;
    });
}
