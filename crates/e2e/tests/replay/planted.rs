//! Servers that are wrong on purpose. The replay must object to each, or it would not see that fault in the embedded server.

use serde_json::{Value, json};
use slipway_e2e::record::Content;

/// What is wrong with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It shows everything, whatever was selected.
    IgnoresSelectors,
    /// The same, and only watches: lists are right.
    IgnoresSelectorsOfWatches,
    /// It answers reads with 200 and nothing.
    SaysNothing,
    /// It answers reads with 200 and something that is no JSON.
    SaysNonsense,
    /// An object has another id when it is read again.
    ChangesIds,
    /// A Service has another address when it is read again.
    ChangesAddresses,
    /// Its documents of the API have no paths.
    EmptiesDocuments,
    /// An object that is being deleted does not look like it.
    HidesDeletions,
    /// Lists come the other way round.
    TurnsLists,
    /// What is null is left out.
    DropsNulls,
    /// Every write looks as if it had been the one before.
    LagsVersions,
    /// A kind cannot be watched, as discovery has it.
    ForgetsVerbs,
    /// Definitions never come to be established.
    NeverEstablishes,
}

/// All of them.
pub(crate) const FLAWS: &[Flaw] = &[
    Flaw::IgnoresSelectors,
    Flaw::IgnoresSelectorsOfWatches,
    Flaw::SaysNothing,
    Flaw::SaysNonsense,
    Flaw::ChangesIds,
    Flaw::ChangesAddresses,
    Flaw::EmptiesDocuments,
    Flaw::HidesDeletions,
    Flaw::TurnsLists,
    Flaw::DropsNulls,
    Flaw::LagsVersions,
    Flaw::ForgetsVerbs,
    Flaw::NeverEstablishes,
];

impl Flaw {
    /// What such a server takes a path for.
    pub(crate) fn path(self, path: &str) -> String {
        let ignores = |query: &str| match self {
            Self::IgnoresSelectors => true,
            Self::IgnoresSelectorsOfWatches => query.contains("watch="),
            _ => false,
        };
        let query = path.split_once('?').filter(|(_, query)| ignores(query));
        let Some((place, query)) = query else {
            return path.to_owned();
        };
        let kept: Vec<&str> = query
            .split('&')
            .filter(|part| !part.contains("Selector="))
            .collect();
        format!("{place}?{}", kept.join("&"))
    }

    /// What it answers instead.
    pub(crate) fn answer(self, method: &str, answer: Content) -> Content {
        let is_read = method == "GET";
        let Content::Json(mut value) = answer else {
            return answer;
        };
        match self {
            Self::SaysNothing if is_read => return Content::Empty,
            Self::SaysNonsense if is_read => return Content::read(b"<html>"),
            Self::ChangesIds if is_read => {
                on_field(&mut value, "metadata", &mut |metadata| {
                    if metadata.get("uid").is_some() {
                        metadata["uid"] = json!("00000000-0000-4000-8000-000000000000");
                    }
                });
            }
            Self::ChangesAddresses if is_read => on_field(&mut value, "spec", &mut |spec| {
                let address = spec.get("clusterIP").and_then(Value::as_str);
                if address.is_some_and(|address| address != "None") {
                    spec["clusterIP"] = json!("10.0.9.9");
                }
            }),
            Self::EmptiesDocuments => drop_field(&mut value, "paths"),
            Self::HidesDeletions => on_field(&mut value, "metadata", &mut |metadata| {
                drop_field(metadata, "deletionTimestamp");
            }),
            Self::TurnsLists => on_field(&mut value, "items", &mut |items| {
                if let Some(items) = items.as_array_mut() {
                    items.reverse();
                }
            }),
            Self::DropsNulls => drop_nulls(&mut value),
            Self::LagsVersions if !is_read => on_field(&mut value, "metadata", &mut |metadata| {
                let version = metadata.get("resourceVersion").and_then(Value::as_str);
                let number = version.and_then(|text| text.parse::<u64>().ok());
                if let Some(number) = number {
                    metadata["resourceVersion"] = json!(number.saturating_sub(1).to_string());
                }
            }),
            Self::ForgetsVerbs => on_field(&mut value, "verbs", &mut |verbs| {
                if let Some(verbs) = verbs.as_array_mut() {
                    verbs.retain(|verb| verb != "watch");
                }
            }),
            Self::NeverEstablishes => on_field(&mut value, "conditions", &mut |conditions| {
                if let Some(conditions) = conditions.as_array_mut() {
                    conditions.retain(|condition| condition["type"] != "Established");
                }
            }),
            _ => {}
        }
        Content::Json(value)
    }
}

/// Changes all fields of a name.
fn on_field(value: &mut Value, name: &str, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if key == name {
                    change(field);
                }
                on_field(field, name, change);
            }
        }
        Value::Array(items) => {
            for item in items {
                on_field(item, name, change);
            }
        }
        _ => {}
    }
}

fn drop_field(value: &mut Value, name: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(name);
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
