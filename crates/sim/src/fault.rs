//! What goes wrong between the operator and the API, and where: named, so that a run can be told in a line.

mod call;

pub use call::{CALL_FAULTS, CallFault};

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use slipway_apiserver::environment::{Entropy, SeededEntropy};

/// How long a request that is slow takes: longer than anybody waits.
pub const SLOW: Duration = Duration::from_mins(2);
/// How late a late watch event is.
pub const LATE: Duration = Duration::from_secs(20);
/// How long after its sender's death a request still arrives: within the time that a new leader waits.
pub const IN_FLIGHT: Duration = Duration::from_secs(5);
/// How long a replica stands still: longer than its lease.
pub const STANDSTILL: Duration = Duration::from_secs(45);

/// What happens to one request of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestFault {
    /// The process dies before the request leaves.
    CrashBefore,
    /// The request is carried out; the process dies before the answer arrives.
    CrashAfter,
    /// The process dies with the request on its way; it arrives later.
    CrashLate,
    /// The request is carried out, and the connection breaks.
    Lost,
    /// The request does not arrive.
    Unreachable,
    /// Somebody else was faster.
    Conflict,
    /// Too many requests; later, please.
    Throttled,
    /// The same, and later is longer than anybody lives.
    ThrottledForLong,
    /// The server has a problem.
    Error,
    /// The request is carried out, and a proxy answers that it timed out.
    Timeout,
    /// The right is missing, once.
    Forbidden,
    /// It takes longer than anybody waits.
    Slow,
    /// The process stands still before the request leaves, longer than its lease.
    Standstill,
}

/// What happens to one event of a watch of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventFault {
    /// It never comes.
    Drop,
    /// It comes twice.
    Duplicate,
    /// It comes late, and so does all that follows on this watch.
    Delay,
    /// The stream ends before it.
    Close,
    /// The stream ends with 410 instead of it.
    Gone,
}

/// Faults that every request is tried with.
pub const REQUEST_FAULTS: [RequestFault; 12] = [
    RequestFault::CrashBefore,
    RequestFault::CrashAfter,
    RequestFault::CrashLate,
    RequestFault::Lost,
    RequestFault::Unreachable,
    RequestFault::Conflict,
    RequestFault::Throttled,
    RequestFault::ThrottledForLong,
    RequestFault::Error,
    RequestFault::Timeout,
    RequestFault::Forbidden,
    RequestFault::Slow,
];

/// Faults that every event is tried with.
pub const EVENT_FAULTS: [EventFault; 5] = [
    EventFault::Drop,
    EventFault::Duplicate,
    EventFault::Delay,
    EventFault::Close,
    EventFault::Gone,
];

impl RequestFault {
    /// What it is called in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashAfter => "crash-after",
            Self::CrashLate => "crash-late",
            Self::Lost => "lost",
            Self::Unreachable => "unreachable",
            Self::Conflict => "conflict",
            Self::Throttled => "throttled",
            Self::ThrottledForLong => "throttled-for-long",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Forbidden => "forbidden",
            Self::Slow => "slow",
            Self::Standstill => "standstill",
        }
    }
}

impl RequestFault {
    /// Whether it can befall a request of this method: nobody is faster than a read.
    pub fn can_befall(self, method: &str) -> bool {
        self != Self::Conflict || method != "GET"
    }
}

impl EventFault {
    /// What it is called in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Delay => "delay",
            Self::Close => "close",
            Self::Gone => "gone",
        }
    }
}

/// One fault at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injection {
    /// At the n-th request of the operator, from 0.
    Request(u64, RequestFault),
    /// At the n-th event of its watches, from 0.
    Event(u64, EventFault),
    /// At the n-th call to the world outside, from 0.
    Call(u64, CallFault),
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(at, fault) => write!(f, "request:{at}:{}", fault.name()),
            Self::Event(at, fault) => write!(f, "event:{at}:{}", fault.name()),
            Self::Call(at, fault) => write!(f, "call:{at}:{}", fault.name()),
        }
    }
}

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; write `request:17:crash-after`, `event:5:drop` or `call:2:late`")]
pub struct NoFault(String);

