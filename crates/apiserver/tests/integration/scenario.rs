//! A run with everything in it that could make two runs differ: several clients and watchers, writes of all kinds,
//! garbage collection, a webhook, faults by seed, and hours of virtual time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, ResourceExt};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::collect;
use slipway_apiserver::environment::{Call, Entropy, InProcess, Peer, SeededEntropy};
use slipway_apiserver::faults::{Fault, Frequency, Match, WatchFault};
use slipway_apiserver::status::Status;

use super::stage::{Steady, client, config, map, maps, send, typed};

const STEPS: usize = 12;

/// Plays the scenario of this seed to its end.
pub(crate) async fn play(seed: u64) -> Arc<Cluster> {
    let services = Arc::new(InProcess::default());
    services.register("https://hook.default.svc", label_or_deny());
    let cluster = config("scenario", seed, services).build();
    tokio::spawn(collect::run(cluster.clone()));
    install_webhook(&cluster).await;
    misbehave(&cluster, seed);

    let list = tokio::spawn(follow(
        client(&cluster, "lister"),
        watcher::Config::default(),
    ));
    let streaming = watcher::Config::default().streaming_lists().timeout(200);
    let stream = tokio::spawn(follow(client(&cluster, "streamer"), streaming));
    let workers: Vec<_> = (0..3)
        .map(|n| tokio::spawn(work(client(&cluster, &format!("worker-{n}")), n, seed)))
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    tokio::time::sleep(Duration::from_hours(2)).await;
    list.abort();
    stream.abort();
    cluster.shut_down();
    cluster
}

/// A webhook that adds a label and wants no map whose name ends in `-5`.
fn label_or_deny() -> Peer {
    Arc::new(|call: Call| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            let review: Value = serde_json::from_slice(&call.body).unwrap();
            let name = review["request"]["name"].as_str().unwrap_or_default();
            // `[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`
            let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7InNlZW4iOiJ5ZXMifX1d";
            let answer = json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {
                    "uid": review["request"]["uid"],
                    "allowed": !name.ends_with("-5"),
                    "status": {"message": "no five"},
                    "patchType": "JSONPatch",
                    "patch": patch
                }
            });
            Ok((200, answer.to_string().into()))
        })
    })
}

async fn install_webhook(cluster: &Arc<Cluster>) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.com",
            "clientConfig": {"service": {"name": "hook", "namespace": "default", "path": "/admit"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 2
        }]
    });
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(configuration.to_string().into())
        .unwrap();
    assert_eq!(send(cluster, request).await.status(), 201);
}

fn misbehave(cluster: &Cluster, seed: u64) {
    let faults = cluster.faults();
    let from = |agent: &str| Match {
        agent: agent.to_owned(),
        ..Match::default()
    };
    let error = Status::failure(500, "InternalError", "on purpose");
    let slow = Fault::Delay(Duration::from_secs(3));
    faults.add(
        from("worker"),
        Frequency::seeded(60, seed),
        Fault::Refuse(Box::new(error)),
    );
    faults.add(from("worker"), Frequency::seeded(60, seed + 1), Fault::Lose);
    faults.add(from(""), Frequency::seeded(100, seed + 2), slow);
    faults.add(
        from("lister"),
        Frequency::seeded(50, seed + 3),
        Fault::Unreachable,
    );
    faults.add_watch(
        from("lister"),
        Frequency::seeded(40, seed + 4),
        WatchFault::Gone,
    );
    faults.add_watch(from(""), Frequency::seeded(40, seed + 5), WatchFault::Close);
    faults.add_watch(
        from(""),
        Frequency::seeded(80, seed + 6),
        WatchFault::Duplicate,
    );
    let late = WatchFault::Delay(Duration::from_millis(700));
    faults.add_watch(from("streamer"), Frequency::seeded(80, seed + 7), late);
}

/// Answers each change of a map that is wanted with an apply of its own, and lets go what is being deleted.
async fn follow(client: Client, config: watcher::Config) {
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let events = watcher(maps, config).backoff(Steady(Duration::from_secs(1)));
    let mut events = pin!(events.applied_objects());
    loop {
        let Ok(Some(map)) = events.try_next().await else {
            continue;
        };
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &map.namespace().unwrap());
        if map.metadata.deletion_timestamp.is_some() {
            let free = json!({"metadata": {"finalizers": null}});
            let _ = api
                .patch(
                    &map.name_any(),
                    &PatchParams::default(),
                    &Patch::Merge(free),
                )
                .await;
        } else if let Some(value) = map.data.as_ref().and_then(|data| data.get("k")) {
            let seen = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": map.name_any(), "annotations": {"example.com/seen": value}}
            });
            let apply = PatchParams::apply("follower").force();
            let _ = api
                .patch(&map.name_any(), &apply, &Patch::Apply(seen))
                .await;
        }
    }
}

/// Makes namespaces and maps that own each other, changes them, and deletes them again. Failures are part of the run.
async fn work(client: Client, number: u64, seed: u64) {
    let dice = SeededEntropy::new(seed * 31 + number);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let name = format!("space-{number}");
    let space: Namespace = typed(json!({"metadata": {"name": name}}));
    let _ = namespaces.create(&PostParams::default(), &space).await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &name);
    for step in 0..STEPS {
        let name = format!("m-{step}");
        let mut owner = map(&name, "0");
        if dice.draw().is_multiple_of(2) {
            owner.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
        }
        let made = api.create(&PostParams::default(), &owner).await;
        if let Ok(owner) = made {
            let reference = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "name": name, "uid": owner.uid(), "blockOwnerDeletion": true
            });
            let child =
                json!({"metadata": {"generateName": "child-", "ownerReferences": [reference]}});
            let _ = api.create(&PostParams::default(), &typed(child)).await;
        }
        tokio::time::sleep(Duration::from_millis((dice.draw() % 100_000) as u64)).await;
        let change = json!({"data": {"k": format!("{}", dice.draw() % 7)}});
        let _ = api
            .patch(&name, &PatchParams::default(), &Patch::Merge(change))
            .await;
        let _ = api.list(&ListParams::default().limit(2)).await;
        let policy = match dice.draw() % 3 {
            0 => DeleteParams::foreground(),
            1 => DeleteParams::background(),
            _ => DeleteParams::orphan(),
        };
        let _ = api.delete(&name, &policy).await;
        let _ = maps(&client).get_opt(&name).await;
    }
    let _ = namespaces.delete(&name, &DeleteParams::default()).await;
}
