//! When a status is written: not more often than it is useful, and never again and again the same that the server
//! throws away.
//!
//! Of each object a digest of its last status is remembered; all of it only where the server did not keep it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::Value;
use slipway_kernel::plan::Status;
use tokio::time::Instant;

use crate::environment::after;

/// How many objects' last statuses are remembered.
const MOST: usize = 16_384;

#[derive(Debug)]
struct Last {
    at: Instant,
    /// Of the conditions that were sent.
    conditions: u64,
    /// Something that was sent did not come back, or there is no status to write.
    lossy: Option<Box<Lossy>>,
}

/// What a server did not keep.
#[derive(Debug)]
struct Lossy {
    sent: Value,
    /// The status after it, and the version that the object had then.
    got: Value,
    version: String,
}

/// The last status write of each object of a cluster, by uid.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    last: BTreeMap<String, Last>,
    order: BTreeSet<(Instant, String)>,
}

/// Whether to write a status now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Now.
    Write,
    /// Not before.
    Wait(Instant),
    /// Never: the server does not keep it.
    Futile,
}

impl Statuses {
    /// Whether to write it now.
    pub(crate) fn gate(&self, status: &Status, every: Duration, now: Instant) -> Gate {
        let Some(last) = self.last.get(status.target.uid()) else {
            return Gate::Write;
        };
        if let Some(lossy) = &last.lossy {
            let unchanged = lossy.version == status.target.version();
            let kept = pruned(&status.body, &lossy.sent, &lossy.got);
            if lossy.sent == status.body || (unchanged && is_within(&kept, &lossy.got)) {
                return Gate::Futile;
            }
        }
        let free = after(last.at, every);
        if now < free && last.conditions == digest(&status.body) {
            return Gate::Wait(free);
        }
        Gate::Write
    }

    /// What came of a write; no answer if the object has no status.
    pub(crate) fn written(&mut self, status: &Status, answer: Option<&Value>, now: Instant) {
        let none = Value::Null;
        let got = answer.and_then(|object| object.get("status"));
        let got = got.unwrap_or(&none);
        let lossy = (!is_within(&status.body, got)).then(|| {
            let version = answer
                .and_then(|object| object.pointer("/metadata/resourceVersion")?.as_str())
                .unwrap_or_default();
            Box::new(Lossy {
                sent: status.body.clone(),
                got: got.clone(),
                version: version.to_owned(),
            })
        });
        let last = Last {
            at: now,
            conditions: digest(&status.body),
            lossy,
        };
        let uid = status.target.uid().to_owned();
        if let Some(before) = self.last.insert(uid.clone(), last) {
            self.order.remove(&(before.at, uid.clone()));
        }
        self.order.insert((now, uid));
        if self.last.len() > MOST
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.last.remove(&oldest);
        }
    }
}

/// A digest of the statuses of conditions.
fn digest(status: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    conditions(status).hash(&mut hasher);
    hasher.finish()
}

/// Each condition's status by its type.
fn conditions(status: &Value) -> BTreeMap<&str, &str> {
    let all = status.get("conditions").and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(|c| Some((c.get("type")?.as_str()?, c.get("status")?.as_str()?)))
        .collect()
}

/// Whether all of `sent` is in `got`; null in `sent` is what is not there.
fn is_within(sent: &Value, got: &Value) -> bool {
    match (sent, got) {
        (Value::Null, _) => got.is_null(),
        (Value::Object(sent), _) => {
            let none = Value::Null;
            let got = |field: &String| got.get(field).unwrap_or(&none);
            sent.iter()
                .all(|(field, value)| is_within(value, got(field)))
        }
        (Value::Array(sent), Value::Array(got)) => {
            sent.len() == got.len() && sent.iter().zip(got).all(|(s, g)| is_within(s, g))
        }
        // Whoever reads the number may write it differently.
        (Value::Number(sent), Value::Number(got)) => sent.as_f64() == got.as_f64(),
        _ => sent == got,
    }
}

