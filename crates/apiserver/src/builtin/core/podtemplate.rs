//! Pod templates as objects of their own.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::pod;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::FieldErrors;
use crate::value;

/// The rules of pod templates.
pub const RULES: Rules = Rules {
    default: |object| default_template(object, "template"),
    validate: |object, _| validate_template(object, "template"),
    validate_update: |_, object, _, _| validate_template(object, "template"),
    generation: Some(|object, old| value::at(object, "template") != value::at(old, "template")),
    columns: &[
        ("Name", "string", 0),
        ("Containers", "string", 0),
        ("Images", "string", 0),
        ("Pod Labels", "string", 0),
    ],
    cells: |object, _| {
        let (names, images) = cells::containers(object, "template.spec");
        vec![
            cells::name(object),
            names.into(),
            images.into(),
            cells::labels(object, "template.metadata.labels").into(),
        ]
    },
    ..PLAIN
};

/// Fills in the pod template at `path`, if there is one.
pub(super) fn default_template(object: &mut Value, path: &str) {
    if let Some(template) = value::at_mut(object, path).filter(|t| t.is_object()) {
        pod::defaults::template(template);
    }
}

/// Judges the pod template at `path`.
pub(super) fn validate_template(object: &Value, path: &str) -> FieldErrors {
    let mut errors = Vec::new();
    let template = value::at(object, path).unwrap_or(&Value::Null);
    pod::template::validate(&mut errors, path, template);
    errors
}
