//! What a server draws (ids, versions, addresses), as recorded and as the embedded server drew it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};
use serde_json::Value;
use slipway_e2e::record::{Content, Pair};

use crate::binary;
use crate::compare::keyed;

/// By recorded value, ours.
pub(crate) struct Drawn {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<u64, u64>,
    addresses: BTreeMap<String, String>,
    continues: BTreeMap<String, String>,
    /// Ids of objects that were there before the recording began.
    old: BTreeSet<String>,
    /// By recorded id, when our server began to delete an object.
    ended: BTreeMap<String, Value>,
    uid: Option<Regex>,
    address: Option<Regex>,
    version: Option<Regex>,
}

impl Default for Drawn {
    fn default() -> Self {
        let uid = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
        Self {
            uids: BTreeMap::new(),
            versions: BTreeMap::new(),
            addresses: BTreeMap::new(),
            continues: BTreeMap::new(),
            old: BTreeSet::new(),
            ended: BTreeMap::new(),
            uid: uid.ok(),
            address: Regex::new(r"\b10\.0\.\d{1,3}\.\d{1,3}\b").ok(),
            version: Regex::new(r"resourceVersion=(\d+)").ok(),
        }
    }
}

impl Drawn {
    /// The path with our versions in it.
    pub(crate) fn path(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (recorded, ours) in &self.continues {
            path = path.replace(&format!("continue={recorded}"), &format!("continue={ours}"));
        }
        let Some(version) = &self.version else {
            return path;
        };
        let replaced = version.replace_all(&path, |found: &Captures<'_>| {
            let version = found.get(1).map_or("", |text| text.as_str());
            format!("resourceVersion={}", self.version_at(version))
        });
        replaced.into_owned()
    }

    /// Our version at the moment of a recorded one: of the newest write that we know not to be after it.
    fn version_at(&self, text: &str) -> String {
        let Ok(recorded) = text.parse::<u64>() else {
            return text.to_owned();
        };
        if recorded == 0 {
            return text.to_owned();
        }
        let known = self.versions.range(..=recorded).next_back();
        known.map_or_else(|| "1".to_owned(), |(_, ours)| ours.to_string())
    }

    /// The body with our ids and versions in it, and the name that the real server drew.
    pub(crate) fn body(&self, pair: &Pair) -> Vec<u8> {
        match &pair.body {
            Content::Empty => Vec::new(),
            Content::Bytes(text) => {
                let bytes = STANDARD.decode(text).unwrap_or_default();
                self.bytes(binary::with_version(&bytes, |version| {
                    self.version_of(version)
                }))
            }
            Content::Json(value) => {
                let mut value = value.clone();
                if pair.method == "POST"
                    && value.pointer("/metadata/generateName").is_some()
                    && value
                        .pointer("/metadata/name")
                        .is_none_or(|name| name == "")
                    && let Content::Json(answer) = &pair.answer
                    && let Some(name) = answer.pointer("/metadata/name")
                {
                    value["metadata"]["name"] = name.clone();
                }
                self.versions_in(&mut value);
                let uid = value.pointer("/metadata/uid").and_then(Value::as_str);
                let ended = uid.and_then(|uid| self.ended.get(uid)).cloned();
                if let (Some(ended), Some(time)) =
                    (ended, value.pointer_mut("/metadata/deletionTimestamp"))
                {
                    *time = ended;
                }
                self.text(&value.to_string()).into_bytes()
            }
        }
    }

    /// Ids are as long as ours, so that they can be exchanged in a binary body.
    fn bytes(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for (recorded, ours) in &self.uids {
            let places: Vec<usize> = bytes
                .windows(recorded.len())
                .enumerate()
                .filter(|(_, part)| *part == recorded.as_bytes())
                .map(|(place, _)| place)
                .collect();
            for place in places {
                for (to, from) in bytes.iter_mut().skip(place).zip(ours.as_bytes()) {
                    *to = *from;
                }
            }
        }
        bytes
    }

    fn versions_in(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.versions_in(item)),
            Value::Object(map) => {
                let is_patch = map
                    .get("path")
                    .and_then(Value::as_str)
                    .is_some_and(|path| path.ends_with("/resourceVersion"));
                for (key, inner) in map.iter_mut() {
                    let is_version = key == "resourceVersion" || (is_patch && key == "value");
                    match inner {
                        Value::String(text) if is_version && !text.is_empty() => {
                            *text = self.version_of(text);
                        }
                        _ => self.versions_in(inner),
                    }
                }
            }
            _ => {}
        }
    }

    /// Our version of exactly that write; one that nobody wrote stays as it is.
    fn version_of(&self, text: &str) -> String {
        let ours = text
            .parse()
            .ok()
            .and_then(|number: u64| self.versions.get(&number));
        ours.map_or_else(|| text.to_owned(), ToString::to_string)
    }

    fn text(&self, text: &str) -> String {
        let exchange = |text: &str, pattern: &Option<Regex>, known: &BTreeMap<String, String>| {
            let Some(pattern) = pattern else {
                return text.to_owned();
            };
            pattern
                .replace_all(text, |found: &Captures<'_>| {
                    let found = found.get(0).map_or("", |text| text.as_str());
                    known.get(found).map_or(found, String::as_str).to_owned()
                })
                .into_owned()
        };
        let text = exchange(text, &self.uid, &self.uids);
        exchange(&text, &self.address, &self.addresses)
    }

    /// A recorded answer with our ids and addresses in it.
    pub(crate) fn translated(&self, recorded: &Value) -> Value {
        let mut recorded = recorded.clone();
        self.versions_in(&mut recorded);
        serde_json::from_str(&self.text(&recorded.to_string())).unwrap_or_default()
    }

    /// Whether an object was there before the recording began.
    pub(crate) fn is_old(&self, uid: &str) -> bool {
        self.old.contains(uid)
    }

    /// Notes that an object was there before.
    pub(crate) fn note_old(&mut self, recorded: &Value, found: &Value) {
        self.learn(recorded, found);
        if let Some(uid) = found.pointer("/metadata/uid").and_then(Value::as_str) {
            self.old.insert(uid.to_owned());
        }
    }

    /// Learns from two answers to the same request.
    pub(crate) fn learn(&mut self, recorded: &Value, found: &Value) {
        match (recorded, found) {
            (Value::Object(recorded), Value::Object(found)) => {
                if let (Some(uid), Some(ended)) = (
                    recorded.get("uid").and_then(Value::as_str),
                    found.get("deletionTimestamp"),
                ) {
                    self.ended.insert(uid.to_owned(), ended.clone());
                }
                for (key, recorded) in recorded {
                    let Some(found) = found.get(key) else {
                        continue;
                    };
                    match (recorded, found) {
                        (Value::String(recorded), Value::String(found)) => {
                            self.learn_text(key, recorded, found);
                        }
                        _ => self.learn(recorded, found),
                    }
                }
            }
            (Value::Array(recorded), Value::Array(found)) => {
                let ours = keyed(found);
                for (key, item) in keyed(recorded) {
                    if let Some(found) = ours.get(&key) {
                        self.learn(item, found);
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns our version of a write.
    pub(crate) fn learn_version(&mut self, recorded: &str, ours: &str) {
        if let (Ok(recorded), Ok(ours)) = (recorded.parse(), ours.parse()) {
            self.versions.insert(recorded, ours);
        }
    }

    /// Whether a request names a version that is not known yet.
    pub(crate) fn lacks(&self, pair: &Pair) -> bool {
        let named = match &pair.body {
            Content::Json(body) => body
                .pointer("/metadata/resourceVersion")
                .and_then(Value::as_str)
                .map(str::to_owned),
            Content::Bytes(text) => binary::version(&STANDARD.decode(text).unwrap_or_default()),
            Content::Empty => None,
        };
        named
            .and_then(|text| text.parse::<u64>().ok())
            .is_some_and(|version| !self.versions.contains_key(&version))
    }

    fn learn_text(&mut self, key: &str, recorded: &str, found: &str) {
        match key {
            "uid" => {
                self.uids.insert(recorded.to_owned(), found.to_owned());
            }
            "resourceVersion" => self.learn_version(recorded, found),
            "clusterIP" if recorded != "None" && found != "None" => {
                self.addresses.insert(recorded.to_owned(), found.to_owned());
            }
            "continue" if !recorded.is_empty() => {
                self.continues.insert(recorded.to_owned(), found.to_owned());
            }
            _ => {}
        }
    }
}
