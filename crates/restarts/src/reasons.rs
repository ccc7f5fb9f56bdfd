//! Every word that programs can match on: why a restart waits, what a condition says, what an event is.

/// Why a workload that is due, or would be, is not restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Another capability disrupts the workload now.
    ClaimedByOther,
    /// The workload is being deleted.
    Deleting,
    /// A pod disruption budget allows no disruption, or cannot be seen.
    DisruptionBudget,
    /// The policy only reports.
    DryRun,
    /// No restart begins today.
    ExcludedDate,
    /// The workload's turn within the jitter has not come.
    Jitter,
    /// As many workloads roll as may.
    MaxConcurrent,
    /// The policy only reports, and the workload was never restarted: its time would begin with the policy's.
    NeverRestarted,
    /// Pods are replaced only when somebody deletes them: a restart would do nothing.
    OnDeleteStrategy,
    /// The workload's annotation says that it is not to be restarted.
    OptedOut,
    /// No window is open.
    OutsideWindow,
    /// A partition holds pods back: a restart would not reach them.
    Partition,
    /// The workload is paused.
    Paused,
    /// The policy cannot be followed: what it matches is left alone until it can.
    PolicyInvalid,
    /// The API refused the last attempt.
    RefusedByApi,
    /// The last rollout did not finish in its time; a restart would hide that.
    RolloutFailed,
    /// A rollout goes on.
    RolloutInProgress,
    /// The workload's annotation asks for a later restart.
    Snoozed,
    /// Somebody takes our stamp away; the pod template's one is used instead.
    StampRemoved,
    /// The policy is suspended.
    Suspended,
    /// Not all replicas are available; a restart would take down more.
    Unavailable,
    /// There is nothing to restart.
    ZeroReplicas,
}

impl Reason {
    /// All of them, by name.
    pub const ALL: [Self; 22] = [
        Self::ClaimedByOther,
        Self::Deleting,
        Self::DisruptionBudget,
        Self::DryRun,
        Self::ExcludedDate,
        Self::Jitter,
        Self::MaxConcurrent,
        Self::NeverRestarted,
        Self::OnDeleteStrategy,
        Self::OptedOut,
        Self::OutsideWindow,
        Self::Partition,
        Self::Paused,
        Self::PolicyInvalid,
        Self::RefusedByApi,
        Self::RolloutFailed,
        Self::RolloutInProgress,
        Self::Snoozed,
        Self::StampRemoved,
        Self::Suspended,
        Self::Unavailable,
        Self::ZeroReplicas,
    ];

    /// As statuses, metrics and events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaimedByOther => "ClaimedByOther",
            Self::Deleting => "Deleting",
            Self::DisruptionBudget => "DisruptionBudget",
            Self::DryRun => "DryRun",
            Self::ExcludedDate => "ExcludedDate",
            Self::Jitter => "Jitter",
            Self::MaxConcurrent => "MaxConcurrent",
            Self::NeverRestarted => "NeverRestarted",
            Self::OnDeleteStrategy => "OnDeleteStrategy",
            Self::OptedOut => "OptedOut",
            Self::OutsideWindow => "OutsideWindow",
            Self::Partition => "Partition",
            Self::Paused => "Paused",
            Self::PolicyInvalid => "PolicyInvalid",
            Self::RefusedByApi => "RefusedByApi",
            Self::RolloutFailed => "RolloutFailed",
            Self::RolloutInProgress => "RolloutInProgress",
            Self::Snoozed => "Snoozed",
            Self::StampRemoved => "StampRemoved",
            Self::Suspended => "Suspended",
            Self::Unavailable => "Unavailable",
            Self::ZeroReplicas => "ZeroReplicas",
        }
    }

    /// Whether it holds back the policy as a whole: such workloads are told of together.
    pub const fn is_of_the_policy(self) -> bool {
        matches!(
            self,
            Self::DryRun
                | Self::ExcludedDate
                | Self::MaxConcurrent
                | Self::NeverRestarted
                | Self::OutsideWindow
                | Self::PolicyInvalid
                | Self::Suspended
        )
    }

    /// Whether the workload is left alone rather than late: it is counted as skipped, not as pending.
    pub const fn is_a_skip(self) -> bool {
        matches!(
            self,
            Self::Deleting
                | Self::OnDeleteStrategy
                | Self::OptedOut
                | Self::Partition
                | Self::Paused
                | Self::PolicyInvalid
                | Self::ZeroReplicas
        )
    }

    /// Whether the workload is not due: it is only told of.
    pub const fn is_a_remark(self) -> bool {
        matches!(self, Self::NeverRestarted | Self::StampRemoved)
    }

    /// Whether a person should look.
    pub const fn is_a_failure(self) -> bool {
        matches!(self, Self::RefusedByApi | Self::RolloutFailed)
    }

    /// Whether it is what was asked for, so that an event about it would only be noise.
    pub const fn is_quiet(self) -> bool {
        matches!(
            self,
            Self::Deleting
                | Self::DryRun
                | Self::Jitter
                | Self::MaxConcurrent
                | Self::NeverRestarted
                | Self::OptedOut
                | Self::PolicyInvalid
                | Self::StampRemoved
                | Self::Suspended
                | Self::ZeroReplicas
        )
    }
}

