//! Flux, by what whoever uses it would notice.

use serde_json::{Value, json};

use crate::stage::{Stage, condition, play};

const GIT: &str = r#"
flux:
  repositories:
  - url: https://git.example/app
    versions: [v1, v2, v3, v4]
    folders:
      deploy:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {version: "@version@", colour: "${colour}"}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 1
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: main, image: "web:@version@"}]}
    changed:
      v2:
        more:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}
  rules:
  - {match: {version: v4}, fails: build}
pods:
- {match: {image: "web:v3"}, ready: never}
"#;

fn source(version: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": version},
        "spec": {"interval": "10m", "url": "https://git.example/app", "ref": {"tag": version}},
    })
}

fn kustomization(version: &str, path: &str) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "app"},
        "spec": spec(version, path),
    })
}

fn spec(version: &str, path: &str) -> Value {
    json!({
        "interval": "10m", "retryInterval": "1m", "timeout": "1m", "wait": true, "prune": true,
        "targetNamespace": "default", "path": path, "sourceRef": {"kind": "GitRepository", "name": version},
        "postBuild": {"substitute": {"colour": "blue"}},
    })
}

async fn ready(stage: &Stage) -> (String, String) {
    condition(&stage.get("Kustomization", "app").await, "Ready")
}

fn is(reason: &str, status: &str) -> (String, String) {
    (reason.to_owned(), status.to_owned())
}

#[test]
fn a_source_is_fetched_and_a_kustomization_applied_and_pruned() {
    play(1, GIT, |stage| async move {
        stage.create(source("v1")).await;
        stage.create(kustomization("v1", "./deploy")).await;
        stage.settle().await;
        let fetched = stage.get("GitRepository", "v1").await;
        assert_eq!(condition(&fetched, "Ready"), is("Succeeded", "True"));
        let revision = fetched["status"]["artifact"]["revision"].clone();
        assert!(
            revision.as_str().unwrap().starts_with("v1@sha1:"),
            "{revision}"
        );
        let applied = stage.get("Kustomization", "app").await;
        assert_eq!(
            condition(&applied, "Ready"),
            is("ReconciliationSucceeded", "True")
        );
        assert_eq!(applied["status"]["lastAppliedRevision"], revision);
        assert_eq!(applied["status"]["observedGeneration"], json!(1));
        let settings = stage.get("ConfigMap", "settings").await;
        assert_eq!(settings["data"], json!({"version": "v1", "colour": "blue"}));
        let uid = stage.get("Deployment", "web").await["metadata"]["uid"].clone();

        stage.create(source("v2")).await;
        stage.settle().await;
        stage
            .patch(
                "Kustomization",
                "app",
                json!({"spec": spec("v2", "deploy")}),
            )
            .await;
        stage.settle().await;
        let web = stage.get("Deployment", "web").await;
        assert_eq!(
            web["metadata"]["uid"], uid,
            "another version is no other object"
        );
        assert_eq!(
            web["spec"]["template"]["spec"]["containers"][0]["image"],
            "web:v2"
        );

        stage
            .patch("Kustomization", "app", json!({"spec": {"path": "more"}}))
            .await;
        stage.settle().await;
        assert!(
            stage.list("Deployment").await.is_empty(),
            "what is in it no more goes"
        );
        stage.get("ConfigMap", "extra").await;
        stage.delete("Kustomization", "app").await;
        stage.settle().await;
        let left = stage.list("ConfigMap").await;
        assert!(
            !left.iter().any(|map| map["metadata"]["name"] == "extra"),
            "{left:?}"
        );
        assert!(stage.list("Kustomization").await.is_empty());
    });
}

#[test]
fn what_comes_during_a_health_check_waits_for_its_end_and_is_called_a_failure() {
    play(1, GIT, |stage| async move {
        for version in ["v1", "v3"] {
            stage.create(source(version)).await;
        }
        stage.create(kustomization("v1", "deploy")).await;
        stage.settle().await;
        stage
            .patch(
                "Kustomization",
                "app",
                json!({"spec": spec("v3", "deploy")}),
            )
            .await;
        stage.pass(20).await;
        let waiting = stage.get("Kustomization", "app").await;
        assert_eq!(condition(&waiting, "Ready"), is("Progressing", "Unknown"));
        assert_eq!(waiting["status"]["observedGeneration"], json!(1));
        // Somebody mends it; nobody looks before the check is over.
        stage
            .patch(
                "Kustomization",
                "app",
                json!({"spec": spec("v1", "deploy")}),
            )
            .await;
        stage.pass(20).await;
        assert_eq!(ready(&stage).await, is("Progressing", "Unknown"));
        let mut seen = Vec::new();
        for _ in 0..60 {
            stage.pass(1).await;
            let now = stage.get("Kustomization", "app").await;
            seen.push((condition(&now, "Ready"), now));
        }
        let (_, failed) = seen.iter().find(|(ready, _)| ready.1 == "False").unwrap();
        assert_eq!(condition(failed, "Ready").0, "HealthCheckFailed");
        let conditions = failed["status"]["conditions"].as_array().unwrap();
        let told = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
        assert_eq!(
            told["observedGeneration"],
            json!(3),
            "of the generation that it is not about"
        );
        let tried = failed["status"]["lastAttemptedRevision"].as_str().unwrap();
        assert!(tried.starts_with("v3@"), "{tried}");
        assert_eq!(ready(&stage).await, is("ReconciliationSucceeded", "True"));
    });
}

#[test]
fn what_cannot_be_fetched_found_or_built_is_told() {
    play(1, GIT, |stage| async move {
        stage.create(kustomization("none", "deploy")).await;
        stage.pass(5).await;
        assert_eq!(ready(&stage).await, is("ArtifactFailed", "False"));
        stage.create(source("v9")).await;
        stage.pass(5).await;
        let lost = stage.get("GitRepository", "v9").await;
        assert_eq!(
            condition(&lost, "FetchFailed"),
            is("GitOperationFailed", "True")
        );
        stage.create(source("v1")).await;
        stage.create(source("v4")).await;
        for (version, path, reason) in [
            ("v1", "nowhere", "ArtifactFailed"),
            ("v4", "deploy", "BuildFailed"),
        ] {
            stage
                .patch("Kustomization", "app", json!({"spec": spec(version, path)}))
                .await;
            stage.pass(10).await;
            assert_eq!(ready(&stage).await, is(reason, "False"), "{version} {path}");
        }
        let strict = json!({"spec": {"sourceRef": {"name": "v1"}, "path": "deploy", "postBuild": {"substitute": {"colour": null, "other": "x"}}}});
        stage.patch("Kustomization", "app", strict).await;
        stage.pass(10).await;
        assert_eq!(ready(&stage).await, is("BuildFailed", "False"));
    });
}

#[test]
fn every_round_takes_ready_to_unknown_and_back_and_nothing_else_is_written() {
    play(1, GIT, |stage| async move {
        stage.create(source("v1")).await;
        stage.create(kustomization("v1", "deploy")).await;
        stage.settle().await;
        let (before, settings) = (
            stage.get("Kustomization", "app").await,
            stage.get("ConfigMap", "settings").await,
        );
        let mut seen = Vec::new();
        for _ in 0..700 {
            stage.pass(1).await;
            seen.push(ready(&stage).await.1);
        }
        seen.dedup();
        assert_eq!(seen, ["True", "Unknown", "True"]);
        let after = stage.get("Kustomization", "app").await;
        assert_eq!(before["status"]["inventory"], after["status"]["inventory"]);
        assert_eq!(settings, stage.get("ConfigMap", "settings").await);
    });
}
