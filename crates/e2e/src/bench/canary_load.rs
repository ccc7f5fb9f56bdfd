//! Canaries of a namespace, with their workloads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt as _;
use kube::Client;
use serde_json::{Value, json};
use slipway_e2e::canary::{canary, deployment, phase};
use tokio::runtime::Runtime;

use crate::PATIENCE;

/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// How often phases are looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// Canaries of one namespace.
pub(crate) struct Load<'a> {
    runtime: &'a Runtime,
    api: &'a Client,
    pub(crate) namespace: String,
    pub(crate) count: usize,
}

impl<'a> Load<'a> {
    pub(crate) fn new(
        runtime: &'a Runtime,
        api: &'a Client,
        namespace: String,
        count: usize,
    ) -> Self {
        Self {
            runtime,
            api,
            namespace,
            count,
        }
    }

    fn name(index: usize) -> String {
        format!("app-{index:05}")
    }

    /// Makes all of them, with this analysis.
    pub(crate) fn create(&self, analysis: &Value) -> Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.each(1, |_| vec![post("/api/v1/namespaces", &namespace)])?;
        let space = &self.namespace;
        self.each(self.count, |index| {
            let name = Self::name(index);
            vec![
                post(
                    &format!("/apis/apps/v1/namespaces/{space}/deployments"),
                    &deployment(&name, 1, "app:1"),
                ),
                post(
                    &format!("/apis/flagger.app/v1beta1/namespaces/{space}/canaries"),
                    &canary(&name, "kubernetes", analysis),
                ),
            ]
        })
    }

    /// Gives all of them another image.
    pub(crate) fn release(&self, image: &str) -> Result<()> {
        let containers =
            json!([{"name": "app", "image": image, "ports": [{"containerPort": 8080}]}]);
        let body = json!({"spec": {"template": {"spec": {"containers": containers}}}}).to_string();
        let space = &self.namespace;
        self.each(self.count, |index| {
            let path = format!(
                "/apis/apps/v1/namespaces/{space}/deployments/{}",
                Self::name(index)
            );
            let request = http::Request::patch(path)
                .header("content-type", "application/merge-patch+json")
                .body(body.clone().into_bytes());
            vec![request]
        })
    }

    /// All Canaries, by name.
    pub(crate) fn canaries(&self) -> Result<BTreeMap<String, Value>> {
        let path = format!(
            "/apis/flagger.app/v1beta1/namespaces/{}/canaries",
            self.namespace
        );
        let request = http::Request::get(path).body(Vec::new())?;
        let mut found: Value = self.runtime.block_on(self.api.request(request))?;
        let items = found.get_mut("items").map(Value::take);
        let Some(Value::Array(items)) = items else {
            bail!("a list without items");
        };
        let named = items.into_iter().filter_map(|one| {
            let name = one.pointer("/metadata/name")?.as_str()?.to_owned();
            Some((name, one))
        });
        Ok(named.collect())
    }

    /// Waits until all are in one of these phases; gives when each was seen there first, since now.
    pub(crate) fn until(&self, wanted: &str) -> Result<Vec<Duration>> {
        let start = Instant::now();
        let mut arrived: BTreeMap<String, Duration> = BTreeMap::new();
        while arrived.len() < self.count {
            let mut others: BTreeMap<String, usize> = BTreeMap::new();
            for (name, one) in self.canaries()? {
                if phase(&one) == wanted {
                    arrived.entry(name).or_insert_with(|| start.elapsed());
                } else {
                    *others.entry(phase(&one).to_owned()).or_default() += 1;
                }
            }
            if start.elapsed() > PATIENCE {
                bail!("not all are {wanted} within {PATIENCE:?}: {others:?}");
            }
            std::thread::sleep(PAUSE);
        }
        let mut all: Vec<Duration> = arrived.into_values().collect();
        all.sort();
        Ok(all)
    }

    /// Deletes the namespace, and waits until nothing of it is left.
    pub(crate) fn remove(&self) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.each(1, |_| vec![http::Request::delete(&path).body(Vec::new())])?;
        let start = Instant::now();
        loop {
            let request = http::Request::get(&path).body(Vec::new())?;
            let found: Result<Value, kube::Error> =
                self.runtime.block_on(self.api.request(request));
            match found {
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                found => found?,
            };
            if start.elapsed() > PATIENCE {
                bail!("{} is not gone within {PATIENCE:?}", self.namespace);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Sends requests for each number, some at once; those of one number one after the other.
    fn each(
        &self,
        count: usize,
        requests: impl Fn(usize) -> Vec<http::Result<http::Request<Vec<u8>>>>,
    ) -> Result<()> {
        self.runtime.block_on(async {
            let jobs = (0..count).map(|index| {
                let requests = requests(index);
                async move {
                    for request in requests {
                        let request = request?;
                        let what = request.uri().path().to_owned();
                        let sent: Result<Value, kube::Error> = self.api.request(request).await;
                        sent.with_context(|| format!("writing {what}"))?;
                    }
                    Ok::<(), anyhow::Error>(())
                }
            });
            let mut running = futures::stream::iter(jobs).buffer_unordered(AT_ONCE);
            while let Some(result) = running.next().await {
                result?;
            }
            Ok(())
        })
    }
}

fn post(path: &str, object: &Value) -> http::Result<http::Request<Vec<u8>>> {
    http::Request::post(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
}
