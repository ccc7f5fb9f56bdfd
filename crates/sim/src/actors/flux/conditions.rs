//! Conditions, as Flux writes them: of the generation that the object has when they are written, whatever they are about.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::super::pod;

/// Something that an object says of itself.
pub(super) struct Said<'a> {
    pub(super) of: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
}

/// Says it. The time is that of the last change of the status.
pub(super) fn say(all: &mut Vec<Condition>, said: &Said<'_>, generation: i64, now: Timestamp) {
    let known = all.iter_mut().find(|one| one.type_ == said.of);
    let made = Condition {
        type_: said.of.to_owned(),
        status: said.status.to_owned(),
        reason: said.reason.to_owned(),
        message: said.message.to_owned(),
        observed_generation: Some(generation),
        last_transition_time: pod::stamp(now),
    };
    match known {
        Some(known) if is_same(known, &made) => {}
        Some(known) => {
            let since = (known.status == made.status).then(|| known.last_transition_time.clone());
            *known = made;
            if let Some(since) = since {
                known.last_transition_time = since;
            }
        }
        None => all.push(made),
    }
    // Reconciling comes first, then Ready.
    all.sort_by_key(|one| match one.type_.as_str() {
        "Reconciling" => 0,
        "Ready" => 1,
        _ => 2,
    });
}

fn is_same(a: &Condition, b: &Condition) -> bool {
    (&a.status, &a.reason, &a.message, a.observed_generation)
        == (&b.status, &b.reason, &b.message, b.observed_generation)
}

/// Says nothing of it any more.
pub(super) fn drop(all: &mut Vec<Condition>, of: &str) {
    all.retain(|one| one.type_ != of);
}
