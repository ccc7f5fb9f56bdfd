//! What people are shown and told: blockers, `status.waitingFor`, events.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use slipway_api::canary::{Canary, CanaryStatus, Phase};
use slipway_kernel::blocker::waiting_for;
use slipway_kernel::capability::Severity;
use slipway_kernel::claim::Claim;
use slipway_kernel::event::EventType;
use slipway_kernel::instant::later;
use slipway_kernel::plan::Status;
use slipway_kernel::{Blocker, Event, ObjectRef, Plan, Target};

use crate::engine::{Hold, News, Run};
use crate::kinds;
use crate::observe::World;
use crate::places::Places;
use crate::reasons::{Reason, SYNCED};
use crate::render;
use crate::standalone::primary::whole;
use crate::standalone::scene::{Obstacle, Stand};

/// What is waited for in every run is shown when it has lasted for so long.
const USUAL: Duration = Duration::from_secs(10);

/// Whoever reports on a Canary.
pub(super) struct Report<'a> {
    world: &'a World,
    now: Timestamp,
}

impl<'a> Report<'a> {
    pub(super) fn new(world: &'a World, now: Timestamp) -> Self {
        Self { world, now }
    }

    /// A Canary gets no status: nobody knows what is in the one that it has, or it would not be kept.
    pub(super) fn untold(&self, obstacle: &Obstacle, plan: &mut Plan) {
        plan.blockers.push(self.blocked(obstacle));
        self.warn(&obstacle.message, plan);
    }

    /// A Canary is not followed. Gives its status, which is yet to be written.
    pub(super) fn obstructed(
        &self,
        canary: &Canary,
        obstacle: &Obstacle,
        plan: &mut Plan,
    ) -> CanaryStatus {
        let before = canary.status.clone().unwrap_or_default();
        let mut after = before.clone();
        plan.blockers.push(self.blocked(obstacle));
        after.waiting_for = waiting_for(&plan.blockers, &before.waiting_for);
        after.observed_generation = canary.metadata.generation;
        if after.phase.is_none() {
            after.phase = Some(Phase::Initializing.as_str().to_owned());
        }
        let reason = obstacle.reason.as_str();
        let is_known = before.waiting_for.iter().any(|one| one.reason == reason);
        if !is_known {
            self.warn(&obstacle.message, plan);
        }
        after
    }

    /// What a Canary that is being deleted waits for.
    pub(super) fn ending(&self, canary: &Canary, reason: Reason, message: &str, plan: &mut Plan) {
        let before = canary.status.clone().unwrap_or_default();
        let mut after = before.clone();
        let since = self.changed().unwrap_or(self.now);
        plan.blockers.push(self.blocker(reason, message, since));
        self.waiting(&before, &mut after, plan);
        plan.statuses.extend(self.status(&before, &after));
    }

    /// Something stands in the way of a part of what is to be done.
    pub(super) fn obstacle(&self, obstacle: &Obstacle, plan: &mut Plan) {
        plan.blockers.push(self.blocked(obstacle));
    }

    /// Another capability disrupts the workload now.
    pub(super) fn claimed(&self, claim: &Claim, plan: &mut Plan) {
        let message = format!("{} disrupts the workload now", claim.holder);
        plan.blockers.push(Blocker {
            until: Some(claim.until),
            ..self.blocker(Reason::ClaimedByOther, &message, self.now)
        });
        plan.wake(claim.until);
    }

    fn warn(&self, message: &str, plan: &mut Plan) {
        plan.events.push(self.event(EventType::Warning, message));
    }

    fn blocked(&self, obstacle: &Obstacle) -> Blocker {
        Blocker {
            until: obstacle.until,
            ..self.blocker(obstacle.reason, &obstacle.message, self.now)
        }
    }

    fn blocker(&self, reason: Reason, message: &str, since: Timestamp) -> Blocker {
        Blocker {
            reason: reason.as_str(),
            message: message.to_owned(),
            object: render::canary(self.world),
            since,
            until: None,
            unblock: unblock(reason).to_owned(),
        }
    }

    /// Why a run does not go on, and what of it is to be shown.
    pub(super) fn held(&self, stand: &Stand, holds: &[Hold], plan: &mut Plan) {
        for hold in holds {
            let since = since(&stand.run, hold.reason).or_else(|| self.changed());
            let since = since.unwrap_or(self.now);
            plan.blockers.push(Blocker {
                object: self.object(stand, hold.reason),
                until: hold.until,
                ..self.blocker(hold.reason, &hold.message, since)
            });
        }
    }

    /// When the run changed last.
    fn changed(&self) -> Option<Timestamp> {
        let canary = self.world.canary.body().read.as_ref().ok()?;
        let status = canary.status.as_ref()?;
        Some(status.last_transition_time.as_ref()?.0)
    }

    /// What the API refused of what is to be done.
    pub(super) fn refused(&self, plan: &mut Plan) {
        let mut refused = Vec::new();
        for step in &plan.steps {
            let Some(object) = step.action.object() else {
                continue;
            };
            if let Some(refusal) = self.world.refusals.get(object) {
                let message = format!("{object}: {}: {}", refusal.reason, refusal.message);
                refused.push(Blocker {
                    object: object.clone(),
                    until: Some(refusal.retry_at),
                    ..self.blocker(Reason::RefusedByApi, &message, refusal.since)
                });
            }
        }
        plan.blockers.extend(refused);
    }

