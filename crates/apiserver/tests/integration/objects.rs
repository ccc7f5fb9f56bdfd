//! A kube client on the embedded server: what operators do all day.

use std::pin::pin;

use futures::{StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{
    Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    ResourceExt, WatchEvent, WatchParams,
};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::{Value, json};

use super::stage::{client, cluster, map, maps, refused, typed, virtually};

#[test]
fn objects_are_created_read_replaced_and_deleted() {
    virtually(async {
        let api = maps(&client(&cluster(), "test"));
        let made = api
            .create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        let again = refused(api.create(&PostParams::default(), &map("a", "1")).await);
        assert_eq!((again.code, &*again.reason), (409, "AlreadyExists"));
        let mut changed = made.clone();
        changed.data = map("a", "2").data;
        let changed = api
            .replace("a", &PostParams::default(), &changed)
            .await
            .unwrap();
        assert_ne!(changed.resource_version(), made.resource_version());
        let stale = refused(api.replace("a", &PostParams::default(), &made).await);
        assert_eq!((stale.code, &*stale.reason), (409, "Conflict"));
        assert_eq!(api.get("a").await.unwrap().data, changed.data);
        assert!(
            api.delete("a", &DeleteParams::default())
                .await
                .unwrap()
                .is_right()
        );
        let gone = refused(api.get("a").await);
        assert_eq!(gone.message, "configmaps \"a\" not found");
        let bad = refused(
            api.create(&PostParams::default(), &map("Not_A_Name", "1"))
                .await,
        );
        assert_eq!((bad.code, &*bad.reason), (422, "Invalid"));
        assert_eq!(bad.details.unwrap().causes[0].field, "metadata.name");
    });
}

#[test]
fn dry_runs_change_nothing() {
    virtually(async {
        let api = maps(&client(&cluster(), "test"));
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let shown = api.create(&dry, &map("a", "1")).await.unwrap();
        assert!(shown.uid().is_some());
        assert!(api.get_opt("a").await.unwrap().is_none());
    });
}

#[test]
fn lists_come_in_pages_and_by_selector() {
    virtually(async {
        let api = maps(&client(&cluster(), "test"));
        for n in 0..7 {
            let mut map = map(&format!("m-{n}"), "1");
            map.labels_mut()
                .insert("even".to_owned(), (n % 2 == 0).to_string());
            api.create(&PostParams::default(), &map).await.unwrap();
        }
        let first = api.list(&ListParams::default().limit(3)).await.unwrap();
        assert_eq!(first.metadata.remaining_item_count, Some(4));
        let token = first.metadata.continue_.unwrap();
        let rest = ListParams::default().limit(10).continue_token(&token);
        assert_eq!(api.list(&rest).await.unwrap().items.len(), 4);
        let even = ListParams::default().labels("even in (true)");
        assert_eq!(api.list(&even).await.unwrap().items.len(), 4);
        let one = ListParams::default().fields("metadata.name=m-3");
        assert_eq!(
            api.list_metadata(&one).await.unwrap().items[0].name_any(),
            "m-3"
        );
        let dp = DeleteParams::default();
        api.delete_collection(&dp, &even).await.unwrap();
        assert_eq!(
            api.list(&ListParams::default()).await.unwrap().items.len(),
            3
        );
    });
}

fn deployment() -> Deployment {
    typed(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}
            }
        }
    }))
}

fn images(deployment: &Deployment) -> Vec<&str> {
    let template = &deployment.spec.as_ref().unwrap().template;
    let containers = &template.spec.as_ref().unwrap().containers;
    containers
        .iter()
        .map(|c| c.image.as_deref().unwrap())
        .collect()
}

