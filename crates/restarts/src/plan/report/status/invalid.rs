//! The status of a Flipper whose spec cannot be followed: what is wrong, what that holds, and how to go on.

use jiff::Timestamp;
use slipway_api::flipper::FlipperStatus;
use slipway_kernel::condition::{PROGRESSING, READY, RECONCILING, STALLED};
use slipway_kernel::{Blocker, blocker};

use super::{ACCEPTED, Conditions, OVERLAPS, stored};
use crate::observe::{Flipper, Item};
use crate::reasons::state;

/// The status, but for what the policy matches.
pub(super) fn status(
    flipper: &Item<Flipper>,
    problem: &str,
    blockers: &[Blocker],
    now: Timestamp,
) -> FlipperStatus {
    let before = stored(flipper);
    let generation = flipper.meta().generation;
    let mut made = Conditions {
        status: FlipperStatus {
            observed_generation: Some(generation),
            conditions: before.conditions,
            last_restart: before.last_restart,
            waiting_for: blocker::waiting_for(blockers, &before.waiting_for),
            ..FlipperStatus::default()
        },
        generation,
        now,
    };
    let held = format!("{problem}; what it matches is not restarted until this is fixed");
    made.set(ACCEPTED, false, state::INVALID, problem);
    made.set(READY, false, state::INVALID, &held);
    made.set(PROGRESSING, false, state::INVALID, "the spec is invalid");
    made.set_while(RECONCILING, false, "", "");
    made.set_while(OVERLAPS, false, "", "");
    made.set_while(STALLED, true, state::INVALID, &held);
    made.status
}
