//! The Assemblage in a cluster, and whose it is.
//!
//! A cluster belongs to one control plane: to which, is said on its Assemblage. Another one writes nothing there before a person says
//! that it takes the first one's place. Also one's own control plane may know less than it has written, because it was built anew or put
//! back to an earlier state: what is in the cluster and is assigned by nobody here stays, until somebody assigns it or a person says
//! that it may go.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncState, SyncStatus};
use slipway_api::fleet::names::{CONFIRM_UNASSIGN, TAKE_OVER};
use slipway_bindings::{canonical, revision};
use slipway_kernel::fields::{integer, strings, text};

use super::World;
use crate::assemblage::state::{begun, shortened};
use crate::observe::elements::Elements;
use crate::observe::kept::{Kept, MOST};
use crate::observe::spelled::Spelled;
use crate::reasons::condition::UNASSIGNING;

/// On an `Assemblage` in a workload cluster: a hash of what was written last, by which a sync that is gone is noticed.
pub const WRITTEN: &str = "fleet.squaremo.dev/written";

/// The same: the uid of the `RemoteAssemblage` that wrote it last.
const WRITER: &str = "fleet.squaremo.dev/written-by";

/// The same: the generation that the `RemoteAssemblage` had then. One that has an earlier one was put back.
const GENERATION: &str = "fleet.squaremo.dev/written-generation";

/// The same: the uid of the `kube-system` of the control plane that wrote it last.
const HUB: &str = "fleet.squaremo.dev/written-from";

/// The same: the names of the syncs that nobody assigned who knows this cluster now.
const KEPT: &str = "fleet.squaremo.dev/kept";

/// The Assemblage in the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaf {
    /// Its syncs.
    pub syncs: Vec<Spelled>,
    /// Those of its syncs that cannot be read, as they are.
    pub unread: Vec<Value>,
    /// The hash of what was written last.
    pub written: Option<String>,
    /// The uid of the `RemoteAssemblage` that wrote it last.
    pub writer: Option<String>,
    /// The generation that that one had.
    pub of_generation: Option<i64>,
    /// The control plane that wrote it last.
    pub hub: Option<String>,
    /// The syncs in it that nobody assigned who knows it now.
    pub kept: BTreeSet<String>,
    /// Its generation.
    pub generation: i64,
    /// Whether it is being deleted.
    pub is_going: bool,
    /// All of its syncs, as they are in the API.
    pub elements: Elements,
    /// What it tells, as much of it as is repeated.
    pub status: AssemblageStatus,
}

/// How long a reason may be, in characters: it is a word.
const LONGEST_REASON: usize = 64;

/// What a cluster tells of a sync, as it is repeated: who writes there chooses the words, and all of them would be told again by each who
/// assigns something there, who has more to tell.
fn bounded(told: SyncStatus) -> SyncStatus {
    let word = |reason: &str| begun(reason, LONGEST_REASON);
    SyncStatus {
        reason: told.reason.as_deref().map(word),
        message: told.message.as_deref().map(shortened),
        ..told
    }
}

impl Leaf {
    /// Reads an `Assemblage`.
    pub fn of(object: &Value) -> Self {
        Self::read(&Kept::assemblage(object))
    }

    /// Reads one that is kept.
    pub fn read(assemblage: &Kept) -> Self {
        let mut status = assemblage.status();
        let told = status.syncs.into_iter().take(MOST);
        status.syncs = told.map(bounded).collect();
        Self {
            status,
            ..Self::untold(assemblage)
        }
    }

    /// The same without what it tells.
    pub(crate) fn untold(assemblage: &Kept) -> Self {
        let (mut syncs, mut unread) = (Vec::new(), Vec::new());
        for sync in assemblage.syncs().iter() {
            match sync.spelled() {
                Ok(sync) => syncs.push(sync),
                Err(_) => unread.push(sync.value()),
            }
        }
        let object = assemblage.object();
        let mut said = strings(object, "/metadata/annotations");
        let kept = said.remove(KEPT).unwrap_or_default();
        let kept = kept.split(',').filter(|name| !name.is_empty());
        Self {
            syncs,
            unread,
            written: said.remove(WRITTEN),
            writer: said.remove(WRITER),
            of_generation: said.remove(GENERATION).and_then(|said| said.parse().ok()),
            hub: said.remove(HUB),
            kept: kept.map(str::to_owned).collect(),
            generation: integer(object, "/metadata/generation").unwrap_or_default(),
            is_going: text(object, "/metadata/deletionTimestamp").is_some(),
            elements: assemblage.syncs().clone(),
            status: AssemblageStatus::default(),
        }
    }

    /// A hash of the sync of this name as it is in the API.
    pub fn hash_of(&self, sync: &str) -> Option<&str> {
        Some(self.elements.named(sync)?.hash())
    }

    /// How many syncs an `Assemblage` has, or tells of, if they are more than are read.
    pub(crate) fn crowd(assemblage: &Kept) -> Option<usize> {
        Some(assemblage.count()).filter(|count| *count > MOST)
    }

    /// The control plane that has an `Assemblage`, if it says so.
    pub(crate) fn hub_of(object: &Value) -> Option<String> {
        strings(object, "/metadata/annotations").remove(HUB)
    }

