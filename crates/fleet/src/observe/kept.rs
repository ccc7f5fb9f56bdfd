//! An object as it is kept: all of it, with the long lists of assemblages apart ([`super::elements`]).

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncStatus};
use slipway_kernel::fields::{list, text};

use super::elements::{Element, Elements};

/// Where syncs are in a spec.
const SYNCS: [&[&str]; 2] = [&["assemblage", "syncs"], &["syncs"]];
/// Where a status tells of them.
const TOLD: [&[&str]; 1] = [&["syncs"]];

/// An object. What is in it may be secret.
#[derive(Clone, Default)]
pub struct Kept {
    object: Value,
    syncs: Elements,
    told: Elements,
    modules: Box<[Box<str>]>,
    secrets: Box<[Box<str>]>,
    names_modules: bool,
    refers: bool,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
}

impl Kept {
    /// An object, whichever.
    pub fn of(object: &Value) -> Self {
        let Value::Object(fields) = object else {
            return Self {
                object: object.clone(),
                ..Self::default()
            };
        };
        let (mut syncs, mut told) = (Vec::new(), Vec::new());
        let mut kept = Map::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "spec" => without(value, &SYNCS, &mut syncs),
                "status" => without(value, &TOLD, &mut told),
                _ => value.clone(),
            };
            kept.insert(name.clone(), value);
        }
        Self {
            object: Value::Object(kept),
            modules: distinct(syncs.iter().filter_map(|sync| text(sync, "/module/name"))),
            secrets: distinct(syncs.iter().flat_map(|sync| secrets(sync))),
            names_modules: syncs.iter().any(|sync| sync.get("module").is_some()),
            refers: syncs.iter().any(|sync| refers(sync)),
            syncs: Elements::of(&syncs),
            told: Elements::of(&told),
        }
    }

    /// All of it but its syncs and what its status tells of them: these lists are empty here.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Its syncs, if it is an assemblage.
    pub fn syncs(&self) -> &Elements {
        &self.syncs
    }

    /// What its status tells of its syncs.
    pub fn told(&self) -> &Elements {
        &self.told
    }

    /// What its status tells of the sync of this name; what cannot be read is not told.
    pub fn told_of(&self, sync: &str) -> Option<SyncStatus> {
        self.told.named(sync)?.read().ok()
    }

    /// All of its status; the empty one if it cannot be read.
    pub fn status(&self) -> AssemblageStatus {
        let told: Result<Vec<SyncStatus>, _> = self.told.iter().map(Element::read).collect();
        let Ok(syncs) = told else {
            return AssemblageStatus::default();
        };
        AssemblageStatus {
            syncs,
            ..self.status_but_syncs()
        }
    }

    /// Its status, but for what it tells of its syncs.
    pub fn status_but_syncs(&self) -> AssemblageStatus {
        let status = self.object.get("status");
        let status = status.and_then(|status| AssemblageStatus::deserialize(status).ok());
        status.unwrap_or_default()
    }

    /// The modules that its syncs name.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(AsRef::as_ref)
    }

    /// Whether some of its syncs name modules.
    pub fn names_modules(&self) -> bool {
        self.names_modules
    }

    /// The Secrets that bindings of its syncs refer to.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(AsRef::as_ref)
    }

    /// Whether some of its syncs refer to something, or name what may.
    pub fn refers(&self) -> bool {
        self.refers
    }
}

