//! What a server draws (ids, versions, addresses), as recorded and as the embedded server drew it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};
use serde_json::{Map, Value};
use slipway_e2e::record::{Content, Pair};

use crate::binary;
use crate::compare::keyed;

/// What one server drew in the place of what another had drawn, one for one. The first sight of each is noted and stays: what is
/// seen later is compared with it.
#[derive(Default)]
struct Exchange {
    ours: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Exchange {
    /// Notes the first sight. What stands for something already does not come to stand for another.
    fn note(&mut self, recorded: &str, found: &str) {
        if !self.ours.contains_key(recorded) && self.taken.insert(found.to_owned()) {
            self.ours.insert(recorded.to_owned(), found.to_owned());
        }
    }
}

/// By recorded value, ours.
pub(crate) struct Drawn {
    uids: Exchange,
    /// Of writes: the first sight of each stays.
    versions: BTreeMap<u64, u64>,
    /// Of lists: what the server had written by then.
    moments: BTreeMap<u64, u64>,
    addresses: Exchange,
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
            uids: Exchange::default(),
            versions: BTreeMap::new(),
            moments: BTreeMap::new(),
            addresses: Exchange::default(),
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
        let newest = [&self.versions, &self.moments]
            .into_iter()
            .filter_map(|known| known.range(..=recorded).next_back())
            .max_by_key(|(recorded, _)| **recorded);
        newest.map_or_else(|| "1".to_owned(), |(_, ours)| ours.to_string())
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
        for (recorded, ours) in &self.uids.ours {
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
        let number = text.parse::<u64>().ok();
        let ours = number.and_then(|n| self.versions.get(&n).or_else(|| self.moments.get(&n)));
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
        let text = exchange(text, &self.uid, &self.uids.ours);
        exchange(&text, &self.address, &self.addresses.ours)
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

    /// Learns from two answers to the same request: what the server drew for an object is learnt where the object itself says it.
    pub(crate) fn learn(&mut self, recorded: &Value, found: &Value) {
        self.learn_at("", recorded, found);
    }

    fn learn_at(&mut self, at: &str, recorded: &Value, found: &Value) {
        match (recorded, found) {
            (Value::Object(recorded), Value::Object(found)) => {
                self.learn_fields(at, recorded, found);
                for (key, recorded) in recorded {
                    if let Some(found) = found.get(key) {
                        self.learn_at(key, recorded, found);
                    }
                }
            }
            (Value::Array(recorded), Value::Array(found)) => {
                let ours = keyed(found);
                for (key, item) in keyed(recorded) {
                    if let Some(found) = ours.get(&key) {
                        self.learn_at("", item, found);
                    }
                }
            }
            _ => {}
        }
    }

    /// Learns from the fields of the two objects that are called `at`.
    fn learn_fields(
        &mut self,
        at: &str,
        recorded: &Map<String, Value>,
        found: &Map<String, Value>,
    ) {
        let both = |key: &str| Some((recorded.get(key)?.as_str()?, found.get(key)?.as_str()?));
        if let Some((recorded, found)) = both("clusterIP")
            && at == "spec"
            && recorded != "None"
            && found != "None"
        {
            self.addresses.note(recorded, found);
        }
        if at != "metadata" {
            return;
        }
        let uid = both("uid");
        if let Some((recorded, ours)) = uid {
            self.uids.note(recorded, ours);
            if let Some(ended) = found.get("deletionTimestamp") {
                self.ended.insert(recorded.to_owned(), ended.clone());
            }
        }
        match both("resourceVersion") {
            Some((recorded, ours)) if uid.is_some() => self.learn_version(recorded, ours),
            Some((recorded, ours)) => {
                if let (Ok(recorded), Ok(ours)) = (recorded.parse(), ours.parse()) {
                    self.moments.insert(recorded, ours);
                }
            }
            None => {}
        }
        if let Some((recorded, ours)) = both("continue").filter(|(text, _)| !text.is_empty()) {
            self.continues.insert(recorded.to_owned(), ours.to_owned());
        }
    }

    /// Learns our version of a write.
    pub(crate) fn learn_version(&mut self, recorded: &str, ours: &str) {
        if let (Ok(recorded), Ok(ours)) = (recorded.parse(), ours.parse()) {
            self.versions.entry(recorded).or_insert(ours);
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
}
