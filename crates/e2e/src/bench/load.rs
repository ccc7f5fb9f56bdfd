//! The Deployments that are restarted, and the policy.

use anyhow::Result;
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use slipway_api::flipper::Flipper;
use slipway_api::names::LAST_RESTART;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::printed;

const NAMESPACE: &str = "bench";

/// How many creations are under way at once.
const AT_ONCE: usize = 32;

/// A cluster with the operator's definitions and roles, and room for Deployments.
pub(crate) struct Load {
    pub(crate) client: Client,
}

impl Load {
    /// Installs what `slipway manifests` prints, and a policy for all Deployments of the bench.
    pub(crate) async fn install(cluster: &Cluster) -> Result<Self> {
        let documents = printed(&["manifests"])?;
        for document in documents.iter().filter(|d| d["kind"] != "Deployment") {
            cluster.apply(&document.to_string())?;
        }
        cluster.apply(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
                .to_string(),
        )?;
        let load = Self {
            client: cluster.client().await?,
        };
        load.policy("1h").await?;
        Ok(load)
    }

    /// A guess at how long creating takes, in seconds.
    pub(crate) fn creation_time(count: usize) -> i64 {
        i64::try_from(count / 250).unwrap_or_default() + 5
    }

    /// Gives the policy this interval.
    pub(crate) async fn policy(&self, interval: &str) -> Result<()> {
        let flippers: Api<Flipper> = Api::namespaced(self.client.clone(), NAMESPACE);
        let body = json!({
            "apiVersion": "flipper.io.github.com/v1alpha1",
            "kind": "Flipper",
            "metadata": {"name": "all"},
            "spec": {"interval": interval, "match": {"namespaces": [NAMESPACE]}},
        });
        let parameters = PatchParams::apply("bench").force();
        flippers
            .patch("all", &parameters, &Patch::Apply(&body))
            .await?;
        Ok(())
    }

    /// Creates Deployments that become due one after another, from `first` on.
    pub(crate) async fn create(
        &self,
        count: usize,
        first: Timestamp,
        spread: SignedDuration,
        interval: SignedDuration,
    ) -> Result<()> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let step = spread.as_millis() / i128::try_from(count.max(1))?;
        let jobs = (0..count).map(|index| {
            let offset = SignedDuration::from_millis(
                i64::try_from(step * index as i128).unwrap_or_default(),
            );
            let stamp = first + offset - interval;
            let api = api.clone();
            async move {
                let object: Deployment = serde_json::from_value(deployment(index, stamp))?;
                api.create(&PostParams::default(), &object).await?;
                Ok::<(), anyhow::Error>(())
            }
        });
        let mut running = futures::stream::iter(jobs).buffer_unordered(AT_ONCE);
        while let Some(result) = running.next().await {
            result?;
        }
        Ok(())
    }

    /// A collection of the API, untyped.
    pub(crate) fn collection(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
    ) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: if group.is_empty() {
                version.to_owned()
            } else {
                format!("{group}/{version}")
            },
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::all_with(self.client.clone(), &resource)
    }

    /// Takes everything away again, so that the next run begins with as little: nobody waits for a lease whose holder was
    /// killed, and nobody finds events.
    pub(crate) fn remove(cluster: &Cluster) -> Result<()> {
        for collection in [
            "/apis/apps/v1/namespaces/bench/deployments",
            "/apis/events.k8s.io/v1/namespaces/bench/events",
            "/apis/coordination.k8s.io/v1/namespaces/rollout/leases",
        ] {
            cluster.kubectl(&["delete", "--raw", collection])?;
        }
        cluster.kubectl(&["delete", "flipper", "all", "-n", NAMESPACE])?;
        Ok(())
    }
}

fn deployment(index: usize, stamp: Timestamp) -> Value {
    let name = format!("d-{index:05}");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": {"app": name, "team": format!("team-{}", index % 40)},
            "annotations": {LAST_RESTART: stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "app",
                    "image": "registry.example/app:1",
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }]},
            },
        },
    })
}
