//! What is to be done about one `RemoteAssemblage`: its cluster gets an `Assemblage` with the same syncs, and what that one
//! tells is told here.
//!
//! All syncs of a cluster are written together, in one write. A sync that only names a module is filled in on the way, and
//! never here: what people and other controllers wrote stays as they wrote it. What cannot be filled in stays in the cluster
//! as it was.
//!
//! What the status names is what is remembered: a sync is named there before it is written into the cluster, and until the cluster
//! has been seen without it. So a control plane that was put back to an earlier state takes nothing away that it has forgotten.

#[cfg(test)]
mod crowded;
pub mod fill;
mod leaf;
mod looked;
mod silence;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncState, SyncStatus};
use slipway_api::fleet::names::COPIED_FOR;
use slipway_api::fleet::sync::NamedSync;
use slipway_api::fleet::{MAX_SYNCS, SyncSummary};
use slipway_api::names::FIELD_MANAGER;
use slipway_bindings::Text;
use slipway_kernel::fields::text;

use crate::kinds;
use crate::observe::spelled::Spelled;
use crate::reasons::Reason;
use crate::reasons::condition::DELETING;
use crate::render::Applied;
use crate::render::assignment::{self, Place};
use crate::specialise::{Assigned, Specialised};

use leaf::Line;
pub(crate) use leaf::is_elsewhere;
pub use leaf::{Leaf, WRITTEN};
use looked::Looked;

/// All that the plan of one `RemoteAssemblage` depends on.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Its namespace, which is that of the Assemblage in the cluster too.
    pub namespace: String,
    /// Its name, which is that of the Assemblage in the cluster too.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// Which control plane it is in: the uid of that one's `kube-system`.
    pub hub: String,
    /// The control plane whose place this one takes, by a person's word.
    pub takes_over: Option<String>,
    /// How many syncs that nobody has assigned here may be taken away, by a person's word.
    pub may_unassign: usize,
    /// Its syncs, and what comes of those that name a module or cannot be read.
    pub syncs: Vec<(Spelled, Option<Specialised<Assigned>>)>,
    /// Its status, as stored.
    pub before: AssemblageStatus,
    /// Whether the cluster can be reached, and what is in it has been seen.
    pub is_reachable: bool,
    /// Since when it can be reached.
    pub reached: Option<Timestamp>,
    /// The Assemblage in the cluster, if it is there.
    pub leaf: Option<Leaf>,
    /// What the API of the cluster said to the Assemblage, or to its namespace, if it refused that.
    pub refused: Option<String>,
    /// The same of Secrets with values, by name.
    pub refused_secrets: BTreeMap<String, String>,
    /// The Secrets with values that are there in the control plane, for this cluster.
    pub secrets: BTreeSet<String>,
    /// The Secrets with values that are in the cluster, for whomever.
    pub copied: BTreeSet<String>,
    /// Those of them that were written there for this one: only these are deleted.
    pub own: BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// The Secrets that have to be copied into the cluster; until they are, the syncs that need them stay there as they are.
    pub copy: Vec<String>,
    /// The Secrets with values of what was filled in, as they are written into the cluster; the same.
    pub make: Vec<Applied>,
    /// The Assemblage, as it is written into the cluster.
    pub apply: Option<Applied>,
    /// A merge patch of the Assemblage, good for the version that was seen: takes syncs away, and changes nothing else. To apply what
    /// is left would leave what somebody else has written with the same content, as whoever restores an object does; and to apply none
    /// would leave no list at all. Not where somebody else has added a sync: that one is theirs.
    pub take_away: Option<Value>,
    /// The copied Secrets that nobody refers to any more.
    pub delete_secrets: Vec<String>,
    /// The syncs in the cluster that nobody has assigned here, and that stay there.
    pub kept: BTreeSet<String>,
    /// A person's words that have been followed.
    pub followed: Vec<&'static str>,
    /// How far each sync is.
    pub syncs: Vec<SyncStatus>,
    /// How many are how far.
    pub summary: SyncSummary,
    /// When to look again whether the agent in the cluster has looked at what it is to have.
    pub look_at: Option<Timestamp>,
}

impl Decision {
    /// Whether something is to be written into the cluster.
    pub fn is_pending(&self) -> bool {
        self.apply.is_some()
            || self.take_away.is_some()
            || !self.copy.is_empty()
            || !self.make.is_empty()
    }
}

