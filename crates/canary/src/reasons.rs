//! Every word that programs can match on: why a run waits, and what events are called.

use slipway_kernel::capability::Severity;
use slipway_kernel::reasons;

/// What is to be known of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// It is waited for in every run.
    Expected,
    /// Nothing moves on before a person changes something.
    Stalled,
}

reasons! {
    /// Why nothing, or not more, is done.
    pub enum Reason: Mark {
        Asking [Expected] "Somebody is asked, and has not answered yet.",
        AutoscalerNotFound [Stalled] "The autoscaler that the Canary names is not there.",
        ClaimedByOther [] "Another capability disrupts the workload now.",
        ConfigNotFound [Stalled] "A ConfigMap or Secret that the workload needs is not there.",
        DefinitionTooOld [Stalled] "The definition of Canaries does not keep what a run has to remember.",
        FlaggerRuns [Stalled] "Another program acts on Canaries.",
        InvalidSpec [Stalled] "The Canary cannot be followed as it is written.",
        MetricNotFound [Stalled] "A MetricTemplate or AlertProvider that the Canary names is not there, or may not be used.",
        NoData [] "A measure has no values, and the run stays where it is until it has.",
        NotOurs [Stalled] "An object of a name that we need belongs to somebody else.",
        Paused [] "A person has paused the Canary.",
        PromotionGateClosed [] "A webhook does not let the version take over.",
        RefusedByApi [] "The API refused the last attempt.",
        RolloutGateClosed [] "A webhook does not let the run begin.",
        RouteNotFound [Stalled] "The object that routes traffic is not there, or not as it has to be.",
        RoutingPending [Expected] "The data plane has not taken the weights yet.",
        SourceNotReady [] "The serving version is not ready.",
        StepPause [Expected] "The version stays at this step for a while.",
        Suspended [] "Somebody has suspended the Canary.",
        TargetBusy [Stalled] "Another Canary is about the same workload, or the same Service.",
        TargetNotFound [Stalled] "The workload is not there.",
        TargetNotReady [Expected] "The new version is not ready.",
        TemplateLost [Stalled] "The template that the serving version had is not known any more.",
        TrafficGateClosed [] "A webhook does not let the weight be raised.",
        Unsupported [Stalled] "The Canary asks for something that is not built, which is named.",
    }
}

impl Reason {
    /// How bad it is. What is waited for in every run is no news.
    pub fn severity(self) -> Severity {
        if self.is(Mark::Expected) {
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

/// The reason of every event, as in the original.
pub const SYNCED: &str = "Synced";

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
