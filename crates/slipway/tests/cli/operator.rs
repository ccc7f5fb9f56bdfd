//! `slipway run` against `slipway apiserver --actors --crds`: real programs, real time, short intervals.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use slipway_api::flipper::Flipper;

use super::install::{apply, objects};
use super::program::{NEVER, Place, Running, appears, client, succeeded, wait};

fn deployment() -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "labels": {"mesh": "true"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
        },
    }))
    .unwrap()
}

fn restarted_at(deployment: &Deployment) -> Option<String> {
    let value = serde_json::to_value(deployment).unwrap();
    let annotations = value.pointer("/spec/template/metadata/annotations")?;
    annotations
        .get("kubectl.kubernetes.io/restartedAt")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// Waits until `look` finds something.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let until = Instant::now() + NEVER;
    while Instant::now() < until {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: never");
}

/// The whole answer to a GET.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(NEVER)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The first line of the answer to a GET.
pub(crate) fn status(address: &str, path: &str) -> String {
    get(address, path)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The value of `address=` in a line, as others reach it from here.
pub(crate) fn address(line: &str) -> String {
    let address = line.split("address=").nth(1).unwrap();
    let address = address.split_whitespace().next().unwrap();
    address.replace("[::]", "127.0.0.1")
}

async fn make(client: &Client) {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments
        .create(&PostParams::default(), &deployment())
        .await
        .unwrap();
    let flippers: Api<Flipper> = Api::namespaced(client.clone(), "default");
    let flipper = serde_json::from_value(json!({
        "apiVersion": "flipper.io.github.com/v1alpha1", "kind": "Flipper", "metadata": {"name": "often"},
        "spec": {"interval": "6s", "match": {"labels": {"mesh": "true"}}},
    }))
    .unwrap();
    flippers
        .create(&PostParams::default(), &flipper)
        .await
        .unwrap();
}

/// Installs the operator as `slipway manifests` says, and gives a kubeconfig of its service account.
async fn install(place: &Place, admin: &Path) -> PathBuf {
    let client = client(admin).await;
    let manifests = succeeded(&place.run(&["manifests"]));
    apply(&client, &objects(&manifests)).await;
    kubeconfig_of(place, admin, "rollout", "controller-manager").await
}

/// A kubeconfig of a service account.
pub(crate) async fn kubeconfig_of(
    place: &Place,
    admin: &Path,
    namespace: &str,
    account: &str,
) -> PathBuf {
    let accounts: Api<ServiceAccount> = Api::namespaced(client(admin).await, namespace);
    let asked = TokenRequest::default();
    let given = accounts
        .create_token_request(account, &PostParams::default(), &asked)
        .await
        .unwrap();
    let token = given.status.unwrap().token;
    let text = std::fs::read_to_string(admin).unwrap();
    let own: Vec<String> = text
        .lines()
        .map(|line| match line.split_once("token: ") {
            Some((before, _)) => format!("{before}token: {token}"),
            None => line.to_owned(),
        })
        .collect();
    let file = place.path("operator-kubeconfig");
    std::fs::write(&file, own.join("\n")).unwrap();
    file
}

#[test]
fn a_matching_deployment_is_restarted_again_and_again_and_sigterm_drains() {
    let place = Place::new("operator");
    let kubeconfig = place.path("kubeconfig");
    let file = kubeconfig.to_str().unwrap();
    let server = [
        "apiserver",
        "--port",
        "0",
        "--actors",
        "--crds",
        "--kubeconfig-out",
        file,
    ];
    let server = Running::start(&mut place.command(&server), true);
    appears(&kubeconfig);
    // Under exactly the rights of the manifests.
    let own = wait(install(&place, &kubeconfig));
    let own = own.to_str().unwrap();
    let operator = [
        "run",
        "--controllers",
        "restarts",
        "--kubeconfig",
        own,
        "--port",
        "0",
        "--bind",
        "127.0.0.1",
        "--replica",
        "test-0",
        "--request-timeout",
        "1s",
        "--lease-duration",
        "3s",
    ];
    let mut operator = Running::start(&mut place.command(&operator), true);
    let line = operator.line("serving /healthz");
    let address = address(&line);
    wait(observe(&kubeconfig, &address));
    shows_only_its_own(&get(&address, "/metrics"));
    operator.catch_up();
    let noise: Vec<&String> = operator
        .seen
        .iter()
        .filter(|line| line.contains("msg=\"reconcile "))
        .collect();
    assert!(noise.is_empty(), "without being asked: {noise:#?}");
    assert!(
        operator
            .seen
            .iter()
            .any(|line| line.contains("became leader"))
    );
    let refused: Vec<&String> = operator
        .seen
        .iter()
        .filter(|line| line.contains("level=warn") || line.contains("level=error"))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    assert_eq!(operator.terminate(), Some(0));
    wait(async {
        let leases: Api<Lease> = Api::namespaced(client(&kubeconfig).await, "rollout");
        let lease = leases.get("d5a9c41d.github.com").await.unwrap();
        let holder = lease
            .spec
            .and_then(|spec| spec.holder_identity)
            .unwrap_or_default();
        assert_eq!(holder, "", "the Lease was not given back");
    });
    assert_eq!(server.terminate(), Some(0));
    assert!(!kubeconfig.exists(), "the kubeconfig stays");
}

/// Nothing of zones, and what every program shows.
fn shows_only_its_own(text: &str) {
    let foreign: Vec<&str> = text
        .lines()
        .filter(|line| {
            ["rollout_operator", "zpdb", "zone"]
                .iter()
                .any(|word| line.contains(word))
        })
        .collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    for name in [
        "slipway_build_info{version=\"",
        "slipway_kubernetes_api_client_request_duration_seconds_count{",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "process_start_time_seconds ",
    ] {
        assert!(text.contains(&format!("\n{name}")), "{name}: {text}");
    }
}

async fn observe(kubeconfig: &Path, address: &str) {
    let client = client(kubeconfig).await;
    make(&client).await;
    eventually("it is ready", || async {
        status(address, "/ready").contains("200").then_some(())
    })
    .await;
    assert!(status(address, "/healthz").contains("200"));
    assert!(status(address, "/metrics").contains("200"));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let get = || async { restarted_at(&deployments.get("web").await.unwrap()) };
    let first = eventually("the first restart", get).await;
    let second = eventually("the second restart", || async {
        get().await.filter(|at| *at != first)
    })
    .await;
    let parse = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let between = parse(&second).duration_since(parse(&first)).as_secs();
    assert!(
        between >= 6,
        "restarted twice within the interval: {first}, {second}"
    );
    let flippers: Api<Flipper> = Api::namespaced(client, "default");
    let matched = || async {
        flippers
            .get("often")
            .await
            .unwrap()
            .status
            .and_then(|status| status.matched)
    };
    assert_eq!(eventually("the policy's status", matched).await, 1);
}
