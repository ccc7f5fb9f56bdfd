//! Binding a pod to a node, as a scheduler does.

use serde_json::{Value, json};

use super::update::{Change, change_object};
use crate::exchange::{Exchange, Reply};
use crate::options::WriteOptions;
use crate::resource::Part;
use crate::status::{Outcome, Status};
use crate::value;

/// Answers POST on `binding`.
pub(super) async fn bind(ex: &Exchange<'_>) -> Outcome<Reply> {
    let options = WriteOptions::parse(&ex.query, "CreateOptions")?;
    let body = ex.decode_as("v1", "Binding", "io.k8s.api.core.v1.Binding")?;
    let node = value::text(&body, "target.name").to_owned();
    let pod = ex.for_object(&ex.target.namespace, &ex.target.name);
    let transform = |live: Option<&Value>| {
        let mut new = live.cloned().ok_or_else(|| ex.not_found(&ex.target.name))?;
        let conflict = |why: String| Box::new(Status::conflict("", "pods/binding", &ex.target.name, &why));
        if value::has(&new, "metadata.deletionTimestamp") {
            return Err(conflict(format!("pod {} is being deleted, cannot be assigned to a host", ex.target.name)));
        }
        let assigned = value::text(&new, "spec.nodeName");
        if !assigned.is_empty() {
            return Err(conflict(format!("pod {} is already assigned to node {}", ex.target.name, crate::field::quote(assigned))));
        }
        value::put(&mut new, "spec.nodeName", node.clone());
        value::take(&mut new, "metadata.resourceVersion");
        scheduled(&mut new, ex.now);
        Ok(new)
    };
    let change = Change { part: Part::Scale, dry_run: options.dry_run, upsert: false, names_uid: false, transform: &transform };
    let mut warnings = Vec::new();
    change_object(&pod, &change, &mut warnings).await?;
    let mut status = Status::failure(201, "", "");
    status.status = "Success".to_owned();
    Ok(Reply::status(&status).with_warnings(warnings))
}

/// The `PodScheduled` condition.
fn scheduled(pod: &mut Value, now: jiff::Timestamp) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": crate::meta::timestamp(now),
    });
    let mut conditions: Vec<Value> = value::items(pod, "status.conditions").to_vec();
    conditions.retain(|c| value::text(c, "type") != "PodScheduled");
    conditions.push(condition);
    value::put(pod, "status.conditions", conditions);
}
