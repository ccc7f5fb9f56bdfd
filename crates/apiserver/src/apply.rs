//! Server-side apply and the ownership of fields.
//!
//! [`apply`] merges a configuration into an object and keeps `metadata.managedFields`; [`track_update`] keeps them
//! after every other write. Both are functions of their arguments: the caller decodes and defaults objects before
//! and after, and runs [`keep_times`] on what it is about to store, so that a write that changes nothing stays one.
//!
//! There is no conversion here. An update may bring the object along in the [`OtherVersion`]s in which others wrote it;
//! entries of versions that are not among them are read with the schema at hand.

mod check;
mod compare;
mod fields;
mod last_applied;
mod merge;
mod names;
mod owners;
mod place;
mod scale;
mod set;
mod step;
mod transfer;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::schema::Schema;
use crate::status::{Cause, Outcome, Status};
use crate::value;

use check::{Duplicates, check};
use owners::{Entry, Identity, Owners, is_reset};
use place::Place;
use set::Set;
use transfer::{Conflict, Ground};

pub use names::{manager_name, validate_managed_fields, validate_manager};
pub use scale::{entries_from_scale, entries_into_scale};

/// The manager of what an object held before the first apply, if nobody was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The name of the field manager.
    pub manager: &'a str,
    /// How it writes.
    pub operation: Operation,
    /// The version in which it writes, as in `apiVersion`.
    pub api_version: &'a str,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: &'a str,
    /// When.
    pub now: Timestamp,
}

/// The object before and after an update, in another version than that of the request.
#[derive(Debug, Clone)]
pub struct OtherVersion {
    /// As in `apiVersion`.
    pub api_version: String,
    /// The schema of that version.
    pub schema: Schema,
    /// Before.
    pub old: Value,
    /// After.
    pub new: Value,
}

/// Keeps `metadata.managedFields` after a create, an update or a patch other than apply: `new` is the object as
/// decoded and defaulted, with the entries that the client sent; `old` the live one, if there is one. Fields at and
/// below the paths of `reset` are not recorded. What admission, allocation and the resource's strategy add belongs
/// to nobody: they come after this.
pub fn track_update(
    schema: &Schema,
    old: Option<&Value>,
    new: &mut Value,
    owner: &Owner<'_>,
    reset: &[&str],
) {
    track_update_across(schema, old, new, owner, reset, &[]);
}

/// As [`track_update`] where other managers wrote in other versions.
pub fn track_update_across(
    schema: &Schema,
    old: Option<&Value>,
    new: &mut Value,
    owner: &Owner<'_>,
    reset: &[&str],
    others: &[OtherVersion],
) {
    let owners = starting_owners(schema, old, new, owner);
    value::take(new, "metadata.managedFields");
    if owners.0.is_empty() && old.is_some() {
        // Nobody was recorded so far, or the client wants it so: that lasts until the first apply.
        return;
    }
    let place = Place::root(schema);
    let old = old.map_or_else(|| fields::blank(schema.view()), without_entries);
    let fits = |object| check(place, object, Duplicates::Allowed).is_ok();
    if fits(&old) && fits(new) {
        let reset = &Set::of_paths(reset.iter().copied());
        let ground = Ground {
            place,
            reset,
            others,
        };
        let owners = record(ground, &old, new, owners, owner, owner.manager);
        owners.encode(new);
    }
}

/// The entries to start from: what the client sent, unless it sent none, nothing readable, or sent it through a
/// subresource.
fn starting_owners(schema: &Schema, old: Option<&Value>, new: &Value, owner: &Owner<'_>) -> Owners {
    if owner.subresource.is_empty() {
        // The server loses the difference between an empty list and none where it has no Go type for the kind.
        let typed = !schema.view().node.name.is_empty();
        if is_reset(new, typed) {
            return Owners::default();
        }
        if let Ok(sent) = Owners::decode(new)
            && !sent.0.is_empty()
        {
            return sent;
        }
    }
    old.and_then(|old| Owners::decode(old).ok())
        .unwrap_or_default()
}

fn record(
    ground: Ground<'_>,
    old: &Value,
    new: &Value,
    mut owners: Owners,
    owner: &Owner<'_>,
    manager: &str,
) -> Owners {
    let identity = Identity::of(owner, manager, Operation::Update);
    let entry = Entry {
        api_version: owner.api_version.to_owned(),
        time: Some(owner.now),
        fields: Set::default(),
    };
    ground.update(old, new, &mut owners, identity, entry);
    owners.cap();
    owners
}

/// Server-side apply: `config` laid over `live`, without what the manager applied before and does not send any
/// more; the object is created if there is none. The answer to fields that others own is a 409 unless `force`.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    owner: &Owner<'_>,
    force: bool,
    reset: &[&str],
) -> Outcome<Value> {
    check_kind(schema, live, config, owner)?;
    let mut owners = match live {
        Some(live) => Owners::decode(live)
            .map_err(|text| failure(format!("failed to decode managed fields: {text}")))?,
        None => Owners::default(),
    };
    if value::at(config, "metadata.managedFields").is_some_and(Value::is_array) {
        let status = Status::bad_request("metadata.managedFields must be nil");
        return Err(Box::new(status));
    }
    let place = Place::root(schema);
    check(place, config, Duplicates::Refused).map_err(|text| misfit("patch", config, &text))?;
    let created = live.is_none();
    let live = live.map_or_else(|| Value::Object(Map::new()), without_entries);
    check(place, &live, Duplicates::Allowed).map_err(|text| misfit("live", &live, &text))?;

    let reset = &Set::of_paths(reset.iter().copied());
    let ground = Ground {
        place,
        reset,
        others: &[],
    };
    if owners.0.is_empty() && !created {
        let blank = fields::blank(schema.view());
        owners = record(ground, &blank, &live, owners, owner, BEFORE_FIRST_APPLY);
    }
    let (new, owners) = merge_config(ground, &live, config, &owners, owner, force)?;
    let mut object = new.unwrap_or(live);
    if owner.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    owners.encode(&mut object);
    Ok(object)
}

