//! The `ConfigMap` that carries a status where there is no object of ours to carry it: a zone group, the default criteria.
//!
//! It is written on change, and rarely. Its fields are texts: `status` is the status as JSON, `updatedAt` is when it was
//! written; the others are the capability's.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use slipway_api::names;

use crate::fact::Facts;
use crate::fields::strings;
use crate::identity::{ClusterId, kinds};
use crate::instant::{instant, later, stamp};
use crate::parts::Parts;
use crate::plan::Plan;
use crate::store::{Item, Projection, Stores, Undecodable};

/// It is not written more often than this. A time in the future is another clock's, and counts as long ago.
const PAUSE: Duration = Duration::from_secs(10);

const STATUS: &str = "status";
const UPDATED_AT: &str = "updatedAt";

/// What is kept of such a map. `Of` names whose it is: maps that are watched in different ways are kept in different
/// stores, and a store is found by its projection.
#[derive(Debug, Clone)]
pub struct StatusMap<Of> {
    /// Its contents.
    pub data: BTreeMap<String, String>,
    of: PhantomData<Of>,
}

impl<Of: std::fmt::Debug + Send + Sync + 'static> Projection for StatusMap<Of> {
    const READS: Parts = Parts::NONE;

    fn project(object: &Value) -> Result<Self, Undecodable> {
        Ok(Self {
            data: strings(object, "/data"),
            of: PhantomData,
        })
    }
}

impl<Of> StatusMap<Of> {
    /// Whether a field has this value.
    pub fn has(&self, field: &str, value: &str) -> bool {
        self.data.get(field).is_some_and(|known| known == value)
    }

    /// The status as stored; what cannot be read counts as absent.
    pub fn status<T: DeserializeOwned + Default>(&self) -> T {
        let text = self.data.get(STATUS);
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// When it may be written again, if that is not yet.
    fn free_at(&self, now: Timestamp) -> Option<Timestamp> {
        let written = self.data.get(UPDATED_AT).and_then(|at| instant(at));
        let free = written
            .filter(|at| *at <= now)
            .and_then(|at| later(at, PAUSE));
        free.filter(|free| now < *free)
    }
}

/// The map of this name, if there is one; none if `ConfigMaps` cannot be seen.
pub fn seen<Of: std::fmt::Debug + Send + Sync + 'static>(
    stores: &Stores,
    facts: &Facts,
    cluster: &ClusterId,
    namespace: &str,
    name: &str,
) -> Option<Option<Item<StatusMap<Of>>>> {
    let store = stores
        .typed::<StatusMap<Of>>(cluster, &kinds::CONFIG_MAP)
        .filter(|store| store.is_synced())?;
    if facts.is_absent_in(cluster, &kinds::CONFIG_MAP, namespace) {
        return None;
    }
    Some(store.get(namespace, name).and_then(Item::of))
}

/// What a map is to say.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    fields: Map<String, Value>,
}

impl Contents {
    /// The same, with a field.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<String>) -> Self {
        self.fields
            .insert(field.to_owned(), Value::String(value.into()));
        self
    }

    /// The same, with a status.
    #[must_use]
    pub fn with_status(self, status: &impl Serialize) -> Self {
        self.with(STATUS, serde_json::to_string(status).unwrap_or_default())
    }

    /// What is to be written now, if anything is: not what is there already, and nothing shortly after the last time. Then the
    /// plan is to be made anew when it may be written.
    pub fn due<Of>(
        mut self,
        before: Option<&StatusMap<Of>>,
        plan: &mut Plan,
        now: Timestamp,
    ) -> Option<Value> {
        if let Some(before) = before {
            let is_known = |(field, value): (&String, &Value)| {
                value.as_str().is_some_and(|value| before.has(field, value))
            };
            if self.fields.iter().all(is_known) {
                return None;
            }
            if let Some(free) = before.free_at(now) {
                plan.wake(free);
                return None;
            }
        }
        self.fields
            .insert(UPDATED_AT.to_owned(), Value::String(stamp(now)));
        Some(Value::Object(self.fields))
    }
}

/// A `ConfigMap` of our own, with the label that we find it by.
pub fn own_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": names::FIELD_MANAGER},
        },
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{Contents, StatusMap};
    use crate::plan::Plan;
    use crate::store::Projection;

    #[derive(Debug)]
    enum Toy {}

    fn map(data: &Value) -> Option<StatusMap<Toy>> {
        StatusMap::project(&json!({"data": data})).ok()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap_or_default()
    }

    fn due(before: &Value, now: i64) -> (Option<Value>, Option<i64>) {
        let mut plan = Plan::default();
        let made = Contents::default().with_status(&json!({"a": 1}));
        let before = map(before);
        let due = made.due(before.as_ref(), &mut plan, at(now));
        (due, plan.wake_at.map(Timestamp::as_second))
    }

    #[test]
    fn it_is_written_on_change_and_rarely() {
        let made = json!({"status": "{\"a\":1}", "updatedAt": "1970-01-01T00:01:40Z"});
        assert_eq!(due(&json!({}), 100), (Some(made.clone()), None));
        assert_eq!(due(&made, 200), (None, None));
        let other = json!({"status": "{}", "updatedAt": "1970-01-01T00:01:40Z"});
        assert_eq!(due(&other, 109), (None, Some(110)));
        assert!(due(&other, 110).0.is_some());
        // Another clock's time.
        assert!(due(&other, 99).0.is_some());
    }

    #[test]
    fn what_cannot_be_read_is_absent() {
        let status = |data: &Value| map(data).map(|map| map.status::<Vec<i64>>());
        assert_eq!(status(&json!({"status": "[1]"})), Some(vec![1]));
        assert_eq!(status(&json!({"status": "{"})), Some(Vec::new()));
        assert_eq!(status(&json!({})), Some(Vec::new()));
    }
}
