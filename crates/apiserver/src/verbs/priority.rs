//! The priority of pods, from the class that they name.

use serde_json::Value;

use crate::exchange::Exchange;
use crate::resource::bucket;
use crate::status::{Outcome, Status};
use crate::value;

/// Gives a new pod the priority of its class; a class that is not there is a refusal.
pub(super) fn on_create(ex: &Exchange<'_>, object: &mut Value) -> Outcome<()> {
    if !ex.group().is_empty() || ex.plural() != "pods" {
        return Ok(());
    }
    let name = value::text(object, "spec.priorityClassName").to_owned();
    let classes = bucket("scheduling.k8s.io", "priorityclasses");
    let class = if name.is_empty() {
        ex.cluster
            .store
            .list(&classes, "", &|_| true)
            .objects
            .iter()
            .map(|stored| stored.decode())
            .find(|class| value::flag(class, "globalDefault"))
    } else {
        let stored = ex.cluster.store.get(&classes, "", &name).ok_or_else(|| {
            let why = format!("no PriorityClass with name {name} was found");
            Box::new(Status::forbidden("", "pods", value::text(object, "metadata.name"), &why))
        })?;
        Some(stored.decode())
    };
    let Some(class) = class else { return Ok(()) };
    let wanted = value::integer(&class, "value").unwrap_or(0);
    // What the pod names itself must be what its class says; an absent value was filled in with the default.
    if let Some(own) = value::integer(object, "spec.priority").filter(|own| *own != 0 && *own != wanted) {
        let why = format!(
            "the integer value of priority ({own}) must not be provided in pod spec; priority admission controller \
             computed {wanted} from the given PriorityClass name"
        );
        return Err(Box::new(Status::forbidden("", "pods", value::text(object, "metadata.name"), &why)));
    }
    value::put(object, "spec.priorityClassName", value::text(&class, "metadata.name"));
    value::put(object, "spec.priority", wanted);
    if value::has(&class, "preemptionPolicy") {
        value::put(object, "spec.preemptionPolicy", value::text(&class, "preemptionPolicy"));
    }
    Ok(())
}
