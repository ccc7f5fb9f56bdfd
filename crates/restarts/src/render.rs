//! Decisions as the API takes them: patches, with what is told when they are done.
//!
//! The two patches are those of the original, byte for byte in what they write: the stamp on the workload, and for a restart the same
//! value in the pod template. The claim that keeps other capabilities away goes with the restart.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::names;
use slipway_kernel::Purpose;
use slipway_kernel::claim::Claim;
use slipway_kernel::event::Severity;
use slipway_kernel::{Action, ClusterId, Event, Step, Target, duration};

use crate::due::{self, Written};
use crate::observe::Workload;
use crate::plan::active::Active;
use crate::plan::gates::reference;
use crate::plan::sweep::Case;
use crate::reasons::news;

/// The purposes of our writes.
pub use slipway_api::purpose::restarts as purpose;

/// The stamp of a moment: RFC 3339, whole seconds, UTC.
pub fn stamp_of(now: Timestamp) -> String {
    slipway_kernel::instant::stamp(now)
}

/// Stamps a workload, and restarts nothing.
pub fn stamp(
    cluster: &ClusterId,
    case: &Case<'_>,
    active: &Active<'_>,
    repair: bool,
    now: Timestamp,
) -> Step {
    let value = stamp_of(now);
    let mut events = ignored(cluster, case, &value);
    if repair && let Written::Unreadable(found) = &case.item.body().stamp {
        let note = format!(
            "{} was {found:?}, which is not a valid RFC 3339 time; it is now {value}, and the next restart by {} counts from there",
            names::LAST_RESTART,
            active.name(),
        );
        events.push(event(
            cluster,
            case,
            Severity::Warning,
            news::STAMP_REPAIRED,
            "Stamp",
            note,
            &value,
        ));
    }
    let body = json!({"metadata": {"annotations": {names::LAST_RESTART: value}}});
    step(cluster, case, purpose::STAMP, body, events)
}

/// Restarts a workload.
pub fn restart(
    cluster: &ClusterId,
    case: &Case<'_>,
    active: &Active<'_>,
    since: Timestamp,
    now: Timestamp,
) -> Step {
    let value = stamp_of(now);
    let workload = case.item.body();
    let mut annotations = json!({names::LAST_RESTART: value});
    let claim = due::later(due::second(now), workload.deadline).map(|until| Claim {
        holder: crate::NAME.to_owned(),
        until,
    });
    if let (Some(claim), Some(map)) = (claim, annotations.as_object_mut()) {
        map.insert(
            names::DISRUPTION_CLAIM.to_owned(),
            Value::String(claim.render()),
        );
    }
    let body = json!({
        "metadata": {"annotations": annotations},
        "spec": {"template": {"metadata": {"annotations": {names::RESTARTED_AT: value}}}},
    });
    let mut events = ignored(cluster, case, &value);
    let note = triggered(workload, active, since, now);
    events.push(event(
        cluster,
        case,
        Severity::Normal,
        news::RESTART_TRIGGERED,
        "Restart",
        note,
        &value,
    ));
    step(cluster, case, purpose::RESTART, body, events)
}

fn triggered(workload: &Workload, active: &Active<'_>, since: Timestamp, now: Timestamp) -> String {
    let last = due::last(workload.past(), now)
        .map(stamp_of)
        .unwrap_or_default();
    let recreates = if workload.recreates {
        "; its strategy is Recreate, so all its pods stop before new ones start"
    } else {
        ""
    };
    let removed = if workload.stamp == Written::Missing {
        "; somebody had removed the stamp"
    } else {
        ""
    };
    format!(
        "Restarted by {}, {}: last restart {last}, due since {}{recreates}{removed}",
        active.name(),
        active.often(),
        stamp_of(since),
    )
}

/// Tells of an annotation that cannot be followed.
fn ignored(cluster: &ClusterId, case: &Case<'_>, instance: &str) -> Vec<Event> {
    let Some(text) = &case.item.body().interval else {
        return Vec::new();
    };
    let problem = match duration::parse(text) {
        Ok(interval) if !interval.is_zero() => return Vec::new(),
        Ok(_) => "it is zero".to_owned(),
        Err(error) => error.to_string(),
    };
    let note = format!(
        "Annotation {}: {problem}; the policy's interval is used",
        names::RESTART_INTERVAL
    );
    let reason = news::ANNOTATION_IGNORED;
    vec![event(
        cluster,
        case,
        Severity::Warning,
        reason,
        "Stamp",
        note,
        instance,
    )]
}

/// Something to be told on a workload.
pub fn event(
    cluster: &ClusterId,
    case: &Case<'_>,
    severity: Severity,
    reason: &'static str,
    action: &'static str,
    note: String,
    instance: &str,
) -> Event {
    Event {
        regarding: reference(cluster, case.kind, case.item),
        uid: case.item.meta().uid.clone(),
        severity,
        reason,
        action,
        note,
        instance: instance.to_owned(),
    }
}

fn step(
    cluster: &ClusterId,
    case: &Case<'_>,
    purpose: Purpose,
    body: Value,
    events: Vec<Event>,
) -> Step {
    let object = reference(cluster, case.kind, case.item);
    Step {
        action: Action::Patch {
            target: Target::seen(object, case.item.meta()),
            purpose,
            body,
        },
        events,
    }
}
