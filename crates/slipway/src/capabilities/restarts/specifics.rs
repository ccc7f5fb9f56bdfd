//! What oracles must know of restarts.

use slipway_api::names::LAST_RESTART;
use slipway_sim::history::{Change, Request};
use slipway_sim::oracles::{Case, Fleeting, Oracle, Specifics, workload};

use super::oracles::policy::{self, FLIPPERS};
use super::{CAPABILITY, oracles};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: CAPABILITY.profile.name,
    lease: CAPABILITY.profile.lease,
    oracles: ORACLES,
    maps: &[],
    copies: &[],
    fleeting: Fleeting {
        annotations: &[LAST_RESTART],
        times: &["lastRestart", "nextRestart"],
        ..Fleeting::NONE
    },
    statuses: &[(FLIPPERS, "Flipper")],
    orders: &["flippers"],
    superseded: &[],
    follows: |_, _| false,
    is_unconditional: |_| false,
    has_secret: |_| false,
    may_change,
    harmless: &[],
    nothing_left: oracles::nothing_left,
};

/// The status of a Flipper, and workloads that a policy matches.
fn may_change(case: &Case<'_>, change: &Change, request: &Request) -> bool {
    let resource = &*change.object.0;
    if resource == FLIPPERS {
        return request.path().ends_with("/status");
    }
    if workload::kind(resource).is_none() {
        return false;
    }
    let image = change.before.as_deref().or(change.after.as_deref());
    let policies = policy::behind(case.history, change, request);
    image.is_some_and(|image| policies.iter().any(|p| p.matches(&change.object, image)))
}

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "R1",
        what: "a workload is restarted an interval after its last restart at the earliest",
        check: oracles::interval,
    },
    Oracle {
        id: "R2",
        what: "no more than maxConcurrent workloads of a policy are rolling by its restarts",
        check: oracles::concurrency,
    },
    Oracle {
        id: "R3",
        what: "nothing is restarted that is rolling, paused, at zero, going, opted out or claimed by others",
        check: oracles::gates,
    },
    Oracle {
        id: "R4",
        what: "after a time without operator each workload is restarted once at most",
        check: oracles::downtime,
    },
    Oracle {
        id: "R5",
        what: "a restart changes one annotation of the template and our own annotations, nothing else",
        check: oracles::smallest_change,
    },
    Oracle {
        id: "R8",
        what: "no restart is dated into the future",
        check: oracles::dates,
    },
    Oracle {
        id: "R9",
        what: "the default criteria never act on what a Flipper governs",
        check: oracles::by_default_only,
    },
    Oracle {
        id: "R10",
        what: "where a policy has windows, a restart begins in one of them",
        check: oracles::windows,
    },
    Oracle {
        id: "R11",
        what: "no restart begins on a day that its policy excludes",
        check: oracles::excluded_days,
    },
    Oracle {
        id: "R12",
        what: "by a schedule, a time of it lies between a restart and the one before",
        check: oracles::schedules,
    },
    Oracle {
        id: "R13",
        what: "by jitter, each workload keeps its place after it is due, and not all have the same",
        check: oracles::jitter,
    },
];
