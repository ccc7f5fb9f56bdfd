//! What goes wrong on purpose: errors, lost answers, latency, stale lists, broken watches, partitions.
//!
//! Faults are rules, matched against each request in order of their addition. Each rule says which requests it is
//! about, how many of them it lets pass first and how many it hits; or it hits at random, from its own seed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::environment::{Entropy, SeededEntropy};
use crate::status::Status;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The client gets this failure; nothing is done.
    Refuse(Box<Status>),
    /// The request does not reach the server; the connection breaks.
    Unreachable,
    /// The request is carried out, then the connection breaks.
    Lose,
    /// The request is carried out, then the client gets this failure.
    LoseAs(Box<Status>),
    /// The request is late on its way in: it is carried out, if the client is still there, after this time.
    Delay(Duration),
    /// A list or get is answered from this many versions ago.
    Stale(u64),
}

/// What happens to an event of a watch.
#[derive(Debug, Clone)]
pub enum WatchFault {
    /// It is not sent.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is late, and so is all that follows on this watch.
    Delay(Duration),
    /// The stream ends before it.
    Close,
    /// The stream ends with a 410 event instead of it.
    Gone,
}

/// Which requests a rule is about. Empty fields match everything.
#[derive(Debug, Clone, Default)]
pub struct Match {
    /// `get`, `list`, `watch`, `create`, …
    pub verb: String,
    /// `group/plural`, with `/subresource` if there is one.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The user's name.
    pub user: String,
    /// The start of the User-Agent.
    pub agent: String,
    /// The place in the order of all requests.
    pub index: Option<u64>,
}

/// What a rule is matched against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) index: u64,
}

impl Match {
    fn fits(&self, facts: &Facts<'_>) -> bool {
        let same = |want: &str, have: &str| want.is_empty() || want == have;
        same(&self.verb, facts.verb)
            && same(&self.resource, facts.resource)
            && same(&self.name, facts.name)
            && same(&self.user, facts.user)
            && facts.agent.starts_with(&self.agent)
            && self.index.is_none_or(|index| index == facts.index)
    }
}

/// How often a rule hits.
#[derive(Debug)]
pub enum Frequency {
    /// Lets `skip` matches pass, then hits `times`; `u64::MAX` for ever.
    Count {
        /// Matches to let pass.
        skip: u64,
        /// Matches to hit after that.
        times: u64,
    },
    /// Hits so many of a thousand, drawn from a seed.
    PerMille {
        /// Of a thousand.
        rate: u16,
        /// Where the draws come from.
        draws: SeededEntropy,
    },
}

impl Frequency {
    /// Hits the first match only.
    pub fn once() -> Self {
        Self::Count { skip: 0, times: 1 }
    }

    /// Hits every match.
    pub fn always() -> Self {
        Self::Count {
            skip: 0,
            times: u64::MAX,
        }
    }

    /// Hits `rate` of a thousand matches, as `seed` says.
    pub fn seeded(rate: u16, seed: u64) -> Self {
        Self::PerMille {
            rate,
            draws: SeededEntropy::new(seed),
        }
    }

    fn hits(&mut self) -> bool {
        match self {
            Self::Count { skip, .. } if *skip > 0 => {
                *skip -= 1;
                false
            }
            Self::Count { times, .. } if *times > 0 => {
                *times -= u64::from(*times != u64::MAX);
                true
            }
            Self::Count { .. } => false,
            Self::PerMille { rate, draws } => draws.draw() % 1000 < u128::from(*rate),
        }
    }
}

#[derive(Debug)]
struct Rule<F> {
    about: Match,
    frequency: Frequency,
    fault: F,
}

#[derive(Debug, Default)]
struct Inner {
    requests: Vec<Rule<Fault>>,
    events: Vec<Rule<WatchFault>>,
}

/// The faults of one cluster.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Inner>);

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a rule about requests.
    pub fn add(&self, about: Match, frequency: Frequency, fault: Fault) {
        self.lock().requests.push(Rule {
            about,
            frequency,
            fault,
        });
    }

    /// Adds a rule about the events of watches; each event counts as one match.
    pub fn add_watch(&self, about: Match, frequency: Frequency, fault: WatchFault) {
        self.lock().events.push(Rule {
            about,
            frequency,
            fault,
        });
    }

    /// Ends all faults.
    pub fn clear(&self) {
        *self.lock() = Inner::default();
    }

    pub(crate) fn on_request(&self, facts: &Facts<'_>) -> Vec<Fault> {
        let mut inner = self.lock();
        inner
            .requests
            .iter_mut()
            .filter_map(|rule| {
                (rule.about.fits(facts) && rule.frequency.hits()).then(|| rule.fault.clone())
            })
            .collect()
    }

    pub(crate) fn on_event(&self, facts: &Facts<'_>) -> Option<WatchFault> {
        let mut inner = self.lock();
        inner.events.iter_mut().find_map(|rule| {
            (rule.about.fits(facts) && rule.frequency.hits()).then(|| rule.fault.clone())
        })
    }
}
