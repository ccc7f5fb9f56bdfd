//! The data plane of a namespace: nginx, configured from the `HTTPRoute` or the Ingresses that are there, with upstreams from
//! `EndpointSlice`s; a server for each Ready pod; and Prometheus, which asks these how they do.
//!
//! It reads as a controller of Gateway API does: a route is said to be accepted when requests go by it, and not before. Played are
//! weights of the last rule of one route, and weights by annotations of ingress-nginx; nothing that matches headers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::ledger::Ledger;
use crate::nginx::{Nginx, Routes};
use crate::pods::Pods;
use crate::prometheus::Prometheus;
use crate::stage::Programs;

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(200);
/// How much later than of pods it hears of weights: whoever takes pods away before requests go elsewhere is seen.
const LATE: Duration = Duration::from_secs(1);
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces";
const WEIGHT: &str = "nginx.ingress.kubernetes.io/canary-weight";
/// The name of a Service of a new version ends with this.
const TARGET: &str = "-canary";

/// All of it; it ends with this value.
pub(crate) struct Plane {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) metrics: String,
    trouble: Arc<Mutex<Option<String>>>,
    port: u16,
    client: Mutex<JoinSet<()>>,
    runtime: Runtime,
}

impl Plane {
    /// Starts it for a namespace.
    pub(crate) fn start(programs: &Programs, api: &Client, namespace: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let prometheus = Prometheus::start(&programs.prometheus)?;
        let nginx = runtime.block_on(Nginx::start(&programs.nginx))?;
        let (metrics, port) = (prometheus.url(), nginx.port());
        let ledger: Arc<Ledger> = Arc::default();
        let trouble: Arc<Mutex<Option<String>>> = Arc::default();
        let mut controller = Controller {
            api: api.clone(),
            namespace: namespace.to_owned(),
            pods: Pods::default(),
            loaded: Routes::default(),
            written: (Vec::new(), Instant::now()),
            ledger: ledger.clone(),
            nginx,
            prometheus,
        };
        let told = trouble.clone();
        runtime.spawn(async move {
            loop {
                let looked = controller.look().await;
                *told.lock().unwrap_or_else(PoisonError::into_inner) =
                    looked.err().map(|why| format!("{why:#}"));
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(Self {
            ledger,
            metrics,
            trouble,
            port,
            client: Mutex::default(),
            runtime,
        })
    }

    /// From now on a client asks so often in a second.
    pub(crate) fn ask(&self, in_a_second: u32) {
        self.ledger.open();
        let _inside = self.runtime.enter();
        let client = crate::client::start(self.port, &self.ledger, in_a_second);
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// The client ends when all that it has asked has an answer, or has none in time.
    pub(crate) fn rest(&self) {
        self.ledger.close();
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asking = std::mem::take(&mut *client);
        drop(client);
        self.runtime
            .block_on(async move { while asking.join_next().await.is_some() {} });
    }

    /// What it last failed at.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Who reads the API and writes nginx's configuration.
struct Controller {
    api: Client,
    namespace: String,
    pods: Pods,
    /// What nginx has.
    loaded: Routes,
    /// The weights that somebody wrote, and since when they are known.
    written: (Vec<(String, u32)>, Instant),
    ledger: Arc<Ledger>,
    nginx: Nginx,
    prometheus: Prometheus,
}

impl Controller {
    /// Looks once. Routes are read first and pods last: whoever a route sends to is known by then.
    async fn look(&mut self) -> Result<()> {
        let routes = list(&self.api, ROUTES, &self.namespace, "httproutes").await?;
        let ingresses = list(&self.api, INGRESSES, &self.namespace, "ingresses").await?;
        let slices: Api<EndpointSlice> = Api::namespaced(self.api.clone(), &self.namespace);
        let slices = slices.list(&ListParams::default()).await?.items;
        let pods: Api<Pod> = Api::namespaced(self.api.clone(), &self.namespace);
        let pods = pods.list(&ListParams::default()).await?.items;
        if self.pods.follow(&pods).await? {
            self.prometheus.scrape(&self.namespace, &self.pods)?;
        }
        let written = match routes.first() {
            Some(route) => weights(route),
            None => shared(&ingresses),
        };
        if self.written.0 != written {
            self.written = (written, Instant::now());
        }
        let is_heard = self.written.1.elapsed() >= LATE;
        let weights = if is_heard {
            self.written.0.clone()
        } else {
            self.loaded.weights.clone()
        };
        let mut upstreams = BTreeMap::new();
        for (service, _) in &weights {
            upstreams.insert(service.clone(), self.ports(&slices, service));
        }
        let wanted = Routes { weights, upstreams };
        if wanted != self.loaded {
            self.ledger.starve(&wanted.starved());
            self.ledger.begin_turn();
            self.nginx.load(&wanted).await?;
            let target = wanted.weights.iter().find(|one| one.0.ends_with(TARGET));
            let share = target.map_or(0, |(name, _)| wanted.share(name));
            self.ledger.turn(share);
            self.loaded = wanted;
        }
        for route in routes.iter().filter(|_| is_heard) {
            self.accept(route).await?;
        }
        Ok(())
    }

    /// Where the ready pods of a Service answer.
    fn ports(&self, slices: &[EndpointSlice], service: &str) -> Vec<u16> {
        let own = slices.iter().filter(|slice| {
            let labels = slice.metadata.labels.as_ref();
            let name = labels.and_then(|all| all.get("kubernetes.io/service-name"));
            name.is_some_and(|name| name == service)
        });
        let endpoints = own.flat_map(|slice| &slice.endpoints);
        let ready = endpoints.filter(|one| {
            let conditions = one.conditions.as_ref();
            conditions.is_none_or(|all| all.ready != Some(false))
        });
        let pods = ready.filter_map(|one| one.target_ref.as_ref()?.name.as_deref());
        let mut ports: Vec<u16> = pods.filter_map(|pod| self.pods.port(pod)).collect();
        ports.sort_unstable();
        ports
    }

    /// Says of a route that requests go by it.
    async fn accept(&self, route: &Value) -> Result<()> {
        let generation = &route["metadata"]["generation"];
        let told = route.pointer("/status/parents/0/conditions/0/observedGeneration");
        if told == Some(generation) {
            return Ok(());
        }
        let parents = route.pointer("/spec/parentRefs").and_then(Value::as_array);
        let said: Vec<Value> = parents
            .into_iter()
            .flatten()
            .map(|parent| {
                json!({"parentRef": parent, "controllerName": "slipway.dev/nginx", "conditions": [{
                    "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                    "observedGeneration": generation, "lastTransitionTime": Timestamp::now().to_string(),
                }]})
            })
            .collect();
        let name = route["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{ROUTES}/{}/httproutes/{name}/status", self.namespace);
        let body = json!({"status": {"parents": said}}).to_string();
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(body.into_bytes())?;
        let written: Result<Value, kube::Error> = self.api.request(request).await;
        written.map(drop).context("saying that a route is accepted")
    }
}

async fn list(api: &Client, group: &str, namespace: &str, kind: &str) -> Result<Vec<Value>> {
    let path = format!("{group}/{namespace}/{kind}");
    let request = http::Request::get(&path).body(Vec::new())?;
    let found: Value = api
        .request(request)
        .await
        .with_context(|| format!("reading {path}"))?;
    Ok(found["items"].as_array().cloned().unwrap_or_default())
}

/// The weights of a route's last rule, which is for everybody.
fn weights(route: &Value) -> Vec<(String, u32)> {
    let rules = route.pointer("/spec/rules").and_then(Value::as_array);
    let last = rules.and_then(|rules| rules.last());
    let backends = last.and_then(|rule| rule["backendRefs"].as_array());
    let named = backends.into_iter().flatten().filter_map(|backend| {
        let weight = backend["weight"].as_u64().unwrap_or(1);
        Some((
            backend["name"].as_str()?.to_owned(),
            weight.try_into().ok()?,
        ))
    });
    named.collect()
}

/// The weights that Ingresses come to: one with the annotation takes its share from the one without.
fn shared(ingresses: &[Value]) -> Vec<(String, u32)> {
    let mut all = Vec::new();
    let mut taken = 0;
    for ingress in ingresses {
        let service = ingress.pointer("/spec/rules/0/http/paths/0/backend/service/name");
        let Some(service) = service.and_then(Value::as_str) else {
            continue;
        };
        let weight = ingress["metadata"]["annotations"][WEIGHT].as_str();
        let weight: Option<u32> = weight.and_then(|text| text.parse().ok());
        taken += weight.unwrap_or_default();
        all.push((service.to_owned(), weight));
    }
    let rest = 100_u32.saturating_sub(taken);
    all.into_iter()
        .map(|(service, weight)| (service, weight.unwrap_or(rest)))
        .collect()
}
