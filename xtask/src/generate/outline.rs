//! What an `OpenAPI` document has: its paths with their methods and parameters, and its schemas with their fields. Nothing else of it.
//!
//! Made of the real server's documents for a file that is checked in, and of the embedded server's by the test that compares the two.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Paths with a method, and schemas: by name, what they have.
pub type Outline = BTreeMap<String, BTreeSet<String>>;

/// The outline of a document. Paths below `watch/`, which are deprecated and say nothing that a list does not, are left out.
pub fn of(document: &Value) -> Outline {
    let mut all = Outline::new();
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        if path.split('/').any(|step| step == "watch") {
            continue;
        }
        for method in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let names = [item, operation].into_iter().flat_map(parameters).collect();
            all.insert(format!("{method} {path}"), names);
        }
    }
    let schemas = document.pointer("/components/schemas");
    let schemas = schemas.and_then(Value::as_object);
    for (name, schema) in schemas.into_iter().flatten() {
        let fields = schema.get("properties").and_then(Value::as_object);
        let fields = fields.into_iter().flatten().map(|(field, _)| field.clone());
        all.insert(format!("schema {name}"), fields.collect());
    }
    all
}

fn parameters(of: &Value) -> impl Iterator<Item = String> {
    let list = of.get("parameters").and_then(Value::as_array);
    let named = list.into_iter().flatten();
    named.filter_map(|one| Some(one.get("name")?.as_str()?.to_owned()))
}

/// As it is written down: a line for each.
pub fn write(title: &str, outline: &Outline) -> String {
    let mut text = format!("# {title}\n");
    for (name, has) in outline {
        let has: Vec<&str> = has.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{name}\t{}", has.join(","));
    }
    text
}

/// The outlines of a file, by title.
pub fn read(text: &str) -> BTreeMap<String, Outline> {
    let mut all: BTreeMap<String, Outline> = BTreeMap::new();
    let mut title = String::new();
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("# ") {
            next.clone_into(&mut title);
            continue;
        }
        let (name, has) = line.split_once('\t').unwrap_or((line, ""));
        let has = has.split(',').filter(|part| !part.is_empty());
        let has = has.map(str::to_owned).collect();
        all.entry(title.clone())
            .or_default()
            .insert(name.to_owned(), has);
    }
    all
}
