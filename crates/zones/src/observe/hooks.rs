//! What is seen of webhook configurations.

use serde_json::Value;
use slipway_kernel::parts::Parts;
use slipway_kernel::store::{Projection, Undecodable};

/// The webhooks of a configuration: their names, and what becomes of requests while nobody answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks(pub Vec<(String, String)>);

impl Projection for Hooks {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        let hooks = object.get("webhooks").and_then(Value::as_array);
        let text = |hook: &Value, field: &str| {
            let text = hook.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let each = hooks.into_iter().flatten().map(|hook| {
            let policy = text(hook, "failurePolicy");
            // What the API takes an absent one for.
            let policy = if policy.is_empty() {
                "Fail".to_owned()
            } else {
                policy
            };
            (text(hook, "name"), policy)
        });
        Ok(Self(each.collect()))
    }
}
