//! Every word that programs can match on: why a rollout waits, how a cluster is, what a condition says, what an event is.

use slipway_kernel::capability::Severity;
use slipway_kernel::reasons;

/// What is to be known of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It is waited for in every rollout.
    Expected,
    /// See [`Reason::is_aside`].
    Aside,
    /// See [`Reason::is_stalled`].
    Stalled,
}

reasons! {
    /// Why nothing, or not more, is done.
    pub enum Reason: Mark {
        AgentMissing [Aside] "The cluster has no definition of Assemblages: its agent is not installed yet.",
        AgentSilent [] "The agent of the cluster does not look at what it is to have: it may not run.",
        AssemblageFull [Aside] "The cluster has as many syncs as fit, or more.",
        BindingForbidden [Aside] "A binding refers to a kind that we have no right to read.",
        BindingUnread [Expected, Aside] "What a binding refers to has not been read yet.",
        BindingUnresolved [Aside] "A binding has no value: the object or the field is not there.",
        CanaryFailed [] "The first cluster is not ready with the change, so no other one gets it.",
        CanaryPending [Expected] "The first cluster is not ready with the change yet.",
        CircularBinding [Aside] "Bindings mention each other in a circle.",
        ClusterNotReady [Expected, Aside] "The control plane of the cluster has not been there yet.",
        ClusterUnread [Expected] "A cluster has not been looked at yet since the operator started.",
        ClusterUnready [Expected, Aside] "A cluster is not ready with what it has yet.",
        ClustersHidden [] "We have no right to see the clusters, so it is not known which there are.",
        DefinitionTooOld [] "The definition of Rollouts does not keep what has to be remembered.",
        FluxMissing [Aside] "Flux is not installed where the configuration is to be applied.",
        InvalidBinding [Aside] "A binding cannot be followed.",
        InvalidRollout [Stalled] "The Rollout cannot be followed.",
        InvalidSubstitute [Aside] "What is to be substituted cannot be followed.",
        MassUnassignment [Stalled] "More clusters than usual would lose the configuration at once: a person has to say so.",
        MaxUnreadyClusters [Expected] "As many clusters are unready as may be.",
        OtherHub [Aside] "The cluster belongs to another control plane: nothing is written there before a person says so.",
        OwnedByOther [Aside] "Somebody else has an assignment of this name in the cluster.",
        Paused [] "The Rollout is paused.",
        RefusedByApi [Aside] "The API refused the last attempt.",
        RevisionGone [Aside] "The module of a revision is not there any more.",
        SourceNotReady [Expected] "The new source has not been fetched yet; what was applied stays.",
        Suspended [Aside] "The Kustomization is suspended, so that Flux applies nothing.",
        SyncUnreadable [Aside] "A sync cannot be read, maybe because a later version wrote it; what was applied stays.",
        TooManyUnreachable [] "More clusters are unready or unreachable than may be left for later.",
        TwoNames [Aside] "The cluster has another name already, under which it gets what it gets.",
        UnknownName [Aside] "A text mentions a name that is not bound.",
        Unreachable [Aside] "The cluster cannot be reached.",
        UnreadyBefore [Aside] "The cluster was unready before the change, which is left for later there.",
    }
}

impl Reason {
    /// How bad it is. What is waited for in every rollout is no news.
    pub fn severity(self) -> Severity {
        match (self.is_stalled(), self.is(Mark::Expected)) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Expected,
            (false, false) => Severity::Warning,
        }
    }

    /// Whether it is about one cluster, and the others go on.
    pub fn is_aside(self) -> bool {
        self.is(Mark::Aside)
    }

    /// Whether nothing moves on before a person changes something.
    pub fn is_stalled(self) -> bool {
        self.is(Mark::Stalled)
    }
}

/// How a cluster is.
pub mod state {
    /// It is to get the change.
    pub const PENDING: &str = "Pending";
    /// It has the change, and is not ready with it yet.
    pub const UPDATING: &str = "Updating";
    /// It is ready with the change.
    pub const READY: &str = "Ready";
    /// The change failed there.
    pub const FAILED: &str = "Failed";
    /// It is not ready with what it had before.
    pub const UNREADY: &str = "Unready";
    /// The change is left for later there.
    pub const SKIPPED: &str = "Skipped";
    /// It cannot get the change.
    pub const BLOCKED: &str = "Blocked";
    /// It is to lose the configuration.
    pub const UNASSIGNING: &str = "Unassigning";
}

/// What a condition of a Rollout says.
pub mod condition {
    /// All clusters have the target revision, and are ready.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// A change is brought to the clusters.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// A change waits for something.
    pub const WAITING: &str = "Waiting";
    /// The Rollout is being deleted.
    pub const UNASSIGNING: &str = "Unassigning";
    /// Of a sync: its assemblage is being deleted.
    pub const DELETING: &str = "Deleting";
    /// Of an assemblage: some syncs are on their way.
    pub const UPDATING: &str = "Updating";
    /// Of an assemblage: some syncs failed, or cannot be expanded.
    pub const FAILED: &str = "Failed";
    /// Of a module without a selector: others may assign it.
    pub const ASSIGNABLE: &str = "Assignable";
}

/// How a change ended.
pub mod outcome {
    /// All clusters that could have it are ready with it.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Nobody was left who could have it.
    pub const ABANDONED: &str = "Abandoned";
    /// Another change took its place.
    pub const SUPERSEDED: &str = "Superseded";
}

/// What events are called.
pub mod news {
    /// A change begins.
    pub const STARTED: &str = "RolloutStarted";
    /// A change is done.
    pub const FINISHED: &str = "RolloutFinished";
    /// Another change takes the place of one.
    pub const SUPERSEDED: &str = "RolloutSuperseded";
    /// A cluster has been assigned a revision.
    pub const ASSIGNED: &str = "Assigned";
    /// A cluster has lost the configuration.
    pub const UNASSIGNED: &str = "Unassigned";
}
