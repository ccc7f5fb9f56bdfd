//! Controller revisions: immutable snapshots of what a controller ran.

use serde_json::Value;

use crate::builtin::pod::{check, condition, printing};
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part};
use crate::value::{flag, integer, items, text};

/// The rules of controller revisions.
pub(super) const RULES: Rules = Rules {
    validate,
    validate_update,
    columns: &[
        ("Name", "string", 0),
        ("Controller", "string", 0),
        ("Revision", "string", 0),
        ("Age", "string", 0),
    ],
    cells,
    ..PLAIN
};

fn validate(object: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let revision = integer(object, "revision").unwrap_or(0);
    check::non_negative(&mut errors, "revision", revision);
    match object.get("data") {
        None | Some(Value::Null) => {
            errors.push(FieldError::required("data", "data is mandatory"));
        }
        Some(Value::Object(_)) => {}
        Some(_) => errors.push(FieldError::required(
            "data",
            "data must be a valid JSON object",
        )),
    }
    errors
}

fn validate_update(_part: Part, object: &Value, old: &Value, _cx: &Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let revision = integer(object, "revision").unwrap_or(0);
    check::non_negative(&mut errors, "revision", revision);
    check::immutable(&mut errors, "data", object.get("data"), old.get("data"));
    errors
}

fn cells(object: &Value, cx: &Context<'_>) -> Vec<Value> {
    let owner = items(object, "metadata.ownerReferences")
        .iter()
        .find(|o| flag(o, "controller"));
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let kind = text(owner, "kind").to_lowercase();
            let name = text(owner, "name");
            match text(owner, "apiVersion").rsplit_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{name}"),
                None => format!("{kind}/{name}"),
            }
        },
    );
    vec![
        text(object, "metadata.name").into(),
        controller.into(),
        printing::count(object, "revision"),
        condition::age(object, cx.now).into(),
    ]
}
