//! Capacities that CSI drivers report.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{immutable, invalid_texts, label_selector};
use crate::builtin::names;
use crate::builtin::quantity::Quantity;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::value;

pub(super) const RULES: Rules = Rules {
    validate: |object, _| validate(object),
    validate_update: |_, object, old, _| {
        let mut errors = immutable(object, old, "nodeTopology");
        errors.extend(immutable(object, old, "storageClassName"));
        errors
    },
    unconditional_update: false,
    columns: &[
        ("Name", "string", 0),
        ("StorageClassName", "string", 0),
        ("Capacity", "string", 0),
    ],
    cells: |object, _| {
        vec![
            cells::name(object),
            value::text(object, "storageClassName").into(),
            cells::text_or(object, "capacity", "<unset>"),
        ]
    },
    ..PLAIN
};

fn validate(object: &Value) -> FieldErrors {
    let mut errors = label_selector("nodeTopology", value::at(object, "nodeTopology"));
    let class = value::text(object, "storageClassName");
    errors.extend(invalid_texts(
        "storageClassName",
        class,
        names::subdomain(class),
    ));
    let capacity = value::text(object, "capacity");
    if Quantity::parse(capacity).is_ok_and(|quantity| quantity.sign().is_lt()) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid_str("capacity", capacity, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_capacity_names_its_class_and_is_not_negative() {
        let capacity = json!({"storageClassName": "Fast", "capacity": "-1Gi"});
        let texts: Vec<String> = validate(&capacity)
            .iter()
            .map(|error| error.path.clone())
            .collect();
        assert_eq!(texts, ["storageClassName", "capacity"]);
    }
}
