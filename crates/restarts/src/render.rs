//! Decisions as the API takes them: patches, with what is told when they are done.
//!
//! The two patches are those of the original, byte for byte in what they write: the stamp on the workload, and for a restart the same
//! value in the pod template. The claim that keeps other capabilities away goes with the restart.

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::flipper::WorkloadKind;
use slipway_api::names;
use slipway_kernel::Purpose;
use slipway_kernel::claim::Claim;
use slipway_kernel::event::EventType;
use slipway_kernel::{Action, ClusterId, Event, ObjectRef, Step, Target, duration};

use crate::due::{self, Written};
use crate::observe::{Item, Workload, reference};
use crate::reasons::news;

/// The purposes of our writes.
pub use slipway_api::purpose::restarts as purpose;

/// The stamp of a moment: RFC 3339, whole seconds, UTC.
pub fn stamp_of(now: Timestamp) -> String {
    slipway_kernel::instant::stamp(now)
}

/// A workload that is written to, or told of.
#[derive(Debug, Clone)]
pub struct Subject<'w> {
    object: ObjectRef,
    item: &'w Item<Workload>,
}

impl<'w> Subject<'w> {
    /// This workload.
    pub fn new(cluster: &ClusterId, kind: WorkloadKind, item: &'w Item<Workload>) -> Self {
        Self {
            object: reference(cluster, kind, item),
            item,
        }
    }
}

/// What is told of the policy that decides.
#[derive(Debug, Clone)]
pub struct Decider {
    /// Its name.
    pub name: String,
    /// How often it restarts.
    pub often: String,
}

/// Why a workload is stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamping {
    /// It is seen for the first time, as far as anybody knows.
    First,
    /// There is no stamp, although the policy matched a workload of this name before.
    Again,
    /// Its stamp is no time.
    Repair,
}

/// Stamps a workload, and restarts nothing.
pub fn stamp(subject: &Subject<'_>, decider: &Decider, why: Stamping, now: Timestamp) -> Step {
    let value = stamp_of(now);
    let mut events = ignored(subject, &value);
    if why == Stamping::Again {
        let note = format!(
            "{} is not there, although {} matched this workload before: it was removed or could not be written, or the workload is a new one; it is now {value}, and the next restart counts from there",
            names::LAST_RESTART,
            decider.name,
        );
        let told = (EventType::Warning, news::STAMPED_AGAIN, "Stamp");
        events.push(event(subject, told, note, &value));
    }
    if why == Stamping::Repair
        && let Written::Unreadable(found) = &subject.item.body().stamp
    {
        let note = format!(
            "{} was {found:?}, which is not a valid RFC 3339 time; it is now {value}, and the next restart by {} counts from there",
            names::LAST_RESTART,
            decider.name,
        );
        let told = (EventType::Warning, news::STAMP_REPAIRED, "Stamp");
        events.push(event(subject, told, note, &value));
    }
    let body = json!({"metadata": {"annotations": {names::LAST_RESTART: value}}});
    step(subject, purpose::STAMP, body, events)
}

/// Restarts a workload.
pub fn restart(subject: &Subject<'_>, decider: &Decider, since: Timestamp, now: Timestamp) -> Step {
    let value = stamp_of(now);
    let workload = subject.item.body();
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
    let mut events = ignored(subject, &value);
    let note = triggered(workload, decider, since, now);
    let told = (EventType::Normal, news::RESTART_TRIGGERED, "Restart");
    events.push(event(subject, told, note, &value));
    step(subject, purpose::RESTART, body, events)
}

fn triggered(workload: &Workload, decider: &Decider, since: Timestamp, now: Timestamp) -> String {
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
        decider.name,
        decider.often,
        stamp_of(since),
    )
}

/// Tells of an annotation that cannot be followed.
fn ignored(subject: &Subject<'_>, instance: &str) -> Vec<Event> {
    let Some(text) = &subject.item.body().interval else {
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
    let told = (EventType::Warning, news::ANNOTATION_IGNORED, "Stamp");
    vec![event(subject, told, note, instance)]
}

/// Something to be told on a workload.
pub fn event(
    subject: &Subject<'_>,
    told: (EventType, &'static str, &'static str),
    note: String,
    instance: &str,
) -> Event {
    let uid = &subject.item.meta().uid;
    Event::on(subject.object.clone(), uid, told, note, instance)
}

fn step(subject: &Subject<'_>, purpose: Purpose, body: Value, events: Vec<Event>) -> Step {
    Step {
        action: Action::Patch {
            target: Target::seen(subject.object.clone(), subject.item.meta()),
            purpose,
            body,
        },
        events,
    }
}
