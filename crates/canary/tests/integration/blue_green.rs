//! Plain Services: a version proves itself beside the traffic, then the copy that serves becomes of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::stage::{CANARIES, DEPLOYMENTS, SERVICES, Stage, play, secs};

async fn set_up(stage: &Stage) {
    stage.workload("web:1").await;
    stage.canary(&json!({"analysis": {"iterations": 3}})).await;
}

/// The smallest story: a copy is made, the workload rests; a new image is checked three times, and serves.
#[test]
fn a_new_image_takes_over_after_its_iterations() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        assert_eq!(stage.replicas("web").await, 0);
        assert_eq!(stage.replicas("web-primary").await, 3);
        for (name, app) in [
            ("web", "web-primary"),
            ("web-primary", "web-primary"),
            ("web-canary", "web"),
        ] {
            let service = stage.get(&format!("{SERVICES}/{name}")).await;
            assert_eq!(service["spec"]["selector"], json!({"app": app}), "{name}");
        }
        stage.push("web:2").await;
        stage.until("Progressing", 5).await;
        assert_eq!(stage.image("web-primary").await, "web:1");
        let took = stage.until("Succeeded", 90).await;
        assert!(
            (30..=60).contains(&took),
            "three iterations of ten seconds took {took} s"
        );
        assert_eq!(stage.image("web-primary").await, "web:2");
        assert_eq!(stage.replicas("web").await, 0);
        assert_eq!(stage.replicas("web-primary").await, 3);
        let status = stage.status().await;
        assert_eq!(status["conditions"][0]["type"], "Promoted");
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["lastAppliedSpec"], status["lastPromotedSpec"]);
        let told = stage.events().await;
        for text in [
            "Initialization done",
            "New revision detected!",
            "Advance: iteration 3/3",
            "Promotion completed!",
        ] {
            assert!(
                told.iter().any(|one| one.contains(text)),
                "{text}: {told:#?}"
            );
        }
    });
}

/// Scenario 82: a version whose pods crash goes back, and what serves is not touched.
#[test]
fn a_version_that_never_gets_ready_is_sent_back_in_time() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let spec = json!({"analysis": {"iterations": 3}, "progressDeadlineSeconds": 60});
        stage.canary(&spec).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:broken").await;
        secs(30).await;
        assert_eq!(stage.phase().await, "Progressing");
        assert_eq!(stage.waits().await, ["TargetNotReady"]);
        let took = stage.until("Failed", 60).await;
        assert!(took >= 25, "{took}");
        stage.until("Failed", 1).await;
        secs(5).await;
        assert_eq!(stage.image("web-primary").await, "web:1");
        assert_eq!(stage.replicas("web").await, 0);
        // D1: the version that comes after a failure is analysed.
        stage.push("web:3").await;
        stage.until("Succeeded", 120).await;
        assert_eq!(stage.image("web-primary").await, "web:3");
    });
}

/// An idle Canary costs nothing.
#[test]
fn nothing_is_written_while_nothing_happens() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(30).await;
        for _ in 0..20 {
            // Only the last requests are kept, and somebody looks all the time.
            let before = stage.requests();
            secs(60).await;
            assert_eq!(stage.writes_since(before), 0);
        }
    });
}

/// `skipAnalysis`: promoted as soon as it is ready.
#[test]
fn without_analysis_a_ready_version_takes_over_at_once() {
    play(|stage| async move {
        stage.workload("web:1").await;
        let spec = json!({"skipAnalysis": true, "analysis": {"iterations": 10}});
        stage.canary(&spec).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.push("web:2").await;
        let took = stage.until("Succeeded", 60).await;
        assert!(took < 30, "{took}");
        assert_eq!(stage.image("web-primary").await, "web:2");
    });
}

