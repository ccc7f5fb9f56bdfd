//! The `coordination.k8s.io` kinds: leases.

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::not_negative;
use super::describe::resource;
use super::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Resource, Strategy};
use crate::value;

/// The rules of leases. They are the one kind here that refuses an update without resourceVersion.
const LEASE: Rules = Rules {
    prepare_create: |object, _| drop_election(object),
    prepare_update: |_, object, old, _| {
        for path in ELECTION {
            if !value::has(old, path) {
                value::take(object, path);
            }
        }
    },
    validate: |object, _| validate(object),
    validate_update: |_, object, _, _| validate(object),
    create_on_update: true,
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("Holder", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "spec.holderIdentity").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

/// Fields of coordinated leader election, which is off by default.
const ELECTION: [&str; 2] = ["spec.strategy", "spec.preferredHolder"];

fn drop_election(object: &mut Value) {
    for path in ELECTION {
        value::take(object, path);
    }
}

fn validate(object: &Value) -> FieldErrors {
    let mut errors = Vec::new();
    let path = "spec.leaseDurationSeconds";
    if let Some(seconds) = value::integer(object, path).filter(|s| *s <= 0) {
        let detail = "must be greater than 0";
        errors.push(FieldError::invalid(path, &seconds.into(), detail));
    }
    errors.extend(not_negative(object, "spec.leaseTransitions"));
    errors
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let strategy: Arc<dyn Strategy> = Arc::new(LEASE);
    vec![resource("coordination.k8s.io", "v1", "Lease", "leases", strategy).build()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_are_positive_and_transitions_not_negative() {
        let lease = json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
        let texts: Vec<String> = validate(&lease).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"
            ]
        );
    }
}