    /// `status.waitingFor`: what is waited for in every run only when it lasts.
    pub(super) fn waiting(&self, before: &CanaryStatus, after: &mut CanaryStatus, plan: &mut Plan) {
        let mut shown = Vec::new();
        for blocker in &plan.blockers {
            let is_usual = Reason::of(blocker.reason).is_some_and(is_usual);
            match later(blocker.since, USUAL).filter(|end| is_usual && *end > self.now) {
                Some(end) => plan.wake_at = Some(plan.wake_at.map_or(end, |at| at.min(end))),
                None => shown.push(blocker.clone()),
            }
        }
        after.waiting_for = waiting_for(&shown, &before.waiting_for);
    }

    fn object(&self, stand: &Stand, reason: Reason) -> ObjectRef {
        let of = |kind: &str, name: &str| {
            let kind = if kind == kinds::DAEMON_SET.kind {
                kinds::DAEMON_SET
            } else {
                kinds::DEPLOYMENT
            };
            render::object(self.world, kind, name)
        };
        let read = self.world.canary.body().read.as_ref();
        let kind = read.map_or("", Places::kind);
        match reason {
            Reason::SourceNotReady => of(kind, &stand.names.primary),
            Reason::TargetNotReady | Reason::TargetNotFound => of(kind, &stand.names.target),
            Reason::RoutingPending => render::object(self.world, kinds::SERVICE, &stand.names.apex),
            _ => render::canary(self.world),
        }
    }

    /// A status that differs, as a patch.
    pub(super) fn status(&self, before: &CanaryStatus, after: &CanaryStatus) -> Option<Status> {
        let body = difference(before, after)?;
        let meta = self.world.canary.meta();
        let target = Target::seen(render::canary(self.world), meta);
        Some(Status { target, body })
    }

    /// Something that is told on the Canary.
    pub(super) fn event(&self, severity: EventType, text: &str) -> Event {
        let meta = self.world.canary.meta();
        let told = (severity, SYNCED, "Sync");
        let object = render::canary(self.world);
        Event::on(object, &meta.uid, told, text.to_owned(), &meta.version)
    }

    pub(super) fn news(&self, news: &[News], plan: &mut Plan) {
        for one in news {
            let severity = if one.is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            };
            plan.events.push(self.event(severity, &one.text));
        }
    }
}

/// What a status differs in as it is written: a merge patch. Moments are written to the second: that of a refusal or a wait differs
/// within one from what was read back, and to write it would change nothing.
pub(super) fn difference(before: &CanaryStatus, after: &CanaryStatus) -> Option<Value> {
    if before == after {
        return None;
    }
    let value = |status: &CanaryStatus| serde_json::to_value(status).unwrap_or(Value::Null);
    let body = whole(&value(before), &value(after));
    let is_empty = body.as_object().is_some_and(Map::is_empty);
    (!is_empty).then_some(body)
}

/// Whether it is waited for in every run: what serves is changed with each promotion, and is not ready for a while.
fn is_usual(reason: Reason) -> bool {
    reason.severity() == Severity::Expected || reason == Reason::SourceNotReady
}

/// Since when it is waited for this, where the run remembers it.
fn since(run: &Run, reason: Reason) -> Option<Timestamp> {
    match reason {
        Reason::TargetNotReady | Reason::SourceNotReady => run.held_since.or(run.step_since),
        Reason::RoutingPending | Reason::StepPause => run.step_since,
        Reason::NoData => run.unmeasured_since,
        Reason::Asking => run.due,
        Reason::Paused | Reason::Suspended => run.stopped_since,
        _ => None,
    }
}

/// Who or what can end it.
fn unblock(reason: Reason) -> &'static str {
    match reason {
        Reason::Asking => "the answer, or promote or abort",
        Reason::AutoscalerNotFound
        | Reason::ConfigNotFound
        | Reason::MetricNotFound
        | Reason::RouteNotFound
        | Reason::TargetNotFound => "create what is missing, or change the Canary",
        Reason::ClaimedByOther => "the end of what the other capability does",
        Reason::DefinitionTooOld => "apply the definitions of deploy/crds.yaml",
        Reason::FlaggerRuns => "stop the other program",
        Reason::InvalidSpec | Reason::Unsupported => "change the Canary",
        Reason::NoData => "traffic to the new version, or promote",
        Reason::NotOurs => "delete or rename the object",
        Reason::Paused => "resume, promote or abort",
        Reason::PromotionGateClosed | Reason::RolloutGateClosed | Reason::TrafficGateClosed => {
            "approval by the webhook, or promote or abort"
        }
        Reason::RefusedByApi => "what the API asks for",
        Reason::RoutingPending => "the data plane",
        Reason::SourceNotReady | Reason::TargetNotReady => "its pods, or abort",
        Reason::StepPause => "time, or promote",
        Reason::Suspended => "set spec.suspend to false",
        Reason::TargetBusy => "delete one of the two Canaries",
        Reason::TemplateLost => "apply the version that is to serve",
    }
}
