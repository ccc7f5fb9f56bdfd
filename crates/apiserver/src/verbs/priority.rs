//! The priority of pods, from the class that they name.

use serde_json::Value;

use crate::builtin::pod::admission::set_priority;
use crate::exchange::Exchange;
use crate::resource::bucket;
use crate::status::{Outcome, Status};
use crate::value;

/// Gives a new pod the priority of its class; a class that is not there is a refusal.
pub(super) fn on_create(ex: &Exchange<'_>, pod: &mut Value) -> Outcome<()> {
    if !ex.group().is_empty() || ex.plural() != "pods" {
        return Ok(());
    }
    let name = value::text(pod, "spec.priorityClassName");
    let classes = bucket("scheduling.k8s.io", "priorityclasses");
    let class = if name.is_empty() {
        let all = ex.cluster.store.list(&classes, "", &|_| true).objects;
        all.iter()
            .map(|stored| stored.decode())
            .find(|class| value::flag(class, "globalDefault"))
    } else {
        ex.cluster
            .store
            .get(&classes, "", name)
            .map(|stored| stored.decode())
    };
    set_priority(pod, class.as_ref()).map_err(|why| {
        Box::new(Status::forbidden(
            "",
            "pods",
            value::text(pod, "metadata.name"),
            &why,
        ))
    })
}
