//! Writes statuses, after the steps.
//!
//! By patch; where a role grants only `update`, by reading the object and replacing its status at the version that the
//! plan was made for. That is remembered for the kind until the next heartbeat.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_api::names::FIELD_MANAGER;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::fields::merge;
use slipway_kernel::identity::ObjectRef;
use slipway_kernel::plan::Status;
use slipway_kernel::store::Meta;
use tokio::time::Instant;

use super::{Execution, Report, StepResult, UnconfirmedWrite, settle::Found};
use crate::environment::after;
use crate::request::{ApiRequest, Outcome};
use crate::status::Gate;

fn missing(object: &ObjectRef) -> Missing {
    Missing::new(&object.cluster, &object.kind, Right::PatchStatus)
}

fn is_forbidden(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(refused) if refused.is_forbidden())
}

impl Execution {
    pub(super) async fn statuses(&self, is_intent: bool, report: &mut Report) {
        let every = if is_intent {
            Duration::ZERO
        } else {
            self.shared.settings.status_every
        };
        for status in &self.plan.statuses {
            let ended = self.status(status, every).await;
            if !report.add(ended) {
                self.stopped.store(true, Ordering::Release);
                return;
            }
        }
    }

    async fn status(&self, status: &Status, every: Duration) -> StepResult {
        let object = status.target.object();
        let gate = {
            let state = self.shared.lock();
            let known = state.of(&object.cluster);
            known.map(|known| known.statuses.gate(status, every, Instant::now()))
        };
        let Some(gate) = gate else {
            return StepResult::Deposed;
        };
        match gate {
            Gate::Write => {}
            Gate::Futile => {
                // What the next plan was to rest on is not kept: it would come to the same, again and again.
                if every.is_zero() {
                    self.unseen.store(true, Ordering::Release);
                }
                return StepResult::Done;
            }
            Gate::Wait(until) => return StepResult::Waits(self.moment(until)),
        }
        if let Some(early) = self.too_early((object, FIELD_MANAGER), Some(&status.target)) {
            return early;
        }
        let unconfirmed = UnconfirmedWrite::of(Some(&status.target));
        let outcome = match self.send_status(status).await {
            Ok(outcome) => outcome,
            Err(unsent) => return unsent,
        };
        if self.is_outlived() {
            return StepResult::Outlived;
        }
        match outcome {
            Outcome::Done(value) => {
                self.note(status, Some(&value));
                self.written(object, FIELD_MANAGER, &value);
                StepResult::Done
            }
            Outcome::Absent(_) => match self.read(object, &unconfirmed.uid).await {
                // The object is there, so it is its status that is not.
                Found::Object(value) if Meta::of(&value).uid == unconfirmed.uid => {
                    self.note(status, None);
                    StepResult::Done
                }
                Found::NotServed(refused) => {
                    let outcome = Outcome::Refused(refused);
                    self.on_failed_write(object, unconfirmed, outcome).await
                }
                _ => StepResult::Outdated,
            },
            outcome => self.on_failed_write(object, unconfirmed, outcome).await,
        }
    }

    /// Remembers what came of a status; no answer if the object has none.
    fn note(&self, status: &Status, answer: Option<&Value>) {
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&self.key.cluster) {
            known.statuses.written(status, answer, Instant::now());
        }
    }

    /// Patches the status, or replaces it where that is forbidden; nothing is sent if this replica may not act any more.
    async fn send_status(&self, status: &Status) -> Result<Outcome, StepResult> {
        let object = status.target.object();
        let known = {
            let state = self.shared.lock();
            let known = state.of(&object.cluster);
            let until = known.and_then(|known| known.replaced.get(&missing(object)));
            until.is_some_and(|until| Instant::now() < *until)
        };
        if known {
            let outcome = self.replace_status(status).await;
            if outcome.as_ref().is_ok_and(is_forbidden) {
                self.forget(object);
            }
            return outcome;
        }
        let body = json!({"status": status.body});
        let wanted = ApiRequest::patch(&status.target, "/status", body);
        let outcome = self
            .write(object, wanted, ("patch", purpose::STATUS))
            .await?;
        match &outcome {
            Outcome::Refused(refused) if is_forbidden(&outcome) => {
                let replaced = self.replace_status(status).await?;
                // Where neither is granted, patching is what our own role grants.
                if is_forbidden(&replaced) {
                    return Ok(outcome);
                }
                // Only what has been done is known to be granted.
                if let Outcome::Done(_) = replaced {
                    self.remember(object, &refused.message);
                }
                Ok(replaced)
            }
            Outcome::Done(_) => {
                self.forget(object);
                Ok(outcome)
            }
            _ => Ok(outcome),
        }
    }

    /// Statuses of this kind are patched again.
    fn forget(&self, object: &ObjectRef) {
        let missing = missing(object);
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&object.cluster)
            && known.replaced.remove(&missing).is_some()
        {
            known.facts.missing.remove(&missing);
        }
    }

    /// From now on statuses of this kind are replaced.
    fn remember(&self, object: &ObjectRef, why: &str) {
        let missing = missing(object);
        let until = after(Instant::now(), self.shared.settings.heartbeat);
        let mut state = self.shared.lock();
        let Some(known) = state.of_mut(&object.cluster) else {
            return;
        };
        known.replaced.insert(missing.clone(), until);
        if known.facts.missing.insert(missing) {
            let kind = object.kind.kind.as_ref();
            tracing::warn!(
                kind,
                why,
                "statuses cannot be patched; they are read and replaced"
            );
        }
    }

    /// Reads the object, and replaces its status if it is still the one that the plan was made for.
    async fn replace_status(&self, status: &Status) -> Result<Outcome, StepResult> {
        let object = status.target.object();
        let mut value = match self.fetch(object).await {
            Outcome::Done(value) => value,
            other => return Ok(other),
        };
        let meta = Meta::of(&value);
        if meta.uid != status.target.uid() || meta.version != status.target.version() {
            if !self.is_outlived() {
                self.shared.lock().overlay(object, &value);
            }
            return Ok(Outcome::Conflict);
        }
        if let Some(fields) = value.as_object_mut() {
            // A list, in which it may have been found, has neither.
            fields.insert("kind".to_owned(), json!(object.kind.kind));
            fields.insert("apiVersion".to_owned(), json!(object.kind.api_version()));
            let known = fields.entry("status").or_insert(Value::Null);
            merge(known, &status.body);
        }
        let wanted = ApiRequest::replace_part(object, "/status", value);
        self.write(object, wanted, ("update", purpose::STATUS))
            .await
    }
}
