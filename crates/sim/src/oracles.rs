//! What must be true of every history, by the names of `docs/conformance/simulation.md`.
//!
//! An oracle reads a history and nothing else: it has its own small model of what policies ask for, and never asks the
//! operator. Each has a test with a made-up bad history that it must object to.

mod contact;
mod differential;
mod expectation;
mod general;
mod governed;
mod guards;
mod leadership;
mod liveness;
mod policy;
mod restarts;
#[cfg(test)]
mod tests;
mod workload;
mod zones;

pub use differential::MASKED;

use jiff::Timestamp;

use crate::history::History;
use crate::scenario::Scenario;

/// What an oracle looks at.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// What was played.
    pub scenario: &'a Scenario,
    /// What happened.
    pub history: &'a History,
    /// What happens when nothing goes wrong.
    pub reference: Option<&'a History>,
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

/// All oracles.
pub const ALL: &[Oracle] = &[
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
        check: guards::own_names,
    },
    Oracle {
        id: "R1",
        what: "a workload is restarted an interval after its last restart at the earliest",
        check: restarts::interval,
    },
    Oracle {
        id: "R2",
        what: "no more than maxConcurrent workloads of a policy are rolling by its restarts",
        check: restarts::concurrency,
    },
    Oracle {
        id: "R3",
        what: "nothing is restarted that is rolling, paused, at zero, going, opted out or claimed by others",
        check: restarts::gates,
    },
    Oracle {
        id: "R4",
        what: "after a time without operator each workload is restarted once at most",
        check: restarts::downtime,
    },
    Oracle {
        id: "R5",
        what: "a restart changes one annotation of the template and our own annotations, nothing else",
        check: restarts::smallest_change,
    },
    Oracle {
        id: "R8",
        what: "no restart is dated into the future",
        check: restarts::dates,
    },
    Oracle {
        id: "R9",
        what: "the default criteria never act on what a Flipper governs",
        check: governed::by_default_only,
    },
    Oracle {
        id: "Z1",
        what: "no pod is deleted while a pod of another zone of its group is down",
        check: zones::zones_apart,
    },
    Oracle {
        id: "Z2",
        what: "no more pods of a zone are down than it allows, through us",
        check: zones::budget,
    },
    Oracle {
        id: "Z3",
        what: "a zone's budget is read as the design says",
        check: zones::shown_budget,
    },
    Oracle {
        id: "Z4",
        what: "no pod of a group is deleted in which a StatefulSet is not as expected",
        check: zones::sound_group,
    },
    Oracle {
        id: "Z5",
        what: "only outdated pods that a zone controls are deleted",
        check: zones::outdated,
    },
    Oracle {
        id: "Z6",
        what: "a pod that is going or missing has its place in the budget",
        check: zones::terminating,
    },
    Oracle {
        id: "Z7",
        what: "at most one zone of a group is claimed, and the API knows which",
        check: zones::claims,
    },
    Oracle {
        id: "Z8",
        what: "a follower is never scaled below its leader, nor down before its time",
        check: zones::followers,
    },
    Oracle {
        id: "Z9",
        what: "of two downscales of a group at once one is let through at most",
        check: zones::one_at_a_time,
    },
    Oracle {
        id: "Z10",
        what: "where partitions are counted, an eviction leaves a partition what its budget asks for",
        check: zones::partitions,
    },
    Oracle {
        id: "Z11",
        what: "no pod that stays is left prepared for its end",
        check: zones::undone,
    },
    Oracle {
        id: "Z12",
        what: "no pod of a paused zone is deleted",
        check: zones::paused,
    },
    Oracle {
        id: "Z13",
        what: "a zone is called done only when its pods are",
        check: zones::settled,
    },
    Oracle {
        id: "order",
        what: "zones go by name, except that one with a pod down goes first",
        check: zones::order,
    },
    Oracle {
        id: "W1",
        what: "no downscale is stored of what is labelled no-downscale",
        check: zones::no_downscale,
    },
    Oracle {
        id: "W3",
        what: "only what cannot be seen is let pass with a warning",
        check: zones::let_pass,
    },
    Oracle {
        id: "W4",
        what: "a downscale is let through only when every pod that goes was told",
        check: zones::prepared,
    },
    Oracle {
        id: "W5",
        what: "a dry run asks no pod and records nothing",
        check: zones::dry_runs,
    },
    Oracle {
        id: "W6",
        what: "every answer is about its question, and comes in time",
        check: zones::prompt,
    },
    Oracle {
        id: "W7",
        what: "an eviction is let through only where the budget bears it, with all that were before",
        check: zones::evictions,
    },
    Oracle {
        id: "W9",
        what: "no webhook changes what it is asked about",
        check: zones::unchanged,
    },
    Oracle {
        id: "W11",
        what: "what is let through rests on a look that began after it was asked",
        check: zones::fresh,
    },
    Oracle {
        id: "W12",
        what: "a guard that could not be written was not passed",
        check: guards::guarded,
    },
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

/// Asks all oracles that watch this scenario.
pub fn judge(scenario: &Scenario, history: &History, reference: Option<&History>) -> Vec<Verdict> {
    let case = Case {
        scenario,
        history,
        reference,
    };
    ALL.iter()
        .filter(|oracle| scenario.asks(oracle.id))
        .map(|oracle| Verdict {
            id: oracle.id,
            what: oracle.what,
            findings: (oracle.check)(&case),
        })
        .collect()
}
