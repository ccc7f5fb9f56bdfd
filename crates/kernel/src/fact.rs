//! What is known besides the API's objects: answers to questions, and how our own writes fared.
//!
//! Facts are volatile: a new process starts without. What must survive is in an object's status.

mod missing;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::purpose::Purpose;

use crate::identity::{ClusterId, Kind, ObjectRef};
use crate::instant::later;
use crate::member::{Discovery, MemberState};
use crate::store::Stores;

pub use missing::{Missing, Right, Unseen};
pub use reading::{Collection, Reading};

/// Names a question, the same for every attempt to deliver it: the peer sees it as idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuestionId {
    /// Whose.
    pub controller: &'static str,
    /// The uid of the object that it is asked for.
    pub uid: String,
    /// What for.
    pub purpose: Purpose,
    /// Which one of several.
    pub attempt: u32,
    /// For when.
    pub due: Timestamp,
}

/// Something to be asked outside of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its name.
    pub id: QuestionId,
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Whom.
    pub url: String,
    /// What is sent along.
    pub body: Value,
    /// How long to pause before: whoever asks again leaves time for things to get better.
    pub pause: Duration,
    /// How long to wait for the answer.
    pub timeout: Duration,
    /// From when on it must not be asked any more, because somebody else may have asked otherwise.
    pub until: Option<Timestamp>,
}

impl Question {
    /// Whether it is too late to ask: the answer might come when it must not be asked any more.
    pub fn is_too_late(&self, now: Timestamp) -> bool {
        let answered = later(now, self.pause.saturating_add(self.timeout));
        self.until
            .is_some_and(|until| answered.is_none_or(|answered| until < answered))
    }
}

/// How a question ended. A failure is an answer too, never an absence.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The peer answered with this code and body.
    Said {
        /// The HTTP status code.
        code: u16,
        /// The body.
        body: String,
    },
    /// No answer within the time.
    Timeout,
    /// The peer could not be reached.
    Refused(String),
    /// The answer could not be understood.
    Malformed(String),
    /// The API refused it, and says itself that we have no right to it. A refusal that has another cause (a quota, a
    /// policy, a namespace that is going) has the same code and is [`Answer::Said`].
    NoRight(String),
}

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
    /// Refused writes, by object.
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// Answers, by question.
    pub answers: BTreeMap<QuestionId, (Timestamp, Answer)>,
    /// What is off because of a missing right or definition.
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
