//! What the server hands out: cluster addresses and node ports of services.

use serde_json::Value;

use super::write;
use crate::builtin::core::service::allocate::{self, Used};
use crate::exchange::Exchange;
use crate::status::Outcome;
use crate::value;

fn is_service(ex: &Exchange<'_>) -> bool {
    ex.group().is_empty() && ex.plural() == "services"
}

/// What all services but the one of this name have.
fn used(ex: &Exchange<'_>, namespace: &str, name: &str) -> Used {
    let mut used = Used::default();
    for stored in ex.cluster.store.list("/services", "", &|_| true).objects {
        if &*stored.header.name != name || &*stored.header.namespace != namespace {
            used.add(&stored.decode());
        }
    }
    used
}

fn start(ex: &Exchange<'_>) -> u64 {
    u64::try_from(ex.cluster.environment.entropy.draw() >> 64).unwrap_or_default()
}

/// Hands out what a new object asks for.
pub(super) fn on_create(ex: &Exchange<'_>, object: &mut Value) -> Outcome<()> {
    if !is_service(ex) {
        return Ok(());
    }
    let name = value::text(object, "metadata.name").to_owned();
    let errors = allocate::on_create(object, &used(ex, &ex.target.namespace, &name), start(ex));
    write::judge(ex, &name, &errors)
}

/// Hands out what a changed object asks for.
pub(super) fn on_update(ex: &Exchange<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    if !is_service(ex) {
        return Ok(());
    }
    let name = value::text(old, "metadata.name").to_owned();
    let errors = allocate::on_update(new, old, &used(ex, &ex.target.namespace, &name), start(ex));
    write::judge(ex, &name, &errors)
}