fn merge_config(
    ground: Ground<'_>,
    live: &Value,
    config: &Value,
    owners: &Owners,
    owner: &Owner<'_>,
    force: bool,
) -> Outcome<(Option<Value>, Owners)> {
    let identity = Identity::of(owner, owner.manager, Operation::Apply);
    let attempt = |force| -> Result<(Option<Value>, Owners), Vec<Conflict>> {
        let mut owners = owners.clone();
        let version = owner.api_version;
        let new = ground.apply(live, config, &mut owners, &identity, version, force)?;
        if new.is_some()
            && let Some(entry) = owners.0.get_mut(&identity)
        {
            entry.time = Some(owner.now);
        }
        Ok((new, owners))
    };
    let conflicts = match attempt(force) {
        Ok(done) => return Ok(done),
        Err(conflicts) => conflicts,
    };
    let own = match owner.manager {
        last_applied::MANAGER => last_applied::own_fields(ground.place, live, owner.api_version),
        _ => None,
    };
    let Some(own) = own else {
        return Err(refusal(&conflicts));
    };
    let left: Vec<Conflict> = conflicts
        .into_iter()
        .filter(|conflict| !own.has(&conflict.path))
        .collect();
    if left.is_empty() {
        attempt(true).map_err(|conflicts| refusal(&conflicts))
    } else {
        Err(refusal(&left))
    }
}

fn without_entries(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let all_but = |fields: &Map<String, Value>, left: &str| {
        let kept = value::all_but(fields, left);
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<String, Value>>()
    };
    let mut object = all_but(fields, "metadata");
    match fields.get("metadata") {
        Some(Value::Object(metadata)) => {
            let metadata = all_but(metadata, "managedFields");
            object.insert("metadata".to_owned(), Value::Object(metadata));
        }
        Some(other) => {
            object.insert("metadata".to_owned(), other.clone());
        }
        None => {}
    }
    Value::Object(object)
}

/// Refuses a configuration of another version or kind than the endpoint's.
fn check_kind(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    owner: &Owner<'_>,
) -> Outcome<()> {
    let kind = value::text(config, "kind");
    let expected = live.map_or("", |live| value::text(live, "kind"));
    let expected = match expected {
        "" => schema.view().node.go_name(),
        expected => expected,
    };
    let fits = value::text(config, "apiVersion") == owner.api_version
        && !kind.is_empty()
        && (expected.is_empty() || kind == expected);
    if fits {
        Ok(())
    } else {
        let text = format!("invalid object type: {}", kind_text(config));
        Err(Box::new(Status::bad_request(text)))
    }
}

fn kind_text(object: &Value) -> String {
    let version = value::text(object, "apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", value::text(object, "kind"))
}

fn misfit(which: &str, object: &Value, text: &str) -> Box<Status> {
    failure(format!(
        "failed to create typed {which} object ({}/{}; {}): {text}",
        value::text(object, "metadata.namespace"),
        value::text(object, "metadata.name"),
        kind_text(object)
    ))
}

/// The answer to an error that has no status of its own.
fn failure(text: String) -> Box<Status> {
    Box::new(Status::failure(500, "", text))
}

fn refusal(conflicts: &[Conflict]) -> Box<Status> {
    let causes: Vec<Cause> = conflicts
        .iter()
        .map(|conflict| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", conflict.owner.shown()),
            field: step::path_text(&conflict.path),
        })
        .collect();
    let text = match causes.as_slice() {
        [one] => format!("1 conflict: {}: {}", one.message, one.field),
        many => {
            let mut lines: Vec<String> = Vec::new();
            let mut last = None;
            for (conflict, cause) in conflicts.iter().zip(many) {
                if last != Some(&conflict.owner) {
                    lines.push(format!("conflicts with {}:", conflict.owner.shown()));
                    last = Some(&conflict.owner);
                }
                lines.push(format!("- {}", cause.field));
            }
            format!("{} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let status = Status::failure(409, "Conflict", format!("Apply failed with {text}"));
    Box::new(status.with_causes(causes))
}

/// Gives the entries of an object about to be stored the times of the live one, if nothing else differs: a write
/// that changes nothing is no change.
pub fn keep_times(old: &Value, new: &mut Value) {
    if same_but(old, new, "metadata", |a, b| {
        same_but(a, b, "managedFields", same_entries)
    }) {
        value::copy(new, old, "metadata.managedFields");
    }
}

/// Whether two objects are equal, where one field is compared in its own way: last, because it costs more than all others.
fn same_but(old: &Value, new: &Value, field: &str, same: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old == new;
    };
    let is_same = || match (old.get(field), new.get(field)) {
        (Some(old), Some(new)) => same(old, new),
        (old, new) => old == new,
    };
    value::all_but(old, field).eq(value::all_but(new, field)) && is_same()
}

/// Whether two lists of entries differ in nothing but times.
fn same_entries(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else {
        return old == new;
    };
    let is_timeless = |(old, new): (&Value, &Value)| match (old.as_object(), new.as_object()) {
        (Some(old), Some(new)) => value::all_but(old, "time").eq(value::all_but(new, "time")),
        _ => old == new,
    };
    old.len() == new.len() && old.iter().zip(new).all(is_timeless)
}
