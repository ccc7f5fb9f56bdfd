//! A downscale whose pods have to be told, from the lock of its group to the verdict.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_api::purpose::zones as purpose;
use slipway_api::zones;
use slipway_kernel::admission::{Reading, Review, Verdict};
use slipway_kernel::identity::kinds;
use slipway_kernel::instant::{later, stamp};
use slipway_kernel::{Action, ClusterId, Facts, Stores};

use super::ledger::Ledger;
use super::lock::{Ending, Taken};
use super::others::{self, Keeping};
use super::{PrepareDownscale, pods};
use crate::admit::inquiry::{Decision, Inquiry, Pending};
use crate::admit::no_downscale::refusal;
use crate::admit::replicas::Downscale;

/// For how long the annotation of a downscale is not written again.
const FRESH: Duration = Duration::from_mins(1);

/// What is said where the pods of other zones could not be looked at.
const UNCHECKED: &str =
    "an error occurred while checking whether StatefulSets have non-updated replicas";

/// A downscale of which it is known that pods have to be told.
pub(super) struct Case<'a> {
    pub(super) hook: &'a PrepareDownscale,
    pub(super) review: &'a Review,
    pub(super) stores: &'a Stores,
    pub(super) facts: &'a Facts,
    pub(super) now: Timestamp,
    pub(super) down: Downscale,
    /// The rollout group, if there is one.
    pub(super) group: Option<&'a str>,
    /// When the zone was last scaled down, by its annotation.
    pub(super) last: Option<&'a str>,
    /// The pods that go.
    pub(super) addresses: Vec<String>,
}

/// Why a downscale is stopped, after `because`.
pub(super) type Rejection = String;