/// `body` without the fields that were lost when `sent` became `got`.
fn pruned(body: &Value, sent: &Value, got: &Value) -> Value {
    match (body, sent, got) {
        (Value::Object(body), Value::Object(sent), Value::Object(got)) => {
            let kept =
                body.iter()
                    .filter_map(|(field, value)| match (sent.get(field), got.get(field)) {
                        (Some(sent), None) if !sent.is_null() => None,
                        (Some(sent), Some(got)) => Some((field.clone(), pruned(value, sent, got))),
                        _ => Some((field.clone(), value.clone())),
                    });
            Value::Object(kept.collect())
        }
        (Value::Array(body), Value::Array(sent), Value::Array(got)) => {
            let lossy = sent.iter().zip(got).find(|(s, g)| !is_within(s, g));
            let one = |value: &Value| match lossy {
                Some((sent, got)) => pruned(value, sent, got),
                None => value.clone(),
            };
            Value::Array(body.iter().map(one).collect())
        }
        _ => body.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use serde_json::json;
    use slipway_kernel::action::Target;
    use slipway_kernel::identity::{ObjectRef, kinds};
    use slipway_kernel::store::Meta;

    use super::*;

    const EVERY: Duration = Duration::from_secs(5);

    fn status(version: &str, body: Value) -> Status {
        let meta = Meta {
            uid: "u".to_owned(),
            version: version.to_owned(),
            ..Meta::default()
        };
        let target = Target::seen(ObjectRef::local(kinds::CONFIG_MAP, "default", "a"), &meta);
        Status { target, body }
    }

    fn answer(version: &str, status: &Value) -> Value {
        json!({"metadata": {"resourceVersion": version}, "status": status})
    }

    fn condition(status: &str) -> Value {
        json!([{"type": "Ready", "status": status}])
    }

    #[test]
    fn at_most_one_write_in_five_seconds_unless_a_condition_changes() {
        let (mut statuses, t) = (Statuses::default(), Instant::now());
        let body = |n: u8, ready: &str| json!({"n": n, "conditions": condition(ready)});
        let first = status("1", body(1, "True"));
        assert_eq!(statuses.gate(&first, EVERY, t), Gate::Write);
        statuses.written(&first, Some(&answer("2", &first.body)), t);
        let later = status("2", body(2, "True"));
        let soon = t + Duration::from_secs(1);
        assert_eq!(statuses.gate(&later, EVERY, soon), Gate::Wait(t + EVERY));
        assert_eq!(statuses.gate(&later, EVERY, t + EVERY), Gate::Write);
        let changed = status("2", body(2, "False"));
        assert_eq!(statuses.gate(&changed, EVERY, soon), Gate::Write);
    }

    #[test]
    fn what_the_server_throws_away_is_not_written_again() {
        let (mut statuses, t) = (Statuses::default(), Instant::now());
        let first = status("1", json!({"n": 1, "waitingFor": [{"reason": "A"}]}));
        statuses.written(&first, Some(&answer("2", &json!({"n": 1}))), t);
        let later = t + EVERY;
        assert_eq!(statuses.gate(&first, EVERY, later), Gate::Futile);
        // Only what is thrown away differs.
        let other = status("2", json!({"n": 1, "waitingFor": [{"reason": "B"}]}));
        assert_eq!(statuses.gate(&other, EVERY, later), Gate::Futile);
        let news = status("2", json!({"n": 2, "waitingFor": [{"reason": "B"}]}));
        assert_eq!(statuses.gate(&news, EVERY, later), Gate::Write);
    }

    #[test]
    fn where_there_is_no_status_nothing_is_written_again() {
        let (mut statuses, t) = (Statuses::default(), Instant::now());
        let first = status("1", json!({"n": 1}));
        statuses.written(&first, None, t);
        assert_eq!(statuses.gate(&first, EVERY, t + EVERY), Gate::Futile);
    }

    #[test]
    fn a_removed_field_counts_as_kept() {
        assert!(is_within(&json!({"a": null, "b": 1}), &json!({"b": 1.0})));
        assert!(!is_within(&json!({"a": null}), &json!({"a": 1})));
    }
}