    /// Its syncs, as they are.
    fn whole(&self) -> Vec<Line<'_>> {
        let syncs = self.syncs.iter().map(Line::Read);
        syncs.chain(self.unread.iter().map(Line::Unread)).collect()
    }

    /// What is left of its syncs when those go that are not in this list. None if none go, or if they are not those that were written
    /// last: then somebody else has added one.
    pub(super) fn without_all_but(&self, list: &[Line<'_>]) -> Option<Vec<Line<'_>>> {
        let all = self.whole();
        if self.written != Some(hash(&all)) {
            return None;
        }
        let listed: BTreeSet<Option<&str>> = list.iter().map(Line::name).collect();
        let is_listed = |sync: &&Line<'_>| listed.contains(&sync.name());
        let left: Vec<Line<'_>> = all.iter().filter(is_listed).copied().collect();
        (left.len() < all.len() || list.is_empty()).then_some(left)
    }

    /// Whether what it tells is of what is in it now.
    pub(super) fn is_observed(&self) -> bool {
        let observed = self.status.observed_generation;
        observed.is_none_or(|observed| observed >= self.generation)
    }

    /// The names of all of its syncs.
    fn names(&self) -> impl Iterator<Item = &str> {
        let unread = self.unread.iter().filter_map(|sync| text(sync, "/name"));
        let read = self.syncs.iter().map(Spelled::name);
        read.chain(unread)
    }
}

/// A sync in a list: one that has been read, or as it is there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line<'a> {
    Read(&'a Spelled),
    Unread(&'a Value),
}

impl<'a> Line<'a> {
    fn name(&self) -> Option<&'a str> {
        match self {
            Self::Read(sync) => Some(sync.name()),
            Self::Unread(sync) => text(sync, "/name"),
        }
    }

    fn canonical(&self) -> Cow<'a, str> {
        match self {
            Self::Read(sync) => Cow::Borrowed(sync.canonical()),
            Self::Unread(sync) => Cow::Owned(canonical::json(sync)),
        }
    }

    /// It as it is written.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Read(sync) => sync.value(),
            Self::Unread(sync) => (*sync).clone(),
        }
    }
}

