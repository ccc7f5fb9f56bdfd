//! The `ConfigMap` that guards downscales: one lock per group, and with the zone tracker the time of each zone's last
//! downscale.
//!
//! It is only ever written from the version that was read, so of two reviews one finds it changed and looks again. A
//! lock is void after [`Lock::HOLDS`]: whoever held it has been answered for by then, and the planner takes it over to
//! tell the pods that they stay.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::{names, zones};
use slipway_kernel::instant::{Written, later, stamp};

pub(super) use crate::observe::Lock;
use crate::observe::{ALLOWED_PREFIX, locks, written};
use crate::replicas::GIVE_UP;

/// When a lock that is taken now is void.
pub(super) fn until(now: Timestamp) -> Timestamp {
    later(now, Lock::HOLDS).unwrap_or(now)
}

/// The map, as read or as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ledger(Value);

impl Ledger {
    /// As the API gave it.
    pub(super) fn read(object: Value) -> Self {
        Self(object)
    }

    /// One that is not there yet. Its label is what the planner finds it by, which sees to locks that were left behind.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let labels = json!({"app.kubernetes.io/managed-by": names::FIELD_MANAGER});
        Self(json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}}))
    }

    /// One that is not there yet, in which each of these zones is scaled down just now.
    pub(super) fn tracking<'a>(
        namespace: &str,
        name: &str,
        sets: impl Iterator<Item = &'a str>,
        now: Timestamp,
    ) -> Self {
        let fresh = Self::new(namespace, name);
        sets.fold(fresh, |ledger, set| ledger.with_downscale(set, now))
    }

    fn locks(&self) -> BTreeMap<String, Lock> {
        locks(&self.0)
    }

    /// Who holds the lock of a group.
    pub(super) fn lock(&self, group: &str, now: Timestamp) -> Option<Lock> {
        self.locks().remove(group).filter(|lock| lock.is_taken(now))
    }

    /// The same with a lock, or without.
    pub(super) fn with_lock(self, group: &str, lock: Option<Lock>) -> Self {
        let mut locks = self.locks();
        match lock {
            Some(lock) => locks.insert(group.to_owned(), lock),
            None => locks.remove(group),
        };
        self.with(&locks)
    }

    /// The same, with the lock of a group become a note of a downscale that was let through: the planner looks what
    /// became of it. What it has looked at for long enough is forgotten.
    pub(super) fn with_passed(self, group: &str, now: Timestamp) -> Self {
        let mut locks = self.locks();
        locks.retain(|name, lock| {
            let is_over = later(lock.until, GIVE_UP).is_none_or(|at| at <= now);
            !name.starts_with(ALLOWED_PREFIX) || !is_over
        });
        if let Some(mut lock) = locks.remove(group) {
            let name = format!("{ALLOWED_PREFIX}{}", lock.statefulset);
            lock.until = until(now);
            lock.holder.clear();
            if let Some(known) = locks.get(&name) {
                lock.from = lock.from.max(known.from);
                lock.to = lock.to.min(known.to);
            }
            locks.insert(name, lock);
        }
        self.with(&locks)
    }

    fn with(mut self, locks: &BTreeMap<String, Lock>) -> Self {
        let text = serde_json::to_string(locks).unwrap_or_default();
        let metadata = entry(&mut self.0, "metadata");
        if let Some(annotations) = metadata.and_then(|metadata| entry(metadata, "annotations")) {
            if locks.is_empty() {
                annotations
                    .as_object_mut()
                    .map(|all| all.remove(zones::DOWNSCALE_LOCKS));
            } else {
                annotations[zones::DOWNSCALE_LOCKS] = json!(text);
            }
        }
        self
    }

    /// When a zone was last scaled down; an error if that cannot be read.
    pub(super) fn last_downscale(&self, set: &str) -> Result<Option<Timestamp>, ()> {
        let entry = self.0.get("data").and_then(|data| data.get(set));
        match entry.map(|entry| written(entry.as_str().unwrap_or_default())) {
            None | Some(Written::Missing) => Ok(None),
            Some(Written::At(at)) => Ok(Some(at)),
            Some(Written::Unreadable(_)) => Err(()),
        }
    }

    /// The same, with a zone scaled down now.
    pub(super) fn with_downscale(mut self, set: &str, now: Timestamp) -> Self {
        if let Some(data) = entry(&mut self.0, "data") {
            data[set] = json!(json!({"lastDownscaled": stamp(now)}).to_string());
        }
        self
    }

    /// As it is sent.
    pub(super) fn body(mut self) -> Value {
        if let Some(metadata) = self.0.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if let Some(fields) = self.0.as_object_mut() {
            fields.insert("apiVersion".to_owned(), json!("v1"));
            fields.insert("kind".to_owned(), json!("ConfigMap"));
        }
        self.0
    }
}

/// An object within an object, made if need be.
fn entry<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let inner = object
        .as_object_mut()?
        .entry(field)
        .or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    Some(inner)
}
