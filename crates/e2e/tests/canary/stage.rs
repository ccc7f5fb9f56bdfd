//! A cluster with the definitions, and stories on it: each has a namespace, a data plane, gates and an operator of its own.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use slipway_e2e::canary::{canary, deployment, image, phase};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::gates::Gates;
use slipway_e2e::install::{node, printed};
use slipway_e2e::operator::Operator;
use slipway_e2e::server::Server;
use slipway_e2e::suite;
use tokio::runtime::Runtime;

use crate::plane::Plane;

/// How long a run may take, on a loaded machine.
pub(crate) const RUN: Duration = Duration::from_mins(10);
/// How often a server is asked that is too busy to answer, and how long it is left alone in between.
const TRIES: usize = 10;
const REST: Duration = Duration::from_millis(500);
/// How many nodes there are.
const NODES: u32 = 3;
/// What the workload of most stories is called.
pub(crate) const WEB: &str = "web";

/// Programs that are neither ours nor of Kubernetes.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) nginx: PathBuf,
    pub(crate) prometheus: PathBuf,
}

impl Programs {
    /// Where Flagger is.
    pub(crate) fn flagger() -> Result<PathBuf> {
        named("SLIPWAY_FLAGGER")
    }
}

/// Where stories play.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) programs: Programs,
    pub(crate) server: &'static str,
}

impl Stage {
    /// Installs the definitions of Canaries and of Gateway API, and makes nodes.
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        let gateway = named("SLIPWAY_GATEWAY")?;
        cluster.kubectl(&[
            "apply",
            "--server-side",
            "-f",
            &gateway.display().to_string(),
        ])?;
        for definition in printed(&["crds", "--controllers", "canary"])? {
            cluster.apply(&definition.to_string())?;
        }
        let all = ["wait", "--for=condition=Established", "--timeout=300s"];
        cluster.kubectl(&[&all[..], &["crd", "--all"]].concat())?;
        for index in 0..NODES {
            cluster.apply(&node(index).to_string())?;
        }
        Ok(Self {
            cluster,
            programs: Programs {
                nginx: named("SLIPWAY_NGINX")?,
                prometheus: named("SLIPWAY_PROMETHEUS")?,
            },
            server: server.name(),
        })
    }
}

fn named(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable);
    let path = path.with_context(|| format!("{variable} is not set: use cargo xtask test"))?;
    Ok(path.into())
}

/// Whether a server had no answer, and may have one a moment later.
fn is_busy(why: &kube::Error) -> bool {
    match why {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

/// One story.
pub(crate) struct Story<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) name: &'static str,
    pub(crate) gates: Gates,
    pub(crate) plane: Plane,
    operator: Mutex<Option<Operator>>,
    client: kube::Client,
    runtime: Runtime,
}

impl<'a> Story<'a> {
    /// A namespace of this name, with a data plane and nobody who shifts traffic.
    pub(crate) fn begin(stage: &'a Stage, name: &'static str) -> Result<Self> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        stage.cluster.apply(&namespace.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let client = runtime.block_on(stage.cluster.client())?;
        let plane = Plane::start(&stage.programs, &client, name)?;
        Ok(Self {
            stage,
            name,
            gates: Gates::start()?,
            plane,
            operator: Mutex::new(None),
            client,
            runtime,
        })
    }

    /// The same with a serving `web` of two pods, which is looked after by ours.
    pub(crate) fn serving(
        stage: &'a Stage,
        name: &'static str,
        analysis: impl FnOnce(&Gates) -> Value,
    ) -> Result<Self> {
        let story = Self::begin(stage, name)?;
        let mut made = canary(WEB, "gatewayapi:v1", &analysis(&story.gates));
        made["spec"]["service"]["gatewayRefs"] = json!([{"name": "front"}]);
        made["spec"]["metricsServer"] = json!(story.plane.metrics);
        story.apply(&deployment(WEB, 2, "app:1"))?;
        story.apply(&made)?;
        story.operate()?;
        story.until_phase("Initialized")?;
        Ok(story)
    }

    /// What may be measured: nine of ten requests succeed, at least.
    pub(crate) fn success_rate() -> Value {
        json!([{"name": "request-success-rate", "interval": "10s", "thresholdRange": {"min": 90}}])
    }

    fn operator(&self) -> MutexGuard<'_, Option<Operator>> {
        self.operator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts ours for this namespace.
    pub(crate) fn operate(&self) -> Result<()> {
        let mut operator = self.start_ours()?;
        operator.wait_until_ready(RUN)?;
        self.keep(operator);
        Ok(())
    }

    /// Starts ours, and does not wait for anything.
    pub(crate) fn start_ours(&self) -> Result<Operator> {
        let here = ["--namespace", self.name, "--operator-namespace", self.name];
        let how = ["--controllers", "canary", "--no-leader-elect"];
        // Gates and Prometheus are on loopback.
        let outside = ["--call-special", "127.0.0.1"];
        let words = [&here[..], &how, &outside].concat();
        Operator::start(&self.stage.cluster.kubeconfig, &words)
    }

    /// From now on this one acts; another one that did is killed.
    pub(crate) fn keep(&self, operator: Operator) {
        *self.operator() = Some(operator);
    }

    /// Ends whoever acts, without warning.
    pub(crate) fn kill(&self) -> Result<()> {
        self.operator().take().map_or(Ok(()), Operator::kill)
    }

