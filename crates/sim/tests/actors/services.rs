//! What stands behind Services, as kubectl and clients of them see it.

use serde_json::{Value, json};

use crate::stage::{Stage, play, workload};

fn service(spec: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "shop"}}, "spec": spec,
    })
}

/// By number, and by the name that only new pods have.
fn two_ports() -> Value {
    json!({"selector": {"app": "web"}, "ports": [
        {"name": "http", "port": 80, "targetPort": 8080},
        {"name": "admin", "port": 81, "targetPort": "admin"},
    ]})
}

fn with_port(mut web: Value, name: &str, number: i64) -> Value {
    let ports = json!([{"name": name, "containerPort": number}]);
    web["spec"]["template"]["spec"]["containers"][0]["ports"] = ports;
    web
}

/// The addresses of the pods, sorted.
async fn addresses(stage: &Stage) -> Vec<String> {
    let pods = stage.list("Pod").await;
    let ip = |pod: &Value| pod["status"]["podIP"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = pods.iter().map(ip).collect();
    all.sort();
    all
}

/// All objects of a kind but those of the API server's own Service.
async fn list(stage: &Stage, kind: &str) -> Vec<Value> {
    let mut all = stage.list(kind).await;
    all.retain(|object| object["metadata"]["name"] != "kubernetes");
    all
}

/// The addresses of all slices, sorted, with whether they are ready.
async fn sliced(stage: &Stage) -> Vec<(String, bool)> {
    let slices = list(stage, "EndpointSlice").await;
    let endpoints = slices
        .iter()
        .flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let mut all: Vec<(String, bool)> = endpoints
        .map(|one| {
            let ready = one["conditions"]["ready"].as_bool().unwrap();
            (one["addresses"][0].as_str().unwrap().to_owned(), ready)
        })
        .collect();
    all.sort();
    all
}

fn ready(addresses: Vec<String>) -> Vec<(String, bool)> {
    addresses.into_iter().map(|ip| (ip, true)).collect()
}

#[test]
fn a_service_has_its_ready_pods_behind_it_on_the_ports_that_they_name() {
    play(1, "{}", |stage| async move {
        stage.create(service(two_ports())).await;
        let web = workload("Deployment", "web", 3, "web:1", json!({}));
        stage.create(with_port(web, "admin", 9000)).await;
        stage.settle().await;
        let endpoints = stage.get("Endpoints", "web").await;
        let labels =
            json!({"team": "shop", "endpoints.kubernetes.io/managed-by": "endpoint-controller"});
        assert_eq!(endpoints["metadata"]["labels"], labels);
        assert_eq!(endpoints["subsets"].as_array().unwrap().len(), 1);
        let subset = &endpoints["subsets"][0];
        let listed = subset["addresses"].as_array().unwrap().iter();
        let listed: Vec<&str> = listed.map(|one| one["ip"].as_str().unwrap()).collect();
        assert_eq!(listed, addresses(&stage).await);
        assert_eq!(subset["addresses"][0]["targetRef"]["kind"], "Pod");
        let ports = subset["ports"].as_array().unwrap().iter();
        let mut ports: Vec<(&str, i64)> = ports
            .map(|port| {
                (
                    port["name"].as_str().unwrap(),
                    port["port"].as_i64().unwrap(),
                )
            })
            .collect();
        ports.sort_unstable();
        assert_eq!(ports, [("admin", 9000), ("http", 8080)]);

        let slices = list(&stage, "EndpointSlice").await;
        assert_eq!(slices.len(), 1);
        let meta = &slices[0]["metadata"];
        assert_eq!(meta["generateName"], "web-");
        assert_eq!(
            meta["labels"],
            json!({
                "team": "shop", "kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            })
        );
        let owner = &meta["ownerReferences"][0];
        assert_eq!(
            (owner["kind"].as_str(), owner["name"].as_str()),
            (Some("Service"), Some("web"))
        );
        assert_eq!(slices[0]["addressType"], "IPv4");
        assert_eq!(sliced(&stage).await, ready(addresses(&stage).await));
        let first = &slices[0]["endpoints"][0];
        assert!(first["nodeName"].is_string() && first["targetRef"]["uid"].is_string());
    });
}

#[test]
fn endpoints_follow_pods_and_go_with_the_service() {
    play(1, "start: 30s", |stage| async move {
        stage.create(service(two_ports())).await;
        stage.settle().await;
        assert!(stage.get("Endpoints", "web").await["subsets"].is_null());
        assert_eq!(
            list(&stage, "EndpointSlice").await.len(),
            1,
            "one that says nobody"
        );
        let web = workload("Deployment", "web", 2, "web:1", json!({}));
        stage.create(with_port(web, "admin", 9000)).await;
        stage.pass(20).await;
        let subset = stage.get("Endpoints", "web").await["subsets"][0].clone();
        assert!(subset["addresses"].is_null(), "{subset}");
        stage.settle().await;
        assert_eq!(sliced(&stage).await, ready(addresses(&stage).await));
        // A pod that goes is still served by, but not ready, and not in Endpoints.
        let gone = stage.pods().await[0].clone();
        let slices = list(&stage, "EndpointSlice").await;
        stage.delete("Pod", &gone).await;
        stage.pass(1).await;
        let ending: Vec<(String, bool)> = sliced(&stage).await;
        assert_eq!(
            ending.iter().filter(|(_, ready)| *ready).count(),
            1,
            "{ending:?}"
        );
        stage.settle().await;
        assert_eq!(sliced(&stage).await, ready(addresses(&stage).await));
        let name = |slices: &[Value]| slices[0]["metadata"]["name"].clone();
        assert_eq!(
            name(&list(&stage, "EndpointSlice").await),
            name(&slices),
            "the slice stays"
        );
        // Somebody else's changes are undone.
        stage
            .patch("Endpoints", "web", json!({"subsets": null}))
            .await;
        stage.settle().await;
        let subset = stage.get("Endpoints", "web").await["subsets"][0].clone();
        assert_eq!(subset["addresses"].as_array().unwrap().len(), 2);
        stage.scale("Deployment", "web", 0).await;
        stage.settle().await;
        assert_eq!(sliced(&stage).await, []);
        stage.delete("Service", "web").await;
        stage.settle().await;
        assert_eq!(list(&stage, "Endpoints").await.len(), 0);
        assert_eq!(list(&stage, "EndpointSlice").await.len(), 0);
    });
}

#[test]
fn many_pods_are_several_slices_and_those_without_a_port_are_not_in_its_group() {
    play(1, "{}", |stage| async move {
        stage.create(service(two_ports())).await;
        let old = workload("Deployment", "web", 130, "web:1", json!({}));
        stage.create(old).await;
        stage.settle().await;
        let sizes = |slices: Vec<Value>| {
            let size = |slice: &Value| slice["endpoints"].as_array().unwrap().len();
            let mut all: Vec<usize> = slices.iter().map(size).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sizes(list(&stage, "EndpointSlice").await), [30, 100]);
        let ports = list(&stage, "EndpointSlice").await[0]["ports"].clone();
        assert_eq!(
            ports.as_array().unwrap().len(),
            1,
            "nobody knows the other: {ports}"
        );
    });
}

#[test]
fn a_headless_service_of_a_statefulset_names_its_pods() {
    play(1, "{}", |stage| async move {
        let spec = json!({"clusterIP": "None", "selector": {"app": "web"}, "publishNotReadyAddresses": true});
        stage.create(service(spec)).await;
        let set = json!({"serviceName": "web"});
        stage
            .create(workload("StatefulSet", "web", 2, "web:1", set))
            .await;
        stage.settle().await;
        let endpoints = stage.get("Endpoints", "web").await;
        assert_eq!(
            endpoints["metadata"]["labels"]["service.kubernetes.io/headless"],
            ""
        );
        let listed = endpoints["subsets"][0]["addresses"]
            .as_array()
            .unwrap()
            .iter();
        let mut names: Vec<&str> = listed
            .map(|one| one["hostname"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["web-0", "web-1"]);
        let slice = &list(&stage, "EndpointSlice").await[0];
        assert_eq!(slice["endpoints"][0]["hostname"], "web-0");
    });
}

#[test]
fn a_service_without_selector_is_left_to_somebody_else() {
    play(1, "{}", |stage| async move {
        stage
            .create(service(json!({"ports": [{"port": 80}]})))
            .await;
        stage.create(json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}],
        }))
        .await;
        stage.create(json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "lonely", "namespace": "default"},
        }))
        .await;
        stage.settle().await;
        assert_eq!(
            stage.get("Endpoints", "web").await["subsets"][0]["addresses"][0]["ip"],
            "192.0.2.1"
        );
        assert_eq!(list(&stage, "Endpoints").await.len(), 2);
        assert_eq!(list(&stage, "EndpointSlice").await.len(), 0);
    });
}
