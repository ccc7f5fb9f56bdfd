//! What a new pod gets from classes that it names: its priority. Runtime classes are not served, so that a pod that
//! names one is refused.

use serde_json::Value;

use crate::builtin::pod::admission::set_priority;
use crate::exchange::Exchange;
use crate::field;
use crate::resource::bucket;
use crate::status::{Outcome, Status};
use crate::value;

fn is_pod(ex: &Exchange<'_>) -> bool {
    ex.group().is_empty() && ex.plural() == "pods"
}

fn forbidden(pod: &Value, why: &str) -> Box<Status> {
    let name = match value::text(pod, "metadata.name") {
        "" => value::text(pod, "metadata.generateName"),
        name => name,
    };
    Box::new(Status::forbidden("", "pods", name, why))
}

/// Refuses a pod that asks for what only a runtime class gives.
pub(super) fn check_overhead(ex: &Exchange<'_>, pod: &Value) -> Outcome<()> {
    if is_pod(ex) && value::has(pod, "spec.overhead") {
        return Err(forbidden(
            pod,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ));
    }
    Ok(())
}

/// Gives a new pod the priority of its class; a class that is not there is a refusal.
pub(super) fn on_create(ex: &Exchange<'_>, pod: &mut Value) -> Outcome<()> {
    if !is_pod(ex) {
        return Ok(());
    }
    set(ex, pod)?;
    match value::at(pod, "spec.runtimeClassName").and_then(Value::as_str) {
        None => Ok(()),
        Some(name) => {
            let name = field::quote(name);
            Err(forbidden(
                pod,
                &format!("pod rejected: RuntimeClass {name} not found"),
            ))
        }
    }
}

fn set(ex: &Exchange<'_>, pod: &mut Value) -> Outcome<()> {
    let name = value::text(pod, "spec.priorityClassName");
    let classes = bucket("scheduling.k8s.io", "priorityclasses");
    let all = ex.cluster.decoded(&classes);
    let class = if name.is_empty() {
        all.iter().find(|class| value::flag(class, "globalDefault"))
    } else {
        all.iter()
            .find(|class| value::text(class, "metadata.name") == name)
    };
    set_priority(pod, class).map_err(|why| forbidden(pod, &why))
}