/// A copy without the elements of the lists that are there, which are given away.
fn without<'a>(value: &'a Value, lists: &[&[&str]], taken: &mut Vec<&'a Value>) -> Value {
    match value {
        Value::Array(all) if lists.iter().any(|list| list.is_empty()) => {
            taken.extend(all);
            Value::Array(Vec::new())
        }
        Value::Object(fields) => {
            let copy = |(name, value): (&String, &'a Value)| {
                let within = lists.iter();
                let within = within.filter_map(|list| list.strip_prefix(&[name.as_str()]));
                let within: Vec<&[&str]> = within.collect();
                let kept = if within.is_empty() {
                    value.clone()
                } else {
                    without(value, &within, taken)
                };
                (name.clone(), kept)
            };
            Value::Object(fields.iter().map(copy).collect())
        }
        other => other.clone(),
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Box<[Box<str>]> {
    let mut all: Vec<Box<str>> = names.map(Box::from).collect();
    all.sort();
    all.dedup();
    all.into_boxed_slice()
}

/// The Secrets that bindings of a sync refer to.
fn secrets(sync: &Value) -> impl Iterator<Item = &str> {
    let fields = list(sync, "/bindings").filter_map(|binding| binding.get("objectFieldRef"));
    let secrets = fields.filter(|field| text(field, "/kind") == Some("Secret"));
    secrets.filter_map(|field| text(field, "/name"))
}

fn refers(sync: &Value) -> bool {
    let is_reference = |binding: &Value| binding.get("value").is_none();
    sync.get("module").is_some() || list(sync, "/bindings").any(is_reference)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::{Value, json};
    use slipway_api::fleet::assemblage::{AssemblageStatus, SyncState};

    use super::Kept;
    use crate::observe::elements::Element;

    fn values(elements: &super::Elements) -> Vec<Value> {
        elements.iter().map(Element::value).collect()
    }

    #[test]
    fn the_lists_of_an_assemblage_are_apart_and_nothing_is_lost() {
        let web = json!({"name": "web", "module": {"name": "web-1"}, "bindings": [
            {"name": "a", "objectFieldRef": {"kind": "Secret", "name": "keys"}}, {"name": "b", "value": "1"},
        ]});
        let (plain, told) = (
            json!({"name": "plain"}),
            json!({"name": "web", "state": "succeeded"}),
        );
        let remote = json!({
            "metadata": {"name": "berlin"},
            "spec": {"kubeconfigRef": {"name": "k"}, "assemblage": {"other": 1, "syncs": [web, plain]}},
            "status": {"observedGeneration": 3, "syncs": [told]},
        });
        let kept = Kept::of(&remote);
        assert_eq!(values(kept.syncs()), [web.clone(), plain.clone()]);
        assert_eq!(values(kept.told()), [told]);
        assert_eq!(
            kept.object(),
            &json!({
                "metadata": {"name": "berlin"},
                "spec": {"kubeconfigRef": {"name": "k"}, "assemblage": {"other": 1, "syncs": []}},
                "status": {"observedGeneration": 3, "syncs": []},
            })
        );
        assert!(kept.modules().eq(["web-1"]) && kept.secrets().eq(["keys"]));
        assert!(kept.names_modules() && kept.refers());
        let leaf = Kept::of(&json!({"spec": {"syncs": [plain]}}));
        assert_eq!(values(leaf.syncs()), [plain]);
        assert!(!leaf.names_modules() && !leaf.refers());
        let whole = json!({"spec": {"template": {"syncs": [1]}}, "data": {"syncs": [2]}});
        assert_eq!(Kept::of(&whole).object(), &whole);
        assert_eq!(Kept::of(&json!("none")).object(), &json!("none"));
    }

    #[test]
    fn a_status_is_read_as_a_whole_or_not_at_all() {
        let of = |state: &str| {
            let told = json!([{"name": "a", "state": state}, {"name": "b"}]);
            Kept::of(&json!({"status": {"observedGeneration": 3, "syncs": told}}))
        };
        let status = of("failed").status();
        assert_eq!(
            (status.observed_generation, status.syncs.len()),
            (Some(3), 2)
        );
        assert_eq!(of("failed").told_of("a").unwrap().state, SyncState::Failed);
        let later = of("of a later version");
        assert_eq!(later.status(), AssemblageStatus::default());
        assert_eq!(later.status_but_syncs().observed_generation, Some(3));
        assert!(later.told_of("a").is_none() && later.told_of("b").is_some());
    }
}