impl Case<'_> {
    pub(super) fn decide(&self, inquiry: &mut Inquiry<'_>) -> Result<Decision, Pending> {
        let taken = match self.take(inquiry)? {
            Ok(taken) => taken,
            Err(why) => return Ok(self.denied(&why, Vec::new())),
        };
        match self.prepared(inquiry, &taken)? {
            Ok(()) => {}
            Err((why, is_told)) => return self.withdraw(inquiry, &why, is_told, &taken),
        }
        if let Err(why) = self.record(inquiry, &taken)? {
            return self.withdraw(inquiry, why, true, &taken);
        }
        let message = format!(
            "{} -- all pods successfully prepared for shutdown.",
            refusal(self.review, self.down).replace(" is not allowed", " is allowed")
        );
        Ok(Verdict::Allowed {
            message,
            warnings: Vec::new(),
        }
        .into())
    }

    fn denied(&self, why: &str, actions: Vec<Action>) -> Decision {
        let message = format!("{} because {why}", refusal(self.review, self.down));
        Decision {
            actions,
            ..Verdict::denied(message).into()
        }
    }

    /// The `StatefulSets` of the group, as they are now.
    pub(super) fn list(
        &self,
        inquiry: &mut Inquiry<'_>,
        round: u32,
    ) -> Result<Result<Value, Rejection>, Pending> {
        let Some(group) = self.group else {
            return Ok(Ok(json!({"items": []})));
        };
        let collection = kinds::STATEFUL_SET.path(&self.review.namespace);
        let path = format!(
            "{collection}?labelSelector={}%3D{group}",
            zones::ROLLOUT_GROUP
        );
        let answer = inquiry.api_again((purpose::LIST_GROUP, round), "GET", &path, &Value::Null)?;
        let list = answer.ok().filter(|list| others::listed(list).is_some());
        let Some(list) = list else {
            return Ok(Err("finding other statefulsets failed.".to_owned()));
        };
        // Their pods are looked at where they are kept.
        let [pods] = inquiry.read([kinds::POD])?;
        Ok(match pods {
            Reading::Current => Ok(list),
            Reading::Undefined | Reading::Failed(_) => Err(UNCHECKED.to_owned()),
        })
    }

    /// What the other zones say.
    pub(super) fn objection(&self, list: &Value, ledger: &Ledger) -> Option<Rejection> {
        let sets = others::listed(list).unwrap_or_default();
        let own = self.review.name.as_str();
        others::objection(&sets, own, ledger, self.keeping(), self.now).or_else(|| {
            others::incomplete(
                &sets,
                own,
                (self.stores, self.facts),
                &self.review.namespace,
                self.now,
            )
        })
    }

    /// Looks at the other zones again, now that nobody else may begin, and has the pods told. If that fails: why, and
    /// whether pods may have been told.
    fn prepared(
        &self,
        inquiry: &mut Inquiry<'_>,
        taken: &Taken,
    ) -> Result<Result<(), (Rejection, bool)>, Pending> {
        let list = match self.list(inquiry, 1)? {
            Ok(list) => list,
            Err(why) => return Ok(Err((why, false))),
        };
        let nothing = Ledger::new("", "");
        let ledger = match taken {
            Taken::Held(ledger) => ledger,
            Taken::Unguarded => &nothing,
        };
        if let Some(why) = self.objection(&list, ledger) {
            return Ok(Err((why, true)));
        }
        let set = self.review.name.as_str();
        let prepared = pods::prepare(inquiry, set, &self.addresses, self.hook.pod_timeout)?;
        Ok(prepared.map_err(|why| (why, true)))
    }

    /// Writes down when the zone was scaled down, and gives the lock back, in one write. The zone itself is not touched
    /// where that can be helped: whoever scales it from a version that was read would meet a conflict, each time. The
    /// planner puts the annotation on it afterwards.
    fn record(
        &self,
        inquiry: &mut Inquiry<'_>,
        taken: &Taken,
    ) -> Result<Result<(), &'static str>, Pending> {
        let annotating = "adding an annotation to the statefulset failed.";
        let failed = match self.keeping() {
            Keeping::Tracker => "setting downscale timestamp in the zone ConfigMap failed.",
            Keeping::Annotation => annotating,
        };
        let Taken::Held(ledger) = taken else {
            return Ok(self.annotated(inquiry)?.map_err(|()| annotating));
        };
        // Where the planner does not see the map it cannot put the annotation on the zone.
        let (cluster, namespace) = (ClusterId::local(), &self.review.namespace);
        let facts = self.facts;
        let is_unseen = facts.is_absent_in(&cluster, &kinds::CONFIG_MAP, namespace);
        if is_unseen && self.keeping() == Keeping::Annotation && self.annotated(inquiry)?.is_err() {
            return Ok(Err(annotating));
        }
        let recorded = self.settle(inquiry, purpose::RECORD, ledger, Ending::Passed)?;
        Ok(recorded.map_err(|_| failed))
    }

    /// Writes on the zone itself when it was scaled down.
    fn annotated(&self, inquiry: &mut Inquiry<'_>) -> Result<Result<(), ()>, Pending> {
        if self.is_fresh() {
            return Ok(Ok(()));
        }
        let collection = kinds::STATEFUL_SET.path(&self.review.namespace);
        let path = format!("{collection}/{}", self.review.name);
        let stamp = stamp(self.now);
        let body = json!({"metadata": {"annotations": {zones::LAST_DOWNSCALE: stamp}}});
        let annotated = inquiry.api(purpose::ANNOTATE, 0, "PATCH", path, body)?;
        Ok(annotated.map(|_| ()).map_err(|_| ()))
    }

    /// Whether the annotation says already that the zone is scaled down now. To write it is to change the object under
    /// review: who named its version is refused then, and must find nothing left to be written when trying again.
    fn is_fresh(&self) -> bool {
        let last = self.last.and_then(|last| last.parse::<Timestamp>().ok());
        let until = last.filter(|last| *last <= self.now);
        until
            .and_then(|last| later(last, FRESH))
            .is_some_and(|until| self.now < until)
    }

    /// Stops the downscale: tells the pods that they stay, then gives the lock back.
    fn withdraw(
        &self,
        inquiry: &mut Inquiry<'_>,
        why: &str,
        is_told: bool,
        taken: &Taken,
    ) -> Result<Decision, Pending> {
        let addresses = if is_told {
            self.addresses.as_slice()
        } else {
            &[]
        };
        let mut left = pods::undo(inquiry, addresses, self.hook.pod_timeout)?;
        left.extend(self.give_back(inquiry, taken)?);
        // When the lock is void the pods are the planner's to tell, and whoever takes it next may have told them otherwise.
        let until = self.held_until(taken);
        for question in &mut left {
            question.until = until;
        }
        Ok(self.denied(why, left.into_iter().map(Action::Ask).collect()))
    }
}
