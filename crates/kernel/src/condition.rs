//! metav1 conditions, set so that kstatus, Helm and people understand them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

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
        message: message.to_owned(),
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
