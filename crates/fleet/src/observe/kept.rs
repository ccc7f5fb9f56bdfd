//! An assemblage as it is kept, of either kind: all of it, with its long lists apart ([`super::elements`]).

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncStatus};
use slipway_kernel::fields::{list, text};

use super::elements::{Elements, Told};

/// Where the syncs of a `RemoteAssemblage` are.
const OF_REMOTE: &[&str] = &["spec", "assemblage", "syncs"];
/// Where those of an `Assemblage` are.
const OF_ASSEMBLAGE: &[&str] = &["spec", "syncs"];
/// Where the status of either tells of them.
const TOLD: &[&str] = &["status", "syncs"];

/// An assemblage. What is in it may be secret.
#[derive(Clone, Default)]
pub struct Kept {
    object: Value,
    syncs: Elements,
    told: Told,
    modules: Box<[Box<str>]>,
    secrets: Box<[Box<str>]>,
    names_modules: bool,
    refers: bool,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an assemblage")
    }
}

impl Kept {
    /// A `RemoteAssemblage`.
    pub fn remote(object: &Value) -> Self {
        Self::of(object, OF_REMOTE)
    }

    /// An `Assemblage`.
    pub fn assemblage(object: &Value) -> Self {
        Self::of(object, OF_ASSEMBLAGE)
    }

    fn of(object: &Value, place: &[&str]) -> Self {
        let (mut syncs, mut told) = (Vec::new(), Vec::new());
        let mut lists = [(place, &mut syncs), (TOLD, &mut told)];
        let object = without(object, &mut lists);
        Self {
            object,
            modules: distinct(syncs.iter().filter_map(|sync| text(sync, "/module/name"))),
            secrets: distinct(syncs.iter().flat_map(|sync| secrets(sync))),
            names_modules: syncs.iter().any(|sync| sync.get("module").is_some()),
            refers: syncs.iter().any(|sync| refers(sync)),
            syncs: Elements::of(&syncs),
            told: Told::of(&told),
        }
    }

    /// All of it but its syncs and what its status tells of them: these lists are empty here.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Its syncs.
    pub fn syncs(&self) -> &Elements {
        &self.syncs
    }

    /// What its status tells of the sync of this name; what cannot be read is not told.
    pub fn sync_status(&self, sync: &str) -> Option<SyncStatus> {
        self.told.named(sync)
    }

    /// All of its status; the empty one if it cannot be read.
    pub fn status(&self) -> AssemblageStatus {
        let Ok(syncs) = self.told.read() else {
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

/// A list that is taken out of an object: where it is, and what was in it.
type Taken<'a, 'b> = (&'b [&'b str], &'b mut Vec<&'a Value>);

/// A copy without the elements of the lists that are there, which are given away.
fn without<'a>(value: &'a Value, lists: &mut [Taken<'a, '_>]) -> Value {
    match value {
        Value::Array(all) if lists.iter().any(|(place, _)| place.is_empty()) => {
            for (_, taken) in lists.iter_mut().filter(|(place, _)| place.is_empty()) {
                taken.extend(all);
            }
            Value::Array(Vec::new())
        }
        Value::Object(fields) => {
            let copy = |(name, value): (&String, &'a Value)| {
                let within = lists.iter_mut().filter_map(|(place, taken)| {
                    let rest = place.strip_prefix(&[name.as_str()])?;
                    Some((rest, &mut **taken))
                });
                let mut within: Vec<Taken<'a, '_>> = within.collect();
                let kept = if within.is_empty() {
                    value.clone()
                } else {
                    without(value, &mut within)
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
    use crate::observe::elements::{Element, Elements};

    fn values(elements: &Elements) -> Vec<Value> {
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
            "spec": {"kubeconfigRef": {"name": "k"}, "assemblage": {"other": 1, "syncs": [web, plain]}, "syncs": [7]},
            "status": {"observedGeneration": 3, "syncs": [told]},
        });
        let kept = Kept::remote(&remote);
        assert_eq!(values(kept.syncs()), [web.clone(), plain.clone()]);
        assert_eq!(kept.sync_status("web").unwrap().state, SyncState::Succeeded);
        assert_eq!(
            kept.object(),
            &json!({
                "metadata": {"name": "berlin"},
                "spec": {"kubeconfigRef": {"name": "k"}, "assemblage": {"other": 1, "syncs": []}, "syncs": [7]},
                "status": {"observedGeneration": 3, "syncs": []},
            }),
            "a list of that name elsewhere is none of its syncs"
        );
        assert!(kept.modules().eq(["web-1"]) && kept.secrets().eq(["keys"]));
        assert!(kept.names_modules() && kept.refers());
        let leaf =
            Kept::assemblage(&json!({"spec": {"syncs": [plain], "assemblage": {"syncs": [web]}}}));
        assert_eq!(values(leaf.syncs()), [plain]);
        assert!(!leaf.names_modules() && !leaf.refers());
        for odd in [
            json!("none"),
            json!({"spec": {"syncs": "none"}, "status": 7}),
        ] {
            assert_eq!(Kept::assemblage(&odd).object(), &odd);
        }
    }

    #[test]
    fn a_status_is_read_as_a_whole_or_not_at_all() {
        let of = |state: &str| {
            let told = json!([{"name": "a", "state": state}, {"name": "b"}]);
            Kept::remote(&json!({"status": {"observedGeneration": 3, "syncs": told}}))
        };
        let status = of("failed").status();
        assert_eq!(
            (status.observed_generation, status.syncs.len()),
            (Some(3), 2)
        );
        assert_eq!(
            of("failed").sync_status("a").unwrap().state,
            SyncState::Failed
        );
        let later = of("of a later version");
        assert_eq!(later.status(), AssemblageStatus::default());
        assert_eq!(later.status_but_syncs().observed_generation, Some(3));
        assert!(later.sync_status("a").is_none() && later.sync_status("b").is_some());
    }
}
