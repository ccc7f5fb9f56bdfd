//! What is known besides the API's objects: answers to questions, and how our own writes fared.
//!
//! Facts are volatile: a new process starts without. What must survive is in an object's status.

mod answers;
mod asked;
mod missing;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use slipway_api::names::FIELD_MANAGER;

use crate::identity::{ClusterId, Kind, ObjectRef};
use crate::member::{Discovery, MemberState};
use crate::store::Stores;

pub use answers::Answers;
pub use asked::{Answer, Question, QuestionId, Request, ScaleOf};
pub use missing::{Missing, Right, Unseen};
pub use reading::{Collection, Reading};

/// What stands behind a refusal. What is left out for want of a right is not left out for any other cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The API says that we have no right to it.
    NoRight,
    /// This write is not let through: it is invalid, or a quota, a policy or a webhook is against it.
    Rejected,
    /// The server has too much to do.
    Busy,
}

/// A write of ours that the API refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What stands behind it.
    pub cause: Cause,
    /// The API's reason: `Forbidden`, `Invalid`, …
    pub reason: String,
    /// What the API said.
    pub message: String,
    /// How often in a row.
    pub attempts: u32,
    /// Since when.
    pub since: Timestamp,
    /// When it may be tried again.
    pub retry_at: Timestamp,
}

/// What one replica knows of one cluster besides its objects. A plan is given those of its key's cluster.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Refused writes, by object; of home, also those of the member that a plan tells of ([`crate::Controller::tells_of`]).
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// The same of who applies under a name of its own, by object and name. Several have their part in such an object, and what one
    /// of them may not write keeps no other from its own, nor from the status.
    pub refused_parts: BTreeMap<(ObjectRef, String), Refusal>,
    /// Answers to the questions of the key that is planned, or of the review that is judged; to no others.
    pub answers: Answers,
    /// What is off because of a missing right or definition; of home, also which kinds may not be seen in the member that a plan tells of.
    pub missing: BTreeSet<Missing>,
    /// Objects, by uid, that this replica has let go, and until when they may go. They count as away for as long as they
    /// are here: a read that began after that time takes them out.
    pub evictions_allowed_here: BTreeMap<String, Timestamp>,
    /// Objects, by uid, that this replica is deleting or may have deleted, and until when they count as away although they
    /// are still seen.
    pub deletions: BTreeMap<String, Timestamp>,
    /// What was read for the review that is judged.
    pub readings: BTreeMap<Collection, Reading>,
    /// Of home, what is known of each member; of a member, what is known of itself.
    pub members: BTreeMap<ClusterId, Arc<MemberState>>,
    /// Which kinds the cluster serves, where a capability wants to know ([`crate::Controller::discovers`]) and it is known.
    pub discovery: Option<Arc<Discovery>>,
}

impl Facts {
    /// What the API said to a write to an object under a name, if it refused it.
    pub fn refusal(&self, object: &ObjectRef, manager: &str) -> Option<&Refusal> {
        if manager == FIELD_MANAGER {
            return self.refusals.get(object);
        }
        let part = (object.clone(), manager.to_owned());
        self.refused_parts.get(&part)
    }

    /// All refused writes, under whichever name.
    pub fn refused(&self) -> impl Iterator<Item = (&ObjectRef, &Refusal)> {
        let parts = self.refused_parts.iter();
        let parts = parts.map(|((object, _), refusal)| (object, refusal));
        self.refusals.iter().chain(parts)
    }

    /// For who has stores and no facts: of these kinds, those that have not been listed count as absent, because nobody can
    /// say whether they are to be waited for.
    pub fn of_listed(stores: &Stores, cluster: &ClusterId, optional: &[Kind]) -> Self {
        let listed = |kind: &Kind| stores.of_kind(cluster, kind).any(|(_, s)| s.is_synced());
        let unlisted = optional.iter().filter(|kind| !listed(kind));
        let missing = unlisted.map(|kind| Missing::unseen(Unseen::Absent, cluster, kind));
        Self {
            missing: missing.collect(),
            ..Self::default()
        }
    }

    /// Whether a kind is done without, in all namespaces: what is in its store, if anything, is not to be believed any more.
    pub fn is_absent(&self, cluster: &ClusterId, kind: &Kind) -> bool {
        self.is_unseen(Unseen::Absent, cluster, kind)
    }

    /// Whether a kind is done without in this namespace: a right to it may be missing in one and not in another.
    pub fn is_absent_in(&self, cluster: &ClusterId, kind: &Kind, namespace: &str) -> bool {
        let mut missing = self.unseen(Unseen::Absent, cluster, kind);
        missing.any(|one| one.namespace.is_empty() || one.namespace == namespace)
    }

    /// Whether a kind is not seen in this way, in all namespaces.
    pub fn is_unseen(&self, how: Unseen, cluster: &ClusterId, kind: &Kind) -> bool {
        let mut missing = self.unseen(how, cluster, kind);
        missing.any(|one| one.namespace.is_empty())
    }

    /// All that says that a kind is not seen in this way, wherever that is.
    pub fn unseen<'a>(
        &'a self,
        how: Unseen,
        cluster: &'a ClusterId,
        kind: &'a Kind,
    ) -> impl Iterator<Item = &'a Missing> {
        // The first of all that can be missing of a kind.
        let first = Missing::unseen(Unseen::Absent, cluster, kind);
        let of_kind = self.missing.range(first..);
        of_kind
            .take_while(move |one| one.kind == *kind && one.cluster == *cluster)
            .filter(move |one| one.right == Right::See(how))
    }

    /// Whether objects of a kind cannot be known in this namespace, for whatever reason.
    pub fn is_hidden_in(&self, cluster: &ClusterId, kind: &Kind, namespace: &str) -> bool {
        self.is_absent_in(cluster, kind, namespace) || self.is_blind_to(cluster, kind)
    }

    /// Whether there may be objects of a kind that are not known: nothing that they could forbid may go on.
    pub fn is_blind_to(&self, cluster: &ClusterId, kind: &Kind) -> bool {
        self.is_unseen(Unseen::Forbidden, cluster, kind)
            || self.is_unseen(Unseen::OutOfSync, cluster, kind)
    }
}
