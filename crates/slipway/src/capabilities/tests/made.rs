//! Histories that never happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_api::names::{LAST_RESTART, RESTARTED_AT};
use slipway_kernel::identity::ClusterId;

use slipway_sim::history::{
    Change, ChangeKind, Context, Ending, Event, History, Image, Mark, Object, Request,
};
use slipway_sim::scenario::Scenario;
use slipway_sim::spell::{Disturbance, Spell};

use crate::scenarios::wiring;

const SCENARIO: &str = "{name: made, about: It never happened., duration: 10h}";

/// A history in the making.
pub(super) struct Made {
    pub(super) scenario: Scenario,
    pub(super) history: History,
    pub(super) reference: Option<Box<History>>,
    pub(super) epoch: u64,
    objects: BTreeMap<Object, Arc<Image>>,
    now: Timestamp,
    version: u64,
}

pub(super) fn object(resource: &str, name: &str) -> Object {
    (resource.into(), "shop".into(), name.into())
}

/// A merge patch that only adds.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(fields), Value::Object(new)) => {
            for (key, value) in new {
                merge(fields.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (place, new) => *place = new.clone(),
    }
}

impl Made {
    pub(super) fn new() -> Self {
        let scenario = Scenario::read("made", SCENARIO).unwrap();
        let start = scenario.start;
        Self {
            scenario,
            history: History {
                start,
                end: start,
                calm: start,
                ..History::default()
            },
            reference: None,
            epoch: 1,
            objects: BTreeMap::new(),
            now: start,
            version: 0,
        }
    }

    fn time(&self, seconds: i64) -> String {
        let time = self.history.start + SignedDuration::from_secs(seconds);
        time.to_string()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
        self.history.end = self.now;
    }

    pub(super) fn put(&mut self, object: Object, value: Value, by: Option<u64>) {
        self.version += 1;
        let after = Arc::new(Image::made(value));
        let before = self.objects.insert(object.clone(), after.clone());
        self.history.changes.push(Change {
            at: self.now,
            version: self.version,
            kind: if before.is_some() {
                ChangeKind::Modified
            } else {
                ChangeKind::Added
            },
            object,
            before,
            after: Some(after),
            by,
        });
    }

    /// An object goes, by somebody else.
    pub(super) fn remove(&mut self, object: &Object) {
        self.version += 1;
        let before = self.objects.remove(object);
        self.history.changes.push(Change {
            at: self.now,
            version: self.version,
            kind: ChangeKind::Deleted,
            object: object.clone(),
            before,
            after: None,
            by: None,
        });
    }

    pub(super) fn current(&self, object: &Object) -> Value {
        self.objects
            .get(object)
            .map_or(json!({}), |image| image.value().clone())
    }

    pub(super) fn flipper(&mut self, name: &str, spec: &Value) {
        let value = json!({"metadata": {"name": name, "generation": 9}, "spec": spec});
        self.put(object("flipper.io.github.com/flippers", name), value, None);
    }

    /// A Deployment that is rolled out and was stamped at a time.
    pub(super) fn deployment(&mut self, name: &str, stamped: i64) {
        let value = json!({
            "metadata": {
                "name": name, "uid": name, "generation": 1,
                "labels": {"mesh": "true"},
                "annotations": {LAST_RESTART: self.time(stamped)},
            },
            "spec": {"replicas": 1, "template": {"metadata": {}}},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
        });
        self.put(object("apps/deployments", name), value, None);
    }

    /// The Deployment controller finishes its work.
    pub(super) fn complete(&mut self, name: &str) {
        let object = object("apps/deployments", name);
        let mut value = self.current(&object);
        value["status"]["observedGeneration"] = value["metadata"]["generation"].clone();
        self.put(object, value, None);
    }

