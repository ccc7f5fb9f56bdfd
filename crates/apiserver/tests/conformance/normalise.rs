//! Makes answers of two servers comparable: what must differ is replaced by a symbol, and only that.
//!
//! `masks.rs` has the whole list with the reasons. Values that the author of a
//! behaviour wrote into its file are never masked.

use crate::masks::{
    AGE, BOOKMARK, CLUSTER_IP, CONTINUE, CURRENT, GENERATED, HASH, LIST_VERSION, Mask, NAMESPACE,
    NODE_PORT, ORDER, PROSE, TIME, TOKEN, UID, VERSION,
};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The characters of generated names.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

struct Patterns {
    uid: Regex,
    time: Regex,
    cluster_ip: Regex,
    token: Regex,
    version: Regex,
    current: Regex,
    age: Regex,
}

/// The symbols given out in one run of one behaviour.
pub(crate) struct Normaliser {
    namespace: String,
    source: String,
    patterns: Patterns,
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
    generated: BTreeMap<String, String>,
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|e| e.to_string())
}

impl Normaliser {
    /// For a behaviour with this text, run in this namespace.
    pub(crate) fn new(namespace: &str, source: &str) -> Result<Self, String> {
        let patterns = Patterns {
            uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")?,
            time: pattern(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")?,
            cluster_ip: pattern(r"\b10\.\d+\.\d+\.\d+\b")?,
            token: pattern(r"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")?,
            version: pattern(
                r#"(ResourceVersion in (?:precondition: |object meta: |record \()|resourceVersion: "|resourceVersion\\+":\\+")(\d+)"#,
            )?,
            current: pattern(r"(, current: |too old resource version: \d+ \()\d+")?,
            age: pattern(r"^\d{1,3}s$")?,
        };
        Ok(Self {
            namespace: namespace.to_owned(),
            source: source.to_owned(),
            patterns,
            uids: BTreeMap::new(),
            versions: BTreeMap::new(),
            generated: BTreeMap::new(),
        })
    }

    /// The normal form of a body or an event.
    pub(crate) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect())
            }
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) -> Value {
        self.learn_generated(object);
        let kind = object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let list = object.get("items").is_some_and(Value::is_array) || kind == "Table";
        let bookmark = object.get("type").and_then(Value::as_str) == Some("BOOKMARK");
        let mut normal = Map::new();
        for (key, value) in object {
            let value = match (key.as_str(), value) {
                ("metadata", Value::Object(meta)) if list => {
                    self.with_version(meta, &LIST_VERSION, "<list-rv>")
                }
                ("object", Value::Object(marked)) if bookmark => self.bookmark(marked),
                ("resourceVersion", Value::String(version)) => Value::String(self.version(version)),
                ("continue", Value::String(token)) if !token.is_empty() => {
                    CONTINUE.count();
                    Value::String("<continue>".to_owned())
                }
                ("nodePort" | "healthCheckNodePort", Value::Number(port))
                    if !self.source.contains(&port.to_string()) =>
                {
                    NODE_PORT.count();
                    Value::String("<node-port>".to_owned())
                }
                ("storageVersionHash", _) if self.source.contains("customresourcedefinitions") => {
                    HASH.count();
                    Value::String("<hash>".to_owned())
                }
                ("columnDefinitions", Value::Array(columns)) => self.columns(columns),
                ("managedFields", Value::Array(entries)) => self.managed_fields(entries),
                ("cells", Value::Array(cells)) => {
                    Value::Array(cells.iter().map(|cell| self.cell(cell)).collect())
                }
                _ => self.value(value),
            };
            normal.insert(self.text(key), value);
        }
        Value::Object(normal)
    }

    /// Metadata whose version is not an object's.
    fn with_version(&mut self, meta: &Map<String, Value>, mask: &Mask, symbol: &str) -> Value {
        let mut meta = meta.clone();
        match meta.get_mut("resourceVersion") {
            Some(version) if version != "" => {
                mask.count();
                *version = Value::String(symbol.to_owned());
            }
            _ => {}
        }
        self.object(&meta)
    }

    fn bookmark(&mut self, object: &Map<String, Value>) -> Value {
        let mut object = object.clone();
        if let Some(Value::Object(meta)) = object.get("metadata") {
            let meta = self.with_version(meta, &BOOKMARK, "<bookmark-rv>");
            object.insert("metadata".to_owned(), meta);
        }
        Value::Object(object)
    }

    fn managed_fields(&mut self, entries: &[Value]) -> Value {
        let mut entries: Vec<&Value> = entries.iter().collect();
        if entries.len() > 1 {
            ORDER.count();
        }
        let text = |entry: &Value, key: &str| {
            entry
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|key| text(entry, key))
        });
        Value::Array(entries.into_iter().map(|entry| self.value(entry)).collect())
    }

    fn columns(&mut self, columns: &[Value]) -> Value {
        let mut columns = columns.to_vec();
        for description in columns
            .iter_mut()
            .filter_map(|column| column.get_mut("description"))
        {
            if !description
                .as_str()
                .is_some_and(|text| !text.is_empty() && self.source.contains(text))
            {
                PROSE.count();
                *description = Value::String("<prose>".to_owned());
            }
        }
        Value::Array(columns.iter().map(|column| self.value(column)).collect())
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell.as_str() {
            Some(text)
                if self.patterns.age.is_match(text)
                    && !self.source.contains(&format!("cell {text}")) =>
            {
                AGE.count();
                Value::String("<age>".to_owned())
            }
            _ => self.value(cell),
        }
    }

    fn learn_generated(&mut self, meta: &Map<String, Value>) {
        let text = |key: &str| meta.get(key).and_then(Value::as_str);
        let (Some(prefix), Some(name)) = (text("generateName"), text("name")) else {
            return;
        };
        // The server cuts the prefix to leave room for the suffix in a DNS label.
        let prefix = prefix.get(..58).unwrap_or(prefix);
        let Some(suffix) = name.strip_prefix(prefix) else {
            return;
        };
        if suffix.len() == 5
            && suffix.chars().all(|c| ALPHABET.contains(c))
            && !self.generated.contains_key(name)
        {
            let symbol = format!("{prefix}<generated-{}>", self.generated.len() + 1);
            self.generated.insert(name.to_owned(), symbol);
        }
    }

    fn version(&mut self, version: &str) -> String {
        if version == "0"
            || version.is_empty()
            || !version.bytes().all(|byte| byte.is_ascii_digit())
        {
            return version.to_owned();
        }
        VERSION.count();
        let next = format!("<rv-{}>", self.versions.len() + 1);
        self.versions
            .entry(version.to_owned())
            .or_insert(next)
            .clone()
    }

    /// The normal form of a text: a string in a body, or a body that is no JSON.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, symbol) in &self.generated {
            if text.contains(name.as_str()) {
                GENERATED.count();
                text = text.replace(name.as_str(), symbol);
            }
        }
        if text.contains(&self.namespace) {
            NAMESPACE.count();
            text = text.replace(&self.namespace, "{ns}");
        }
        text = self.uids_in(&text);
        text = self.versions_in(&text);
        text = replace(
            &self.patterns.current,
            &text,
            &self.source,
            &CURRENT,
            |found| {
                found
                    .trim_end_matches(|c: char| c.is_ascii_digit())
                    .to_owned()
                    + "<current-rv>"
            },
        );
        text = replace(&self.patterns.time, &text, &self.source, &TIME, |found| {
            if found.contains('.') {
                "<microtime>".to_owned()
            } else {
                "<time>".to_owned()
            }
        });
        text = replace(&self.patterns.token, &text, &self.source, &TOKEN, |_| {
            "<token>".to_owned()
        });
        replace(
            &self.patterns.cluster_ip,
            &text,
            &self.source,
            &CLUSTER_IP,
            |_| "<cluster-ip>".to_owned(),
        )
    }

    fn uids_in(&mut self, text: &str) -> String {
        let uids = &mut self.uids;
        replace(&self.patterns.uid, text, &self.source, &UID, |uid| {
            let next = format!("<uid-{}>", uids.len() + 1);
            uids.entry(uid.to_owned()).or_insert(next).clone()
        })
    }

    fn versions_in(&mut self, text: &str) -> String {
        let found = self
            .patterns
            .version
            .captures(text)
            .and_then(|found| found.get(2))
            .map(|found| found.range());
        match found {
            Some(range) => {
                let (before, after) = (text.get(..range.start), text.get(range.end..));
                let version = self.version(text.get(range).unwrap_or_default());
                let rest = self.versions_in(after.unwrap_or_default());
                format!("{}{version}{rest}", before.unwrap_or_default())
            }
            None => text.to_owned(),
        }
    }
}

/// Replaces what the pattern finds, unless the behaviour's author wrote it.
fn replace(
    pattern: &Regex,
    text: &str,
    source: &str,
    mask: &Mask,
    mut by: impl FnMut(&str) -> String,
) -> String {
    let replaced = pattern.replace_all(text, |found: &regex::Captures<'_>| {
        let literal = found.get(0).map_or("", |whole| whole.as_str());
        if source.contains(literal) {
            return literal.to_owned();
        }
        mask.count();
        by(literal)
    });
    replaced.into_owned()
}