impl FromStr for Injection {
    type Err = NoFault;

    fn from_str(text: &str) -> Result<Self, NoFault> {
        let wrong = || NoFault(text.to_owned());
        let mut parts = text.splitn(3, ':');
        let what = parts.next().ok_or_else(wrong)?;
        let at = parts
            .next()
            .and_then(|n| n.parse().ok())
            .ok_or_else(wrong)?;
        let name = parts.next().ok_or_else(wrong)?;
        match what {
            "request" => REQUEST_FAULTS
                .into_iter()
                .chain([RequestFault::Standstill])
                .find(|fault| fault.name() == name)
                .map(|fault| Self::Request(at, fault))
                .ok_or_else(wrong),
            "event" => EVENT_FAULTS
                .into_iter()
                .find(|fault| fault.name() == name)
                .map(|fault| Self::Event(at, fault))
                .ok_or_else(wrong),
            "call" => CALL_FAULTS
                .into_iter()
                .find(|fault| fault.name() == name)
                .map(|fault| Self::Call(at, fault))
                .ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }
}

/// How many of a thousand requests or events meet a fault, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Rates {
    /// The process dies before or after.
    pub crash: u16,
    /// Carried out, answer lost.
    pub lost: u16,
    /// Does not arrive.
    pub unreachable: u16,
    /// 409.
    pub conflict: u16,
    /// 429.
    pub throttled: u16,
    /// 500.
    pub error: u16,
    /// Carried out, 504.
    pub timeout: u16,
    /// 403.
    pub forbidden: u16,
    /// Longer than anybody waits.
    pub slow: u16,
    /// Events that never come.
    pub drop: u16,
    /// Events that come twice.
    pub duplicate: u16,
    /// Events that come late.
    pub delay: u16,
    /// Watches that end.
    pub close: u16,
    /// Watches that end with 410.
    pub gone: u16,
}

impl Rates {
    fn requests(&self) -> [(u16, RequestFault); 11] {
        [
            (self.crash / 3, RequestFault::CrashBefore),
            (self.crash / 3, RequestFault::CrashAfter),
            (self.crash / 3, RequestFault::CrashLate),
            (self.lost, RequestFault::Lost),
            (self.unreachable, RequestFault::Unreachable),
            (self.conflict, RequestFault::Conflict),
            (self.throttled, RequestFault::Throttled),
            (self.error, RequestFault::Error),
            (self.timeout, RequestFault::Timeout),
            (self.forbidden, RequestFault::Forbidden),
            (self.slow, RequestFault::Slow),
        ]
    }

    fn events(&self) -> [(u16, EventFault); 5] {
        [
            (self.drop, EventFault::Drop),
            (self.duplicate, EventFault::Duplicate),
            (self.delay, EventFault::Delay),
            (self.close, EventFault::Close),
            (self.gone, EventFault::Gone),
        ]
    }
}

/// Draws at most one fault: their rates share a thousand.
fn draw<F: Copy>(dice: &SeededEntropy, rates: &[(u16, F)]) -> Option<F> {
    let drawn = u16::try_from(dice.draw() % 1000).unwrap_or_default();
    let mut reached = 0;
    rates.iter().find_map(|(rate, fault)| {
        reached += rate;
        (drawn < reached).then_some(*fault)
    })
}

/// Decides what goes wrong in one run.
#[derive(Debug)]
pub struct Adversary {
    injections: Vec<Injection>,
    rates: Rates,
    dice: (SeededEntropy, SeededEntropy, SeededEntropy),
    requests: u64,
    events: u64,
    calls: u64,
}

impl Adversary {
    /// One that does these, and whatever the rates of the moment give by the seed.
    pub fn new(injections: Vec<Injection>, seed: u64) -> Self {
        Self {
            injections,
            rates: Rates::default(),
            dice: (
                SeededEntropy::new(seed ^ 0x5eed),
                SeededEntropy::new(seed ^ 0xe7e7),
                SeededEntropy::new(seed ^ 0xca11),
            ),
            requests: 0,
            events: 0,
            calls: 0,
        }
    }

