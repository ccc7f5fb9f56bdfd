//! How a request to evict a pod ended, as `rollout_operator_zpdb_eviction_requests_total` counts it.

use slipway_kernel::admission::Count;

/// How a request to evict a pod ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is no eviction of a pod.
    InvalidRequest,
    /// There is no such pod.
    PodNotFound,
    /// The pod does no work, so nothing is lost.
    PodNotReady,
    /// There is more than one budget, or one that makes no sense.
    ConfigNotFound,
    /// There may be budgets that we have no right to see.
    BudgetsHidden,
    /// It is not known yet which budgets, zones and pods there are.
    NotKnownYet,
    /// No budget is about the pod.
    PodNotInScope,
    /// The pod is not of a `StatefulSet`.
    SetNotFound,
    /// The budget allows none.
    MaxUnavailableZero,
    /// There are fewer than two zones.
    TooFewSets,
    /// The pod's name has no partition.
    PartitionNotIdentified,
    /// It could not be recorded that the pod may go.
    StatusNotDetermined,
    /// Others are away already.
    Denied,
    /// It may go.
    Allowed,
}

impl Outcome {
    /// The labels `reason` and `status`.
    pub fn pair(self) -> (&'static str, u16) {
        match self {
            Self::InvalidRequest => ("invalid-request", 400),
            Self::PodNotFound => ("pod-not-found", 400),
            Self::PodNotReady => ("pod-not-ready", 200),
            Self::ConfigNotFound => ("cfg-not-found", 400),
            Self::BudgetsHidden => ("cfg-not-found", 500),
            Self::NotKnownYet => ("cfg-not-found", 429),
            Self::PodNotInScope => ("pod-not-in-scope", 200),
            Self::SetNotFound => ("sts-no-found", 500),
            Self::MaxUnavailableZero => ("max-unavailable-0", 403),
            Self::TooFewSets => ("min-sts-not-found", 400),
            Self::PartitionNotIdentified => ("partition-not-identified", 400),
            Self::StatusNotDetermined => ("sts-pod-status-not-determined", 500),
            Self::Denied => ("denied", 429),
            Self::Allowed => ("allowed", 200),
        }
    }

    /// One more of these.
    pub fn count(self) -> Count {
        let (reason, status) = self.pair();
        Count {
            name: "rollout_operator_zpdb_eviction_requests_total",
            help: "Evictions by how they were judged",
            labels: vec![
                ("reason", reason.to_owned()),
                ("status", status.to_string()),
            ],
        }
    }
}
