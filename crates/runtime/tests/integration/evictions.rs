//! Evictions asked of a running replica, under the Role of the design: what a verdict rests on, and what it excludes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_runtime::gather::Gatherer;
use slipway_runtime::{Admissions, Environment, Operator, Settings};
use slipway_zones::admit::pod_eviction::PodEviction;
use slipway_zones::{Replicas, Zones};

use crate::role::{BUDGETS, SETS, define_budgets, design, grant, rule, zone};
use crate::stage::{Replica, Stage, alone, epoch, secs, virtually};
use crate::webhook::NoPods;

const ZONES: [&str; 2] = ["ingester-zone-a", "ingester-zone-b"];
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Two zones of two pods under a budget of one, and a replica that serves evictions and may keep no config maps.
pub(crate) struct Scene {
    stage: Stage,
    admissions: Admissions,
    replica: Replica,
    environment: Environment,
}

impl Scene {
    /// With zones that are up to date.
    async fn quiet() -> Self {
        Self::start(Self::quiet_stage().await).await
    }

    /// Zones that are up to date.
    pub(crate) async fn quiet_stage() -> Stage {
        let stage = Self::stage().await;
        for name in ZONES {
            update_to(&stage, name, "old").await;
        }
        stage
    }

    async fn stage() -> Stage {
        let stage = Stage::new().await;
        define_budgets(&stage).await;
        let mut rules = design();
        let group = "rollout-operator.grafana.com";
        rules.push(rule(group, BUDGETS, &["get", "list", "watch"]));
        grant(&stage, "rollout-operator-role", rules).await;
        for name in ZONES {
            zone(&stage, name).await;
        }
        let budget = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ZoneAwarePodDisruptionBudget",
            "metadata": {"name": "all"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {}}},
        });
        let path = format!("/apis/{group}/v1/namespaces/default/{BUDGETS}");
        stage.create(&path, &budget).await;
        // A budget is about `StatefulSet`s with its labels, and about pods with them: none is asked for.
        stage
    }

    async fn start(stage: Stage) -> Self {
        let client = Client::new(stage.cluster.service("weak").with_agent("one"), "default");
        Self::start_with(stage, client, alone()).await
    }

    /// With a replica that reaches the stage through this client.
    pub(crate) async fn start_with(stage: Stage, client: Client, settings: Settings) -> Self {
        let settings = Settings {
            namespace: "default".to_owned(),
            namespaces: vec!["default".to_owned()],
            ..settings
        };
        let environment = Environment::virtual_from(epoch(), 7);
        let operator = Operator::new(environment.clone(), client, settings);
        let gatherer = Gatherer::new(operator.client(), Arc::new(NoPods));
        let operator = operator
            .with(Arc::new(Zones::new(slipway_zones::Settings {
                replicas: Replicas::One,
                ..slipway_zones::Settings::default()
            })))
            .gathering(Arc::new(gatherer))
            .admitting(vec![Arc::new(PodEviction {
                replicas: Replicas::One,
            })]);
        let admissions = operator.admissions();
        let replica = Replica::run(operator);
        secs(1).await;
        Self {
            stage,
            admissions,
            replica,
            environment,
        }
    }

    async fn review(&self, namespace: &str, pod: &str, dry: bool) -> Value {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": format!("review-of-{pod}"), "operation": "CREATE", "name": pod, "namespace": namespace,
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": "eviction",
            "object": {"apiVersion": "policy/v1", "kind": "Eviction"}, "dryRun": dry,
        }});
        let request = Request::post("/admission/pod-eviction?timeout=10s")
            .header("content-type", "application/json")
            .body(Bytes::from(review.to_string()))
            .unwrap();
        let answer = self.admissions.answer(request).await;
        serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
    }

    /// None if it is let through; otherwise why it is not.
    pub(crate) async fn evict(&self, pod: &str) -> Option<String> {
        let said = self.review("default", pod, false).await;
        let is_allowed = said["allowed"] == json!(true);
        (!is_allowed).then(|| said["status"]["message"].as_str().unwrap().to_owned())
    }

    /// How often the API was asked for these, for reviews.
    fn reads(&self, resource: &str) -> usize {
        let reads = self.stage.records(|record| {
            record.context.contains("purpose=review") && record.resource.ends_with(resource)
        });
        reads.len()
    }
}

