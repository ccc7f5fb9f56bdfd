//! An assemblage as it is kept, of either kind: all of it, with its long lists apart ([`super::elements`]).

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use slipway_api::fleet::MAX_SYNCS;
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncStatus};
use slipway_kernel::fields::{list, text};

use super::elements::{Elements, Told};

/// Where the syncs of a `RemoteAssemblage` are.
const OF_REMOTE: &[&str] = &["spec", "assemblage", "syncs"];
/// Where those of an `Assemblage` are.
const OF_ASSEMBLAGE: &[&str] = &["spec", "syncs"];
/// Where the status of either tells of them.
const TOLD: &[&str] = &["status", "syncs"];

/// More syncs than these are not read of a cluster that others administer: what is assigned here and what is kept there may be as many
/// each. Whoever makes an API that takes more chooses how long each plan takes, and all clusters wait for each.
pub(crate) const MOST: usize = 2 * MAX_SYNCS;

/// An assemblage. What is in it may be secret.
#[derive(Clone, Default)]
pub struct Kept {
    object: Value,
    syncs: Elements,
    told: Told,
    /// How many syncs it has, or tells of, if these are more.
    count: usize,
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
        Self::of(object, OF_REMOTE, usize::MAX)
    }

    /// An `Assemblage`.
    pub fn assemblage(object: &Value) -> Self {
        Self::of(object, OF_ASSEMBLAGE, usize::MAX)
    }

    /// An `Assemblage` of a cluster that others administer. Of one that is not read no list is kept, but only how long the longer one
    /// is: to take them in costs more than all else that comes of it, with each change, and nobody looks at them.
    pub fn leaf(object: &Value) -> Self {
        Self::of(object, OF_ASSEMBLAGE, MOST)
    }

    fn of(object: &Value, place: &[&str], most: usize) -> Self {
        let (mut syncs, mut told) = (Vec::new(), Vec::new());
        let mut lists = [(place, &mut syncs), (TOLD, &mut told)];
        let object = without(object, &mut lists);
        let count = syncs.len().max(told.len());
        if count > most {
            return Self {
                object,
                count,
                ..Self::default()
            };
        }
        Self {
            object,
            count,
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

    /// The names of the syncs that its status tells of.
    pub fn told(&self) -> impl Iterator<Item = &str> {
        self.told.names()
    }

    /// How many syncs it has, or tells of, if these are more.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All of its status, as far as it can be read: a later version of ours may have written it.
    pub fn status(&self) -> AssemblageStatus {
        AssemblageStatus {
            syncs: self.told.all(),
            ..self.status_but_syncs()
        }
    }

    /// Its status, but for what it tells of its syncs.
    pub fn status_but_syncs(&self) -> AssemblageStatus {
        let Some(status) = self.object.get("status") else {
            return AssemblageStatus::default();
        };
        AssemblageStatus::deserialize(status).unwrap_or_else(|_| in_parts(status))
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

/// What can be read of a status, but for its syncs. Which cluster it is about must not be lost because of something else.
fn in_parts(status: &Value) -> AssemblageStatus {
    fn part<'a, T: Deserialize<'a>>(value: Option<&'a Value>) -> Option<T> {
        T::deserialize(value?).ok()
    }
    let conditions = list(status, "/conditions");
    AssemblageStatus {
        observed_generation: part(status.get("observedGeneration")),
        conditions: conditions.filter_map(|one| part(Some(one))).collect(),
        cluster: part(status.get("cluster")),
        summary: part(status.get("summary")),
        syncs: Vec::new(),
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
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::{Value, json};
    use slipway_api::fleet::assemblage::SyncState;

    use super::{Kept, MOST};
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
    fn of_a_crowded_cluster_is_kept_how_many_syncs_there_are_and_none_of_them() {
        let crowd = |count: usize| -> Vec<Value> {
            let names =
                (0..count).map(|n| json!({"name": format!("s{n}"), "module": {"name": "m"}}));
            names.collect()
        };
        let said = json!({"annotations": {"a": "b"}});
        for (here, told) in [(MOST, MOST), (MOST + 1, 0), (1, MOST + 1)] {
            let (syncs, all) = (crowd(here), crowd(told));
            let object =
                json!({"metadata": said, "spec": {"syncs": syncs}, "status": {"syncs": all}});
            let is_crowd = here.max(told) > MOST;
            let kept = Kept::leaf(&object);
            assert_eq!(kept.count(), here.max(told));
            let len = if is_crowd { (0, 0) } else { (here, told) };
            assert_eq!(
                (kept.syncs().iter().count(), kept.status().syncs.len()),
                len
            );
            assert_eq!(kept.names_modules(), !is_crowd);
            assert_eq!(kept.object()["metadata"], said);
            assert_eq!(kept.object()["spec"]["syncs"], json!([]));
            // Where it is expanded, what is left out would be taken away.
            assert_eq!(Kept::assemblage(&object).syncs().iter().count(), here);
        }
    }

    #[test]
    fn a_status_is_read_as_far_as_it_can_be() {
        let of = |state: &str| {
            let told = json!([{"name": "a", "state": state, "observedRevision": "1"}, {"name": "b", "state": "succeeded"}]);
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
        let read = later.status();
        assert_eq!(read.observed_generation, Some(3));
        let states: Vec<SyncState> = read.syncs.iter().map(|one| one.state).collect();
        assert_eq!(states, [SyncState::Updating, SyncState::Succeeded]);
        assert_eq!(read.syncs[0].observed_revision.as_deref(), Some("1"));
        assert_eq!(later.sync_status("a").as_ref(), read.syncs.first());
        let odd = Kept::remote(&json!({"status": {
            "observedGeneration": "of a later version", "cluster": {"uid": "one"}, "conditions": [7], "syncs": [{"name": "a"}],
        }}));
        let read = odd.status();
        assert_eq!(read.cluster.unwrap().uid.as_deref(), Some("one"));
        assert_eq!((read.observed_generation, read.syncs.len()), (None, 1));
    }
}