/// Scenario 109.
#[test]
fn a_suspended_canary_does_nothing_until_it_is_resumed() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        stage.suspend(true).await;
        stage.push("web:2").await;
        secs(120).await;
        assert_eq!(stage.phase().await, "Initialized");
        assert_eq!(stage.replicas("web").await, 0);
        assert_eq!(stage.waits().await, ["Suspended"]);
        stage.suspend(false).await;
        stage.until("Succeeded", 120).await;
        secs(6).await;
        assert_eq!(stage.waits().await, Vec::<String>::new());
    });
}

/// What is written for Canaries since there were so many requests, besides what is told: resource and name.
fn written(stage: &Stage, before: u64) -> BTreeSet<(String, String)> {
    let asked = stage.asked_since(before).into_iter();
    let writes = asked.filter(|one| {
        let is_ours = one.context.starts_with("controller=canary");
        let is_read = ["get", "list", "watch"].contains(&one.verb.as_str());
        is_ours && !is_read && !one.resource.contains("events")
    });
    writes.map(|one| (one.resource, one.name)).collect()
}

/// Scenario 114: of two Canaries about one workload the first one acts; the other one writes nothing but why it waits.
#[test]
fn the_second_canary_of_a_workload_waits_for_the_first_to_go() {
    play(|stage| async move {
        set_up(&stage).await;
        let _operator = stage.operate();
        stage.until("Initialized", 60).await;
        secs(10).await;
        let mut other = stage.get(&format!("{CANARIES}/web")).await;
        other["metadata"] = json!({"name": "other"});
        other["status"] = json!(null);
        // What it would make has names of its own.
        other["spec"]["service"]["name"] = json!("other");
        let before = stage.requests();
        stage.create(CANARIES, &other).await;
        secs(20).await;
        let own = ("flagger.app/canaries/status".to_owned(), "other".to_owned());
        assert_eq!(written(&stage, before), [own.clone()].into());
        let path = format!("{CANARIES}/other");
        let waits = stage.get(&path).await;
        assert_eq!(waits["status"]["waitingFor"][0]["reason"], "TargetBusy");
        let before = stage.requests();
        stage.push("web:2").await;
        stage.until("Succeeded", 120).await;
        secs(10).await;
        let written = written(&stage, before);
        let names: BTreeSet<&str> = written.iter().map(|(_, name)| name.as_str()).collect();
        assert!(names.contains("web-primary"), "{names:?}");
        let is_other = |one: &&(String, String)| one.1.starts_with("other") && **one != own;
        let others: Vec<_> = written.iter().filter(is_other).collect();
        assert!(others.is_empty(), "{others:?}");
        for name in ["other", "other-primary", "other-canary"] {
            let service = stage.find(&format!("{SERVICES}/{name}")).await;
            assert!(service.is_none(), "{name}");
        }
        let copy = stage.get(&format!("{DEPLOYMENTS}/web-primary")).await;
        let owners = copy["metadata"]["ownerReferences"].as_array().unwrap();
        let names: Vec<&Value> = owners.iter().map(|owner| &owner["name"]).collect();
        assert_eq!(names, ["web"]);
        let other = stage.get(&path).await;
        assert_eq!(other["status"]["waitingFor"][0]["reason"], "TargetBusy");
        let tried = other["status"]["lastAppliedSpec"].as_str();
        assert_eq!(tried.unwrap_or_default(), "", "{other:#}");
    });
}

/// D18, scenario 108: what nobody knows is refused, and nothing is touched.
#[test]
fn an_unknown_provider_is_refused_before_anything_is_made() {
    play(|stage| async move {
        stage.workload("web:1").await;
        stage
            .canary(&json!({"provider": "istoi", "analysis": {"iterations": 3}}))
            .await;
        let _operator = stage.operate();
        secs(60).await;
        assert_eq!(stage.waits().await, ["InvalidSpec"]);
        assert_eq!(stage.replicas("web").await, 3);
        assert!(stage.find(&format!("{SERVICES}/web")).await.is_none());
    });
}
