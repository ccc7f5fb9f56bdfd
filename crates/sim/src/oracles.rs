//! What must be true of every history, by the names of `docs/conformance/simulation.md`.
//!
//! An oracle reads a history and nothing else: it has its own small model of what policies ask for, and never asks the
//! operator. Each has a test with a made-up bad history that it must object to. What is true of one capability only comes
//! with the wiring ([`Specifics`]).

mod contact;
mod differential;
mod excuses;
mod expectation;
mod general;
mod leadership;
mod liveness;
mod masks;
mod members;
mod outside;
mod own;
mod specifics;
pub mod workload;

pub use masks::{MASKED, Mask};
pub use specifics::{Fleeting, Specifics, Stable};

use jiff::{SignedDuration, Timestamp};

use crate::history::History;
use crate::scenario::Scenario;

/// How long after the last fault the end may still be another one than without.
pub(crate) const AFTERMATH: SignedDuration = SignedDuration::from_mins(2);

/// What an oracle looks at.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// What was played.
    pub scenario: &'a Scenario,
    /// What happened.
    pub history: &'a History,
    /// What happens when nothing goes wrong.
    pub reference: Option<&'a History>,
    /// What capabilities bring along.
    pub specifics: &'a [&'static Specifics],
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When it was.
    pub at: Timestamp,
    /// What was wrong.
    pub text: String,
}

/// What an oracle found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// How often it had something to look at.
    pub checked: u64,
    /// What it objects to.
    pub violations: Vec<Violation>,
}

impl Findings {
    /// Looks once: `holds` or else.
    pub fn check(&mut self, at: Timestamp, holds: bool, otherwise: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            self.violations.push(Violation {
                at,
                text: otherwise(),
            });
        }
    }
}

/// One oracle.
pub struct Oracle {
    /// Its name in `docs/conformance/simulation.md`.
    pub id: &'static str,
    /// What it says, in a sentence.
    pub what: &'static str,
    /// How it looks.
    pub check: fn(&Case<'_>) -> Findings,
}

/// What an oracle says of a run.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The oracle.
    pub id: &'static str,
    /// What it says.
    pub what: &'static str,
    /// What it found.
    pub findings: Findings,
}

/// Those that look at requests and writes of any operator.
const OF_WRITES: &[Oracle] = &[
    Oracle {
        id: "G1",
        what: "every write of the operator is a create, has a precondition, or is an apply of its own object",
        check: general::preconditions,
    },
    Oracle {
        id: "G2",
        what: "when nothing is due, nothing is written",
        check: general::quiet,
    },
    Oracle {
        id: "G3",
        what: "every delete names uid and resourceVersion",
        check: general::deletes,
    },
    Oracle {
        id: "G4",
        what: "nothing is written but own objects, statuses, events and workloads that a policy matches",
        check: general::targets,
    },
    Oracle {
        id: "G5",
        what: "observedGeneration never decreases nor exceeds generation; nothing is ready and stalled at once",
        check: general::statuses,
    },
    Oracle {
        id: "G6",
        what: "no write to a workload under an older leadership after one under a newer",
        check: leadership::epochs,
    },
    Oracle {
        id: "G8",
        what: "the end is that of the run without faults, with as many changes of each spec",
        check: differential::same_end,
    },
    Oracle {
        id: "G11",
        what: "requests for one object in an hour are bounded",
        check: general::pace,
    },
    Oracle {
        id: "G15",
        what: "only what has one of our names is written of what can be anybody's, and no registration of webhooks, also where it is only tried",
        check: own::own_names,
    },
];

/// Those that look at what is written into other clusters.
const OF_MEMBERS: &[Oracle] = &[
    Oracle {
        id: "M1",
        what: "nothing is written into a cluster that is not recorded at home, nor into one that took another's place unless a person says so",
        check: members::identity,
    },
    Oracle {
        id: "M2",
        what: "no write into another cluster under an older leadership after one under a newer",
        check: members::epochs,
    },
    Oracle {
        id: "M3",
        what: "nothing is written in another cluster but events and what is a capability's business there",
        check: members::targets,
    },
];

/// Those that look at calls to the world outside.
const OF_CALLS: &[Oracle] = &[
    Oracle {
        id: "A1",
        what: "every call to the world outside has a name, and calls of one name are the same",
        check: outside::names,
    },
    Oracle {
        id: "A2",
        what: "nobody outside is asked in a loop",
        check: outside::pace,
    },
];

/// Those that look at how a run went on as a whole.
const OF_RUNS: &[Oracle] = &[
    Oracle {
        id: "V1",
        what: "a replica is ready when it can decide, and not when it has been out of contact",
        check: contact::readiness,
    },
    Oracle {
        id: "L1",
        what: "what is due when all is calm has been done, or its waiting is explained",
        check: liveness::nothing_left,
    },
    Oracle {
        id: "L4",
        what: "after a leader's death another leads within its lease and a request's time",
        check: leadership::failover,
    },
    Oracle {
        id: "P",
        what: "nothing panics, and what people do in the scenario succeeds",
        check: general::sound,
    },
    Oracle {
        id: "expect",
        what: "what the scenario expects comes true",
        check: expectation::met,
    },
];

/// The oracles of a program: those that every operator has, and those that its capabilities bring along.
#[derive(Clone, Default)]
pub struct Oracles {
    specifics: Vec<&'static Specifics>,
}

impl Oracles {
    /// Those of an operator with these capabilities.
    pub fn with(specifics: Vec<&'static Specifics>) -> Self {
        Self { specifics }
    }

    /// The same with one capability more.
    #[must_use]
    pub fn and(mut self, specifics: &'static Specifics) -> Self {
        self.specifics.push(specifics);
        self
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &'static Oracle> {
        let brought = self.specifics.iter().flat_map(|one| one.oracles);
        let writes = OF_WRITES.iter().chain(OF_MEMBERS).chain(OF_CALLS);
        writes.chain(brought).chain(OF_RUNS)
    }

    /// What G8 does not compare, and why.
    pub fn masks(&self) -> Vec<String> {
        let general = MASKED.iter().map(ToString::to_string);
        let excuses = excuses::EXCUSES.iter().map(ToString::to_string);
        let own = self.specifics.iter().flat_map(|one| masks::own(one));
        general.chain(excuses).chain(own).collect()
    }

    /// Asks all oracles that watch this scenario.
    pub fn judge(
        &self,
        scenario: &Scenario,
        history: &History,
        reference: Option<&History>,
    ) -> Vec<Verdict> {
        let case = Case {
            scenario,
            history,
            reference,
            specifics: &self.specifics,
        };
        self.all()
            .filter(|oracle| scenario.asks(oracle.id))
            .map(|oracle| Verdict {
                id: oracle.id,
                what: oracle.what,
                findings: (oracle.check)(&case),
            })
            .collect()
    }
}

/// A time out of an annotation.
pub fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}
