//! When a status is written: not more often than it is useful, and never again and again the same that the server
//! throws away.

use std::collections::BTreeMap;
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
    sent: Value,
    /// The status after it, and the version that the object had then.
    got: Value,
    version: String,
    /// Something that was sent did not come back, or there is no status to write.
    lossy: bool,
}

/// The last status write of each object, by uid.
#[derive(Debug, Default)]
pub(crate) struct Statuses(BTreeMap<String, Last>);

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
        let Some(last) = self.0.get(status.target.uid()) else {
            return Gate::Write;
        };
        if last.lossy {
            let unchanged = last.version == status.target.version();
            let kept = pruned(&status.body, &last.sent, &last.got);
            if last.sent == status.body || (unchanged && is_within(&kept, &last.got)) {
                return Gate::Futile;
            }
        }
        let free = after(last.at, every);
        if now < free && conditions(&last.sent) == conditions(&status.body) {
            return Gate::Wait(free);
        }
        Gate::Write
    }

    /// What came of a write; no answer if the object has no status.
    pub(crate) fn written(&mut self, status: &Status, answer: Option<&Value>, now: Instant) {
        let got = answer.and_then(|object| object.get("status")).cloned();
        let got = got.unwrap_or(Value::Null);
        let version = answer
            .and_then(|object| object.pointer("/metadata/resourceVersion")?.as_str())
            .unwrap_or_default()
            .to_owned();
        let lossy = !is_within(&status.body, &got);
        let last = Last {
            at: now,
            sent: status.body.clone(),
            got,
            version,
            lossy,
        };
        self.0.insert(status.target.uid().to_owned(), last);
        if self.0.len() > MOST {
            let oldest = self.0.iter().min_by_key(|(_, last)| last.at);
            if let Some(uid) = oldest.map(|(uid, _)| uid.clone()) {
                self.0.remove(&uid);
            }
        }
    }
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