async fn update_to(stage: &Stage, name: &str, revision: &str) {
    let status = json!({"status": {"updateRevision": revision}});
    let path = format!("{SETS}/{name}/status");
    stage.send("PATCH", &path, &status).await;
}

async fn unready(stage: &Stage, pod: &str) {
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    stage
        .send("PATCH", &format!("{PODS}/{pod}/status"), &status)
        .await;
}

fn about(verb: &str, resource: &str) -> Match {
    Match {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        agent: "one".to_owned(),
        ..Match::default()
    }
}

const AWAY_IN_A: &str = "1 pod not ready in ingester-zone-a";

/// Between the request to delete a pod and the answer there are up to ten seconds, in which nothing can be seen of it, and
/// no config map tells of it.
#[test]
fn an_eviction_waits_while_a_rollouts_deletion_in_another_zone_is_on_its_way() {
    virtually(async {
        let stage = Scene::stage().await;
        let late = Fault::Delay(Duration::from_secs(8));
        let faults = stage.cluster.faults();
        faults.add(about("delete", "/pods"), Frequency::once(), late);
        let scene = Scene::start(stage).await;
        secs(2).await;
        for _ in 0..4 {
            let refused = scene.evict("ingester-zone-b-0").await;
            assert_eq!(refused.as_deref(), Some(AWAY_IN_A));
            secs(1).await;
        }
        secs(10).await;
        let gone = scene
            .stage
            .records(|r| r.verb == "delete" && r.agent == "one");
        assert_eq!(gone.len(), 1, "the rollout went on");
        let refused = scene.evict("ingester-zone-b-0").await;
        assert!(refused.is_some(), "the pod is seen to be gone");
        assert!(scene.replica.view.facts().deletions.is_empty());
    });
}

/// The mirror of it: an eviction that was let through is not seen yet, and no config map tells of it.
#[test]
fn a_rollout_waits_while_an_eviction_in_another_zone_is_on_its_way() {
    virtually(async {
        let scene = Scene::quiet().await;
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
        for name in ZONES {
            update_to(&scene.stage, name, "new").await;
        }
        for _ in 0..59 {
            let gone = scene
                .stage
                .records(|r| r.verb == "delete" && r.agent == "one");
            assert!(gone.is_empty(), "{gone:?}");
            secs(1).await;
        }
        // It did not come about: the rollout goes on.
        secs(20).await;
        let gone = scene
            .stage
            .records(|r| r.verb == "delete" && r.agent == "one");
        assert_eq!(gone.len(), 1);
    });
}

/// A deletion that was refused did not take a place; one that nobody has answered did.
#[test]
fn a_deletion_that_was_refused_holds_nobody_back() {
    virtually(async {
        let stage = Scene::stage().await;
        stage.refuse(
            about("delete", "/pods"),
            403,
            "Forbidden",
            Frequency::always(),
        );
        let scene = Scene::start(stage).await;
        secs(2).await;
        assert!(scene.replica.view.facts().deletions.is_empty());
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
    });
}

/// A deletion that nobody has answered may come about for a minute, whatever the clock shows.
#[test]
fn a_clock_that_is_set_prolongs_no_held_deletion() {
    virtually(async {
        let stage = Scene::stage().await;
        let faults = stage.cluster.faults();
        let twice = Frequency::Count { skip: 0, times: 2 };
        faults.add(about("delete", "/pods"), twice, Fault::Unreachable);
        let scene = Scene::start(stage).await;
        for name in ZONES {
            update_to(&scene.stage, name, "old").await;
        }
        secs(5).await;
        assert_eq!(scene.replica.view.facts().deletions.len(), 1);
        scene.environment.set_clock_by(-3_600);
        for _ in 0..40 {
            let refused = scene.evict("ingester-zone-b-0").await;
            assert_eq!(refused.as_deref(), Some(AWAY_IN_A));
            secs(1).await;
        }
        secs(30).await;
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
    });
}

#[test]
fn an_eviction_is_decided_on_the_api_and_not_on_a_watch_that_has_gone_silent() {
    virtually(async {
        let scene = Scene::quiet().await;
        let silent = WatchFault::Delay(Duration::from_secs(100_000));
        let faults = scene.stage.cluster.faults();
        faults.add_watch(about("watch", "/pods"), Frequency::always(), silent);
        unready(&scene.stage, "ingester-zone-a-1").await;
        secs(5).await;
        let refused = scene.evict("ingester-zone-b-0").await;
        assert_eq!(refused.as_deref(), Some(AWAY_IN_A));
        let dry = scene.review("default", "ingester-zone-b-0", true).await;
        assert_eq!(dry["allowed"], false);
    });
}

