//! The names of field managers: what they may look like, and where one comes from if the client gives none.

use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::value;

/// The most bytes of a manager's name.
const MAX_MANAGER: usize = 128;

/// The most bytes of a subresource's name.
const MAX_SUBRESOURCE: usize = 256;

/// The errors in the `fieldManager` and `force` options of a write.
pub fn validate_manager(manager: &str, is_apply: bool, force: Option<bool>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if is_apply && manager.is_empty() {
        errors.push(FieldError::required(
            "fieldManager",
            "is required for apply patch",
        ));
    }
    if !is_apply && force.is_some() {
        let text = "may not be specified for non-apply patch";
        errors.push(FieldError::forbidden("force", text));
    }
    validate_name(manager, "fieldManager", &mut errors);
    errors
}

fn validate_name(manager: &str, path: &str, errors: &mut FieldErrors) {
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(path, MAX_MANAGER));
    }
    if manager.len() > MAX_MANAGER * 8 {
        // Each error shows the whole name: of a long one they would fill the memory.
        return;
    }
    for (position, c) in manager.char_indices() {
        if !is_printable(c) {
            let text = format!(
                "invalid character U+{:04X} (at position {position})",
                c as u32
            );
            errors.push(FieldError::invalid_str(path, manager, text));
        }
    }
}

/// Letters, marks, numbers, punctuation, symbols and the plain space.
fn is_printable(c: char) -> bool {
    // What Rust escapes in its debug form is what is not printable, but for quotes and the backslash.
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1 || c.is_alphanumeric()
}

/// The errors in the entries of `metadata.managedFields`.
pub fn validate_managed_fields(object: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (index, entry) in value::items(object, "metadata.managedFields")
        .iter()
        .enumerate()
    {
        let path = format!("metadata.managedFields[{index}]");
        let operation = value::text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid_str(
                format!("{path}.operation"),
                operation,
                "must be `Apply` or `Update`",
            ));
        }
        let fields_type = value::text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid_str(
                format!("{path}.fieldsType"),
                fields_type,
                "must be `FieldsV1`",
            ));
        }
        let manager = value::text(entry, "manager");
        validate_name(manager, &format!("{path}.manager"), &mut errors);
        if value::text(entry, "subresource").len() > MAX_SUBRESOURCE {
            let path = format!("{path}.subresource");
            errors.push(FieldError::too_long(path, MAX_SUBRESOURCE));
        }
    }
    errors
}

/// The name of the manager of a write: the `fieldManager` option, or what stands before the slash in the user agent.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    let before = user_agent.split('/').next().unwrap_or_default();
    for c in before.chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > MAX_MANAGER {
            break;
        }
        name.push(c);
    }
    name
}
