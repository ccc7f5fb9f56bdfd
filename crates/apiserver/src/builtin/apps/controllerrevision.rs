//! Controller revisions: immutable snapshots of what a controller ran.

use serde_json::Value;

use crate::builtin::pod::{check, condition, printing};
use crate::field::{FieldError, FieldErrors};
use crate::resource::{Context, Part, Strategy};
use crate::table::Column;
use crate::value::{flag, integer, items, text};

/// The rules of controller revisions.
#[derive(Debug)]
pub(super) struct ControllerRevisions;

impl Strategy for ControllerRevisions {
    fn default(&self, _object: &mut Value, _cx: &Context<'_>) {}

    fn prepare_create(&self, _object: &mut Value, _cx: &Context<'_>) {}

    fn validate(&self, object: &Value, _cx: &Context<'_>) -> FieldErrors {
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

    fn prepare_update(&self, _part: Part, _object: &mut Value, _old: &Value, _cx: &Context<'_>) {}

    fn validate_update(
        &self,
        _part: Part,
        object: &Value,
        old: &Value,
        _cx: &Context<'_>,
    ) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let revision = integer(object, "revision").unwrap_or(0);
        check::non_negative(&mut errors, "revision", revision);
        check::immutable(&mut errors, "data", object.get("data"), old.get("data"));
        errors
    }

    fn generation_changed(&self, _object: &Value, _old: &Value) -> bool {
        false
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn reset_fields(&self, _part: Part) -> Vec<&'static str> {
        Vec::new()
    }

    fn columns(&self, _version: &str) -> Vec<Column> {
        printing::columns(&[
            ("Name", "string", 0),
            ("Controller", "string", 0),
            ("Revision", "string", 0),
            ("Age", "string", 0),
        ])
    }

    fn cells(&self, object: &Value, cx: &Context<'_>) -> Vec<Value> {
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
}
