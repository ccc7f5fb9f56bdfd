//! Many Canaries, with their workloads.

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
/// How often phases are looked at, at most.
const PAUSE: Duration = Duration::from_millis(500);
/// So many times as long as a look took is waited for the next one: whoever looks at thousands would keep the control plane busy that
/// is looked at.
const REST: u32 = 9;

/// Canaries of some namespaces.
pub(crate) struct Load<'a> {
    runtime: &'a Runtime,
    api: &'a Client,
    namespaces: Vec<String>,
    /// How many each has.
    each: usize,
    pub(crate) count: usize,
}

impl<'a> Load<'a> {
    /// All of them in one namespace.
    pub(crate) fn within(
        runtime: &'a Runtime,
        api: &'a Client,
        namespace: String,
        count: usize,
    ) -> Self {
        Self {
            runtime,
            api,
            namespaces: vec![namespace],
            each: count.max(1),
            count,
        }
    }

    /// So many in each of as many namespaces as that takes: what Kubernetes' own controllers do for a Service or a Deployment grows with
    /// how many others are in its namespace.
    pub(crate) fn spread(
        runtime: &'a Runtime,
        api: &'a Client,
        prefix: &str,
        (count, each): (usize, usize),
    ) -> Self {
        let namespaces = 0..count.div_ceil(each);
        Self {
            runtime,
            api,
            namespaces: namespaces.map(|one| format!("{prefix}-{one}")).collect(),
            each,
            count,
        }
    }

    /// All namespaces, as flags name them.
    pub(crate) fn namespaces(&self) -> String {
        self.namespaces.join(",")
    }

    fn name(index: usize) -> String {
        format!("app-{index:05}")
    }

    /// The namespace of one of them.
    fn namespace(&self, index: usize) -> &str {
        let place = index / self.each;
        self.namespaces.get(place).map_or("", String::as_str)
    }

    /// Makes all of them, with this analysis.
    pub(crate) fn create(&self, analysis: &Value) -> Result<()> {
        self.each(self.namespaces.len(), |index| {
            let name = self.namespaces.get(index);
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            vec![post("/api/v1/namespaces", &namespace)]
        })?;
        self.each(self.count, |index| {
            let (name, space) = (Self::name(index), self.namespace(index));
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
        self.each(self.count, |index| {
            let (name, space) = (Self::name(index), self.namespace(index));
            let path = format!("/apis/apps/v1/namespaces/{space}/deployments/{name}");
            let request = http::Request::patch(path)
                .header("content-type", "application/merge-patch+json")
                .body(body.clone().into_bytes());
            vec![request]
        })
    }

    /// All Canaries, by name.
    pub(crate) fn canaries(&self) -> Result<BTreeMap<String, Value>> {
        let mut all = BTreeMap::new();
        for space in &self.namespaces {
            let path = format!("/apis/flagger.app/v1beta1/namespaces/{space}/canaries");
            let request = http::Request::get(path).body(Vec::new())?;
            let mut found: Value = self.runtime.block_on(self.api.request(request))?;
            let items = found.get_mut("items").map(Value::take);
            let Some(Value::Array(items)) = items else {
                bail!("a list without items");
            };
            all.extend(items.into_iter().filter_map(|one| {
                let name = one.pointer("/metadata/name")?.as_str()?.to_owned();
                Some((name, one))
            }));
        }
        Ok(all)
    }

    /// Waits until all are in one of these phases; gives when each was seen there first, since now.
    pub(crate) fn until(&self, wanted: &str) -> Result<Vec<Duration>> {
        let start = Instant::now();
        let mut arrived: BTreeMap<String, Duration> = BTreeMap::new();
        while arrived.len() < self.count {
            let looked = Instant::now();
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
            std::thread::sleep(PAUSE.max(looked.elapsed() * REST));
        }
        let mut all: Vec<Duration> = arrived.into_values().collect();
        all.sort();
        Ok(all)
    }

    /// Deletes the namespaces, and waits until nothing of them is left.
    pub(crate) fn remove(&self) -> Result<()> {
        let path = |space: &str| format!("/api/v1/namespaces/{space}");
        self.each(self.namespaces.len(), |index| {
            let space = self.namespaces.get(index).map_or("", String::as_str);
            vec![http::Request::delete(path(space)).body(Vec::new())]
        })?;
        let start = Instant::now();
        for space in &self.namespaces {
            while self.is_there(&path(space))? {
                if start.elapsed() > PATIENCE {
                    bail!("{space} is not gone within {PATIENCE:?}");
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    fn is_there(&self, path: &str) -> Result<bool> {
        let request = http::Request::get(path).body(Vec::new())?;
        let found: Result<Value, kube::Error> = self.runtime.block_on(self.api.request(request));
        match found {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            found => Ok(found.map(|_| true)?),
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