/// Decides about a `RemoteAssemblage`.
pub fn decide(world: &World, now: Timestamp) -> Decision {
    let looked = Looked::of(world);
    let wanted = world.wanted();
    let mut decision = writes(world, &wanted, &looked);
    decision.followed = world.followed();
    let told = wanted.iter().map(|one| one.status(world, &looked, now));
    decision.syncs = told.collect();
    let going = world.going(&decision.kept, now);
    let room = MAX_SYNCS.saturating_sub(decision.syncs.len());
    decision.syncs.extend(going.into_iter().take(room));
    decision.summary = summary(&decision.syncs);
    decision.look_at = silence::look_at(world, &decision.syncs);
    decision
}

/// Decides what is to be written into its cluster, and nothing of what is told at home: whoever writes there needs neither what the
/// cluster tells nor since when it does.
pub fn decide_writes(world: &World) -> Decision {
    writes(world, &world.wanted(), &Looked::of(world))
}

fn writes(world: &World, wanted: &[Wanted<'_>], looked: &Looked<'_>) -> Decision {
    let mut decision = Decision {
        kept: world.kept(),
        ..Decision::default()
    };
    if world.is_open() {
        write(world, wanted, looked, &mut decision);
    }
    decision
}

/// A sync as it is to be in the cluster.
struct Wanted<'a> {
    name: &'a str,
    /// None if it was never there and cannot be filled in.
    sync: Option<Spelled>,
    /// The Secret with values that is made for it on the way, if one is.
    made: Option<&'a str>,
    blocked: Option<(&'static str, &'a str)>,
}

impl<'a> Wanted<'a> {
    fn of(world: &World, (sync, filled): &'a (Spelled, Option<Specialised<Assigned>>)) -> Self {
        let (mut made, mut blocked) = (None, None);
        let found = match filled {
            None => Some(sync.clone()),
            Some(Specialised::Done(assigned)) => {
                made = assigned.secret.as_ref().map(|(name, _)| name.as_str());
                Some(Spelled::of(&assigned.sync))
            }
            // It stays as it was, and so does what is told of it.
            Some(Specialised::Unread { .. }) => world.at_leaf(sync.name()).cloned(),
            Some(Specialised::Blocked {
                reason, message, ..
            }) => {
                blocked = Some((*reason, message.as_str()));
                world.at_leaf(sync.name()).cloned()
            }
        };
        Self {
            name: sync.name(),
            sync: found.map(|sync| sync.with_revision().into_owned()),
            made,
            blocked,
        }
    }

    /// The Secrets that have to be in the cluster before it, and are not.
    fn missing<'b>(&'b self, world: &'b World) -> impl Iterator<Item = &'b str> {
        let referred = self.sync.iter().flat_map(Spelled::secrets);
        let referred = referred.filter(move |name| world.secrets.contains(*name));
        let all = referred.chain(self.made);
        all.filter(move |name| !world.copied.contains(*name))
    }

    /// What the API of the cluster said to what it needs there, if it refused that.
    fn refused<'b>(&'b self, world: &'b World) -> Option<&'b str> {
        let mut missing = self.missing(world);
        let secret = missing.find_map(|name| world.refused_secrets.get(name));
        secret.or(world.refused.as_ref()).map(String::as_str)
    }

