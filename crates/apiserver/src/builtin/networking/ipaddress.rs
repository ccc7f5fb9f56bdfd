//! Addresses that are in use: the name is the address.

use serde_json::Value;

use crate::builtin::cells;
use crate::builtin::checks::{immutable, invalid_texts};
use crate::builtin::names;
use crate::builtin::rules::{PLAIN, Rules};
use crate::field::{FieldError, FieldErrors};
use crate::value;

pub(super) const RULES: Rules = Rules {
    validate: |object, _| validate(object),
    validate_update: |_, object, old, _| immutable(object, old, "spec.parentRef"),
    name: |name, _| names::ip(name),
    columns: &[("Name", "string", 0), ("ParentRef", "string", 0)],
    cells: |object, _| vec![cells::name(object), parent(object).into()],
    ..PLAIN
};

fn validate(object: &Value) -> FieldErrors {
    let Some(parent) = value::at(object, "spec.parentRef") else {
        return vec![FieldError::required("spec.parentRef", "")];
    };
    let at = |field: &str| format!("spec.parentRef.{field}");
    let mut errors = Vec::new();
    let group = value::text(parent, "group");
    if !group.is_empty() {
        errors.extend(invalid_texts(&at("group"), group, names::subdomain(group)));
    }
    for field in ["resource", "name", "namespace"] {
        match value::text(parent, field) {
            "" if field == "namespace" => {}
            "" => errors.push(FieldError::required(at(field), "")),
            text => {
                errors.extend(invalid_texts(
                    &at(field),
                    text,
                    names::path_segment(text, false),
                ));
            }
        }
    }
    errors
}

/// What an address is for, as `services/default/kubernetes`.
fn parent(object: &Value) -> String {
    let Some(parent) = value::at(object, "spec.parentRef") else {
        return "<none>".to_owned();
    };
    let part = |field: &str| value::text(parent, field);
    let mut text = part("resource").to_owned();
    if !part("group").is_empty() {
        text = format!("{text}.{}", part("group"));
    }
    text = text.to_lowercase();
    for part in [part("namespace"), part("name")] {
        if !part.is_empty() {
            text = format!("{text}/{part}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_says_whose_it_is() {
        let paths = |object: &Value| -> Vec<String> {
            validate(object).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            paths(&json!({"spec": {}})),
            ["spec.parentRef: Required value"]
        );
        let address =
            json!({"spec": {"parentRef": {"resource": "services", "namespace": "a", "name": "b"}}});
        assert!(paths(&address).is_empty());
        assert_eq!(parent(&address), "services/a/b");
        assert!(!(RULES.name)("10.0.0.01", false).is_empty());
    }
}
