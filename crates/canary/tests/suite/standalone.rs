//! Whole runs of the standalone mode on plain objects.

use serde_json::{Value, json};
use slipway_api::canary::Phase;
use slipway_canary::reasons::Reason;
use slipway_canary::standalone::acts::give_back;
use slipway_canary::standalone::leave::leave;

use crate::cluster::{Cluster, workload};

fn gateway() -> Value {
    json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]}})
}

fn plain() -> Value {
    json!({"provider": "kubernetes", "analysis": {"stepWeight": null, "iterations": 2}})
}

fn started(spec: &Value) -> Cluster {
    let mut cluster = Cluster::new(spec);
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster
}

#[test]
fn a_canary_makes_its_copy_and_services_and_puts_the_workload_away() {
    let mut cluster = started(&gateway());
    assert_eq!(cluster.replicas("web"), 0);
    assert_eq!(cluster.replicas("web-primary"), 3);
    assert_eq!(cluster.image("web-primary"), "web:1");
    let selector = |name: &str| cluster.get("Service", name)["spec"]["selector"]["app"].clone();
    assert_eq!(
        ["web", "web-primary", "web-canary"].map(selector),
        ["web-primary", "web-primary", "web"]
    );
    let volumes = &cluster.get("Deployment", "web-primary")["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["configMap"]["name"], "conf-primary");
    let writes = cluster.writes;
    assert_eq!(cluster.settle(), None);
    cluster.wait(100_000);
    assert_eq!(cluster.writes, writes, "an idle canary costs nothing");
}

#[test]
fn nothing_is_taken_from_the_workload_before_the_copy_serves() {
    let mut cluster = Cluster::new(&gateway());
    cluster.heals = false;
    cluster.settle();
    assert_eq!(cluster.replicas("web"), 3);
    assert_eq!(
        cluster.objects.get("Service", "web"),
        None,
        "the apex is turned when the copy is ready"
    );
    assert!(cluster.holds.contains(&Reason::SourceNotReady));
    cluster.heals = true;
    cluster.controllers();
    assert_eq!(cluster.finish(), Phase::Initialized);
}

#[test]
fn a_new_image_is_shifted_to_and_promoted() {
    let mut cluster = started(&gateway());
    cluster.push("web:2");
    assert_eq!(cluster.finish(), Phase::Succeeded);
    assert_eq!(cluster.shares, [0, 50, 100, 0]);
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(cluster.replicas("web"), 0);
    let phases: Vec<&str> = cluster.phases.iter().map(|phase| phase.as_str()).collect();
    assert_eq!(
        phases,
        [
            "Initializing",
            "Initialized",
            "Progressing",
            "Promoting",
            "Finalising",
            "Succeeded"
        ]
    );
    cluster.push("web:3");
    assert_eq!(cluster.finish(), Phase::Succeeded);
    assert_eq!(cluster.image("web-primary"), "web:3");
}

/// What somebody changes of the replicas of a workload at rest is no version: the pods stay, and the next promotion takes the number.
#[test]
fn replicas_that_somebody_changes_begin_no_run_and_are_promoted() {
    let mut cluster = started(&gateway());
    cluster.change("Deployment", "web", &json!({"spec": {"replicas": 5}}));
    cluster.wait(1_000);
    assert_eq!(cluster.phase(), Phase::Initialized);
    assert_eq!(cluster.replicas("web"), 5);
    assert_eq!(cluster.replicas("web-primary"), 3);
    cluster.push("web:2");
    assert_eq!(cluster.finish(), Phase::Succeeded);
    let sizes = ["web", "web-primary"].map(|name| cluster.replicas(name));
    assert_eq!(sizes, [0, 5]);
}

#[test]
fn a_bad_image_goes_back_and_the_copy_is_as_it_was() {
    let mut cluster = started(&gateway());
    let before = cluster.get("Deployment", "web-primary")["spec"].clone();
    cluster.value = 5.0;
    cluster.push("web:bad");
    assert_eq!(cluster.finish(), Phase::Failed);
    assert_eq!(cluster.shares, [0, 50, 0]);
    assert_eq!(cluster.get("Deployment", "web-primary")["spec"], before);
    assert_eq!(cluster.replicas("web"), 0);
    cluster.value = 0.0;
    cluster.push("web:good");
    assert_eq!(cluster.finish(), Phase::Succeeded);
}

#[test]
fn without_a_router_it_is_blue_green() {
    let mut cluster = started(&plain());
    cluster.push("web:2");
    assert_eq!(cluster.finish(), Phase::Succeeded);
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(cluster.objects.get("HTTPRoute", "web"), None);
}

#[test]
fn scenario_17_a_changed_config_is_a_run_and_its_copy_changes_with_the_promotion() {
    let mut cluster = started(&gateway());
    cluster.config("conf", "2");
    cluster.settle();
    assert_eq!(cluster.phase(), Phase::Progressing);
    assert_ne!(cluster.checksum("conf"), cluster.checksum("conf-primary"));
    assert_eq!(cluster.finish(), Phase::Succeeded);
    assert_eq!(cluster.checksum("conf"), cluster.checksum("conf-primary"));
}

#[test]
fn scenario_20_a_config_that_is_missing_holds_everything() {
    let mut cluster = Cluster::new(&gateway());
    cluster.configs.clear();
    cluster.settle();
    assert!(cluster.holds.contains(&Reason::ConfigNotFound));
    assert_eq!(cluster.replicas("web"), 3);
}

#[test]
fn abort_during_a_promotion_restores_the_copy() {
    let mut cluster = started(&gateway());
    cluster.push("web:2");
    cluster.settle();
    for _ in 0..2 {
        cluster.now = cluster.settle().unwrap();
    }
    // The copy gets its template, and does not become ready.
    while cluster.phase() != Phase::Promoting {
        cluster.pass();
    }
    cluster.heals = false;
    cluster.settle();
    assert_eq!(cluster.image("web-primary"), "web:2");
    let command = json!({"verb": "abort", "id": "1", "by": "ann", "reason": "no"}).to_string();
    let annotations = cluster.canary.metadata.annotations.get_or_insert_default();
    annotations.insert("slipway.dev/canary-command".to_owned(), command);
    cluster.settle();
    assert_eq!(cluster.phase(), Phase::Failed);
    assert_eq!(cluster.image("web-primary"), "web:1");
    assert_eq!(cluster.shares.last(), Some(&100), "nobody else answers");
    cluster.heals = true;
    cluster.controllers();
    assert_eq!(cluster.finish(), Phase::Failed);
    assert_eq!(cluster.shares.last(), Some(&0));
    assert_eq!(cluster.replicas("web"), 0);
}

fn aborted(cluster: &mut Cluster) {
    let command = json!({"verb": "abort", "id": "1", "by": "ann", "reason": "no"}).to_string();
    let annotations = cluster.canary.metadata.annotations.get_or_insert_default();
    annotations.insert("slipway.dev/canary-command".to_owned(), command);
    cluster.settle();
    assert_eq!(cluster.phase(), Phase::Failed);
}

/// A run of a changed config whose promotion has begun.
fn reconfigured() -> (Cluster, String) {
    let mut cluster = started(&gateway());
    let before = cluster.checksum("conf-primary");
    cluster.config("conf", "2");
    cluster.settle();
    for _ in 0..2 {
        cluster.now = cluster.settle().unwrap();
    }
    while cluster.phase() != Phase::Promoting {
        cluster.pass();
    }
    (cluster, before)
}

#[test]
fn abort_during_a_promotion_restores_what_the_copy_is_configured_with() {
    let (mut cluster, before) = reconfigured();
    cluster.heals = false;
    cluster.settle();
    let promoted = cluster.checksum("conf");
    assert_eq!(cluster.checksum("conf-primary"), promoted);
    aborted(&mut cluster);
    assert_eq!(cluster.checksum("conf-primary"), before);
    let stamp = &cluster.get("Deployment", "web-primary")["metadata"]["annotations"];
    assert!(
        stamp["slipway.dev/canary-revision"]
            .as_str()
            .unwrap()
            .contains(&before)
    );
}

#[test]
fn abort_between_a_config_and_the_template_restores_the_config() {
    let (mut cluster, before) = reconfigured();
    while cluster.checksum("conf-primary") == before {
        cluster.pass();
    }
    aborted(&mut cluster);
    assert_eq!(cluster.checksum("conf-primary"), before);
    // And it can be tried again.
    let command = json!({"verb": "retry", "id": "2", "by": "ann", "reason": "yes"}).to_string();
    let annotations = cluster.canary.metadata.annotations.get_or_insert_default();
    annotations.insert("slipway.dev/canary-command".to_owned(), command);
    assert_eq!(cluster.finish(), Phase::Succeeded, "{:?}", cluster.holds);
    assert_eq!(cluster.checksum("conf-primary"), cluster.checksum("conf"));
}

#[test]
fn after_a_promotion_that_failed_nobody_is_led_by_a_match_any_more() {
    let mut spec = gateway();
    spec["analysis"] = json!({"stepWeight": null, "iterations": 1,
        "match": [{"headers": {"x": {"exact": "y"}}}]});
    let mut cluster = started(&spec);
    cluster.push("web:2");
    cluster.now = cluster.settle().unwrap();
    let rules = |cluster: &Cluster| cluster.get("HTTPRoute", "web")["spec"]["rules"].clone();
    assert_eq!(rules(&cluster).as_array().unwrap().len(), 2);
    while cluster.phase() != Phase::Promoting {
        cluster.pass();
    }
    cluster.heals = false;
    assert_eq!(cluster.finish(), Phase::Failed, "{:?}", cluster.holds);
    let all = rules(&cluster);
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    assert_eq!(all[0]["backendRefs"][1]["weight"], 100, "{all}");
}

fn scaled() -> Cluster {
    let mut spec = gateway();
    spec["autoscalerRef"] =
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"});
    let mut cluster = Cluster::new(&spec);
    cluster.put(
        json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minReplicas": 2, "maxReplicas": 30, "scaleTargetRef": {"name": "web"}}}),
    );
    cluster
}

#[test]
fn scenarios_95_and_97_the_copys_autoscaler_follows_promotions_and_nobody_lands_on_the_minimum() {
    let mut cluster = scaled();
    assert_eq!(cluster.finish(), Phase::Initialized);
    let most = |cluster: &Cluster| {
        cluster.get("HorizontalPodAutoscaler", "web-primary")["spec"]["maxReplicas"].clone()
    };
    assert_eq!(most(&cluster), 30);
    cluster.change(
        "HorizontalPodAutoscaler",
        "web",
        &json!({"metadata": {"labels": {"team": "b"}}, "spec": {"maxReplicas": 40}}),
    );
    cluster.settle();
    assert_eq!(most(&cluster), 30, "until the next promotion");
    // The copy's autoscaler has made it large.
    cluster.change(
        "Deployment",
        "web-primary",
        &json!({"spec": {"replicas": 20}}),
    );
    cluster.push("web:2");
    cluster.settle();
    assert_eq!(
        cluster.replicas("web"),
        10,
        "half of the traffic, half of the replicas"
    );
    cluster.now = cluster.settle().unwrap();
    cluster.settle();
    assert_eq!(cluster.replicas("web"), 20);
    cluster.change(
        "Deployment",
        "web-primary",
        &json!({"spec": {"replicas": 2}}),
    );
    assert_eq!(cluster.finish(), Phase::Succeeded);
    assert_eq!(cluster.replicas("web-primary"), 20);
    assert_eq!(most(&cluster), 40);
    let copy = cluster.get("HorizontalPodAutoscaler", "web-primary");
    assert_eq!(copy["metadata"]["labels"]["team"], "b", "D14");
}

#[test]
fn scenario_99_after_a_rollback_the_autoscalers_are_as_they_were() {
    let mut cluster = scaled();
    cluster.finish();
    let both = |cluster: &Cluster| {
        ["web", "web-primary"]
            .map(|name| cluster.get("HorizontalPodAutoscaler", name)["spec"].clone())
    };
    let before = both(&cluster);
    cluster.value = 5.0;
    cluster.push("web:bad");
    assert_eq!(cluster.finish(), Phase::Failed);
    assert_eq!(both(&cluster), before);
}

#[test]
fn a_missing_autoscaler_is_named_and_nothing_is_scaled() {
    let mut cluster = scaled();
    cluster
        .objects
        .0
        .retain(|(kind, _), _| kind != "HorizontalPodAutoscaler");
    cluster.settle();
    assert!(cluster.holds.contains(&Reason::AutoscalerNotFound));
    assert_eq!(cluster.replicas("web"), 3);
}

#[test]
fn a_canary_without_gateways_leaves_the_workload_as_it_is() {
    let mut cluster = Cluster::new(&json!({"provider": "gatewayapi:v1"}));
    cluster.settle();
    assert!(cluster.holds.contains(&Reason::InvalidSpec));
    assert_eq!(
        cluster.replicas("web"),
        3,
        "Flagger scales it to zero: an outage"
    );
    assert_eq!(cluster.phase(), Phase::Initializing);
}

#[test]
fn a_copy_that_never_became_ready_is_of_what_the_workload_is_corrected_to() {
    let mut cluster = Cluster::new(&gateway());
    cluster.heals = false;
    cluster.settle();
    assert_eq!(cluster.image("web-primary"), "web:1");
    cluster.push("web:2");
    cluster.settle();
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(cluster.phase(), Phase::Initializing);
    cluster.heals = true;
    cluster.controllers();
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    assert_eq!(cluster.image("web-primary"), "web:2");
    assert_eq!(cluster.replicas("web"), 0);
}

#[test]
fn a_copy_that_is_somebody_elses_is_not_touched() {
    let mut cluster = Cluster::new(&gateway());
    let mut theirs = workload("web-primary", "other:1");
    theirs["metadata"]["ownerReferences"] = json!([{"uid": "x", "controller": true}]);
    cluster.put(theirs.clone());
    cluster.settle();
    assert!(cluster.holds.contains(&Reason::NotOurs));
    assert_eq!(cluster.image("web-primary"), "other:1");
}

#[test]
fn the_apex_leads_back_to_the_workload_when_it_is_given_back() {
    let mut cluster = started(&gateway());
    let writes = cluster.with_seen(|seen| give_back(seen, &leave(seen).unwrap()));
    assert_eq!(writes.len(), 1);
    cluster.change(
        "Service",
        "web",
        &json!({"spec": {"selector": {"app": "web"}}}),
    );
    let again = cluster.with_seen(|seen| give_back(seen, &leave(seen).unwrap()));
    assert!(again.is_empty());
}

#[test]
fn what_flagger_left_in_the_middle_is_carried_to_its_end() {
    for (phase, weight, is_promoted) in [
        ("Initialized", 0, true),
        ("Succeeded", 0, true),
        ("Failed", 0, false),
        ("Progressing", 0, false),
        ("Progressing", 50, false),
        ("WaitingPromotion", 100, false),
        ("Promoting", 50, true),
        ("Finalising", 0, true),
    ] {
        let mut cluster = started(&gateway());
        if !is_promoted {
            cluster.push("web:2");
        }
        if weight > 0 || phase != "Failed" && !is_promoted {
            cluster.change("Deployment", "web", &json!({"spec": {"replicas": 3}}));
        }
        let rule = cluster.get("HTTPRoute", "web")["spec"]["rules"][0].clone();
        let mut rule = rule;
        rule["backendRefs"][0]["weight"] = json!(100 - weight);
        rule["backendRefs"][1]["weight"] = json!(weight);
        cluster.change("HTTPRoute", "web", &json!({"spec": {"rules": [rule]}}));
        // Flagger's primary has no mark of ours, and its status only its own hashes.
        cluster.change(
            "Deployment",
            "web-primary",
            &json!({"metadata": {"annotations": {"slipway.dev/canary-revision": null}}}),
        );
        let status = json!({"phase": phase, "canaryWeight": 0, "iterations": -1, "failedChecks": 0,
            "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "7c6d5f4b8"});
        cluster.canary.status = Some(serde_json::from_value(status).unwrap());
        let end = cluster.finish();
        let expected = match phase {
            "Initialized" => Phase::Initialized,
            "Failed" => Phase::Failed,
            _ => Phase::Succeeded,
        };
        assert_eq!(end, expected, "{phase} {weight}: {:?}", cluster.holds);
        let image = if is_promoted || phase == "Failed" {
            "web:1"
        } else {
            "web:2"
        };
        assert_eq!(cluster.image("web-primary"), image, "{phase} {weight}");
        assert_eq!(cluster.replicas("web"), 0, "{phase} {weight}");
    }
}

#[test]
fn a_client_that_saw_the_new_version_stays_there_and_forgets_it_at_the_end() {
    let mut spec = gateway();
    spec["analysis"] = json!({"sessionAffinity": {"cookieName": "seen", "maxAge": 60}});
    let mut cluster = started(&spec);
    cluster.push("web:2");
    cluster.settle();
    let status = cluster.canary.status.clone().unwrap();
    let cookie = status.session_affinity_cookie.unwrap();
    assert!(cookie.starts_with("seen="));
    let rules = |cluster: &Cluster| cluster.get("HTTPRoute", "web")["spec"]["rules"].clone();
    let value = &rules(&cluster)[0]["matches"][0]["headers"][0]["value"];
    assert_eq!(*value, format!(".*{cookie}.*"));
    assert_eq!(cluster.finish(), Phase::Succeeded);
    let status = cluster.canary.status.clone().unwrap();
    assert_eq!(status.session_affinity_cookie, None);
    assert_eq!(
        status.previous_session_affinity_cookie,
        Some(cookie.clone())
    );
    let first = &rules(&cluster)[0]["backendRefs"][0];
    let told = &first["filters"][0]["responseHeaderModifier"]["add"][0]["value"];
    assert_eq!(*told, format!("{cookie}; Max-Age=-1"));
    // Another version is another cookie.
    cluster.push("web:3");
    cluster.settle();
    let status = cluster.canary.status.clone().unwrap();
    assert_ne!(status.session_affinity_cookie.unwrap(), cookie);
}