    /// How far it is: what the cluster tells of exactly this.
    fn status(&self, world: &World, looked: &Looked<'_>, now: Timestamp) -> SyncStatus {
        let before = looked.before(self.name);
        let revision = self.sync.as_ref().and_then(Spelled::revision);
        let is_of_this = |known: &SyncStatus| known.observed_revision.as_deref() == revision;
        let leaf = world.leaf.as_ref();
        let seen = self.sync.as_ref().and_then(|sync| looked.told(sync));
        // What is news has to be of what is there now: it may be of an earlier time at which the same was there.
        let is_known = |told: &SyncStatus| {
            before.is_some_and(|before| before.state == told.state && is_of_this(before))
        };
        let told = seen.filter(|told| leaf.is_some_and(Leaf::is_observed) || is_known(told));
        let refused = self.refused(world);
        let refused = refused.filter(|_| world.is_open() && seen.is_none());
        let refused = refused.map(|said| (Reason::RefusedByApi.as_str(), said));
        let made = match (self.blocked.or(refused), told) {
            (Some((reason, message)), _) => SyncStatus {
                state: SyncState::Blocked,
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                ..SyncStatus::default()
            },
            (None, _) if world.is_open() && leaf.is_some_and(|leaf| leaf.is_going) => going(),
            (None, Some(told)) if world.is_open() => told.clone(),
            // What was known stays known of the same revision: it is told elsewhere that the cluster cannot be reached.
            (None, _) => {
                let known = before.filter(|known| is_of_this(known));
                let still = known.filter(|_| !world.is_open() || seen.is_some());
                let is_there = self.sync.as_ref().is_some_and(|sync| looked.has(sync));
                let awaited = || silence::awaited(world, is_there, known, now);
                still.cloned().unwrap_or_else(awaited)
            }
        };
        let same = before.filter(|known| known.state == made.state && is_of_this(known));
        SyncStatus {
            name: self.name.to_owned(),
            observed_revision: revision.map(str::to_owned),
            observed_sync: None,
            // The time at which it was seen here: clocks of clusters differ.
            since: same
                .and_then(|known| known.since.clone())
                .or(Some(Time(now))),
            ..made
        }
    }
}

/// What is told of a sync while the Assemblage in the cluster is being deleted, by whomever: what it applied goes with it.
fn going() -> SyncStatus {
    SyncStatus {
        state: SyncState::Updating,
        reason: Some(DELETING.to_owned()),
        message: Some("its Assemblage in the cluster is being deleted".to_owned()),
        ..SyncStatus::default()
    }
}

impl World {
    fn wanted(&self) -> Vec<Wanted<'_>> {
        let all = self.syncs.iter();
        all.map(|one| Wanted::of(self, one)).collect()
    }

    /// The syncs as they are written: also those that are in the cluster already and cannot be read, or that nobody has assigned here,
    /// as they are there.
    fn list<'a>(&'a self, syncs: &[&'a Spelled], kept: &BTreeSet<String>) -> Vec<Line<'a>> {
        let wanted = self.assigned();
        let listed: BTreeSet<&str> = syncs.iter().map(|sync| sync.name()).collect();
        let is_missing = |name: &str| wanted.contains(name) && !listed.contains(name);
        let unread = self.leaf.iter().flat_map(|leaf| &leaf.unread);
        let unread = unread.filter(|sync| {
            let name = text(sync, "/name");
            name.is_some_and(|name| is_missing(name) || kept.contains(name))
        });
        let strange = self.leaf.iter().flat_map(|leaf| &leaf.syncs);
        let strange = strange.filter(|sync| kept.contains(sync.name()));
        let written = syncs.iter().copied().chain(strange).map(Line::Read);
        written.chain(unread.map(Line::Unread)).collect()
    }

    fn at_leaf(&self, name: &str) -> Option<&Spelled> {
        let mut all = self.leaf.iter().flat_map(|leaf| &leaf.syncs);
        all.find(|sync| sync.name() == name)
    }
}

