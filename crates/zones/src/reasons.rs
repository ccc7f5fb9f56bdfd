//! Every word that programs can match on: why a rollout waits, what a condition says, what an event is.

use jiff::Timestamp;
use slipway_kernel::capability::Severity;
use slipway_kernel::{Blocker, ObjectRef, reasons};

/// What is to be known of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// See [`Reason::is_a_failure`].
    Failure,
    /// It is waited for in every rollout.
    Expected,
    /// See [`Reason::is_stalled`].
    Stalled,
}

reasons! {
    /// Why nothing, or not more, is done.
    pub enum Reason: Mark {
        BudgetsHidden [Stalled] "There may be zone-aware budgets that we have no right to see.",
        ClaimedByOther [] "Another capability disrupts the zone now.",
        DelayNotReached [Expected] "Prepared pods are not old enough to be scaled away.",
        Deleting [Expected] "A `StatefulSet` of the group is being deleted.",
        DisruptionBudget [] "A zone-aware budget refuses.",
        InvalidAnnotation [Stalled] "An annotation or label cannot be read.",
        LeaderNotFound [Stalled] "The `StatefulSet` whose replicas are to be followed is not in the group.",
        LeaderNotReady [] "The leader is not ready, and its follower waits for that.",
        MaxUnavailable [Expected] "As many pods are unavailable as may be.",
        MinTimeBetweenDownscales [] "Another zone was scaled down too short a time ago.",
        NotAdopted [Stalled] "Pods without an owner have the names of pods of a zone.",
        NotReady [Expected] "Updated pods of the zone are not ready yet.",
        NotesHidden [Stalled] "We have no right to see the `ConfigMap`s in which replicas note for one another which pods go.",
        Paused [] "The zone is paused.",
        PrepareFailed [] "A pod could not be prepared for its downscale.",
        Preparing [Expected] "Pods are asked to prepare.",
        ReferenceUnknown [] "The scale of a mirrored resource is not known.",
        RefusedByApi [] "The API refused the last attempt.",
        RevisionUnknown [Failure] "The status of a `StatefulSet` names no revision.",
        StatusLags [Expected] "The status of a `StatefulSet` is older than its spec.",
        WrongStrategy [Failure, Stalled] "A `StatefulSet` of the group is not updated by deletion of pods.",
        ZonesNotReady [] "Pods of a zone are not ready, so that no other zone may be touched.",
    }
}

impl Reason {
    /// As a reason why nothing, or not more, is done.
    pub fn blocker(
        self,
        object: ObjectRef,
        message: String,
        unblock: &str,
        now: Timestamp,
    ) -> Blocker {
        Blocker {
            reason: self.as_str(),
            message,
            object,
            since: now,
            until: None,
            unblock: unblock.to_owned(),
        }
    }

    /// Whether the pass counts as failed, as in the original: the metrics of reconciles tell of it.
    pub fn is_a_failure(self) -> bool {
        self.is(Mark::Failure)
    }

    /// How bad it is. What is waited for in every rollout is no news.
    pub fn severity(self) -> Severity {
        if self.is_a_failure() {
            Severity::Error
        } else if self.is(Mark::Expected) {
            Severity::Expected
        } else {
            Severity::Warning
        }
    }

    /// Whether nothing moves on before a person changes something.
    pub fn is_stalled(self) -> bool {
        self.is(Mark::Stalled)
    }
}

/// What conditions say.
pub mod state {
    /// All pods are of their zone's revision, and ready.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// Pods are being replaced.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// Something is waited for.
    pub const WAITING: &str = "Waiting";
    /// Nothing is done.
    pub const IDLE: &str = "Idle";
}

/// What events are called.
pub mod news {
    /// A pod is deleted, so that it comes back with the new revision.
    pub const POD_DELETED: &str = "PodDeleted";
    /// A zone has been scaled.
    pub const SCALED: &str = "Scaled";
    /// The rollout of a group begins.
    pub const STARTED: &str = "RolloutStarted";
    /// The rollout of a group waits.
    pub const BLOCKED: &str = "RolloutBlocked";
    /// The rollout of a group is done.
    pub const FINISHED: &str = "RolloutFinished";
    /// An annotation cannot be read, and is not followed.
    pub const ANNOTATION_IGNORED: &str = "AnnotationIgnored";
    /// The pod template has no label `name`.
    pub const NAME_LABEL_MISSING: &str = "NameLabelMissing";
}