    pub(super) fn request(&mut self, method: &str, uri: &str, body: Value) -> u64 {
        let number = self.history.requests.len() as u64;
        self.history.requests.push(Request {
            number,
            cluster: ClusterId::local(),
            at: self.now,
            replica: "slipway-0-0".to_owned(),
            method: method.to_owned(),
            uri: uri.to_owned(),
            media: "application/merge-patch+json".to_owned(),
            body,
            context: Context {
                controller: "restarts".to_owned(),
                epoch: self.epoch,
                ..Context::default()
            },
            fault: None,
            ending: Ending::Answered(200),
            versions: (self.version, self.version + 1),
            tide: self.version,
        });
        number
    }

    pub(super) fn last_request(&mut self) -> &mut Request {
        self.history.requests.last_mut().unwrap()
    }

    /// A restart by the operator, dated at a time.
    pub(super) fn restart(&mut self, name: &str, dated: i64) {
        self.restart_with(name, dated, &json!({}));
    }

    pub(super) fn restart_with(&mut self, name: &str, dated: i64, more: &Value) {
        let object = object("apps/deployments", name);
        let uri = format!("/apis/apps/v1/namespaces/shop/deployments/{name}?fieldManager=slipway");
        let body = json!({"metadata": {"resourceVersion": "1", "uid": name}});
        let number = self.request("PATCH", &uri, body);
        let date = self.time(dated);
        if !self.objects.contains_key(&object) {
            let value = json!({
                "metadata": {"uid": name, "annotations": {LAST_RESTART: self.time(0)}},
                "spec": {"template": {"metadata": {}}},
            });
            self.put(object.clone(), value, None);
        }
        let mut value = self.current(&object);
        merge(&mut value, more);
        let generation = value["metadata"]["generation"].as_i64().unwrap_or_default();
        let patch = json!({
            "metadata": {"generation": generation + 1, "annotations": {LAST_RESTART: date}},
            "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: date}}}},
        });
        merge(&mut value, &patch);
        self.put(object, value, Some(number));
    }

    /// A status of a Flipper by the operator.
    pub(super) fn status(&mut self, name: &str, status: Value) {
        let uri =
            format!("/apis/flipper.io.github.com/v1alpha1/namespaces/shop/flippers/{name}/status");
        let body = json!({"metadata": {"resourceVersion": "1", "uid": name}});
        let number = self.request("PATCH", &uri, body);
        let object = object("flipper.io.github.com/flippers", name);
        let mut value = self.current(&object);
        value["status"] = status;
        self.put(object, value, Some(number));
    }

    pub(super) fn post_event(&mut self) {
        let uri = "/apis/events.k8s.io/v1/namespaces/shop/events";
        let number = self.request("POST", uri, json!({}));
        self.put(object("events.k8s.io/events", "e"), json!({}), Some(number));
    }

    /// The first replica renews its lease.
    pub(super) fn lease(&mut self) {
        let uri = "/apis/coordination.k8s.io/v1/namespaces/slipway-system/leases/l";
        let body = json!({"metadata": {"resourceVersion": "1"}});
        let number = self.request("PUT", uri, body);
        let lease = (
            "coordination.k8s.io/leases".into(),
            "slipway-system".into(),
            "l".into(),
        );
        self.put(lease, json!({}), Some(number));
    }

    pub(super) fn mark(&mut self, what: Event, later: i64) {
        let at = self.now + SignedDuration::from_secs(later);
        self.history.marks.push(Mark { at, what });
    }

    /// Everything is put back to so many seconds before.
    pub(super) fn restore(&mut self, back: u64) {
        let lasts = std::time::Duration::from_secs(back);
        let at = self.now.duration_since(self.history.start).unsigned_abs();
        self.mark(Event::Spell(Spell::new(Disturbance::Restore, at, lasts)), 0);
    }

    /// Who objects, and to what.
    pub(super) fn objections(&self) -> Vec<(&'static str, String)> {
        let reference = self.reference.as_deref();
        let verdicts = wiring()
            .oracles
            .judge(&self.scenario, &self.history, reference);
        verdicts
            .into_iter()
            .flat_map(|verdict| {
                let id = verdict.id;
                let all = verdict.findings.violations.into_iter();
                all.map(move |violation| (id, violation.text))
            })
            .collect()
    }
}