/// What is written into the cluster: Secrets, and the Assemblage, if it is not as wanted. A sync whose Secrets are not there stays as it
/// is there: what the cluster does not take of one keeps no other waiting.
fn write(world: &World, wanted: &[Wanted<'_>], looked: &Looked<'_>, decision: &mut Decision) {
    let remembered = world.remembered();
    // What is not remembered yet stays in the cluster as it is there too: the status says its name first.
    let is_known = |one: &&Wanted<'_>| remembered.contains(one.name);
    let syncs = wanted.iter().filter_map(|one| {
        let is_complete = one.missing(world).next().is_none();
        if is_known(&one) && is_complete {
            one.sync.as_ref()
        } else {
            looked.there(one.name)
        }
    });
    let syncs: Vec<&Spelled> = syncs.collect();
    let needed = wanted.iter().filter(is_known);
    let needed = needed.filter_map(|one| one.sync.as_ref());
    let needed = needed.chain(syncs.iter().copied());
    let used: BTreeSet<&str> = needed.flat_map(Spelled::secrets).collect();
    let missing = used
        .iter()
        .filter(|name| world.secrets.contains(**name) && !world.copied.contains(**name));
    decision.copy = missing.map(|name| (*name).to_owned()).collect();
    decision.make = made(world);
    let kept = &decision.kept;
    let list = world.list(&syncs, kept);
    let hash = leaf::hash(&list);
    let leaf = world.leaf.as_ref();
    if leaf.is_none() && list.is_empty() && !world.syncs.is_empty() {
        // There is nothing to be written yet.
        return;
    }
    let is_written = leaf.is_some_and(|leaf| world.is_written(leaf, &hash, kept));
    if !is_written || !syncs.iter().all(|sync| looked.has(sync)) {
        if let Some(left) = leaf.and_then(|leaf| leaf.without_all_but(&list)) {
            let said = world.annotations(&leaf::hash(&left), kept);
            decision.take_away = Some(leaf::patch(&said, &left));
        } else {
            let said = world.annotations(&hash, kept);
            decision.apply = Some(assemblage(world, &list, &said));
        }
        // What was there may still be needed until it has been written.
        return;
    }
    let still = world.leaf.iter().flat_map(|leaf| &leaf.syncs);
    let still: BTreeSet<&str> = still.flat_map(Spelled::secrets).collect();
    let unused = world.own.iter();
    let unused =
        unused.filter(|name| !used.contains(name.as_str()) && !still.contains(name.as_str()));
    decision.delete_secrets = unused.cloned().collect();
}

/// The Secrets with values of what was filled in that are not in the cluster yet.
fn made(world: &World) -> Vec<Applied> {
    let filled = world.syncs.iter().filter_map(|(_, filled)| match filled {
        Some(Specialised::Done(assigned)) => assigned.secret.as_ref(),
        _ => None,
    });
    let missing = filled.filter(|(name, _)| !world.copied.contains(name));
    let place = Place {
        namespace: &world.namespace,
        cluster: &world.name,
        kubeconfig: "",
    };
    let by = |(name, data): &(String, BTreeMap<String, Text>)| {
        let mut made = assignment::values(place, &world.name, name, data);
        let labels = json!({"metadata": {"labels": {COPIED_FOR: assignment::label(&world.name)}}});
        slipway_kernel::fields::merge(&mut made.body, &labels);
        made
    };
    missing.map(by).collect()
}

fn assemblage(world: &World, syncs: &[Line<'_>], annotations: &Value) -> Applied {
    let (object, mut body) = crate::render::object(
        kinds::ASSEMBLAGE,
        &world.namespace,
        &world.name,
        &json!({"metadata": {"annotations": annotations}}),
    );
    if let Some(fields) = body.as_object_mut() {
        // There may be hundreds: in what is merged above each would be copied twice more.
        let mut spec = Map::new();
        let syncs = syncs.iter().map(Line::value).collect();
        spec.insert("syncs".to_owned(), Value::Array(syncs));
        fields.insert("spec".to_owned(), Value::Object(spec));
    }
    Applied {
        object,
        manager: FIELD_MANAGER.to_owned(),
        force: true,
        body,
    }
}

/// A sync that cannot be read, by its name: maybe a later version of ours has written it. None for what has no name.
pub fn unreadable<T>(
    sync: &Value,
    error: &serde_json::Error,
) -> Option<(NamedSync, Specialised<T>)> {
    let part = |path: &str| text(sync, path).map(str::to_owned);
    let named = NamedSync {
        name: part("/name")?,
        revision: part("/revision"),
        assigned_by: part("/assignedBy"),
        ..NamedSync::default()
    };
    let blocked = Specialised::Blocked {
        reason: Reason::SyncUnreadable.as_str(),
        message: format!("what it says cannot be read: {error}"),
        references: BTreeSet::new(),
    };
    Some((named, blocked))
}

/// How many syncs are how far.
pub fn summary(syncs: &[SyncStatus]) -> SyncSummary {
    let of = |states: &[SyncState]| {
        let count = syncs
            .iter()
            .filter(|sync| states.contains(&sync.state))
            .count();
        i64::try_from(count).unwrap_or(i64::MAX)
    };
    SyncSummary {
        total: i64::try_from(syncs.len()).unwrap_or(i64::MAX),
        updating: of(&[SyncState::Updating]),
        failed: of(&[SyncState::Failed, SyncState::Blocked]),
        succeeded: of(&[SyncState::Succeeded]),
    }
}