#[test]
fn every_kind_of_patch_works() {
    virtually(async {
        let client = client(&cluster(), "test");
        let api: Api<Deployment> = Api::default_namespaced(client.clone());
        api.create(&PostParams::default(), &deployment())
            .await
            .unwrap();
        let pp = PatchParams::default();
        let containers =
            |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
        let strategic = Patch::Strategic(containers(json!([{"name": "b", "image": "b:2"}])));
        let changed = api.patch("web", &pp, &strategic).await.unwrap();
        assert_eq!(images(&changed), ["a:1", "b:2"]);
        let merge = Patch::Merge(containers(json!([{"name": "c", "image": "c:1"}])));
        let changed = api.patch("web", &pp, &merge).await.unwrap();
        assert_eq!(images(&changed), ["c:1"]);
        let operations = json!([
            {"op": "test", "path": "/spec/replicas", "value": 2},
            {"op": "replace", "path": "/spec/replicas", "value": 3}
        ]);
        let json_patch = || {
            Request::patch("/apis/apps/v1/namespaces/default/deployments/web")
                .header("content-type", "application/json-patch+json")
                .body(operations.to_string().into_bytes())
                .unwrap()
        };
        let changed: Deployment = client.request(json_patch()).await.unwrap();
        assert_eq!(changed.spec.unwrap().replicas, Some(3));
        let failed = refused(client.request::<Deployment>(json_patch()).await);
        assert_eq!(
            (failed.code, &*failed.reason),
            (422, "Invalid"),
            "the test does not hold any more"
        );
        assert_eq!(changed.metadata.generation, Some(4));
    });
}

#[test]
fn applies_conflict_until_they_are_forced() {
    virtually(async {
        let cluster = cluster();
        let api = maps(&client(&cluster, "test"));
        let intent = |value: &str| {
            let data = json!({"k": value});
            Patch::Apply(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}),
            )
        };
        api.patch("a", &PatchParams::apply("one"), &intent("1"))
            .await
            .unwrap();
        let conflict = refused(
            api.patch("a", &PatchParams::apply("two"), &intent("2"))
                .await,
        );
        assert_eq!((conflict.code, &*conflict.reason), (409, "Conflict"));
        assert_eq!(
            conflict.message,
            "Apply failed with 1 conflict: conflict with \"one\": .data.k"
        );
        assert_eq!(conflict.details.unwrap().causes[0].field, ".data.k");
        let forced = api
            .patch("a", &PatchParams::apply("two").force(), &intent("2"))
            .await
            .unwrap();
        let managers: Vec<_> = forced
            .managed_fields()
            .iter()
            .map(|m| m.manager.as_deref().unwrap())
            .collect();
        assert_eq!(managers, ["two"]);
        let version = cluster.version();
        api.patch("a", &PatchParams::apply("two"), &intent("2"))
            .await
            .unwrap();
        assert_eq!(cluster.version(), version, "the same again writes nothing");
    });
}

#[test]
fn status_and_scale_are_apart_from_the_rest() {
    virtually(async {
        let api: Api<Deployment> = Api::default_namespaced(client(&cluster(), "test"));
        api.create(&PostParams::default(), &deployment())
            .await
            .unwrap();
        let pp = PatchParams::default();
        let both = Patch::Merge(
            json!({"spec": {"replicas": 9}, "status": {"replicas": 5, "observedGeneration": 1}}),
        );
        let changed = api.patch_status("web", &pp, &both).await.unwrap();
        assert_eq!(changed.spec.as_ref().unwrap().replicas, Some(2));
        assert_eq!(changed.status.unwrap().replicas, Some(5));
        let scale = api.get_scale("web").await.unwrap();
        assert_eq!(scale.spec.unwrap().replicas, Some(2));
        assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=web"));
        let up = Patch::Merge(json!({"spec": {"replicas": 4}}));
        api.patch_scale("web", &pp, &up).await.unwrap();
        let now = api.get("web").await.unwrap();
        assert_eq!(now.spec.unwrap().replicas, Some(4));
        assert_eq!(now.metadata.generation, Some(2));
    });
}

#[test]
fn deletes_have_preconditions() {
    virtually(async {
        let api = maps(&client(&cluster(), "test"));
        let made = api
            .create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        let with = |preconditions| DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let other = Preconditions {
            uid: Some("other".to_owned()),
            resource_version: None,
        };
        let failed = refused(api.delete("a", &with(other)).await);
        assert_eq!((failed.code, &*failed.reason), (409, "Conflict"));
        assert!(
            failed
                .message
                .contains("the UID in the precondition (other) does not match"),
            "{}",
            failed.message
        );
        let this = Preconditions {
            uid: made.uid(),
            resource_version: made.resource_version(),
        };
        api.delete("a", &with(this)).await.unwrap();
    });
}

