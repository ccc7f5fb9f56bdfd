//! What an assemblage's conditions say: how far all of its syncs are together.

use jiff::Timestamp;
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
    if !is_ready && updating > 0 {
        put(
            conditions,
            RECONCILING,
            true,
            reason,
            &message,
            generation,
            now,
        );
    } else {
        clear(conditions, RECONCILING);
    }
}
