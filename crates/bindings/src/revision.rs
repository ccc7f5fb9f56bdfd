//! Which revision something is: of a template, and of the values that it is specialised with.
//!
//! Values that anybody may see enter it as they are. Secret ones enter it by uid and version of the Secrets that they come
//! from, which fields of these they are, and whatever is around these: a hash of them would be a way to guess them.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::canonical;
use crate::value::Text;

/// How many hexadecimal digits the revision of a template has.
const TEMPLATE: usize = 10;
/// How many that of values has.
const VALUES: usize = 8;

/// The revision of a template, whatever the order of its fields.
pub fn of_template(template: &impl Serialize) -> String {
    // What cannot be JSON cannot have come from the API.
    let value = serde_json::to_value(template).unwrap_or(Value::Null);
    of_canonical(&canonical::json(&value))
}

/// The same of what is canonical JSON already.
pub fn of_canonical(template: &str) -> String {
    digest(template, TEMPLATE)
}

/// The revision of the values of one cluster; none if there are none.
pub fn of_values(values: &BTreeMap<String, Text>) -> Option<String> {
    if values.is_empty() {
        return None;
    }
    let told: BTreeMap<&String, Value> = values
        .iter()
        .map(|(name, text)| {
            let stamps = text
                .secrets()
                .iter()
                .map(|one| json!([one.uid, one.version]));
            let told = match text.shown() {
                Some(shown) => json!({ "value": shown }),
                None => json!({"secrets": stamps.collect::<Vec<_>>(), "told": text.told()}),
            };
            (name, told)
        })
        .collect();
    Some(digest(&canonical::json(&json!(told)), VALUES))
}

/// The revision of an assignment: `<template>`, or `<template>-<values>`.
pub fn of_assignment(template: &str, values: Option<&str>) -> String {
    match values {
        Some(values) => format!("{template}-{values}"),
        None => template.to_owned(),
    }
}

/// The revision of the template in that of an assignment.
pub fn template_of(assignment: &str) -> &str {
    let (template, _) = assignment.split_once('-').unwrap_or((assignment, ""));
    template
}

/// So many hexadecimal digits of a hash.
pub fn digest(text: &str, digits: usize) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let mut all = hash.iter().fold(String::new(), |mut all, byte| {
        // Writing into a text does not fail.
        let _ = write!(all, "{byte:02x}");
        all
    });
    all.truncate(digits);
    all
}
