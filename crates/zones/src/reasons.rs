//! Every word that programs can match on: why a rollout waits, what a condition says, what an event is.

use slipway_kernel::capability::Gravity;

/// Why nothing, or not more, is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// There may be zone-aware budgets that we have no right to see.
    BudgetsHidden,
    /// Another capability disrupts the zone now.
    ClaimedByOther,
    /// Prepared pods are not old enough to be scaled away.
    DelayNotReached,
    /// A `StatefulSet` of the group is being deleted.
    Deleting,
    /// A zone-aware budget refuses.
    DisruptionBudget,
    /// An annotation or label cannot be read.
    InvalidAnnotation,
    /// The `StatefulSet` whose replicas are to be followed is not in the group.
    LeaderNotFound,
    /// The leader is not ready, and its follower waits for that.
    LeaderNotReady,
    /// As many pods are unavailable as may be.
    MaxUnavailable,
    /// Another zone was scaled down too short a time ago.
    MinTimeBetweenDownscales,
    /// Pods without an owner have the names of pods of a zone.
    NotAdopted,
    /// Updated pods of the zone are not ready yet.
    NotReady,
    /// The zone is paused.
    Paused,
    /// A pod could not be prepared for its downscale.
    PrepareFailed,
    /// Pods are asked to prepare.
    Preparing,
    /// The scale of a mirrored resource is not known.
    ReferenceUnknown,
    /// The API refused the last attempt.
    RefusedByApi,
    /// The status of a `StatefulSet` names no revision.
    RevisionUnknown,
    /// The status of a `StatefulSet` is older than its spec.
    StatusLags,
    /// A `StatefulSet` of the group is not updated by deletion of pods.
    WrongStrategy,
    /// Pods of a zone are not ready, so that no other zone may be touched.
    ZonesNotReady,
}

impl Reason {
    /// All of them, by name.
    pub const ALL: [Self; 21] = [
        Self::BudgetsHidden,
        Self::ClaimedByOther,
        Self::DelayNotReached,
        Self::Deleting,
        Self::DisruptionBudget,
        Self::InvalidAnnotation,
        Self::LeaderNotFound,
        Self::LeaderNotReady,
        Self::MaxUnavailable,
        Self::MinTimeBetweenDownscales,
        Self::NotAdopted,
        Self::NotReady,
        Self::Paused,
        Self::PrepareFailed,
        Self::Preparing,
        Self::ReferenceUnknown,
        Self::RefusedByApi,
        Self::RevisionUnknown,
        Self::StatusLags,
        Self::WrongStrategy,
        Self::ZonesNotReady,
    ];

    /// As statuses, metrics and events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BudgetsHidden => "BudgetsHidden",
            Self::ClaimedByOther => "ClaimedByOther",
            Self::DelayNotReached => "DelayNotReached",
            Self::Deleting => "Deleting",
            Self::DisruptionBudget => "DisruptionBudget",
            Self::InvalidAnnotation => "InvalidAnnotation",
            Self::LeaderNotFound => "LeaderNotFound",
            Self::LeaderNotReady => "LeaderNotReady",
            Self::MaxUnavailable => "MaxUnavailable",
            Self::MinTimeBetweenDownscales => "MinTimeBetweenDownscales",
            Self::NotAdopted => "NotAdopted",
            Self::NotReady => "NotReady",
            Self::Paused => "Paused",
            Self::PrepareFailed => "PrepareFailed",
            Self::Preparing => "Preparing",
            Self::ReferenceUnknown => "ReferenceUnknown",
            Self::RefusedByApi => "RefusedByApi",
            Self::RevisionUnknown => "RevisionUnknown",
            Self::StatusLags => "StatusLags",
            Self::WrongStrategy => "WrongStrategy",
            Self::ZonesNotReady => "ZonesNotReady",
        }
    }

    /// The reason of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// Whether the pass counts as failed, as in the original: the metrics of reconciles tell of it.
    pub const fn is_a_failure(self) -> bool {
        matches!(self, Self::RevisionUnknown | Self::WrongStrategy)
    }

    /// How bad it is. What is waited for in every rollout is no news.
    pub const fn gravity(self) -> Gravity {
        match self {
            _ if self.is_a_failure() => Gravity::Failure,
            Self::MaxUnavailable
            | Self::NotReady
            | Self::Preparing
            | Self::StatusLags
            | Self::DelayNotReached
            | Self::Deleting => Gravity::Usual,
            _ => Gravity::Trouble,
        }
    }

    /// Whether nothing moves on before a person changes something.
    pub const fn is_stalled(self) -> bool {
        matches!(
            self,
            Self::BudgetsHidden
                | Self::InvalidAnnotation
                | Self::LeaderNotFound
                | Self::NotAdopted
                | Self::WrongStrategy
        )
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

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn every_reason_has_its_own_name_and_place() {
        let names: Vec<&str> = Reason::ALL.iter().map(|r| r.as_str()).collect();
        assert!(names.is_sorted() && Reason::ALL.is_sorted());
        for reason in Reason::ALL {
            assert_eq!(Reason::of(reason.as_str()), Some(reason));
        }
    }
}
