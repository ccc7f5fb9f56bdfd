//! What is somebody else's: a person's own objects, another Canary's, another program's.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use slipway_api::canary::Phase;
use slipway_canary::reasons::Reason;
use slipway_canary::stage::Stage;
use slipway_canary::standalone::configs::{Config, ConfigKind};

use crate::cluster::{Cluster, workload};
use crate::planner::{controllers, phase, settle, stage, status, until};

fn gateway() -> Value {
    json!({"provider": "gatewayapi:v1", "service": {"gatewayRefs": [{"name": "gw"}]}})
}

fn started() -> Cluster {
    let mut cluster = Cluster::new(&gateway());
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster
}

fn map(name: &str) -> Config {
    Config {
        kind: ConfigKind::ConfigMap,
        name: name.to_owned(),
    }
}

#[test]
fn a_workload_of_the_copys_name_that_nobody_controls_is_a_persons_own() {
    let mut cluster = Cluster::new(&gateway());
    cluster.put(workload("web-primary", "other:1"));
    cluster.controllers();
    cluster.settle();
    assert!(
        cluster.holds.contains(&Reason::NotOurs),
        "{:?}",
        cluster.holds
    );
    assert_eq!(cluster.image("web-primary"), "other:1");
    assert_eq!(cluster.replicas("web"), 3);
    assert_eq!(cluster.objects.get("Service", "web"), None);
}

#[test]
fn a_copy_of_ours_that_lost_its_owner_is_taken_again() {
    let mut cluster = started();
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    cluster.change("Deployment", "web-primary", &orphaned);
    for name in ["web-primary", "web-canary"] {
        cluster.change("Service", name, &orphaned);
    }
    cluster.push("web:2");
    assert_eq!(cluster.finish(), Phase::Succeeded, "{:?}", cluster.holds);
}

/// A server with `OwnerReferencesPermissionEnforcement` lets only those say so who may change finalizers of Canaries.
#[test]
fn what_is_owned_does_not_say_that_it_keeps_its_owner() {
    let cluster = started();
    let owners = cluster.objects.0.values().flat_map(|object| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.cloned().unwrap_or_default()
    });
    let owners: Vec<Value> = owners.collect();
    assert!(owners.len() >= 4, "{owners:?}");
    for owner in owners {
        assert_eq!(owner.get("blockOwnerDeletion"), None, "{owner}");
        assert_eq!(owner["controller"], true, "{owner}");
    }
}

#[test]
fn a_service_of_a_sides_name_that_leads_elsewhere_is_a_persons_own() {
    let mut cluster = Cluster::new(&gateway());
    let theirs = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web-primary", "namespace": "shop"},
        "spec": {"ports": [{"port": 5432}], "selector": {"role": "leader"}}});
    cluster.put(theirs.clone());
    cluster.settle();
    assert!(
        cluster.holds.contains(&Reason::NotOurs),
        "{:?}",
        cluster.holds
    );
    assert_eq!(*cluster.get("Service", "web-primary"), theirs);
    assert_eq!(cluster.replicas("web"), 3);
}

