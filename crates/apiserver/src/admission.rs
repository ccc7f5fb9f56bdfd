//! Admission webhooks.

use crate::value;
use serde_json::Value;
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    value::map(selector, "matchLabels")
        .into_iter()
        .flatten()
        .all(|(k, v)| {
            object
                .get("metadata")
                .and_then(|m| m.get("labels"))
                .and_then(|l| l.get(k))
                == Some(v)
        })
}
