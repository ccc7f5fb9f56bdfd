//! Every word that programs can match on: why a restart waits, what a condition says, what an event is.

use slipway_kernel::reasons;

/// What is to be known of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// See [`Reason::is_of_the_policy`].
    Policy,
    /// See [`Reason::is_a_skip`].
    Skip,
    /// See [`Reason::is_a_remark`].
    Remark,
    /// See [`Reason::is_a_failure`].
    Failure,
    /// See [`Reason::is_quiet`].
    Quiet,
}

reasons! {
    /// Why a workload that is due, or would be, is not restarted.
    pub enum Reason: Mark {
        ClaimedByOther [] "Another capability disrupts the workload now.",
        Deleting [Skip, Quiet] "The workload is being deleted.",
        DisruptionBudget [] "A pod disruption budget allows no disruption, or cannot be seen.",
        DryRun [Policy, Quiet] "The policy only reports.",
        ExcludedDate [Policy] "No restart begins today.",
        Jitter [Quiet] "The workload's turn within the jitter has not come.",
        MaxConcurrent [Policy, Quiet] "As many workloads roll as may.",
        NeverRestarted [Policy, Remark, Quiet] "The policy only reports, and the workload was never restarted: its time would begin with the policy's.",
        OnDeleteStrategy [Skip] "Pods are replaced only when somebody deletes them: a restart would do nothing.",
        OptedOut [Skip, Quiet] "The workload's annotation says that it is not to be restarted.",
        OutsideWindow [Policy] "No window is open.",
        Partition [Skip] "A partition holds pods back: a restart would not reach them.",
        Paused [Skip] "The workload is paused.",
        PolicyInvalid [Policy, Skip, Quiet] "The policy cannot be followed: what it matches is left alone until it can.",
        RefusedByApi [Failure] "The API refused the last attempt.",
        RolloutFailed [Failure] "The last rollout did not finish in its time; a restart would hide that.",
        RolloutInProgress [] "A rollout goes on.",
        Snoozed [] "The workload's annotation asks for a later restart.",
        StampInFuture [Remark, Failure] "The workload's stamp lies in the future: a clock was wrong, or somebody wrote it.",
        StampRemoved [Remark, Quiet] "Somebody takes our stamp away; the pod template's one is used instead.",
        Suspended [Policy, Quiet] "The policy is suspended.",
        Unavailable [] "Not all replicas are available; a restart would take down more.",
        ZeroReplicas [Skip, Quiet] "There is nothing to restart.",
    }
}

impl Reason {
    /// Whether it holds back the policy as a whole: such workloads are told of together.
    pub fn is_of_the_policy(self) -> bool {
        self.is(Mark::Policy)
    }

    /// Whether the workload is left alone rather than late: it is counted as skipped, not as pending.
    pub fn is_a_skip(self) -> bool {
        self.is(Mark::Skip)
    }

    /// Whether the workload is not due: it is only told of.
    pub fn is_a_remark(self) -> bool {
        self.is(Mark::Remark)
    }

    /// Whether a person should look.
    pub fn is_a_failure(self) -> bool {
        self.is(Mark::Failure)
    }

    /// Whether it is what was asked for, so that an event about it would only be noise.
    pub fn is_quiet(self) -> bool {
        self.is(Mark::Quiet)
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
    /// A stamp is written that should have been there.
    pub const STAMPED_AGAIN: &str = "StampedAgain";
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
