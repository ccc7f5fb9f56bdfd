//! Nobody grants rights that they do not have.

use serde_json::Value;

use crate::authorize::{Grant, confirm_no_escalation};
use crate::exchange::Exchange;
use crate::status::Outcome;

/// Judges a write to a role or binding; other kinds pass.
pub(super) fn check(ex: &Exchange<'_>, object: &Value, old: Option<&Value>) -> Outcome<()> {
    if ex.group() != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let grant = Grant {
        user: &ex.user,
        resource: ex.plural(),
        namespace: &ex.target.namespace,
        request_name: &ex.target.name,
        object,
        old,
    };
    confirm_no_escalation(&ex.cluster.policy(), &grant)
}
