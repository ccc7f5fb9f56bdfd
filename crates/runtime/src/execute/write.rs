//! Sends the writes of a plan, each after a last look at whether it may be.

use slipway_kernel::Purpose;
use slipway_kernel::identity::ObjectRef;
use slipway_kernel::parts::{Part, Parts};

use super::{Execution, StepResult, refused};
use crate::clusters::Cluster;
use crate::request::{ApiRequest, Outcome};

/// How often a write is begun whose connection ends before it is sent.
const ATTEMPTS: u32 = 2;

impl Execution {
    /// Sends a write, unless this replica may not act any more or the batch has been stopped meanwhile. Into a member nothing is
    /// sent while there is a doubt about who it is: one may arise while others of the batch are under way.
    pub(super) async fn write(
        &self,
        object: &ObjectRef,
        wanted: ApiRequest,
        (verb, purpose): (&'static str, Purpose),
    ) -> Result<Outcome, StepResult> {
        let Some(cluster) = self.clusters.get(&object.cluster) else {
            return Err(StepResult::Unidentified);
        };
        let Ok(_slot) = cluster.slots.acquire().await else {
            return Err(StepResult::Deposed);
        };
        let (wanted, outcome, epoch) = self.send(object, wanted, (&cluster, purpose)).await?;
        let timeout = self.shared.settings.request_timeout;
        let controller = self.key.controller;
        let rights = &cluster.rights;
        let outcome = rights.tell_apart(&cluster.client, &wanted, outcome, timeout);
        let outcome = outcome.await;
        if !matches!(outcome, Outcome::Busy(_) | Outcome::Unknown(..)) {
            let mut state = self.shared.lock();
            if let Some(known) = state.of_mut(&object.cluster) {
                known.throttles.remove(self.key.controller);
            }
        }
        let kind = object.kind.kind.as_ref();
        let ended = outcome.as_str();
        self.shared
            .metrics
            .acted(controller, (verb, kind, purpose), ended);
        match &outcome {
            Outcome::Done(_) => {
                tracing::info!(controller, verb, %object, %purpose, epoch, "object written");
            }
            Outcome::Refused(refused) | Outcome::Absent(refused) | Outcome::Unknown(refused, _) => {
                let reason = refused.reason.as_str();
                let message = refused::repeated(object, &refused.message);
                tracing::warn!(controller, verb, %object, %purpose, ended, reason, message, "write not done");
            }
            Outcome::Conflict | Outcome::Busy(_) => {
                tracing::debug!(controller, verb, %object, %purpose, ended, "write not done");
            }
        }
        Ok(outcome)
    }

    /// Sends it over the connection over which the member has said who it is, and tries once more where that one has ended before
    /// anything was sent. Gives it with its answer, and the leadership that it was sent in.
    async fn send(
        &self,
        object: &ObjectRef,
        wanted: ApiRequest,
        (cluster, purpose): (&Cluster, Purpose),
    ) -> Result<(ApiRequest, Outcome, i64), StepResult> {
        let shared = &self.shared;
        let (timeout, controller) = (shared.settings.request_timeout, self.key.controller);
        let mut wanted = wanted.reading(self.reads(object));
        for _ in 0..ATTEMPTS {
            if self.is_stopped() {
                return Err(StepResult::Deposed);
            }
            let Some(way) = self.way_into(cluster).await else {
                return Err(StepResult::Unidentified);
            };
            let leads = shared.leads_in(self.lease, &object.cluster, controller);
            let Some(epoch) = leads.filter(|_| !self.is_stopped()) else {
                return Err(StepResult::Deposed);
            };
            wanted = wanted.traced(self.context(epoch, purpose));
            let before = self.known(object);
            let outcome = wanted.send(&way, timeout).await;
            if way.is_unsent() {
                continue;
            }
            if !object.cluster.is_local() {
                // In members nobody asks for the newest version now and then.
                self.compare(object, before, &outcome);
            }
            return Ok((wanted, outcome, epoch));
        }
        Err(StepResult::Unidentified)
    }

    /// What is read of the answer to a write: who wrote which field only where a store wants to know it, because that may be the larger
    /// part of an object.
    fn reads(&self, object: &ObjectRef) -> Parts {
        let state = self.shared.lock();
        let known = state.stores.reads(&object.cluster, &object.kind);
        Parts::ALL.without(Part::ManagedFields).or(known)
    }

    /// What the trace is to know about a write.
    pub(super) fn context(&self, epoch: i64, purpose: Purpose) -> String {
        let basis: Vec<String> = self
            .plan
            .basis
            .iter()
            .map(|((_, kind), version)| format!("{}:{version}", kind.plural))
            .collect();
        format!(
            "controller={};replica={};epoch={epoch};purpose={purpose};basis={}",
            self.key.controller,
            self.shared.settings.replica,
            basis.join(",")
        )
    }
}