/// What is needed and is a person's own stays what it is, and nothing is taken from who serves.
fn is_left(spec: Value, theirs: &[Value]) {
    let mut cluster = Cluster::new(&spec);
    for object in theirs {
        cluster.put(object.clone());
    }
    let last = theirs.last().unwrap();
    let kind = last["kind"].as_str().unwrap().to_owned();
    let name = last["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.controllers();
    cluster.finish();
    let holds = &cluster.holds;
    assert!(holds.contains(&Reason::NotOurs), "{kind}: {holds:?}");
    let after = cluster.get(&kind, &name);
    assert_eq!(after["spec"], last["spec"], "{kind}");
    assert_eq!(after["metadata"], last["metadata"], "{kind}");
    assert_eq!(cluster.replicas("web"), 3, "{kind}");
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

#[test]
fn an_object_of_a_name_that_is_needed_is_a_persons_own() {
    let backend = |name: &str| json!([{"name": name, "port": 80}]);
    let rules = json!([{"backendRefs": backend("web")},
        {"matches": [{"path": {"value": "/api"}}], "backendRefs": backend("api")}]);
    let route = object("HTTPRoute", "web", json!({"rules": rules}));
    is_left(gateway(), &[route]);
    // One that leads to the sides already, and says more.
    let sides = json!([{"name": "web-primary", "port": 80, "weight": 100},
        {"name": "web-canary", "port": 80, "weight": 0}]);
    let rules = json!([{"backendRefs": sides}, {"backendRefs": backend("api")}]);
    let route = object("HTTPRoute", "web", json!({"rules": rules}));
    is_left(gateway(), &[route]);
    let backends = json!([{"service": "a", "weight": 30}, {"service": "b", "weight": 70}]);
    let split = object(
        "TrafficSplit",
        "web",
        json!({"service": "web", "backends": backends}),
    );
    is_left(json!({"provider": "smi:v1alpha2"}), &[split]);
    let host = json!({"host": "web-primary.other.svc"});
    let rule = object("DestinationRule", "web-primary", host);
    is_left(json!({"provider": "istio"}), &[rule]);
    let ingress = |name: &str, to: &str| {
        let path =
            json!({"path": "/", "backend": {"service": {"name": to, "port": {"number": 80}}}});
        object(
            "Ingress",
            name,
            json!({"rules": [{"http": {"paths": [path]}}]}),
        )
    };
    let both = [ingress("shop", "web"), ingress("shop-canary", "web-v2")];
    let by = json!({"provider": "nginx",
        "ingressRef": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "shop"}});
    is_left(by, &both);
    let scaler = |name: &str, most: u32| {
        object(
            "HorizontalPodAutoscaler",
            name,
            json!({"maxReplicas": most}),
        )
    };
    let mut by = gateway();
    by["autoscalerRef"] = json!({"apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler", "name": "web"});
    is_left(by, &[scaler("web", 10), scaler("web-primary", 4)]);
}

#[test]
fn a_route_of_ours_that_lost_its_owner_is_taken_again() {
    let mut cluster = started();
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    cluster.change("HTTPRoute", "web", &orphaned);
    cluster.push("web:2");
    assert_eq!(cluster.finish(), Phase::Succeeded, "{:?}", cluster.holds);
}

#[test]
fn a_config_of_a_copys_name_is_not_overwritten() {
    let mut cluster = Cluster::new(&gateway());
    cluster.config("conf-primary", "of the primary database");
    let before = cluster.checksum("conf-primary");
    cluster.settle();
    assert!(
        cluster.holds.contains(&Reason::NotOurs),
        "{:?}",
        cluster.holds
    );
    assert_eq!(cluster.checksum("conf-primary"), before);
    assert_eq!(cluster.objects.get("Deployment", "web-primary"), None);
    assert_eq!(cluster.replicas("web"), 3);
}

#[test]
fn a_secret_of_a_copys_name_is_not_overwritten_through_the_planner() {
    let mut stage = stage(&json!({}));
    for (name, value) in [("db", "YQ=="), ("db-primary", "Yg==")] {
        stage.put(
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": "shop"}, "data": {"password": value}}),
        );
    }
    let env = json!([{"secretRef": {"name": "db"}}]);
    let containers = json!([{"name": "c", "image": "web:1", "envFrom": env}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    stage.patch("Deployment", "shop", "web", &patch);
    controllers(&mut stage);
    settle(&mut stage, 200);
    let secret = stage.get("Secret", "shop", "db-primary").unwrap();
    assert_eq!(secret["data"]["password"], "Yg==");
    assert_eq!(status(&stage)["waitingFor"][0]["reason"], "NotOurs");
}

#[test]
fn a_config_that_another_canary_uses_is_not_taken_back() {
    let mut cluster = started();
    cluster.value = 5.0;
    cluster.config("conf", "2");
    assert_eq!(cluster.finish(), Phase::Failed);
    // The other one has promoted it.
    let promoted = cluster.configs[&map("conf")].clone();
    let before = cluster.configs[&map("conf-primary")].clone();
    let both = BTreeSet::from(["u1".to_owned(), "u2".to_owned()]);
    for (name, mut known) in [("conf-primary", promoted), ("conf-primary-former", before)] {
        known.owners.clone_from(&both);
        cluster.configs.insert(map(name), known);
    }
    let writes = cluster.writes;
    cluster.settle();
    assert_eq!(cluster.checksum("conf-primary"), cluster.checksum("conf"));
    assert_eq!(cluster.writes, writes, "nothing is written");
    assert!(cluster.holds.contains(&Reason::TemplateLost), "it is said");
}

#[test]
fn a_config_that_vanishes_at_the_end_of_a_run_holds_the_promotion() {
    let mut cluster = started();
    cluster.push("web:2");
    cluster.settle();
    for _ in 0..2 {
        cluster.now = cluster.settle().unwrap();
    }
    let gone = cluster.configs.remove(&map("conf")).unwrap();
    cluster.settle();
    assert_eq!(cluster.phase(), Phase::Promoting);
    assert!(
        cluster.holds.contains(&Reason::ConfigNotFound),
        "{:?}",
        cluster.holds
    );
    assert_eq!(cluster.image("web-primary"), "web:1");
    cluster.configs.insert(map("conf"), gone);
    assert_eq!(cluster.finish(), Phase::Succeeded, "{:?}", cluster.holds);
    let template = &cluster.get("Deployment", "web-primary")["spec"]["template"]["spec"];
    assert_eq!(template["volumes"][0]["configMap"]["name"], "conf-primary");
    assert_eq!(cluster.image("web-primary"), "web:2");
}

#[test]
fn a_workload_that_is_the_copy_of_another_canary_is_not_taken() {
    let mut cluster = started();
    let mut other = crate::cluster::canary(&json!({"service": {"name": "other"},
        "targetRef": {"name": "web-primary"}, "provider": "kubernetes"}));
    other.metadata.uid = Some("u2".to_owned());
    cluster.canary = other;
    cluster.settle();
    assert!(
        cluster.holds.contains(&Reason::NotOurs),
        "{:?}",
        cluster.holds
    );
    assert_eq!(cluster.replicas("web-primary"), 3);
}

#[test]
fn another_workload_gets_its_own_copy_and_the_former_one_serves_until_that_is_ready() {
    let mut cluster = Cluster::new(
        &json!({"provider": "kubernetes", "service": {"name": "shop"},
        "analysis": {"stepWeight": null, "iterations": 2}}),
    );
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster.put(workload("api", "api:1"));
    cluster.canary.spec.target_ref.name = "api".to_owned();
    cluster.heals = false;
    cluster.settle();
    assert!(
        cluster.holds.contains(&Reason::SourceNotReady),
        "{:?}",
        cluster.holds
    );
    let leads = |cluster: &Cluster, name: &str| {
        cluster.get("Service", name)["spec"]["selector"]["app"].clone()
    };
    for name in ["shop", "shop-primary"] {
        assert_eq!(leads(&cluster, name), "web-primary");
    }
    cluster.heals = true;
    cluster.controllers();
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    assert_eq!(cluster.image("api-primary"), "api:1");
    for name in ["shop", "shop-primary"] {
        assert_eq!(leads(&cluster, name), "api-primary");
    }
    assert_eq!(
        cluster.image("web-primary"),
        "web:1",
        "the former one is left"
    );
}

/// A Canary that was there before, and comes to be about the same workload.
fn older(stage: &mut Stage) {
    let spec = json!({"provider": "kubernetes", "service": {"port": 80},
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "analysis": {"interval": "10s", "threshold": 2, "iterations": 2}});
    stage.put(json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
        "metadata": {"name": "web-older", "namespace": "shop", "creationTimestamp": "2025-03-04T11:00:00Z"},
        "spec": spec}));
}

#[test]
fn who_has_the_copy_acts_however_old_another_one_is() {
    let mut stage = stage(&json!({"revertOnDeletion": true}));
    until(&mut stage, "Initialized");
    older(&mut stage);
    settle(&mut stage, 200);
    assert!(
        status(&stage)["waitingFor"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    crate::planner::push(&mut stage, "web:2");
    until(&mut stage, "Succeeded");
    // What is deleted is what has the workload: that is given back.
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-03-04T12:00:00Z"}});
    stage.patch("Canary", "shop", "web", &deleted);
    settle(&mut stage, 200);
    assert_eq!(phase(&stage), "Terminating");
    let target = stage.get("Deployment", "shop", "web").unwrap();
    assert_eq!(target["spec"]["replicas"], 3);
    let apex = stage.get("Service", "shop", "web").unwrap();
    assert_eq!(apex["spec"]["selector"]["app"], "web");
}

#[test]
fn what_flagger_was_at_is_not_taken_for_what_came_since() {
    for (left, image) in [("Promoting", "web:2"), ("Finalising", "web:2")] {
        let mut cluster = started();
        let unmarked = json!({"metadata": {"annotations": {"slipway.dev/canary-revision": null}}});
        cluster.change("Deployment", "web-primary", &unmarked);
        let given = json!({"phase": left, "canaryWeight": 0, "iterations": 0, "failedChecks": 0,
            "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "7c6d5f4b8"});
        cluster.canary.status = Some(serde_json::from_value(given).unwrap());
        // Pushed while nobody acted.
        cluster.push(image);
        let patch = json!({"spec": {"replicas": 3}});
        cluster.change("Deployment", "web", &patch);
        cluster.value = 5.0;
        assert_eq!(cluster.finish(), Phase::Failed, "{left}: it is analysed");
        assert_eq!(cluster.image("web-primary"), "web:1", "{left}");
        cluster.value = 0.0;
        cluster.push("web:3");
        assert_eq!(cluster.finish(), Phase::Succeeded, "{left}");
        assert_eq!(cluster.image("web-primary"), "web:3", "{left}");
    }
}

#[test]
fn a_run_of_flaggers_whose_version_was_put_back_ends() {
    for left in ["Progressing", "WaitingPromotion"] {
        let mut cluster = started();
        let unmarked = json!({"metadata": {"annotations": {"slipway.dev/canary-revision": null}}});
        cluster.change("Deployment", "web-primary", &unmarked);
        let given = json!({"phase": left, "canaryWeight": 50, "iterations": 0, "failedChecks": 0,
            "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "7c6d5f4b8"});
        cluster.canary.status = Some(serde_json::from_value(given).unwrap());
        cluster.change("Deployment", "web", &json!({"spec": {"replicas": 3}}));
        cluster.value = 5.0;
        assert_eq!(cluster.finish(), Phase::Succeeded, "{left}: nothing is new");
        assert_eq!(cluster.replicas("web"), 0);
        let before = cluster.phases.clone();
        assert!(!before.contains(&Phase::Promoting), "{before:?}");
    }
}
