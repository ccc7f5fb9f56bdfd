//! What oracles must know of canary.

use slipway_api::flagger::{FORMER_TEMPLATE, RESTART_ID};
use slipway_api::purpose::canary as purpose;
use slipway_sim::history::{Change, Request};
use slipway_sim::oracles::{Case, Oracle, Specifics};

use super::oracles::{CANARIES, Scene};
use super::{CAPABILITY, oracles};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: CAPABILITY.profile.name,
    lease: CAPABILITY.profile.lease,
    oracles: ORACLES,
    maps: &[],
    fleeting_maps: &[],
    fleeting_annotations: &[FORMER_TEMPLATE, RESTART_ID],
    statuses: &[(CANARIES, "Canary")],
    orders: &["canaries"],
    is_unconditional: |_| false,
    may_change,
    harmless: &[purpose::GUARD, purpose::LET_GO],
    nothing_left: oracles::nothing_left,
};

/// A Canary's status and finalizers, and objects that a Canary is about.
fn may_change(case: &Case<'_>, change: &Change, request: &Request) -> bool {
    if &*change.object.0 == CANARIES {
        let is_guard = request.is_for(purpose::GUARD) || request.is_for(purpose::LET_GO);
        return is_guard || request.path().ends_with("/status");
    }
    let scene = Scene::at(case.history, change.version);
    scene
        .canaries()
        .any(|canary| canary.is_about(&change.object))
}

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "C1",
        what: "the weights of a route sum to 100",
        check: oracles::sums,
    },
    Oracle {
        id: "C2",
        what: "a version gets more traffic only while as many of its pods are available as are asked for",
        check: oracles::ready,
    },
    Oracle {
        id: "C3",
        what: "what serves becomes of a version only when that is promoted, after a check that passed",
        check: oracles::promoted,
    },
    Oracle {
        id: "C4",
        what: "neither side is scaled down while it has traffic",
        check: oracles::scaled,
    },
    Oracle {
        id: "C5",
        what: "a version that is sent back has no traffic a moment later",
        check: oracles::sent_back,
    },
    Oracle {
        id: "C6",
        what: "what is done was remembered before",
        check: oracles::remembered,
    },
];
