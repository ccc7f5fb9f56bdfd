//! Classes of volume attributes.

use crate::builtin::cells;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::FieldError;
use crate::value;

pub(super) const RULES: Rules = Rules {
    validate: |object, _| {
        let mut errors = super::provisioner(object, "driverName");
        errors.extend(super::parameters(object));
        errors
    },
    validate_update: |_, object, old, _| {
        ["driverName", "parameters"]
            .into_iter()
            .filter(|field| value::at(object, field) != value::at(old, field))
            .map(|field| FieldError::forbidden(field, format!("updates to {field} are forbidden.")))
            .collect()
    },
    columns: &[
        ("Name", "string", 0),
        ("DriverName", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |object, cx| {
        vec![
            cells::name(object),
            value::text(object, "driverName").into(),
            cells::age(object, cx),
        ]
    },
    ..PLAIN
};