/// What is said on an Assemblage and left of its syncs, as a merge patch.
pub(super) fn patch(said: &Value, left: &[Line<'_>]) -> Value {
    let left: Vec<Value> = left.iter().map(Line::value).collect();
    let mut annotations = json!({KEPT: null});
    if let (Some(all), Some(said)) = (annotations.as_object_mut(), said.as_object()) {
        all.extend(said.clone());
    }
    json!({"metadata": {"annotations": annotations}, "spec": {"syncs": left}})
}

/// A hash of syncs, whatever their order: the API keeps one of its own.
pub(super) fn hash(syncs: &[Line<'_>]) -> String {
    let mut all = syncs.to_vec();
    all.sort_by_key(Line::name);
    let all: Vec<Cow<'_, str>> = all.iter().map(Line::canonical).collect();
    revision::of_canonical(&format!("[{}]", all.join(",")))
}

impl World {
    /// Whether it may be written to: it can be reached, and belongs to this control plane.
    pub(super) fn is_open(&self) -> bool {
        let hub = self.leaf.as_ref().and_then(|leaf| leaf.hub.as_deref());
        let is_ours =
            hub.is_none_or(|hub| !is_elsewhere(hub, &self.hub, self.takes_over.as_deref()));
        self.is_reachable && is_ours
    }

    /// Whether somebody wrote it who may have known more than this assemblage does: another control plane or assemblage, or this one
    /// before it was put back.
    fn is_strange(&self, leaf: &Leaf) -> bool {
        let is_another = |known: Option<&String>, own: &String| known.is_some_and(|one| one != own);
        is_another(leaf.hub.as_ref(), &self.hub)
            || is_another(leaf.writer.as_ref(), &self.uid)
            || leaf
                .of_generation
                .is_some_and(|then| then > self.generation)
    }

    /// The syncs in the cluster that nobody has assigned here, and that nobody may take away.
    pub(super) fn kept(&self) -> BTreeSet<String> {
        let Some(leaf) = &self.leaf else {
            return BTreeSet::new();
        };
        let assigned = self.assigned();
        let mut others = leaf.names().filter(|name| !assigned.contains(name));
        let Some(first) = others.next() else {
            return BTreeSet::new();
        };
        let is_strange = self.is_strange(leaf);
        let remembered = self.remembered();
        // Where somebody has added a sync of theirs in the cluster, what is not remembered may be that one.
        let is_ours = leaf.written == Some(hash(&leaf.whole()));
        let is_forgotten = |name: &str| is_ours && !remembered.contains(name);
        let all = std::iter::once(first).chain(others);
        let all = all.filter(|name| is_strange || leaf.kept.contains(*name) || is_forgotten(name));
        let all: BTreeSet<String> = all.map(str::to_owned).collect();
        if !is_strange && all.len() <= self.may_unassign {
            // A person has seen what they are.
            return BTreeSet::new();
        }
        all
    }

    /// The names of all syncs that are assigned here.
    pub(super) fn assigned(&self) -> BTreeSet<&str> {
        self.syncs.iter().map(|(sync, _)| sync.name()).collect()
    }

    /// The names of all syncs that are in the cluster because of this assemblage, or may be in a moment.
    pub(super) fn remembered(&self) -> BTreeSet<&str> {
        let told = self.before.syncs.iter();
        told.map(|told| told.name.as_str()).collect()
    }

    /// What was taken away here and may still be in the cluster: it is remembered until the cluster has been seen without it.
    pub(super) fn going(&self, kept: &BTreeSet<String>, now: Timestamp) -> Vec<SyncStatus> {
        let assigned = self.assigned();
        let is_open = self.is_open();
        let there: BTreeSet<&str> = self.leaf.iter().flat_map(Leaf::names).collect();
        let is_going = |told: &&SyncStatus| {
            let name = told.name.as_str();
            let is_assigned = assigned.contains(name) || kept.contains(name);
            !is_assigned && (!is_open || there.contains(name))
        };
        let going = self.before.syncs.iter().filter(is_going);
        going
            .map(|told| {
                let is_known = told.reason.as_deref() == Some(UNASSIGNING);
                SyncStatus {
                    state: SyncState::Updating,
                    reason: Some(UNASSIGNING.to_owned()),
                    message: Some("it is being taken away".to_owned()),
                    since: told.since.clone().filter(|_| is_known).or(Some(Time(now))),
                    ..told.clone()
                }
            })
            .collect()
    }

    /// Whether what is in the cluster was written by this one, and is this.
    pub(super) fn is_written(&self, leaf: &Leaf, hash: &str, kept: &BTreeSet<String>) -> bool {
        let is_marked =
            leaf.hub.as_ref() == Some(&self.hub) && leaf.writer.as_ref() == Some(&self.uid);
        is_marked
            && !self.is_strange(leaf)
            && leaf.written.as_deref() == Some(hash)
            && leaf.kept == *kept
    }

    /// What is said on the Assemblage in the cluster.
    pub(super) fn annotations(&self, hash: &str, kept: &BTreeSet<String>) -> Value {
        let mut all = json!({
            WRITTEN: hash, WRITER: self.uid, HUB: self.hub, GENERATION: self.generation.to_string(),
        });
        if let Some(all) = all.as_object_mut().filter(|_| !kept.is_empty()) {
            let names: Vec<&str> = kept.iter().map(String::as_str).collect();
            all.insert(KEPT.to_owned(), names.join(",").into());
        }
        all
    }

    /// The words of a person that have been followed, by their annotations.
    pub(super) fn followed(&self) -> Vec<&'static str> {
        let Some(leaf) = self.leaf.as_ref().filter(|_| self.is_reachable) else {
            return Vec::new();
        };
        let is_ours = leaf.hub.as_ref() == Some(&self.hub);
        let is_clean = is_ours && !self.is_strange(leaf) && leaf.kept.is_empty();
        let words = [
            (self.takes_over.is_some() && is_ours, TAKE_OVER),
            (self.may_unassign > 0 && is_clean, CONFIRM_UNASSIGN),
        ];
        let followed = words.into_iter().filter(|(is_followed, _)| *is_followed);
        followed.map(|(_, word)| word).collect()
    }
}

/// Whether a cluster that says that it belongs to one control plane belongs to another one than ours.
pub(crate) fn is_elsewhere(says: &str, ours: &str, takes_over: Option<&str>) -> bool {
    says != ours && takes_over != Some(says)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use slipway_api::fleet::sync::NamedSync;
    use slipway_bindings::revision;

    use super::{Kept, Leaf, Line, MOST, hash};
    use crate::observe::spelled::Spelled;

    /// It is on Assemblages that earlier versions of ours have written.
    #[test]
    fn the_hash_of_a_list_is_that_of_its_syncs_by_name() {
        let (a, b) = (
            json!({"name": "a", "x": {"z": 1.0, "y": [null]}}),
            json!({"name": "b"}),
        );
        let wanted = revision::of_template(&json!([a, b]));
        assert_eq!(hash(&[Line::Unread(&a), Line::Unread(&b)]), wanted);
        let read = Spelled::of(&NamedSync {
            name: "b".to_owned(),
            ..NamedSync::default()
        });
        assert_eq!(hash(&[Line::Read(&read), Line::Unread(&a)]), wanted);
        assert_eq!(hash(&[]), revision::of_template(&json!([])));
    }

    /// Who chooses what a cluster shows chooses its status as well.
    #[test]
    fn too_much_that_is_told_is_no_less_than_too_much_that_is_there() {
        let telling = |count: usize| {
            let told: Vec<Value> = (0..count)
                .map(|n| json!({"name": format!("s{n}"), "state": "succeeded"}))
                .collect();
            Kept::assemblage(&json!({"spec": {"syncs": []}, "status": {"syncs": told}}))
        };
        assert_eq!(Leaf::crowd(&telling(MOST)), None);
        assert_eq!(Leaf::crowd(&telling(MOST + 1)), Some(MOST + 1));
    }
}
