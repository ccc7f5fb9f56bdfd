//! What oracles must know of canary.

use slipway_api::flagger::{FORMER, FORMER_TEMPLATE, PRIMARY, RESTART_ID};
use slipway_api::purpose::canary as purpose;
use slipway_sim::history::{Change, Object, Request};
use slipway_sim::oracles::{Case, Fleeting, Oracle, Specifics};

use super::oracles::{CANARIES, Canary, DAEMON_SETS, DEPLOYMENTS, Scene};
use super::{CAPABILITY, oracles};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: CAPABILITY.profile.name,
    lease: CAPABILITY.profile.lease,
    oracles: ORACLES,
    maps: &[],
    copies: &[PRIMARY, FORMER],
    fleeting: Fleeting {
        annotations: &[FORMER_TEMPLATE, RESTART_ID],
        times: &[
            "at",
            "due",
            "stepSince",
            "heldSince",
            "unmeasuredSince",
            "freeSince",
            "stoppedSince",
        ],
        ..Fleeting::NONE
    },
    statuses: &[(CANARIES, "Canary")],
    orders: &["canaries"],
    superseded: &[],
    follows,
    is_unconditional: |_| false,
    has_secret: |_| false,
    may_change,
    harmless: &[purpose::GUARD, purpose::LET_GO],
    nothing_left: oracles::nothing_left,
};

/// A Canary's status and finalizers, objects that a Canary is about, and claims on workloads.
fn may_change(case: &Case<'_>, change: &Change, request: &Request) -> bool {
    if &*change.object.0 == CANARIES {
        let is_guard = request.is_for(purpose::GUARD) || request.is_for(purpose::LET_GO);
        return is_guard || request.path().ends_with("/status");
    }
    if request.is_for(purpose::CLAIM) {
        // That of a Canary that is gone ends as well.
        return [DEPLOYMENTS, DAEMON_SETS].contains(&&*change.object.0);
    }
    let scene = Scene::at(case.history, change.version);
    scene
        .canaries()
        .any(|canary| canary.is_about(&change.object) || is_copy(&scene, &canary, &change.object))
}

/// A Canary's workload and the copy of it: a version that came while the operator was away, and was replaced meanwhile, has no run.
fn follows(case: &Case<'_>, object: &Object) -> bool {
    let (start, end) = (case.history.base, u64::MAX);
    let scenes = [start, end].map(|version| Scene::at(case.history, version));
    let is_workload = [DEPLOYMENTS, DAEMON_SETS].contains(&&*object.0);
    is_workload && scenes.iter().any(|scene| scene.of(object).is_some())
}

/// Whether it is a copy of what a Canary's workload is configured with.
fn is_copy(scene: &Scene<'_>, canary: &Canary<'_>, object: &Object) -> bool {
    let (resource, namespace, name) = object;
    let mut ends = SPECIFICS.copies.iter();
    let original = ends.find_map(|end| name.strip_suffix(end));
    let is_config = ["/configmaps", "/secrets"].contains(&&**resource);
    is_config
        && *namespace == canary.object.1
        && original.is_some_and(|name| scene.object(canary, resource, name).is_some())
}

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "T1",
        what: "the weights of a route sum to 100, and a Service that divides by pods leads to those versions that have a weight",
        check: oracles::sums,
    },
    Oracle {
        id: "T2",
        what: "a version gets more traffic only while as many of its pods are available as are asked for",
        check: oracles::ready,
    },
    Oracle {
        id: "T3",
        what: "what serves becomes of a version only when that is promoted, and was last measured to be good",
        check: oracles::promoted,
    },
    Oracle {
        id: "T4",
        what: "neither side is scaled down while it has traffic, by what is written and by what a gateway has taken",
        check: oracles::scaled,
    },
    Oracle {
        id: "T5",
        what: "a version that is sent back has no traffic a moment later",
        check: oracles::sent_back,
    },
    Oracle {
        id: "T6",
        what: "what is done was remembered before",
        check: oracles::remembered,
    },
    Oracle {
        id: "T7",
        what: "a version without pods has no traffic a moment later",
        check: oracles::deserted,
    },
    Oracle {
        id: "T8",
        what: "a new version has its run, whatever became of the one before, or says why not",
        check: oracles::begun,
    },
    Oracle {
        id: "T9",
        what: "a Canary that is deleted leaves a workload that serves, if it is asked to, and no route to what went with it",
        check: oracles::given_back,
    },
    Oracle {
        id: "T10",
        what: "the Service that clients know has pods, from when a Canary is initialised until it is gone, and is never led to a copy without any",
        check: oracles::served,
    },
];
