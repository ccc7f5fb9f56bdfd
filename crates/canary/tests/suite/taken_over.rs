//! Copies that Flagger made, taken over when nothing is going on, and what is new afterwards.

use serde_json::{Value, json};
use slipway_api::canary::Phase;

use crate::cluster::Cluster;

fn gateway() -> Value {
    json!({
        "provider": "gatewayapi:v1",
        "service": {"port": 80, "gatewayRefs": [{"name": "gw"}]},
        "analysis": {"interval": "10s", "threshold": 2, "stepWeights": [50, 100]},
    })
}

/// A copy that Flagger made, with a status that it wrote.
fn adopted(phase: &str) -> Cluster {
    let mut cluster = Cluster::new(&gateway());
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    left_by_flagger(&mut cluster, phase);
    cluster
}

/// The copy has no mark of ours, and the status is Flagger's.
fn left_by_flagger(cluster: &mut Cluster, phase: &str) {
    let unmarked = json!({"metadata": {"annotations": {"slipway.dev/canary-revision": null}}});
    cluster.change("Deployment", "web-primary", &unmarked);
    let status = json!({"phase": phase, "canaryWeight": 0, "iterations": 0, "failedChecks": 0,
        "lastAppliedSpec": "5d8b9c7f6", "lastPromotedSpec": "5d8b9c7f6"});
    cluster.canary.status = Some(serde_json::from_value(status).unwrap());
}

#[test]
fn a_changed_config_reaches_a_copy_that_flagger_made() {
    for phase in ["Succeeded", "Progressing"] {
        let mut cluster = adopted(phase);
        if phase == "Succeeded" {
            assert_eq!(cluster.finish(), Phase::Succeeded, "nothing is new");
        } else {
            cluster.change("Deployment", "web", &json!({"spec": {"replicas": 3}}));
        }
        cluster.config("conf", "2");
        assert_eq!(cluster.finish(), Phase::Succeeded, "{:?}", cluster.holds);
        let both = ["conf", "conf-primary"].map(|name| cluster.checksum(name));
        assert_eq!(both[0], both[1], "{phase}: the copy has what was analysed");
    }
}

/// A chart's Deployment is called otherwise than its label says: Flagger's copy has the rules of the workload as they are.
#[test]
fn an_idle_canary_of_flaggers_whose_pods_keep_apart_stays_idle() {
    let rules = |app: &str| {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}});
        let repelled = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        json!({"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": repelled}}}}})
    };
    let mut cluster = Cluster::new(&gateway());
    let label = json!({"app": "chart"});
    let labels = json!({"spec": {"selector": {"matchLabels": label}, "template": {"metadata": {"labels": label}}}});
    cluster.change("Deployment", "web", &labels);
    cluster.change("Deployment", "web", &rules("chart"));
    assert_eq!(cluster.finish(), Phase::Initialized, "{:?}", cluster.holds);
    cluster.change("Deployment", "web-primary", &rules("chart"));
    left_by_flagger(&mut cluster, "Succeeded");
    assert_eq!(cluster.finish(), Phase::Succeeded, "nothing is new");
    assert!(
        !cluster.phases.contains(&Phase::Progressing),
        "{:?}",
        cluster.phases
    );
    cluster.change("Deployment", "web", &rules("other"));
    cluster.settle();
    assert_eq!(cluster.phase(), Phase::Progressing, "another rule is new");
}

#[test]
fn a_changed_init_container_or_label_reaches_a_copy_that_flagger_made() {
    let init = json!({"spec": {"initContainers": [{"name": "i", "image": "init:2"}]}});
    let label = json!({"metadata": {"labels": {"tier": "two"}}});
    for change in [init, label] {
        let mut cluster = Cluster::new(&gateway());
        let before = json!({"metadata": {"labels": {"tier": "one"}},
            "spec": {"initContainers": [{"name": "i", "image": "init:1"}]}});
        cluster.change("Deployment", "web", &json!({"spec": {"template": before}}));
        assert_eq!(cluster.finish(), Phase::Initialized);
        left_by_flagger(&mut cluster, "Succeeded");
        assert_eq!(cluster.finish(), Phase::Succeeded, "nothing is new");
        cluster.change("Deployment", "web", &json!({"spec": {"template": change}}));
        cluster.settle();
        assert_eq!(cluster.phase(), Phase::Progressing, "{change}");
        assert_eq!(cluster.finish(), Phase::Succeeded);
        let copy = cluster.get("Deployment", "web-primary")["spec"]["template"].clone();
        let wanted = cluster.get("Deployment", "web")["spec"]["template"].clone();
        let of = |template: &Value| {
            let label = template["metadata"]["labels"]["tier"].clone();
            (
                label,
                template["spec"]["initContainers"][0]["image"].clone(),
            )
        };
        assert_eq!(of(&copy), of(&wanted));
    }
}
