//! What the server hands out: cluster addresses and node ports of services.

use serde_json::Value;

use crate::exchange::Exchange;
use crate::status::Outcome;

/// Hands out what a new object asks for.
pub(super) fn on_create(_ex: &Exchange<'_>, _object: &mut Value) -> Outcome<()> {
    Ok(())
}

/// Hands out what a changed object asks for.
pub(super) fn on_update(_ex: &Exchange<'_>, _new: &mut Value, _old: &Value) -> Outcome<()> {
    Ok(())
}
