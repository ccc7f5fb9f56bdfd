//! Binding a pod to a node, as a scheduler does.

use serde_json::{Value, json};

use super::{admit, get, render};
use crate::admission::Gvk;
use crate::cluster::Cluster;
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::status::{Outcome, Status};
use crate::value;

/// How often a binding starts over when the pod changed under it.
const ATTEMPTS: usize = 5;

/// Answers POST on `binding`.
pub(super) async fn bind(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    let body = ex.decode_as("v1", "Binding", "io.k8s.api.core.v1.Binding")?;
    let mut warnings = Vec::new();
    let kind = Gvk::new("", "v1", "Binding");
    admit::create_subresource(ex, kind, body.clone(), options.dry_run, &mut warnings).await?;
    let pod = ex.for_object(&ex.target.namespace, &ex.target.name);
    for _ in 0..ATTEMPTS {
        let stored = get::find(&pod)?;
        let bound = assigned(ex, render::decode(&pod, &stored), value::text(&body, "target.name"))?;
        let committed = options.dry_run
            || ex
                .cluster
                .store
                .update(&pod.bucket(), &ex.target.namespace, &ex.target.name, stored.version, |version| {
                    Cluster::encode(&pod.resource, &bound, version)
                })
                .is_ok();
        if committed {
            let mut status = Status::failure(201, "", "");
            status.status = "Success".to_owned();
            return Ok(Reply::status(&status).with_warnings(warnings));
        }
    }
    Err(Box::new(Status::modified("", "pods/binding", &ex.target.name)))
}

/// The pod on its node.
fn assigned(ex: &Exchange<'_>, mut pod: Value, node: &str) -> Outcome<Value> {
    let name = &ex.target.name;
    let refuse = |why: String| Err(Box::new(Status::conflict("", "pods/binding", name, &why)));
    if value::has(&pod, "metadata.deletionTimestamp") {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let before = value::text(&pod, "spec.nodeName");
    if !before.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {}", crate::field::quote(before)));
    }
    value::put(&mut pod, "spec.nodeName", node);
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": crate::meta::timestamp(ex.now),
    });
    let mut conditions: Vec<Value> = value::items(&pod, "status.conditions").to_vec();
    conditions.retain(|c| value::text(c, "type") != "PodScheduled");
    conditions.push(condition);
    value::put(&mut pod, "status.conditions", conditions);
    Ok(pod)
}
