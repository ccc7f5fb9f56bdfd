//! `DaemonSets`, disruption budgets, autoscalers and kubelets, as a user sees them.

use crate::stage::{Stage, condition, play, workload};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};

#[test]
fn a_daemon_runs_on_every_node_also_on_new_ones() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("DaemonSet", "agent", 0, "agent:1", json!({})))
            .await;
        stage.settle().await;
        let nodes = |pods: Vec<Value>| {
            let mut nodes: Vec<_> = pods
                .iter()
                .map(|p| p["spec"]["nodeName"].as_str().unwrap().to_owned())
                .collect();
            nodes.sort();
            nodes
        };
        assert_eq!(
            nodes(stage.list("Pod").await),
            ["node-0", "node-1", "node-2"]
        );
        let status = stage.get("DaemonSet", "agent").await["status"].clone();
        for count in [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "numberAvailable",
            "updatedNumberScheduled",
        ] {
            assert_eq!(status[count], 3, "{count}");
        }
        assert_eq!(status["numberMisscheduled"], 0);
        stage
            .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-9"}}))
            .await;
        stage
            .patch("Node", "node-9", json!({"spec": {"taints": null}}))
            .await;
        stage.settle().await;
        assert_eq!(
            nodes(stage.list("Pod").await),
            ["node-0", "node-1", "node-2", "node-9"]
        );
        stage.delete("Node", "node-9").await;
        stage.settle().await;
        assert_eq!(
            nodes(stage.list("Pod").await),
            ["node-0", "node-1", "node-2"]
        );
    });
}

#[test]
fn a_daemon_rolls_one_node_at_a_time_or_adds_first() {
    let strategy = |rolling: Value| json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
    let cases = [
        (strategy(json!({"maxUnavailable": 1})), 3, 2),
        (strategy(json!({"maxSurge": 1, "maxUnavailable": 0})), 4, 3),
    ];
    for (spec, most, fewest) in cases {
        play(1, "{}", |stage| async move {
            stage
                .create(workload("DaemonSet", "agent", 0, "agent:1", spec))
                .await;
            stage.settle().await;
            let watcher = stage.watch_pods().await;
            stage.set_image("DaemonSet", "agent", "agent:2").await;
            stage.settle().await;
            let (seen_most, seen_fewest) = watcher.extremes();
            assert!(
                seen_most <= most && seen_fewest >= fewest,
                "{seen_most} {seen_fewest}"
            );
            assert!(
                stage
                    .images()
                    .await
                    .values()
                    .all(|image| image == "agent:2")
            );
            assert_eq!(stage.pods().await.len(), 3);
            assert_eq!(stage.list("ControllerRevision").await.len(), 2);
        });
    }
}

#[test]
fn a_daemon_on_delete_waits_for_somebody_to_delete() {
    play(1, "{}", |stage| async move {
        let spec = json!({"updateStrategy": {"type": "OnDelete"}});
        stage
            .create(workload("DaemonSet", "agent", 0, "agent:1", spec))
            .await;
        stage.settle().await;
        let watcher = stage.watch_pods().await;
        stage.set_image("DaemonSet", "agent", "agent:2").await;
        stage.pass(600).await;
        assert_eq!(watcher.extremes(), (3, 3));
        let first = stage.pods().await[0].clone();
        stage.delete("Pod", &first).await;
        stage.settle().await;
        let updated = stage
            .images()
            .await
            .values()
            .filter(|image| *image == "agent:2")
            .count();
        assert_eq!(updated, 1);
    });
}

fn budget(spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec,
    })
}

async fn allowed(stage: &Stage) -> (i64, i64, i64, i64) {
    let status = stage.get("PodDisruptionBudget", "web").await["status"].clone();
    let count = |field: &str| status[field].as_i64().unwrap();
    (
        count("disruptionsAllowed"),
        count("currentHealthy"),
        count("desiredHealthy"),
        count("expectedPods"),
    )
}

#[test]
fn a_budget_follows_its_pods() {
    let cases = [
        (json!({"minAvailable": 3}), (1, 4, 3, 4)),
        (json!({"minAvailable": "50%"}), (2, 4, 2, 4)),
        (json!({"maxUnavailable": 1}), (1, 4, 3, 4)),
        (json!({"maxUnavailable": "30%"}), (2, 4, 2, 4)),
        (json!({"maxUnavailable": 0}), (0, 4, 4, 4)),
    ];
    for (spec, expected) in cases {
        play(1, "{}", |stage| async move {
            stage.create(budget(spec.clone())).await;
            stage
                .create(workload("Deployment", "web", 4, "web:1", json!({})))
                .await;
            stage.settle().await;
            assert_eq!(allowed(&stage).await, expected, "{spec}");
            let web = stage.get("PodDisruptionBudget", "web").await;
            let reason = if expected.0 > 0 {
                "SufficientPods"
            } else {
                "InsufficientPods"
            };
            assert_eq!(condition(&web, "DisruptionAllowed").0, reason);
            assert_eq!(web["status"]["observedGeneration"], 1);
        });
    }
}