/// What the condition `Ready`, `Accepted`, `Progressing` or another says.
pub mod state {
    /// The spec can be followed.
    pub const ACCEPTED: &str = "Accepted";
    /// The spec cannot be followed.
    pub const INVALID: &str = "Invalid";
    /// No interval, or zero: the default one is used.
    pub const INTERVAL_DEFAULTED: &str = "IntervalDefaulted";
    /// The interval is below the floor: the floor is used.
    pub const INTERVAL_RAISED: &str = "IntervalRaised";
    /// The namespaces named are out of this Flipper's reach.
    pub const OUT_OF_SCOPE: &str = "OutOfScope";
    /// Many workloads are still to be stamped for the first time.
    pub const ADOPTING: &str = "Adopting";
    /// Nothing is wrong.
    pub const WATCHING: &str = "Watching";
    /// The policy is suspended.
    pub const SUSPENDED: &str = "Suspended";
    /// The API refuses restarts.
    pub const REFUSED: &str = "RestartsRefused";
    /// A rollout did not finish in its time.
    pub const ROLLOUT_FAILED: &str = "RolloutFailed";
    /// Workloads are rolling.
    pub const RESTARTING: &str = "Restarting";
    /// Workloads are due and wait.
    pub const WAITING: &str = "Waiting";
    /// Nothing is due.
    pub const IDLE: &str = "Idle";
    /// Another policy decides about some of the workloads.
    pub const OVERRULED: &str = "Overruled";
}

/// What events are called.
pub mod news {
    /// A workload is restarted.
    pub const RESTART_TRIGGERED: &str = "RestartTriggered";
    /// A workload is due and waits.
    pub const RESTART_DEFERRED: &str = "RestartDeferred";
    /// A stamp that was no time has been replaced.
    pub const STAMP_REPAIRED: &str = "StampRepaired";
    /// An annotation cannot be read, and is not followed.
    pub const ANNOTATION_IGNORED: &str = "AnnotationIgnored";
    /// A spec cannot be followed.
    pub const INVALID: &str = "Invalid";
    /// No interval, or zero.
    pub const INTERVAL_DEFAULTED: &str = "IntervalDefaulted";
    /// An interval below the floor.
    pub const INTERVAL_RAISED: &str = "IntervalRaised";
    /// Namespaces that a Flipper names and does not reach.
    pub const OUT_OF_SCOPE: &str = "OutOfScope";
    /// Another policy decides about some of the workloads.
    pub const OVERLAP: &str = "Overlap";
    /// What would have been restarted.
    pub const DRY_RUN: &str = "DryRun";
    /// What a policy matches.
    pub const MATCHED: &str = "Matched";
    /// The default criteria begin to act.
    pub const DEFAULT_CRITERIA_BEGIN: &str = "DefaultCriteriaActive";
    /// The default criteria cease to act.
    pub const DEFAULT_CRITERIA_CEASE: &str = "DefaultCriteriaInactive";
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn every_reason_has_its_own_name_and_place() {
        let names: Vec<&str> = Reason::ALL.iter().map(|r| r.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        assert!(Reason::ALL.is_sorted());
    }
}
