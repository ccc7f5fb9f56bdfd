//! The recipes of "How do you do …?" in the design of specialisation, each as it is told there.

use anyhow::Result;
use serde_json::{Value, json};

use crate::leaf::Leaf;
use crate::registry::{BY_CLUSTER_API, Known, host};
use crate::stage::{PLACE, Stage};

/// What a recipe makes: a `ConfigMap` of this name, in a namespace that no other recipe has.
const MADE: &str = "recipe";

/// Brings a sync to all leaves that are selected, at once.
fn bring(stage: &Stage, name: &str, selector: &Value, spec: &Value) -> Result<()> {
    stage.rollout(
        name,
        &json!({"selector": selector, "strategy": "Replace", "template": {"spec": spec}}),
    )
}

/// A configuration with the marker `${VALUE}`, for which this is put in.
fn marked(stage: &Stage, namespace: &str, value: &str) -> Value {
    let more = json!({"targetNamespace": namespace, "substitute": {"VALUE": value}});
    stage.sync("v1", "recipe", &more)
}

/// Waits until a leaf has what a recipe makes, with exactly this in it.
fn gets(stage: &Stage, leaf: &Leaf, namespace: &str, wanted: &Value) -> Result<()> {
    let what = format!("{} gets {wanted} in {namespace}", leaf.name);
    stage.eventually(&what, || {
        let found = leaf.find("configmap", namespace, MADE)?;
        Ok(found.filter(|found| found["data"] == *wanted).map(drop))
    })
}

/// Interpolate a property of the cluster into configuration: a marker, and a binding to a field of its `Cluster`.
pub(crate) fn property(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "recipe-property";
    let field = json!({"kind": "Cluster", "name": "$(CLUSTER_NAME)", "fieldPath": "/spec/controlPlaneEndpoint/host"});
    let spec = json!({
        "controlPlaneBindings": [{"name": "host", "objectFieldRef": field}],
        "sync": marked(stage, NAMESPACE, "$(host)"),
    });
    let selector = json!({"matchLabels": {BY_CLUSTER_API: "yes"}});
    bring(stage, "recipe-property", &selector, &spec)?;
    let known = |leaf: &&Leaf| leaf.known == Known::ByClusterApi;
    for leaf in stage.leaves.iter().filter(known) {
        gets(stage, leaf, NAMESPACE, &json!({"value": host(leaf)}))?;
    }
    stage.done("recipe-property").map(drop)
}

/// Adapt someone else's configuration: theirs is a submodule of ours and has no markers, a kustomization patches one in, and the
/// value is a literal.
pub(crate) fn adapted(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "recipe-adapted";
    stage.adapt("adapted", "adapted/base")?;
    let more = json!({"targetNamespace": NAMESPACE, "substitute": {"VALUE": "ours"}});
    let mut sync = stage.sync("adapted", "adapted", &more);
    sync["source"]["git"]["recurseSubmodules"] = json!(true);
    bring(stage, "recipe-adapted", &json!({}), &json!({"sync": sync}))?;
    for leaf in &stage.leaves {
        let wanted = json!({"value": "ours", "other": "theirs"});
        gets(stage, leaf, NAMESPACE, &wanted)?;
    }
    stage.done("recipe-adapted").map(drop)
}

/// Interpolate a field from within the cluster: of a kind that the agent may read only when somebody has said so in that cluster.
pub(crate) fn field(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "recipe-field";
    let address = |leaf: &Leaf| format!("gateway.{}.example", leaf.name);
    for leaf in &stage.leaves {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "gateway", "namespace": PLACE},
            "spec": {"type": "ExternalName", "externalName": address(leaf)},
        });
        leaf.cluster().apply(&service.to_string())?;
    }
    let mut sync = marked(stage, NAMESPACE, "$(address)");
    let field = json!({"kind": "Service", "name": "gateway", "fieldPath": "/spec/externalName"});
    sync["bindings"] = json!([{"name": "address", "objectFieldRef": field}]);
    bring(stage, "recipe-field", &json!({}), &json!({ "sync": sync }))?;
    for leaf in &stage.leaves {
        forbidden(stage, leaf, "recipe-field")?;
    }
    for leaf in &stage.leaves {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "bindings-services", "labels": {"fleet.squaremo.dev/bindings": "true"}},
            "rules": [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]}],
        });
        leaf.cluster().apply(&role.to_string())?;
    }
    for leaf in &stage.leaves {
        gets(stage, leaf, NAMESPACE, &json!({"value": address(leaf)}))?;
    }
    stage.done("recipe-field").map(drop)
}

/// Waits until it is told that the agent of a leaf has no right to what a binding of a sync refers to.
fn forbidden(stage: &Stage, leaf: &Leaf, sync: &str) -> Result<()> {
    let what = format!("{} says that it may not read it", leaf.name);
    stage.eventually(&what, || {
        let remote = stage.find("remoteassemblages.fleet.squaremo.dev", &leaf.name)?;
        let told = remote.pointer("/status/syncs").and_then(Value::as_array);
        let mut told = told.into_iter().flatten();
        let told = told.find(|told| told["name"] == sync);
        let is_told = told.is_some_and(|told| told["reason"] == "BindingForbidden");
        Ok(is_told.then_some(()))
    })
}

/// Interpolate a value from another module: it is found by what that module has applied, and follows it.
pub(crate) fn module(stage: &Stage) -> Result<()> {
    const NAMESPACE: &str = "recipe-module";
    let provided = |version: &str| {
        let sync = stage.sync(
            version,
            "plain",
            &json!({"targetNamespace": "recipe-provider"}),
        );
        bring(
            stage,
            "recipe-provider",
            &json!({}),
            &json!({ "sync": sync }),
        )
    };
    provided("v1")?;
    let mut sync = marked(stage, NAMESPACE, "version $(version)");
    let field = json!({
        "module": "recipe-provider", "kind": "ConfigMap", "name": "plain", "fieldPath": "/data/version",
    });
    sync["bindings"] = json!([{"name": "version", "moduleFieldRef": field}]);
    bring(stage, "recipe-module", &json!({}), &json!({ "sync": sync }))?;
    for version in ["v1", "v2"] {
        provided(version)?;
        for leaf in &stage.leaves {
            let wanted = json!({"value": format!("version {version}")});
            gets(stage, leaf, NAMESPACE, &wanted)?;
        }
    }
    stage.done("recipe-module").map(drop)
}