#[test]
fn evictions_ask_the_disruption_budget() {
    virtually(async {
        let client = client(&cluster(), "test");
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let pod: Pod = typed(json!({
            "metadata": {"name": "p", "labels": {"app": "web"}},
            "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "a"}]}
        }));
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        pods.patch_status("p", &PatchParams::default(), &Patch::Merge(running))
            .await
            .unwrap();
        let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client);
        let budget = typed(json!({
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        }));
        budgets
            .create(&PostParams::default(), &budget)
            .await
            .unwrap();
        let none = json!({"status": {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1, "disruptionsAllowed": 0}});
        budgets
            .patch_status("b", &PatchParams::default(), &Patch::Merge(none))
            .await
            .unwrap();
        let refusal = refused(pods.evict("p", &EvictParams::default()).await);
        assert_eq!((refusal.code, &*refusal.reason), (429, "TooManyRequests"));
        assert_eq!(
            refusal.message,
            "Cannot evict pod as it would violate the pod's disruption budget."
        );
        let one = json!({"status": {"disruptionsAllowed": 1}});
        budgets
            .patch_status("b", &PatchParams::default(), &Patch::Merge(one))
            .await
            .unwrap();
        pods.evict("p", &EvictParams::default()).await.unwrap();
        let pod = pods.get_opt("p").await.unwrap();
        assert!(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
        let budget = budgets.get("b").await.unwrap();
        assert_eq!(budget.status.unwrap().disruptions_allowed, 0);
    });
}

#[test]
fn nobody_has_logs() {
    virtually(async {
        let pods: Api<Pod> = Api::default_namespaced(client(&cluster(), "test"));
        let refusal = refused(pods.logs("p", &kube::api::LogParams::default()).await);
        assert_eq!(refusal.code, 404);
    });
}

#[test]
fn watches_tell_what_happens_in_order() {
    virtually(async {
        let api = maps(&client(&cluster(), "test"));
        let start = api
            .list(&ListParams::default())
            .await
            .unwrap()
            .metadata
            .resource_version
            .unwrap();
        let mut events = pin!(api.watch(&WatchParams::default(), &start).await.unwrap());
        api.create(&PostParams::default(), &map("a", "1"))
            .await
            .unwrap();
        let change = Patch::Merge(json!({"data": {"k": "2"}}));
        api.patch("a", &PatchParams::default(), &change)
            .await
            .unwrap();
        api.delete("a", &DeleteParams::default()).await.unwrap();
        let told: Vec<String> = events
            .by_ref()
            .take(3)
            .map_ok(|event| match event {
                WatchEvent::Added(m) => format!("added {}", m.data.unwrap()["k"]),
                WatchEvent::Modified(m) => format!("modified {}", m.data.unwrap()["k"]),
                WatchEvent::Deleted(m) => format!("deleted {}", m.data.unwrap()["k"]),
                other => format!("{other:?}"),
            })
            .try_collect()
            .await
            .unwrap();
        assert_eq!(told, ["added 1", "modified 2", "deleted 2"]);
    });
}

#[test]
fn reflectors_follow() {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        virtually(async {
            let cluster = cluster();
            let api = maps(&client(&cluster, "test"));
            api.create(&PostParams::default(), &map("a", "1"))
                .await
                .unwrap();
            let (store, writer) = reflector::store::<ConfigMap>();
            let stream = watcher(api.clone(), config)
                .default_backoff()
                .reflect(writer);
            let task = tokio::spawn(stream.for_each(|_| async {}));
            store.wait_until_ready().await.unwrap();
            assert_eq!(store.state().len(), 1);
            api.create(&PostParams::default(), &map("b", "1"))
                .await
                .unwrap();
            api.delete("a", &DeleteParams::default()).await.unwrap();
            // More than an hour: watches end and begin anew, and the past is forgotten meanwhile.
            tokio::time::sleep(std::time::Duration::from_secs(4000)).await;
            cluster.compact();
            api.create(&PostParams::default(), &map("c", "1"))
                .await
                .unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(4000)).await;
            let mut names: Vec<String> = store.state().iter().map(|m| m.name_any()).collect();
            names.sort();
            assert_eq!(names, ["b", "c"]);
            task.abort();
            let _ = task.await;
            tokio::task::yield_now().await;
            assert_eq!(cluster.watches(), 0);
        });
    }
}
