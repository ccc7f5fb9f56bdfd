//! One workload cluster: in it somebody stands in for agent and Flux, who says at once that whatever is assigned is applied.

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::store::{ChangeKind, Stored};

use crate::listener::{Listener, client};
use crate::servers::create;

/// Where everything of the fleet is.
pub(crate) const PLACE: &str = "fleet";
const VERSION: &str = "fleet.squaremo.dev/v1alpha1";

/// Objects of a kind of ours.
pub(crate) fn api(cluster: &Arc<Cluster>, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("fleet.squaremo.dev", "v1alpha1", kind);
    let kind = ApiResource::from_gvk(&kind);
    Api::namespaced_with(client(cluster, PLACE), PLACE, &kind)
}

/// An object of a kind of ours.
pub(crate) fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The name of what others assign.
pub(crate) fn other(number: usize) -> String {
    format!("other-{number:03}")
}

/// Has a leaf known in the hub, with so many assignments that others made.
pub(crate) async fn enlist(
    home: &Arc<Cluster>,
    leaf: &Arc<Cluster>,
    listener: &Listener,
    (is_measured, others): (bool, usize),
) -> Result<()> {
    let name = leaf.name();
    let measured = if is_measured { "yes" } else { "no" };
    let secrets: Api<Secret> = Api::namespaced(client(home, PLACE), PLACE);
    let secret = json!({
        "metadata": {"name": name, "labels": {"fleet.squaremo.dev/cluster": "", "measured": measured}},
        "stringData": {"value": listener.kubeconfig(leaf)},
    });
    create(&secrets, secret).await?;
    let syncs = (0..others).map(|number| {
        json!({
            "name": other(number), "revision": "1",
            "source": {"git": {"url": "https://git.example/other", "version": {"tag": "v1"}}},
            "package": {"kustomize": {"path": "deploy"}},
        })
    });
    let syncs: Vec<Value> = syncs.collect();
    let spec = json!({"kubeconfigRef": {"name": name}, "assemblage": {"syncs": syncs}});
    let remote = object("RemoteAssemblage", name, &spec);
    create(&api(home, "RemoteAssemblage"), remote).await
}

/// The assemblages of a leaf that were written after a version, oldest first, and up to which version. It is no request: who stands in for
/// somebody takes as little as possible from whoever is measured.
pub(crate) fn written(leaf: &Cluster, since: u64) -> (Vec<Arc<Stored>>, u64) {
    let is_assemblage = |resource: &str| resource.ends_with("/assemblages");
    let Ok((changes, until)) = leaf.history(since) else {
        let (objects, until) = leaf.everything();
        let found = objects.into_iter();
        let found = found.filter(|(resource, _)| is_assemblage(resource));
        return (found.map(|(_, object)| object).collect(), until);
    };
    let changes = changes.into_iter();
    let changes = changes.filter(|(resource, _)| is_assemblage(resource));
    let changes = changes.filter(|(_, change)| change.kind != ChangeKind::Deleted);
    (changes.map(|(_, change)| change.object).collect(), until)
}

/// Stands in for agent and Flux: whatever is assigned is applied and healthy.
pub(crate) async fn stand_in(leaf: Arc<Cluster>) {
    let assemblages = api(&leaf, "Assemblage");
    let mut seen = 0;
    loop {
        let next = leaf.next_write();
        let (found, until) = written(&leaf, seen);
        seen = until;
        if let Some(status) = found.last().and_then(|found| wanted(&found.decode())) {
            let patch = Patch::Merge(json!({ "status": status }));
            let parameters = PatchParams::default();
            let told = assemblages.patch_status(leaf.name(), &parameters, &patch);
            match told.await {
                // What is told is no news, unless something was written before it.
                Ok(told) if told.resource_version() == Some((until + 1).to_string()) => {
                    seen = until + 1;
                }
                Ok(_) => {}
                // What is refused is tried again with the next write.
                Err(_) => seen = 0,
            }
        }
        next.await;
    }
}

/// The status that an assemblage should have; none if it has it.
fn wanted(data: &Value) -> Option<Value> {
    let syncs = data.pointer("/spec/syncs")?.as_array()?;
    let told = syncs.iter().map(|sync| {
        json!({
            "name": sync["name"], "observedRevision": sync["revision"], "state": "succeeded",
            "reason": "Applied", "since": "2026-01-05T00:00:00Z",
        })
    });
    let generation = data.pointer("/metadata/generation");
    let told = json!({"observedGeneration": generation, "syncs": Value::Array(told.collect())});
    let is_told = ["observedGeneration", "syncs"]
        .iter()
        .all(|field| data.pointer(&format!("/status/{field}")) == told.get(field));
    (!is_told).then_some(told)
}
