//! `metadata.managedFields`: who owns which fields, read from and written to an object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::field::quote;
use crate::value;

use super::set::Set;
use super::{Operation, Owner};

/// The most entries for updates that an object keeps; older ones are merged.
const MAX_UPDATERS: usize = 10;

/// The manager of the merged entries.
const ANCIENT: &str = "ancient-changes";

/// What identifies an entry. Ordered like the API orders managers: by its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// The name of the manager.
    pub(super) manager: String,
    /// What it did.
    pub(super) operation: Operation,
    /// The version in which it did it; empty for apply, where it does not tell entries apart.
    pub(super) api_version: String,
    /// On which subresource.
    pub(super) subresource: String,
    /// One text per identity; its order decides where conflicts are listed and which of equally old entries goes first.
    text: String,
}

impl Identity {
    /// The identity of the entry of an owner.
    pub(super) fn of(owner: &Owner<'_>, manager: &str, operation: Operation) -> Self {
        let manager = if manager.is_empty() {
            "unknown"
        } else {
            manager
        };
        Self::new(manager, operation, owner.api_version, owner.subresource)
    }

    fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            text: text_of(manager, operation, api_version, subresource),
        }
    }

    /// How conflicts name the manager.
    pub(super) fn shown(&self) -> String {
        let mut out = quote(&self.manager);
        if !self.subresource.is_empty() {
            out.extend([" with subresource ", &quote(&self.subresource)]);
        }
        if self.operation == Operation::Update {
            out.extend([" using ", &self.api_version]);
        }
        out
    }
}

/// One text per identity.
fn text_of(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> String {
    let mut out = format!(
        "{{\"manager\":{},\"operation\":\"{}\"",
        json!(manager),
        operation.text()
    );
    for (name, value) in [("apiVersion", api_version), ("subresource", subresource)] {
        if !value.is_empty() {
            out.extend([",\"", name, "\":", &json!(value).to_string()]);
        }
    }
    out.push('}');
    out
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The version in which the fields were recorded.
    pub(super) api_version: String,
    /// When the manager last changed something.
    pub(super) time: Option<Timestamp>,
    /// The fields.
    pub(super) fields: Set,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Owners(pub(super) BTreeMap<Identity, Entry>);

impl Owners {
    /// Reads an object's entries; the error says what cannot be read.
    pub(super) fn decode(object: &Value) -> Result<Self, String> {
        let mut owners = BTreeMap::new();
        for (index, entry) in value::items(object, "metadata.managedFields")
            .iter()
            .enumerate()
        {
            let (identity, entry) = decode_entry(index, entry)?;
            owners.insert(identity, entry);
        }
        Ok(Self(owners))
    }

    /// Writes the entries into an object.
    pub(super) fn encode(&self, object: &mut Value) {
        value::take(object, "metadata.managedFields");
        if self.0.is_empty() {
            return;
        }
        let mut entries: Vec<(&Identity, &Entry)> = self.0.iter().collect();
        entries.sort_by(|(a, p), (b, q)| {
            (a.operation, seconds(p.time), &a.manager)
                .cmp(&(b.operation, seconds(q.time), &b.manager))
                .then_with(|| p.api_version.cmp(&q.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        let entries: Vec<Value> = entries.into_iter().map(encode_entry).collect();
        value::put(object, "metadata.managedFields", entries);
    }

    /// Everything that anybody owns.
    pub(super) fn all_fields(&self) -> Set {
        self.0
            .values()
            .fold(Set::default(), |all, entry| all.union(&entry.fields))
    }

    /// Drops entries that own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, entry| !entry.fields.is_empty());
    }

    /// Merges the oldest entries of updates, one per version, until there are few enough.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<Identity> = self
            .0
            .keys()
            .filter(|identity| identity.operation == Operation::Update)
            .cloned()
            .collect();
        updaters.sort_by_key(|identity| seconds(self.0.get(identity).and_then(|e| e.time)));
        let mut excess = updaters.len().saturating_sub(MAX_UPDATERS);
        let mut first: BTreeMap<String, Identity> = BTreeMap::new();
        for identity in updaters {
            if excess == 0 {
                return;
            }
            let Some(entry) = self.0.get(&identity).cloned() else {
                continue;
            };
            let bucket = Identity::new(ANCIENT, Operation::Update, &entry.api_version, "");
            let Some(first) = first.get(&entry.api_version) else {
                first.insert(entry.api_version.clone(), identity);
                continue;
            };
            let held = self
                .0
                .get(&bucket)
                .cloned()
                .or_else(|| self.0.remove(first));
            let held = held.map(|held| held.fields).unwrap_or_default();
            self.0.remove(&identity);
            let merged = Entry {
                fields: entry.fields.union(&held),
                ..entry
            };
            self.0.insert(bucket, merged);
            excess -= 1;
        }
    }
}

fn seconds(time: Option<Timestamp>) -> i64 {
    time.map_or(0, Timestamp::as_second)
}

/// Whether the entries of a written object ask for all entries to be dropped: one empty entry, or (if that counts)
/// an empty list.
pub(super) fn is_reset(object: &Value, empty_counts: bool) -> bool {
    match value::at(object, "metadata.managedFields").and_then(Value::as_array) {
        None => false,
        Some(entries) => match entries.as_slice() {
            [] => empty_counts,
            [Value::Object(entry)] => entry.iter().all(|(name, value)| {
                let known = matches!(
                    name.as_str(),
                    "manager"
                        | "operation"
                        | "apiVersion"
                        | "time"
                        | "fieldsType"
                        | "fieldsV1"
                        | "subresource"
                );
                !known || value.is_null() || value.as_str() == Some("")
            }),
            _ => false,
        },
    }
}

fn decode_entry(index: usize, entry: &Value) -> Result<(Identity, Entry), String> {
    let operation = match value::text(entry, "operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = value::text(entry, "apiVersion").to_owned();
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match value::text(entry, "fieldsType") {
        "FieldsV1" => {}
        "" => {
            return Err(format!(
                "missing fieldsType in managed fields entry {index}"
            ));
        }
        other => {
            let other = quote(other);
            return Err(format!(
                "invalid fieldsType {other} in managed fields entry {index}"
            ));
        }
    }
    let time = match entry.get("time") {
        None | Some(Value::Null) => None,
        Some(time) => {
            let time = time.as_str().and_then(|time| time.parse().ok());
            Some(time.ok_or_else(|| format!("invalid time in managed fields entry {index}"))?)
        }
    };
    let fields = Set::decode(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
    let identity = Identity::new(
        value::text(entry, "manager"),
        operation,
        &api_version,
        value::text(entry, "subresource"),
    );
    let entry = Entry {
        api_version,
        time,
        fields,
    };
    Ok((identity, entry))
}

fn encode_entry((identity, entry): (&Identity, &Entry)) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("operation", identity.operation.text().into());
    put("apiVersion", entry.api_version.clone().into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", entry.fields.encode());
    if !identity.manager.is_empty() {
        put("manager", identity.manager.clone().into());
    }
    if !identity.subresource.is_empty() {
        put("subresource", identity.subresource.clone().into());
    }
    if let Some(time) = entry.time {
        put(
            "time",
            time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
        );
    }
    Value::Object(out)
}
