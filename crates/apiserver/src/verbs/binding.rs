//! Binding a pod to a node, as a scheduler does.

use serde_json::Value;

use super::{admit, get, render};
use crate::admission::Gvk;
use crate::builtin::pod::subresource;
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::status::{Outcome, Status};
use crate::value;

/// How often a binding starts over when the pod changed under it.
const ATTEMPTS: usize = 5;

/// Labels that a pod takes over from its node.
const TOPOLOGY: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Says in a binding where the node is, as far as the node's labels say it.
fn add_topology(ex: &Exchange<'_>, binding: &mut Value) {
    let name = value::text(binding, "target.name");
    let Some(node) = ex.cluster.store.get("/nodes", "", name) else {
        return;
    };
    let node = node.decode();
    let labels = value::map(&node, "metadata.labels");
    for key in TOPOLOGY {
        let Some(label) = labels.and_then(|labels| labels.get(key)) else {
            continue;
        };
        if !value::has(binding, "metadata.labels") {
            value::put(binding, "metadata.labels", serde_json::json!({}));
        }
        let target = value::slot(binding, "metadata.labels").and_then(Value::as_object_mut);
        if let Some(target) = target {
            target.insert(key.to_owned(), label.clone());
        }
    }
}

/// Answers POST on `binding`.
pub(super) async fn bind(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    let mut body = ex.decode_as("v1", "Binding", "io.k8s.api.core.v1.Binding")?;
    subresource::validate_binding(&body, &ex.target.name)?;
    add_topology(ex, &mut body);
    let mut warnings = Vec::new();
    let kind = Gvk::new("", "v1", "Binding");
    admit::create_subresource(ex, kind, body.clone(), options.dry_run, &mut warnings).await?;
    let pod = ex.for_object(&ex.target.namespace, &ex.target.name);
    for _ in 0..ATTEMPTS {
        let stored = get::find(&pod)?;
        let mut bound = render::decode(&pod, &stored);
        subresource::bind(&mut bound, &body, ex.now)?;
        let committed = options.dry_run
            || ex
                .cluster
                .store
                .update(
                    &pod.bucket(),
                    &ex.target.namespace,
                    &ex.target.name,
                    stored.version,
                    |version| Cluster::encode(&pod.resource, &bound, version),
                )
                .is_ok();
        if committed {
            let status = Status::success(201);
            return Ok(Reply::status(&status).with_warnings(warnings));
        }
    }
    Err(Box::new(Status::modified(
        "",
        "pods/binding",
        &ex.target.name,
    )))
}