#[test]
fn evictions_are_refused_until_the_budget_has_recovered() {
    play(1, "start: 30s", |stage| async move {
        stage.create(budget(json!({"maxUnavailable": 1}))).await;
        stage
            .create(workload("Deployment", "web", 3, "web:1", json!({})))
            .await;
        stage.pass(60).await;
        let pods = stage.pods().await;
        let api: Api<Pod> = Api::default_namespaced(stage.client.clone());
        let evict = EvictParams::default();
        api.evict(&pods[0], &evict).await.unwrap();
        let refused = api.evict(&pods[1], &evict).await;
        assert!(
            matches!(&refused, Err(kube::Error::Api(status)) if status.code == 429),
            "{refused:?}"
        );
        stage.pass(20).await;
        assert_eq!(allowed(&stage).await, (0, 2, 2, 3));
        assert!(api.evict(&pods[1], &evict).await.is_err());
        stage.pass(20).await;
        assert_eq!(allowed(&stage).await, (1, 3, 2, 3));
        api.evict(&pods[1], &evict).await.unwrap();
    });
}

#[test]
fn an_autoscaler_follows_its_metric_up_at_once_and_down_after_a_while() {
    let script = "metrics: [{namespace: default, autoscaler: web, shared: true,
        steps: [{at: 0s, value: 100}, {at: 2m, value: 400}, {at: 10m, value: 100}]}]";
    play(1, script, |stage| async move {
        stage
            .create(workload("Deployment", "web", 2, "web:1", json!({})))
            .await;
        stage.create(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 1, "maxReplicas": 6,
                "metrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
                }}],
            },
        }))
        .await;
        let size = async |stage: &Stage| {
            stage.get("Deployment", "web").await["spec"]["replicas"]
                .as_i64()
                .unwrap()
        };
        stage.pass(100).await;
        assert_eq!(size(&stage).await, 2);
        stage.pass(100).await;
        // 400 over 50 would be 8.
        assert_eq!(size(&stage).await, 6);
        let web = stage.get("HorizontalPodAutoscaler", "web").await;
        assert_eq!(condition(&web, "ScalingLimited").0, "TooManyReplicas");
        assert_eq!(condition(&web, "ScalingActive").1, "True");
        assert_eq!(web["status"]["desiredReplicas"], 6);
        stage.pass(10 * 60 + 200 - 200).await;
        assert_eq!(size(&stage).await, 6, "the window of 300 s is not over");
        let web = stage.get("HorizontalPodAutoscaler", "web").await;
        assert_eq!(condition(&web, "AbleToScale").0, "ScaleDownStabilized");
        stage.pass(150).await;
        assert_eq!(size(&stage).await, 2);
        assert_eq!(stage.pods().await.len(), 2);
    });
}

#[test]
fn a_closed_readiness_gate_keeps_a_pod_unready() {
    play(1, "{}", |stage| async move {
        let gate = json!([{"conditionType": "example.com/warm"}]);
        let mut web = workload("Deployment", "web", 1, "web:1", json!({}));
        web["spec"]["template"]["spec"]["readinessGates"] = gate;
        stage.create(web).await;
        stage.pass(60).await;
        let pod = &stage.list("Pod").await[0];
        assert_eq!(condition(pod, "ContainersReady").1, "True");
        assert_eq!(condition(pod, "Ready").1, "False");
        let name = pod["metadata"]["name"].as_str().unwrap();
        let mut conditions = pod["status"]["conditions"].as_array().unwrap().clone();
        conditions.push(json!({"type": "example.com/warm", "status": "True"}));
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api = stage.api("Pod");
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        stage.pass(1).await;
        assert_eq!(condition(&stage.get("Pod", name).await, "Ready").1, "True");
        assert_eq!(
            stage.get("Deployment", "web").await["status"]["readyReplicas"],
            1
        );
    });
}

#[test]
fn containers_that_crash_for_a_time_come_back() {
    let script = "pods: [{match: {namePrefix: web-}, from: 1m, until: 3m, crash: {}}]";
    play(1, script, |stage| async move {
        stage
            .create(workload("Deployment", "web", 1, "web:1", json!({})))
            .await;
        stage.pass(50).await;
        assert_eq!(condition(&stage.list("Pod").await[0], "Ready").1, "True");
        stage.pass(60).await;
        let pod = &stage.list("Pod").await[0];
        assert_eq!(condition(pod, "Ready").1, "False");
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"]
            .as_i64()
            .unwrap();
        assert!(restarts >= 2, "{restarts}");
        stage.pass(400).await;
        let pod = &stage.list("Pod").await[0];
        assert_eq!(condition(pod, "Ready").1, "True");
        assert_eq!(stage.pods().await.len(), 1);
    });
}

#[test]
fn a_cordoned_node_gets_no_new_pods_but_keeps_its_daemons() {
    play(1, "{}", |stage| async move {
        stage
            .create(workload("DaemonSet", "agent", 0, "agent:1", json!({})))
            .await;
        stage
            .patch("Node", "node-1", json!({"spec": {"unschedulable": true}}))
            .await;
        stage
            .create(workload("Deployment", "web", 6, "web:1", json!({})))
            .await;
        stage.settle().await;
        let pods = stage.list("Pod").await;
        let on_it: Vec<_> = pods
            .iter()
            .filter(|pod| pod["spec"]["nodeName"] == "node-1")
            .collect();
        assert_eq!(on_it.len(), 1, "{on_it:?}");
        assert_eq!(on_it[0]["metadata"]["labels"]["app"], "agent");
    });
}
