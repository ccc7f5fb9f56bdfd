//! The metadata that all kinds share: what the server sets, what it carries over, and what it refuses.
//!
//! Everything here is pure: the clock, the uid and the entropy come as arguments. Storage (resourceVersion, the next
//! generation) and managedFields beyond their form are not judged here.
//!
//! In the order of the real server: [`match_namespace`], [`dedup_owner_references`], [`prepare_create`], then the
//! strategy's own preparation, then [`validate_create`] and the strategy's errors after it. For an update:
//! [`match_name`] and [`match_namespace`], [`prepare_update`], [`validate_update`], [`validate_update_again`], and the
//! strategy's errors.

mod again;
mod conditions;
#[cfg(test)]
mod tests;
mod validate;

use jiff::Timestamp;
use serde_json::Value;

use crate::field::{self, FieldError};
use crate::status::{Outcome, Status};
use crate::value::{self, has, put, take, text};

pub use again::{has_standard_finalizers, validate_update_again};
pub use conditions::validate_conditions;
pub use validate::{
    validate_annotations, validate_create, validate_field_manager, validate_labels,
    validate_standard_finalizers, validate_update,
};

/// What generated names are made of: no vowels, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How long the generated end of a name is.
const GENERATED: u32 = 5;
/// The longest generated name, whatever the kind allows.
const GENERATED_NAME_MAX: usize = 63;

/// Metadata that a client may send and the server ignores on create.
const SYSTEM_FIELDS: [&str; 5] = [
    "metadata.creationTimestamp",
    "metadata.uid",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.selfLink",
];

/// A moment as metadata holds it: RFC 3339 in UTC, to the second.
pub fn timestamp(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name for `generateName`: the prefix, cut if need be, and five characters that `draw` decides.
pub fn generate_name(prefix: &str, draw: u128) -> String {
    let room = GENERATED_NAME_MAX - GENERATED as usize;
    let mut name = String::with_capacity(GENERATED_NAME_MAX);
    for c in prefix.chars() {
        if name.len() + c.len_utf8() > room {
            break;
        }
        name.push(c);
    }
    let mut rest = draw;
    for _ in 0..GENERATED {
        let index = usize::try_from(rest % 27).unwrap_or_default();
        name.extend(ALPHABET.get(index).map(|&b| char::from(b)));
        rest /= 27;
    }
    name
}

/// Gives an object without a name the generated one, if it asks for that.
pub fn fill_name(object: &mut Value, draw: u128) {
    let prefix = text(object, "metadata.generateName");
    if !prefix.is_empty() && text(object, "metadata.name").is_empty() {
        let name = generate_name(prefix, draw);
        put(object, "metadata.name", name);
    }
}

/// The 409 for a generated name that is taken.
pub fn generated_name_taken(group: &str, resource: &str, name: &str) -> Status {
    let message = format!(
        "{} \"{name}\" already exists, the server was not able to generate a unique name for the object",
        crate::status::qualified(group, resource)
    );
    Status::failure(409, "AlreadyExists", message)
        .about(group, resource, name)
        .retry_after(1)
}

/// The namespace of the object becomes `expected` (empty for kinds outside namespaces) if it names none or none is
/// expected; another one is a 400.
pub fn match_namespace(object: &mut Value, expected: &str) -> Outcome<()> {
    let have = text(object, "metadata.namespace");
    if have == expected {
        return Ok(());
    }
    if expected.is_empty() {
        take(object, "metadata.namespace");
        return Ok(());
    }
    if have.is_empty() {
        put(object, "metadata.namespace", expected);
        return Ok(());
    }
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(message).into())
}

/// The object of an update must carry the name of the URL.
pub fn match_name(object: &Value, expected: &str) -> Outcome<()> {
    let have = text(object, "metadata.name");
    if have == expected {
        return Ok(());
    }
    let message = if have.is_empty() {
        format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        )
    } else {
        format!("the name of the object ({have}) does not match the name on the URL ({expected})")
    };
    Err(Status::bad_request(message).into())
}

/// A new object carries no resourceVersion. The real server finds this last, when it stores the object, and so do
/// callers; what is no number is ignored.
pub fn refuse_resource_version(object: &Value) -> Outcome<()> {
    let version = text(object, "metadata.resourceVersion");
    if version.parse::<u64>().is_ok_and(|v| v != 0) {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::failure(500, "", message).into());
    }
    Ok(())
}

/// The 422 for an update without resourceVersion of a kind that wants one.
pub fn missing_resource_version(group: &str, resource: &str, name: &str) -> Status {
    let error = FieldError::invalid(
        "metadata.resourceVersion",
        &Value::from(0),
        "must be specified for an update",
    );
    field::invalid(group, resource, name, &[error])
}

/// The 409 for an update whose object carries another uid than the stored one.
pub fn wrong_uid(
    group: &str,
    resource: &str,
    key: &str,
    name: &str,
    asked: &str,
    have: &str,
) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {have}"
    );
    Status::conflict(group, resource, name, &why)
}

/// Drops what only the server sets, so that nobody owns it.
pub fn wipe_system_fields(object: &mut Value) {
    for field in SYSTEM_FIELDS {
        take(object, field);
    }
}

/// Before create: drops what only the server sets, sets uid and creationTimestamp, and drops empty collections.
/// The resourceVersion is left for [`refuse_resource_version`], the generation for the kind.
pub fn prepare_create(object: &mut Value, uid: &str, now: Timestamp) {
    wipe_system_fields(object);
    drop_empty(object);
    put(object, "metadata.uid", uid);
    put(object, "metadata.creationTimestamp", timestamp(now));
}

/// Before update: carries over what an update cannot change. The managedFields have been tracked before.
pub fn prepare_update(object: &mut Value, old: &Value) {
    value::copy(object, old, "metadata.generation");
    take(object, "metadata.selfLink");
    if text(object, "metadata.uid").is_empty() {
        value::copy(object, old, "metadata.uid");
    }
    for field in ["metadata.creationTimestamp", "metadata.deletionTimestamp"] {
        if has(old, field) {
            value::copy(object, old, field);
        }
    }
    let grace = "metadata.deletionGracePeriodSeconds";
    if has(old, grace) && !has(object, grace) {
        value::copy(object, old, grace);
    }
    drop_empty(object);
}

/// Removes collections and texts of the metadata that say nothing, as writing the typed metadata does.
fn drop_empty(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.retain(|field, value| match value {
        Value::Number(number) => field != "generation" || number.as_i64() != Some(0),
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) => true,
    });
}

/// Removes owner references that are there twice, and gives the warning for the client.
pub fn dedup_owner_references(object: &mut Value) -> Option<String> {
    let references = value::at_mut(object, "metadata.ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut duplicates: Vec<String> = Vec::new();
    for reference in references.drain(..) {
        if kept.contains(&reference) {
            duplicates.push(text(&reference, "uid").to_owned());
        } else {
            kept.push(reference);
        }
    }
    *references = kept;
    if duplicates.is_empty() {
        return None;
    }
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ))
}

/// Before an update of the status of a kind whose status is written alone: everything else is as it was, but for who wrote what.
pub fn keep_all_but_status(object: &mut Value, old: &Value) {
    let written = ["status", "metadata.managedFields"].map(|path| (path, take(object, path)));
    *object = old.clone();
    for (path, kept) in written {
        take(object, path);
        if let Some(kept) = kept {
            put(object, path, kept);
        }
    }
}