/// Without an answer of the API nobody goes, and the client is told why.
#[test]
fn an_eviction_is_refused_while_the_api_does_not_answer() {
    virtually(async {
        let scene = Scene::quiet().await;
        let faults = scene.stage.cluster.faults();
        faults.add(
            about("list", "/pods"),
            Frequency::always(),
            Fault::Unreachable,
        );
        let refused = scene.evict("ingester-zone-b-0").await.unwrap();
        let text = "unable to determine pod status in related StatefulSet: ";
        assert!(refused.starts_with(text), "{refused}");
        faults.clear();
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
    });
}

/// A server that sends all requests away is as good as none: nobody goes on what was seen before, nobody is let go without a
/// record, and the replica is not ready before long.
#[test]
fn an_eviction_is_refused_while_the_api_sends_all_requests_away() {
    virtually(async {
        let scene = Scene::quiet().await;
        let all = about("", "");
        let busy = Frequency::always();
        scene.stage.refuse(all, 429, "TooManyRequests", busy);
        assert!(scene.evict("ingester-zone-b-0").await.is_some());
        let view = &scene.replica.view;
        let mut seconds = 0;
        while view.is_ready() {
            secs(1).await;
            seconds += 1;
            assert!(seconds <= 60, "it has no contact");
        }
        assert!(view.is_healthy(), "the process goes on");
        assert!(scene.evict("ingester-zone-b-0").await.is_some());
        scene.stage.cluster.faults().clear();
        secs(15).await;
        assert!(view.is_ready());
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
    });
}

/// Reviews that wait together share a read, and none is served by one that began before it came.
#[test]
fn evictions_that_wait_together_share_a_read() {
    virtually(async {
        let scene = Scene::quiet().await;
        let before = scene.reads("pods");
        let dry = || scene.review("default", "ingester-zone-b-0", true);
        let all = futures::future::join_all((0..64).map(|_| dry())).await;
        assert!(all.iter().all(|said| said["allowed"] == true), "{all:?}");
        let reads = scene.reads("pods") - before;
        assert!((1..=3).contains(&reads), "{reads} reads for 64 reviews");
        dry().await;
        assert_eq!(
            scene.reads("pods") - before,
            reads + 1,
            "a later one has its own"
        );
    });
}

/// What was let go counts until a read that began after its time has shown it still there: no clock alone ends it.
#[test]
fn a_pod_that_was_let_go_counts_until_it_is_seen_to_have_stayed() {
    virtually(async {
        let scene = Scene::quiet().await;
        assert_eq!(scene.evict("ingester-zone-a-0").await, None);
        secs(50).await;
        assert_eq!(
            scene.evict("ingester-zone-b-0").await.as_deref(),
            Some(AWAY_IN_A)
        );
        let faults = scene.stage.cluster.faults();
        faults.add(
            about("list", "/pods"),
            Frequency::always(),
            Fault::Unreachable,
        );
        secs(60).await;
        assert!(!scene.replica.view.facts().evictions_allowed_here.is_empty());
        assert_eq!(
            scene.evict("ingester-zone-b-0").await.as_deref(),
            Some(AWAY_IN_A)
        );
        faults.clear();
        secs(30).await;
        assert!(scene.replica.view.facts().evictions_allowed_here.is_empty());
        assert_eq!(scene.evict("ingester-zone-b-0").await, None);
    });
}

/// However wide the webhook is registered: what is not watched is none of this replica's business.
#[test]
fn an_eviction_in_a_namespace_that_is_not_watched_is_let_through_and_asks_nobody() {
    virtually(async {
        let scene = Scene::quiet().await;
        let before = scene.stage.records(|record| record.agent == "one").len();
        let said = scene.review("kube-system", "coredns-0", false).await;
        assert_eq!(said["allowed"], true, "{said}");
        let warning = said["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("namespace kube-system is not watched"),
            "{warning}"
        );
        let after = scene.stage.records(|record| record.agent == "one").len();
        assert_eq!(after, before);
        assert!(scene.replica.view.facts().evictions_allowed_here.is_empty());
    });
}
