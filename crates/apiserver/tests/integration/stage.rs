//! What the tests stand on: virtual time, clusters, clients, and other processes of this binary.

use std::future::Future;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::api::{Api, ObjectMeta};
use kube::runtime::utils::Backoff;
use serde_json::Value;
use slipway_apiserver::authenticate::User;
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::environment::InProcess;
use slipway_apiserver::shell::Body;
use tower::ServiceExt;

use k8s_openapi::api::core::v1::ConfigMap;

/// The token of an administrator in all clusters of these tests.
pub(crate) const ADMIN: &str = "admin-token";
/// The token of alice, who has no rights.
pub(crate) const ALICE: &str = "alice-token";

/// Runs to the end on one thread, on a clock that jumps to the next timer whenever nothing else is to do. There is no
/// I/O driver: opening a socket panics.
pub(crate) fn virtually<F: Future>(work: F) -> F::Output {
    count_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// What a fresh cluster of these tests is made of.
pub(crate) fn config(name: &str, seed: u64, services: Arc<InProcess>) -> Config {
    Config::seeded(name, seed, services)
        .with_admin(ADMIN)
        .with_token(ALICE, User::new("alice", &["dev"]))
}

/// A fresh cluster without controllers.
pub(crate) fn cluster() -> Arc<Cluster> {
    config("test", 1, Arc::default()).build()
}

/// An administrator's client that calls itself `agent`.
pub(crate) fn client(cluster: &Arc<Cluster>, agent: &str) -> Client {
    Client::new(cluster.service(ADMIN).with_agent(agent), "default")
}

/// The config maps of `default`.
pub(crate) fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

/// A config map with one entry.
pub(crate) fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some([("k".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// A typed object from JSON.
pub(crate) fn typed<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The failure that the API gave.
pub(crate) fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("no failure of the API: {other:?}"),
    }
}

/// Waits the same time after each failure; kube's own adds jitter, which no seed decides.
#[derive(Debug)]
pub(crate) struct Steady(pub(crate) Duration);

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Sends a request as the administrator, without a client's opinions.
pub(crate) async fn send(cluster: &Arc<Cluster>, request: Request<Bytes>) -> Response<Body> {
    let request = request.map(Full::new);
    cluster.service(ADMIN).oneshot(request).await.unwrap()
}

/// The whole body of an answer.
pub(crate) async fn whole(response: Response<Body>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

/// Runs one test of this binary in a process of its own, with these variables, and gives what it printed after
/// `RESULT `.
pub(crate) fn in_a_process(test: &str, variables: &[(&str, &str)]) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    let error = String::from_utf8_lossy(&child.stderr);
    let result = text.split("RESULT ").nth(1).and_then(|t| t.lines().next());
    match result {
        Some(result) if child.status.success() => result.to_owned(),
        _ => panic!("{test}: {} {text}\n{error}", child.status),
    }
}

/// Tells the parent process what came out.
pub(crate) fn report(result: &str) {
    use std::io::Write;
    let line = format!("\nRESULT {result}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// How many panics there were on this thread, also in tasks, whose panics go no further.
pub(crate) fn panics() -> usize {
    PANICS.with(std::cell::Cell::get)
}

thread_local! {
    static PANICS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts panics from now on: a task that dies takes nobody with it, so that a test would not notice.
fn count_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with(|count| count.set(count.get() + 1));
            before(panic);
        }));
    });
}