    /// Applies an object here.
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(self.name);
        self.stage.cluster.apply(&object.to_string()).map(drop)
    }

    /// Sends a request that may be sent twice. One that a busy server did not answer says nothing about us.
    fn send(&self, request: &http::Request<Vec<u8>>) -> Result<Value> {
        let mut tries = 1;
        loop {
            let sent = self.client.request(request.clone());
            let answer: Result<Value, kube::Error> = self.runtime.block_on(sent);
            match answer {
                Err(why) if tries < TRIES && is_busy(&why) => {
                    tries += 1;
                    std::thread::sleep(REST);
                }
                answer => return answer.context("asking the API"),
            }
        }
    }

    /// What the API answers to a GET.
    pub(crate) fn read(&self, path: &str) -> Result<Value> {
        let request = http::Request::get(path).body(Vec::new())?;
        let found = self.send(&request);
        found.with_context(|| format!("reading {path}"))
    }

    /// A Canary of this namespace.
    pub(crate) fn canary(&self, name: &str) -> Result<Value> {
        let path = "/apis/flagger.app/v1beta1/namespaces";
        self.read(&format!("{path}/{}/canaries/{name}", self.name))
    }

    /// A Deployment of this namespace.
    pub(crate) fn workload(&self, name: &str) -> Result<Value> {
        let path = "/apis/apps/v1/namespaces";
        self.read(&format!("{path}/{}/deployments/{name}", self.name))
    }

    /// Changes an object by a merge.
    pub(crate) fn merge(&self, path: &str, body: &Value) -> Result<()> {
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(body.to_string().into_bytes())?;
        let written = self.send(&request).map(drop);
        written.with_context(|| format!("changing {path}"))
    }

    /// Gives a workload another image, and whatever else its pods shall have.
    pub(crate) fn release(&self, name: &str, image: &str, pods: &Value) -> Result<()> {
        let mut spec = json!({"containers": [{"name": "app", "image": image, "ports": [{"containerPort": 8080}]}]});
        for (field, value) in pods.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/{name}", self.name);
        self.merge(&path, &json!({"spec": {"template": {"spec": spec}}}))
    }

    /// Gives `web` another image.
    pub(crate) fn release_web(&self, image: &str) -> Result<()> {
        self.release(WEB, image, &json!({}))
    }

    /// Waits until something holds.
    pub(crate) fn until<T>(
        &self,
        what: &str,
        mut probe: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            if let Some(found) = probe()? {
                return Ok(found);
            }
            if start.elapsed() > RUN {
                bail!("not within {RUN:?}: {what}\n{}", self.situation());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes sure that something holds for a while.
    pub(crate) fn throughout(
        &self,
        what: &str,
        during: Duration,
        probe: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < during {
            ensure!(probe()?, "not any more: {what}\n{}", self.situation());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Waits until `web` is in this phase.
    pub(crate) fn until_phase(&self, wanted: &str) -> Result<Value> {
        self.until(&format!("web is {wanted}"), || {
            let found = self.canary(WEB)?;
            let is_ended = phase(&found) == "Failed" && wanted != "Failed";
            ensure!(!is_ended, "it is Failed: {}", self.situation());
            Ok((phase(&found) == wanted).then_some(found))
        })
    }

    /// `web` serves this image everywhere, nothing else is left, and no request was lost on the way.
    pub(crate) fn ended_with(&self, image_of: &str) -> Result<()> {
        let (source, target) = (self.workload("web-primary")?, self.workload(WEB)?);
        ensure!(
            image(&source) == image_of,
            "what serves is {}",
            image(&source)
        );
        ensure!(
            target["spec"]["replicas"] == 0,
            "the workload still has {} pods",
            target["spec"]["replicas"]
        );
        self.until("all answers are of what serves", || {
            let before = (self.plane.ledger.of(image_of).0, self.plane.ledger.total());
            std::thread::sleep(Duration::from_secs(1));
            let after = (self.plane.ledger.of(image_of).0, self.plane.ledger.total());
            let (own, all) = (after.0 - before.0, after.1 - before.1);
            // A few may be under way.
            Ok((all > 20 && all.abs_diff(own) <= 8).then_some(()))
        })?;
        self.nothing_was_lost()
    }

    /// Every request had an answer of a pod.
    pub(crate) fn nothing_was_lost(&self) -> Result<()> {
        self.plane.rest();
        if let Some(losses) = self.plane.ledger.losses() {
            bail!("{losses}\n{}", self.situation());
        }
        self.say(&format!("{}, none lost", self.plane.ledger.summary()));
        Ok(())
    }

    /// A line for whoever reads.
    pub(crate) fn say(&self, text: &str) {
        suite::say(&format!("  {} {}: {text}", self.stage.server, self.name));
    }

    /// What a reader wants to see when a story goes wrong.
    pub(crate) fn situation(&self) -> String {
        let kinds = "canaries.flagger.app,httproutes,deployments,pods,events";
        let all = self.stage.cluster.kubectl(&["get", kinds, "-n", self.name]);
        let statuses = self.stage.cluster.kubectl(&[
            "get",
            "canaries.flagger.app",
            "-n",
            self.name,
            "-o",
            "jsonpath={range .items[*]}{.metadata.name}{\"\\t\"}{.status}{\"\\n\"}{end}",
        ]);
        let log = self.operator().as_ref().map(Operator::log);
        let log = log.unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(30).collect();
        format!(
            "{}\n{}\ndata plane: {:?}; {}\n{}",
            all.unwrap_or_default(),
            statuses.unwrap_or_default(),
            self.plane.trouble(),
            self.plane.ledger.summary(),
            end.join("\n")
        )
    }
}
