//! One leaf: a cluster that can be stopped and started, and the agent in it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use serde_json::Value;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::operator::Operator;
use slipway_e2e::order::Order;
use slipway_e2e::server::{Real, Server};

use crate::stage::{PLACE, SOON};

/// Where the agent is installed.
pub(crate) const AGENT_NAMESPACE: &str = "slipway-agent";

/// A leaf.
pub(crate) struct Leaf {
    pub(crate) name: String,
    real: Real,
    cluster: Cluster,
    agent: Mutex<Option<Operator>>,
}

impl Leaf {
    pub(crate) fn new(kubectl: &Path, name: &str, real: Real) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            cluster: Cluster::new(kubectl, real.kubeconfig())?,
            real,
            agent: Mutex::new(None),
        })
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Starts what its Deployment would run: KWOK runs no containers. It has the rights of its service account, and no others.
    pub(crate) fn start_agent(&self, account: &str) -> Result<()> {
        let kubeconfig = self.cluster.service_account(AGENT_NAMESPACE, account)?;
        let mut agent = Operator::start(
            &kubeconfig,
            &[
                "--controllers",
                "agent",
                "--operator-namespace",
                AGENT_NAMESPACE,
            ],
        )?;
        agent.wait_until_ready(SOON)?;
        *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = Some(agent);
        Ok(())
    }

    /// Its API server answers nobody any more.
    pub(crate) fn stop(&self) -> Result<()> {
        self.real.order(Order::Stop)
    }

    /// It answers again.
    pub(crate) fn start(&self) -> Result<()> {
        self.real.order(Order::Start)
    }

    /// An object in it, if it is there.
    pub(crate) fn find(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let text = self.cluster.kubectl(&[
            "get",
            kind,
            name,
            "-n",
            namespace,
            "--ignore-not-found",
            "-o",
            "json",
        ])?;
        Ok(serde_json::from_str(&text).ok())
    }

    /// The image of the Deployment that is rolled out, and its uid.
    pub(crate) fn web(&self) -> Result<Option<(String, String)>> {
        let found = self.find("deployment", "default", "web")?;
        Ok(found.and_then(|web| {
            let image = web
                .pointer("/spec/template/spec/containers/0/image")?
                .as_str()?;
            let uid = web.pointer("/metadata/uid")?.as_str()?;
            Some((image.to_owned(), uid.to_owned()))
        }))
    }

    /// The Kustomization of a sync.
    pub(crate) fn kustomization(&self, sync: &str) -> Result<Option<Value>> {
        let name = format!("{}-{sync}", self.name);
        self.find("kustomizations.kustomize.toolkit.fluxcd.io", PLACE, &name)
    }
}