    /// From now on these are the rates.
    pub fn set_rates(&mut self, rates: Rates) {
        self.rates = rates;
    }

    /// How many requests and events there were.
    pub fn counts(&self) -> (u64, u64) {
        (self.requests, self.events)
    }

    /// What happens to the next request, and its number.
    pub fn on_request(&mut self) -> (u64, Option<RequestFault>) {
        let number = self.requests;
        self.requests += 1;
        let injected = self
            .injections
            .iter()
            .find_map(|injection| match injection {
                Injection::Request(at, fault) if *at == number => Some(*fault),
                _ => None,
            });
        let drawn = injected.or_else(|| {
            (self.rates != Rates::default()).then(|| draw(&self.dice.0, &self.rates.requests()))?
        });
        (number, drawn)
    }

    /// What happens to the next call, and its number.
    pub fn on_call(&mut self) -> (u64, Option<CallFault>) {
        let number = self.calls;
        self.calls += 1;
        let injected = self.injections.iter().find_map(|one| match one {
            Injection::Call(at, fault) if *at == number => Some(*fault),
            _ => None,
        });
        let drawn = injected.or_else(|| {
            (self.rates != Rates::default()).then(|| draw(&self.dice.2, &self.rates.calls()))?
        });
        (number, drawn)
    }

    /// What happens to the next event, and its number.
    pub fn on_event(&mut self) -> (u64, Option<EventFault>) {
        let number = self.events;
        self.events += 1;
        let injected = self
            .injections
            .iter()
            .find_map(|injection| match injection {
                Injection::Event(at, fault) if *at == number => Some(*fault),
                _ => None,
            });
        let drawn = injected.or_else(|| {
            (self.rates != Rates::default()).then(|| draw(&self.dice.1, &self.rates.events()))?
        });
        (number, drawn)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_fault_can_be_told_and_read() {
        let requests = REQUEST_FAULTS.map(|fault| Injection::Request(17, fault));
        let events = EVENT_FAULTS.map(|fault| Injection::Event(3, fault));
        let calls = CALL_FAULTS.map(|fault| Injection::Call(2, fault));
        let standstill = Injection::Request(1, RequestFault::Standstill);
        let all = requests.into_iter().chain(events).chain(calls);
        for injection in all.chain([standstill]) {
            assert_eq!(injection.to_string().parse(), Ok(injection));
        }
        assert!("request:x:lost".parse::<Injection>().is_err());
        assert!("event:1:lost".parse::<Injection>().is_err());
    }

    #[test]
    fn an_injection_hits_its_place_only() {
        let mut adversary = Adversary::new(vec!["request:2:lost".parse().unwrap()], 1);
        let hits: Vec<_> = (0..4).map(|_| adversary.on_request().1).collect();
        assert_eq!(hits, [None, None, Some(RequestFault::Lost), None]);
        assert_eq!(adversary.on_event().1, None);
        let mut adversary = Adversary::new(vec!["call:1:doubled".parse().unwrap()], 1);
        let hits: Vec<_> = (0..3).map(|_| adversary.on_call()).collect();
        let doubled = Some(CallFault::Doubled);
        assert_eq!(hits, [(0, None), (1, doubled), (2, None)]);
        assert_eq!(adversary.on_request(), (0, None));
    }

    #[test]
    fn rates_hit_about_as_often_as_they_say_and_the_same_by_seed() {
        let count = |seed| {
            let mut adversary = Adversary::new(Vec::new(), seed);
            adversary.set_rates(Rates {
                lost: 100,
                ..Rates::default()
            });
            (0..1000)
                .filter(|_| adversary.on_request().1.is_some())
                .count()
        };
        assert_eq!(count(7), count(7));
        assert!((60..140).contains(&count(7)), "{}", count(7));
    }
}
