//! One member: a cluster that can be stopped, started and replaced, and one object in it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::order::Order;
use slipway_e2e::server::{Embedded, Real, Server, Supervised};

use crate::flotilla::{CARGO, PLACE};

/// The object that wants something.
const OBJECT: &str = "cargo";
/// How long a cluster may take to be there again.
const WITHIN: Duration = Duration::from_mins(1);

/// What runs it.
enum Runs {
    Real(Real),
    /// Another one takes its place when it is replaced.
    Embedded(Embedded),
}

/// A member.
pub(crate) struct Ship {
    pub(crate) name: String,
    runs: Mutex<Runs>,
    cluster: Mutex<Cluster>,
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ship {
    pub(crate) fn real(kubectl: &Path, name: &str, real: Real) -> Result<Self> {
        let cluster = Cluster::new(kubectl, real.kubeconfig())?;
        Ok(Self::new(name, Runs::Real(real), cluster))
    }

    pub(crate) fn embedded(kubectl: &Path, name: &str) -> Result<Self> {
        let server = Embedded::start(&[])?;
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        Ok(Self::new(name, Runs::Embedded(server), cluster))
    }

    fn new(name: &str, runs: Runs, cluster: Cluster) -> Self {
        Self {
            name: name.to_owned(),
            runs: Mutex::new(runs),
            cluster: Mutex::new(cluster),
        }
    }

    /// The administrator's credentials.
    pub(crate) fn admin(&self) -> Result<Value> {
        locked(&self.cluster).inline_kubeconfig(None)
    }

    /// The credentials of a service account that may do everything; it is made if it is not there.
    pub(crate) fn account(&self, name: &str) -> Result<Value> {
        let cluster = locked(&self.cluster);
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": PLACE}});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": PLACE}],
        });
        cluster.apply(&account.to_string())?;
        cluster.apply(&binding.to_string())?;
        let token = cluster.kubectl(&["create", "token", name, "-n", PLACE])?;
        cluster.inline_kubeconfig(Some(token.trim()))
    }

    /// Takes a service account away, and with it all of its tokens.
    pub(crate) fn dismiss(&self, name: &str) -> Result<()> {
        let cluster = locked(&self.cluster);
        cluster.kubectl(&["delete", "serviceaccount", name, "-n", PLACE])?;
        Ok(())
    }

    /// The uid by which the cluster is known.
    pub(crate) fn uid(&self) -> Result<String> {
        locked(&self.cluster).eventually("kube-system is there", WITHIN, |cluster| {
            let Ok(system) = cluster.json(&["get", "namespace", "kube-system"]) else {
                return Ok(None);
            };
            Ok(system["metadata"]["uid"].as_str().map(str::to_owned))
        })
    }

    /// Its API server answers nobody any more.
    pub(crate) fn stop(&self) -> Result<()> {
        match &*locked(&self.runs) {
            Runs::Real(real) => real.order(Order::Stop),
            Runs::Embedded(server) => server.signal("STOP"),
        }
    }

    /// It answers again.
    pub(crate) fn start(&self) -> Result<()> {
        match &*locked(&self.runs) {
            Runs::Real(real) => real.order(Order::Start),
            Runs::Embedded(server) => server.signal("CONT"),
        }
    }

    /// Puts another cluster in its place: at the same address, or at one that is given with its credentials.
    pub(crate) fn replace(&self) -> Result<Option<Value>> {
        let mut runs = locked(&self.runs);
        if let Runs::Real(real) = &*runs {
            real.order(Order::Wipe)?;
            return Ok(None);
        }
        let server = Embedded::start(&[])?;
        let mut cluster = locked(&self.cluster);
        *cluster = cluster.other(server.kubeconfig())?;
        *runs = Runs::Embedded(server);
        cluster.inline_kubeconfig(None).map(Some)
    }

    /// The object wants this now.
    pub(crate) fn wants(&self, what: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": OBJECT, "namespace": PLACE, "labels": {CARGO: ""}},
            "data": {"want": what},
        });
        let said = format!("{}: it can be asked for {what}", self.name);
        locked(&self.cluster).eventually(&said, WITHIN, |cluster| {
            // A cluster that has just begun may not have the namespace yet.
            Ok(cluster.apply(&object.to_string()).ok().map(drop))
        })
    }

    fn has(cluster: &Cluster) -> Result<Option<String>> {
        let object = cluster.json(&["get", "configmap", OBJECT, "-n", PLACE])?;
        Ok(object["data"]["have"].as_str().map(str::to_owned))
    }

    /// It gets what it wants.
    pub(crate) fn gets(&self, what: &str, within: Duration) -> Result<()> {
        let said = format!("{} gets {what}", self.name);
        locked(&self.cluster).eventually(&said, within, |cluster| {
            let is_there = Self::has(cluster)?.as_deref() == Some(what);
            Ok(is_there.then_some(()))
        })
    }

    /// It does not get it for so long.
    pub(crate) fn never_gets(&self, what: &str, during: Duration) -> Result<()> {
        let said = format!("{} does not get {what}", self.name);
        locked(&self.cluster).throughout(&said, during, |cluster| {
            Ok(Self::has(cluster)?.as_deref() != Some(what))
        })
    }

    /// Runs kubectl there, and gives what it printed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        locked(&self.cluster).kubectl(arguments)
    }

    /// Takes the object away, if somebody answers.
    pub(crate) fn clear(&self) -> Result<()> {
        let arguments = ["delete", "configmap", OBJECT, "-n", PLACE];
        let cluster = locked(&self.cluster);
        cluster.kubectl(&[&arguments[..], &["--ignore-not-found"]].concat())?;
        Ok(())
    }

    /// An error says which one it was.
    pub(crate) fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.with_context(|| self.name.clone())
    }
}
