//! What goes wrong between the operator and the world outside of the API.

use super::{Rates, RequestFault};

/// What happens to one call of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallFault {
    /// The process dies before the call leaves.
    CrashBefore,
    /// The call arrives; the process dies before the answer does.
    CrashAfter,
    /// The call does not arrive.
    Unreachable,
    /// The call arrives, and the connection breaks.
    Lost,
    /// The call arrives, and its answer takes longer than anybody waits.
    Late,
    /// The call arrives twice.
    Doubled,
    /// Somebody in between has too much to do.
    Refused,
    /// The call arrives, and its answer is garbled.
    Malformed,
    /// The call arrives, and its answer has no end.
    Endless,
}

/// Faults that every call is tried with.
pub const CALL_FAULTS: [CallFault; 9] = [
    CallFault::CrashBefore,
    CallFault::CrashAfter,
    CallFault::Unreachable,
    CallFault::Lost,
    CallFault::Late,
    CallFault::Doubled,
    CallFault::Refused,
    CallFault::Malformed,
    CallFault::Endless,
];

impl CallFault {
    /// What it is called in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Late => "late",
            Self::Doubled => "doubled",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::Endless => "endless",
        }
    }

    /// What a call meets where a request to the API would meet this.
    fn like(fault: RequestFault) -> Self {
        match fault {
            RequestFault::CrashBefore => Self::CrashBefore,
            RequestFault::CrashAfter | RequestFault::CrashLate => Self::CrashAfter,
            RequestFault::Lost => Self::Lost,
            RequestFault::Unreachable | RequestFault::Standstill => Self::Unreachable,
            RequestFault::Conflict => Self::Doubled,
            RequestFault::Throttled | RequestFault::ThrottledForLong | RequestFault::Forbidden => {
                Self::Refused
            }
            RequestFault::Error => Self::Malformed,
            RequestFault::Timeout => Self::Endless,
            RequestFault::Slow => Self::Late,
        }
    }
}

impl Rates {
    /// As many calls meet a fault as requests do.
    pub(super) fn calls(&self) -> Vec<(u16, CallFault)> {
        let all = self.requests().into_iter();
        all.map(|(rate, fault)| (rate, CallFault::like(fault)))
            .collect()
    }
}
