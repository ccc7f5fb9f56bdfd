//! The `policy` kinds: pod disruption budgets, and the pieces of eviction.

mod budget;
pub mod eviction;

use std::sync::Arc;

use crate::builtin::describe;
use crate::resource::Resource;

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    vec![
        describe::resource(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            Arc::new(budget::RULES),
        )
        .short(&["pdb"])
        .status()
        .build(),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::json;

    use super::budget::RULES;
    use crate::resource::{Context, Strategy};

    #[test]
    fn budgets_are_judged() {
        let cx = Context {
            version: "v1",
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            user: None,
        };
        let mut both = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": "200%"}});
        RULES.prepare_create(&mut both, &cx);
        let found: Vec<String> = RULES
            .validate(&both, &cx)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":\"200%\",\
                 \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set",
                "spec.maxUnavailable: Invalid value: \"200%\": must not be greater than 100%",
            ]
        );
        assert_eq!(
            RULES.cells(&both, &cx)[1..4],
            [json!("1"), json!("200%"), json!(0)]
        );
    }
}
