//! What an assemblage's conditions say: how far all of its syncs are together.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use slipway_api::fleet::assemblage::{AssemblageStatus, SyncState};
use slipway_kernel::condition::{READY, RECONCILING, clear, set as put};

use crate::reasons::condition;

/// Sets `Ready` and `Reconciling` by the syncs of a status.
pub(crate) fn set(status: &mut AssemblageStatus, generation: i64, now: Timestamp) {
    let is = |state: SyncState| status.syncs.iter().filter(move |sync| sync.state == state);
    let failed = is(SyncState::Failed).chain(is(SyncState::Blocked));
    let failed: Vec<&str> = failed.map(|sync| sync.name.as_str()).collect();
    let updating = is(SyncState::Updating).count();
    let all = status.syncs.len();
    let done = is(SyncState::Succeeded).count();
    let progress = format!("{done} of {all} syncs are applied and healthy");
    let (is_ready, reason, message) = match (failed.as_slice(), updating) {
        ([], 0) => (true, condition::UP_TO_DATE, progress),
        ([], _) => (false, condition::UPDATING, progress),
        (some, _) => {
            let few: Vec<&str> = some.iter().take(5).copied().collect();
            let message = format!("{progress}; not {}", few.join(", "));
            (false, condition::FAILED, message)
        }
    };
    let conditions = &mut status.conditions;
    put(
        conditions, READY, is_ready, reason, &message, generation, now,
    );
    let is_at_work = !is_ready && updating > 0;
    let why = is_at_work.then_some((reason, message.as_str()));
    reconciling(conditions, why, generation, now);
}

/// Sets `Reconciling` with a reason and a sentence; where there are none, it is not said.
pub(crate) fn reconciling(
    conditions: &mut Vec<Condition>,
    why: Option<(&str, &str)>,
    generation: i64,
    now: Timestamp,
) {
    match why {
        Some((reason, message)) => put(
            conditions,
            RECONCILING,
            true,
            reason,
            message,
            generation,
            now,
        ),
        None => clear(conditions, RECONCILING),
    }
}
