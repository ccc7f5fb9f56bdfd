//! metav1 conditions, set so that kstatus, Helm and people understand them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::text::shortened;

/// The longest sentence that is kept: what somebody wrote may be part of it.
const LONGEST: usize = 4_096;

/// The object is as asked for, and nothing is wrong.
pub const READY: &str = "Ready";
/// Something is being done; present only while True, as kstatus wants it.
pub const RECONCILING: &str = "Reconciling";
/// Nothing can be done until somebody changes something; present only while True.
pub const STALLED: &str = "Stalled";
/// Work goes on.
pub const PROGRESSING: &str = "Progressing";

/// Sets one condition. `lastTransitionTime` stays unless the status changes.
pub fn set(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) {
    let status = if status { "True" } else { "False" };
    let found = conditions.iter_mut().find(|c| c.type_ == kind);
    let since = match &found {
        Some(known) if known.status == status => known.last_transition_time.clone(),
        _ => Time(now),
    };
    let made = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: shortened(message, LONGEST),
        observed_generation: Some(generation),
        last_transition_time: since,
    };
    match found {
        Some(known) => *known = made,
        None => conditions.push(made),
    }
}

/// Takes a condition away, if it is there.
pub fn clear(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|c| c.type_ != kind);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use jiff::Timestamp;

    use super::{READY, STALLED, clear, set};

    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change_of_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut all = Vec::new();
        set(&mut all, READY, true, "Fine", "all is well", 1, at(10));
        set(&mut all, READY, true, "Finer", "all is better", 2, at(20));
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].last_transition_time.0, at(10));
        assert_eq!(all[0].reason, "Finer");
        assert_eq!(all[0].observed_generation, Some(2));
        set(&mut all, READY, false, "Bad", "all is lost", 2, at(30));
        assert_eq!(all[0].last_transition_time.0, at(30));
        set(&mut all, STALLED, true, "Bad", "all is lost", 2, at(30));
        clear(&mut all, STALLED);
        clear(&mut all, STALLED);
        assert_eq!(all.len(), 1);
    }
}
