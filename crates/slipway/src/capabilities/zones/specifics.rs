//! What oracles must know of zones.

use serde_json::Value;
use slipway_api::names::FENCE;
use slipway_api::purpose::{runtime, zones as purpose};
use slipway_api::zones::{LAST_DOWNSCALE, ROLLOUT_GROUP, ZONE_TRACKER};
use slipway_sim::history::{Change, Request};
use slipway_sim::oracles::{Case, Fleeting, Oracle, Specifics};

use super::oracles::{PODS, SETS};
use super::{CAPABILITY, oracles};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: CAPABILITY.profile.name,
    lease: CAPABILITY.profile.lease,
    oracles: ORACLES,
    maps: &["slipway-zones", RESERVATIONS, LOCKS, ZONE_TRACKER],
    copies: &[],
    fleeting: Fleeting {
        annotations: &[LAST_DOWNSCALE],
        maps: &[RESERVATIONS, LOCKS],
        ..Fleeting::NONE
    },
    statuses: &[],
    orders: &[],
    superseded: &[],
    follows: |_, _| false,
    is_unconditional: is_date,
    has_secret: |_| false,
    may_change,
    harmless: &[purpose::CLAIM, purpose::RELEASE, runtime::STATUS],
    nothing_left: oracles::explained,
};

/// Reservations of evictions.
const RESERVATIONS: &str = "slipway-zpdb-";
/// Locks of downscales.
const LOCKS: &str = "slipway-downscale-locks";

/// Where no map may be kept: when a zone was last scaled down. The newest is right, whatever else has changed.
fn is_date(request: &Request) -> bool {
    let dates = annotations(request);
    request.is_for(purpose::ANNOTATE)
        && dates.is_some_and(|all| all.len() == 1 && all.contains_key(LAST_DOWNSCALE))
}

fn annotations(request: &Request) -> Option<&serde_json::Map<String, Value>> {
    let set = request.body.pointer("/metadata/annotations");
    set.and_then(Value::as_object)
}

/// Pods and `StatefulSet`s of groups.
fn may_change(_: &Case<'_>, change: &Change, request: &Request) -> bool {
    let image = change.before.as_deref().or(change.after.as_deref());
    match &*change.object.0 {
        SETS => image.is_some_and(|set| set.label(ROLLOUT_GROUP).is_some()),
        // What else is deleted is for Z5.
        PODS if request.method == "DELETE" => true,
        PODS => annotations(request).is_some_and(|set| set.keys().all(|key| key == FENCE)),
        _ => false,
    }
}

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "Z1",
        what: "no pod is deleted while a pod of another zone of its group is down",
        check: oracles::zones_apart,
    },
    Oracle {
        id: "Z2",
        what: "no more pods of a zone are down than it allows, through us",
        check: oracles::budget,
    },
    Oracle {
        id: "Z3",
        what: "a zone's budget is read as the design says",
        check: oracles::shown_budget,
    },
    Oracle {
        id: "Z4",
        what: "no pod of a group is deleted in which a StatefulSet is not as expected",
        check: oracles::sound_group,
    },
    Oracle {
        id: "Z5",
        what: "only outdated pods that a zone controls are deleted",
        check: oracles::outdated,
    },
    Oracle {
        id: "Z6",
        what: "a pod that is going or missing has its place in the budget",
        check: oracles::terminating,
    },
    Oracle {
        id: "Z7",
        what: "at most one zone of a group is claimed, and the API knows which",
        check: oracles::claims,
    },
    Oracle {
        id: "Z8",
        what: "a follower is never scaled below its leader, nor down before its time",
        check: oracles::followers,
    },
    Oracle {
        id: "Z9",
        what: "of two downscales of a group at once one is let through at most",
        check: oracles::one_at_a_time,
    },
    Oracle {
        id: "Z10",
        what: "where partitions are counted, an eviction leaves a partition what its budget asks for",
        check: oracles::partitions,
    },
    Oracle {
        id: "Z11",
        what: "no pod that stays is left prepared for its end",
        check: oracles::undone,
    },
    Oracle {
        id: "Z12",
        what: "no pod of a paused zone is deleted",
        check: oracles::paused,
    },
    Oracle {
        id: "Z13",
        what: "a zone is called done only when its pods are",
        check: oracles::settled,
    },
    Oracle {
        id: "Z14",
        what: "no pod is deleted that its zone-aware budget does not bear, nor while budgets cannot be known",
        check: oracles::rollouts,
    },
    Oracle {
        id: "order",
        what: "zones go by name, except that one with a pod down goes first",
        check: oracles::order,
    },
    Oracle {
        id: "W1",
        what: "no downscale is stored of what is labelled no-downscale",
        check: oracles::no_downscale,
    },
    Oracle {
        id: "W3",
        what: "only what cannot be seen is let pass with a warning",
        check: oracles::let_pass,
    },
    Oracle {
        id: "W4",
        what: "a downscale is let through only when every pod that goes was told",
        check: oracles::prepared,
    },
    Oracle {
        id: "W5",
        what: "a dry run asks no pod and records nothing",
        check: oracles::dry_runs,
    },
    Oracle {
        id: "W6",
        what: "every answer is about its question, and comes in time",
        check: oracles::prompt,
    },
    Oracle {
        id: "W7",
        what: "an eviction is let through only where the budget bears it, with all that were before",
        check: oracles::evictions,
    },
    Oracle {
        id: "W9",
        what: "no webhook changes what it is asked about",
        check: oracles::unchanged,
    },
    Oracle {
        id: "W11",
        what: "what is let through rests on a look that began after it was asked",
        check: oracles::fresh,
    },
    Oracle {
        id: "W12",
        what: "a guard that could not be written was not passed",
        check: oracles::guarded,
    },
];
