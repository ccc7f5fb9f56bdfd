//! The `resource.k8s.io` kinds: classes, claims and slices of devices.
//!
//! They are stored with their generations and shown in tables; claims keep their spec. Of the other rules (CEL selectors,
//! limits of slices) none is judged.

use std::sync::Arc;

use serde_json::Value;

use super::cells;
use super::checks::immutable;
use super::describe::{Description, resource};
use super::rules::{BesideStatus, PLAIN, Rules, spec_changed};
use crate::resource::{Part, Resource};
use crate::value;

const CLASS: Rules = Rules {
    generation: Some(spec_changed),
    ..PLAIN
};

const TEMPLATE: Rules = Rules {
    validate_update: |_, object, old, _| immutable(object, old, "spec"),
    ..PLAIN
};

const CLAIM: Rules = Rules {
    status: true,
    beside_status: BesideStatus::Nothing,
    validate_update: |part, object, old, _| match part {
        Part::Status => Vec::new(),
        Part::Main | Part::Scale => immutable(object, old, "spec"),
    },
    columns: &[
        ("Name", "string", 0),
        ("State", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            state(object).into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

const SLICE: Rules = Rules {
    generation: Some(spec_changed),
    selectable: &[
        ("spec.nodeName", |object| {
            value::text(object, "spec.nodeName").to_owned()
        }),
        ("spec.driver", |object| {
            value::text(object, "spec.driver").to_owned()
        }),
    ],
    columns: &[
        ("Name", "string", 0),
        ("Node", "string", 0),
        ("Driver", "string", 0),
        ("Pool", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "spec.nodeName").into(),
            value::text(object, "spec.driver").into(),
            value::text(object, "spec.pool.name").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};

fn state(object: &Value) -> String {
    let is_deleted = value::has(object, "metadata.deletionTimestamp");
    let is_allocated = value::has(object, "status.allocation");
    let is_reserved = is_allocated && !value::items(object, "status.reservedFor").is_empty();
    [
        (is_deleted, "deleted"),
        (!is_deleted && !is_allocated, "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ]
    .into_iter()
    .filter_map(|(holds, text)| holds.then_some(text))
    .collect::<Vec<_>>()
    .join(",")
}

/// The resources of this group.
pub fn resources() -> Vec<Resource> {
    let kind = |kind: &str, plural: &str, rules: Rules| -> Description {
        resource("resource.k8s.io", "v1", kind, plural, Arc::new(rules)).returns_deleted()
    };
    vec![
        kind("DeviceClass", "deviceclasses", CLASS)
            .cluster_scoped()
            .build(),
        kind("ResourceClaim", "resourceclaims", CLAIM)
            .status()
            .build(),
        kind("ResourceClaimTemplate", "resourceclaimtemplates", TEMPLATE).build(),
        kind("ResourceSlice", "resourceslices", SLICE)
            .cluster_scoped()
            .build(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_says_how_far_it_is() {
        assert_eq!(state(&json!({})), "pending");
        let reserved = json!({"status": {"allocation": {}, "reservedFor": [{"name": "a"}]}});
        assert_eq!(state(&reserved), "allocated,reserved");
    }
}
