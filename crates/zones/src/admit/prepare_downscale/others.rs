//! The other zones of a group: whether one of them was scaled down too recently, or is not whole.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::zones;
use slipway_kernel::{Facts, Stores, duration};

use super::ledger::Ledger;
use crate::admit::replicas::marked;
use crate::admit::seen;
use crate::group::go_duration;

/// Where the time of a zone's last downscale is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// On the zone itself; until it is there, in the map of the locks.
    Annotation,
    /// In the zone tracker.
    Tracker,
}

fn name_of(set: &Value) -> &str {
    let name = set.get("metadata").and_then(|meta| meta.get("name"));
    name.and_then(Value::as_str).unwrap_or_default()
}

fn number(set: &Value, field: &str) -> i64 {
    let status = set.get("status");
    let number = status.and_then(|status| status.get(field)?.as_i64());
    number.unwrap_or_default()
}

/// The `StatefulSets` of a list, by name.
pub(super) fn listed(list: &Value) -> Option<Vec<&Value>> {
    let mut sets: Vec<&Value> = list.get("items")?.as_array()?.iter().collect();
    sets.sort_by_key(|set| name_of(set));
    Some(sets)
}

/// The names of these `StatefulSets`.
pub(super) fn names_of<'a>(sets: &'a [&'a Value]) -> impl Iterator<Item = &'a str> {
    sets.iter().map(|set| name_of(set))
}

/// Why the other zones stand in the way of a downscale of `own`.
pub(super) fn objection(
    sets: &[&Value],
    own: &str,
    ledger: &Ledger,
    keeping: Keeping,
    now: Timestamp,
) -> Option<String> {
    for set in sets.iter().filter(|set| name_of(set) != own) {
        match recent(set, ledger, keeping, now) {
            Ok(None) => {}
            Ok(Some(why)) => return Some(why),
            Err(()) => {
                return Some(match keeping {
                    Keeping::Annotation => "parsing downscale annotations failed.".to_owned(),
                    // The word is said twice in the original, and people match on it.
                    Keeping::Tracker => {
                        "parsing parsing downscale timestamps from the zone ConfigMap failed."
                            .to_owned()
                    }
                });
            }
        }
    }
    None
}

fn recent(
    set: &Value,
    ledger: &Ledger,
    keeping: Keeping,
    now: Timestamp,
) -> Result<Option<String>, ()> {
    let annotated = marked(set, "annotations", zones::LAST_DOWNSCALE).filter(|t| !t.is_empty());
    let annotated = annotated.map(|time| time.parse::<Timestamp>().map_err(|_| ()));
    // The newer one counts: what is in the map is on the zone a moment later, and what the other way of keeping left
    // behind still holds.
    let annotated = match keeping {
        Keeping::Annotation => annotated.transpose()?,
        Keeping::Tracker => annotated.and_then(Result::ok),
    };
    let last = ledger.last_downscale(name_of(set))?.max(annotated);
    let label =
        marked(set, "labels", zones::MIN_TIME_BETWEEN_DOWNSCALES).filter(|label| !label.is_empty());
    let (Some(last), Some(label)) = (last, label) else {
        return Ok(None);
    };
    let wait = go_duration(label).map_err(|_| ())?;
    let age = now.duration_since(last);
    let is_recent = jiff::SignedDuration::try_from(wait).is_ok_and(|wait| age < wait);
    Ok(is_recent.then(|| {
        format!(
            "statefulset {} was downscaled at {} and is labelled to wait {} between zone downscales",
            name_of(set),
            last.strftime("%Y-%m-%d %H:%M:%S +0000 UTC"),
            duration::render(wait)
        )
    }))
}

/// Why a zone that is not whole stands in the way of a downscale of `own`.
pub(super) fn incomplete(
    sets: &[&Value],
    own: &str,
    (stores, facts): (&Stores, &Facts),
    namespace: &str,
    now: Timestamp,
) -> Option<String> {
    for set in sets.iter().filter(|set| name_of(set) != own) {
        let uid = set.get("metadata").and_then(|meta| meta.get("uid"));
        let uid = uid.and_then(Value::as_str).unwrap_or_default();
        let label = set.pointer("/spec/template/metadata/labels");
        let label = label.and_then(|all| all.get(zones::NAME_LABEL)?.as_str());
        let ready = seen::ready_pods(stores, facts, namespace, (name_of(set), uid), label, now);
        let (replicas, updated) = (number(set, "replicas"), number(set, "updatedReplicas"));
        if ready != replicas || ready != updated {
            return Some(format!(
                "statefulset {} has {} non-updated replicas and {} non-ready replicas",
                name_of(set),
                replicas - updated,
                replicas - ready
            ));
        }
    }
    None
}
