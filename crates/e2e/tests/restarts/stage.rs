//! A cluster with Slipway's definitions, roles and service account, and workloads to restart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::{node, printed};
use slipway_e2e::operator::Operator;
use slipway_e2e::server::Server;

/// The operator's namespace and service account, as the manifests name them.
const NAMESPACE: &str = "rollout";
const ACCOUNT: &str = "controller-manager";

/// Namespaces that tests use; emptied between them.
const PLACES: &[&str] = &["inventory", "payment", "many"];

/// How long something that should happen at once may take on a loaded machine.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// Where tests play.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// Whether this is a real control plane.
    pub(crate) real: bool,
    account: PathBuf,
}

impl Stage {
    /// Installs what `slipway manifests` prints, but for the operator's own Deployment.
    pub(crate) fn set(kubectl: &Path, server: &dyn Server) -> Result<Self> {
        let cluster = Cluster::new(kubectl, server.kubeconfig())?;
        let real = server.name() == "real";
        if real {
            for index in 0..3 {
                cluster.apply(&node(index).to_string())?;
            }
        }
        for document in printed(&["manifests"])? {
            if document["kind"] != "Deployment" {
                cluster.apply(&document.to_string())?;
            }
        }
        for place in PLACES {
            cluster.apply(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
                    .to_string(),
            )?;
        }
        let account = cluster.service_account(NAMESPACE, ACCOUNT)?;
        Ok(Self {
            cluster,
            real,
            account,
        })
    }

    /// Takes away what a test left.
    pub(crate) fn clear(&self) -> Result<()> {
        self.cluster
            .kubectl(&["delete", "flippers", "--all", "-A", "--wait=false"])?;
        for place in PLACES {
            self.cluster.kubectl(&[
                "delete",
                "deployments",
                "--all",
                "-n",
                place,
                "--cascade=background",
                "--wait=true",
            ])?;
        }
        Ok(())
    }

    /// An operator under the generated role, ready.
    pub(crate) fn operator(&self, arguments: &[&str]) -> Result<Operator> {
        let mut all = vec![
            "--controllers",
            "restarts",
            "--operator-namespace",
            NAMESPACE,
            // As the original does it, whose behaviour these tests are about.
            "--restarts-default-criteria",
            "--restarts-scope",
            "cluster",
        ];
        all.extend(arguments);
        let mut operator = Operator::start(&self.account, &all)?;
        operator.wait_until_ready(SOON)?;
        Ok(operator)
    }

    /// A Deployment with these labels, restarted so long ago by its stamp.
    pub(crate) fn deployment(
        &self,
        namespace: &str,
        name: &str,
        labels: &Value,
        stamped: Option<SignedDuration>,
    ) -> Result<()> {
        self.cluster
            .create(&deployment(namespace, name, labels, stamped, 2).to_string())
            .map(drop)
    }

    /// When a Deployment's template says that it was restarted.
    pub(crate) fn restarted_at(&self, namespace: &str, name: &str) -> Result<Option<Timestamp>> {
        let object = self
            .cluster
            .json(&["get", "deployment", name, "-n", namespace])?;
        restarted_at(&object)
    }

    /// Waits for a restart that is newer than `after`.
    pub(crate) fn restart(
        &self,
        namespace: &str,
        name: &str,
        after: Option<Timestamp>,
        within: Duration,
    ) -> Result<Timestamp> {
        self.cluster.at_length(
            &format!("a restart of {namespace}/{name} after {after:?}"),
            within,
            |_| {
                Ok(self
                    .restarted_at(namespace, name)?
                    .filter(|at| Some(*at) > after))
            },
        )
    }

    /// Makes sure that a Deployment is not restarted for a while.
    pub(crate) fn no_restart(&self, namespace: &str, name: &str, during: Duration) -> Result<()> {
        let before = self.restarted_at(namespace, name)?;
        self.cluster.throughout(
            &format!("{namespace}/{name} was last restarted at {before:?}"),
            during,
            |_| Ok(self.restarted_at(namespace, name)? == before),
        )
    }

    /// A condition of a Flipper: its status and message.
    pub(crate) fn condition(
        &self,
        namespace: &str,
        name: &str,
        kind: &str,
    ) -> Result<Option<(String, String)>> {
        let object = self
            .cluster
            .json(&["get", "flipper", name, "-n", namespace])?;
        let conditions = object
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let found = conditions.into_iter().flatten().find(|c| c["type"] == kind);
        let text = |c: &Value, key: &str| c[key].as_str().unwrap_or_default().to_owned();
        Ok(found.map(|c| (text(c, "status"), text(c, "message"))))
    }
}

/// A Deployment as YAML's JSON.
pub(crate) fn deployment(
    namespace: &str,
    name: &str,
    labels: &Value,
    stamped: Option<SignedDuration>,
    replicas: u32,
) -> Value {
    let mut annotations = json!({});
    let mut template = json!({});
    if let Some(ago) = stamped {
        let stamp = (Timestamp::now() - ago)
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        annotations[LAST_RESTART] = json!(stamp);
        template[RESTARTED_AT] = json!(stamp);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": template},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "app", "image": "busybox:1"}]},
            },
        },
    })
}

/// A Flipper as YAML's JSON.
pub(crate) fn flipper(namespace: &str, name: &str, spec: &Value) -> String {
    json!({
        "apiVersion": "flipper.io.github.com/v1alpha1",
        "kind": "Flipper",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    })
    .to_string()
}

/// When a Deployment's template says that it was restarted.
pub(crate) fn restarted_at(object: &Value) -> Result<Option<Timestamp>> {
    object
        .pointer("/spec/template/metadata/annotations")
        .and_then(|annotations| annotations.get(RESTARTED_AT)?.as_str())
        .map(|text| {
            text.parse()
                .with_context(|| format!("{text:?} is no RFC 3339 time"))
        })
        .transpose()
}
