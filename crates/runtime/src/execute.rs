//! Carries out a plan, as far as the world is still the one that it was made for.
//!
//! Steps are started in the plan's order, several at once where they are about different objects. The first one that
//! does not succeed ends the batch: those under way are awaited, and everything else is planned anew. Before each step:
//! does this replica still lead, is the target at least as new as our own last write, has the object's refusal run out,
//! is the history of versions the one that the plan was made in? Answers to another one are not taken in.
//!
//! A write whose outcome nobody knows is looked up before anything else of its lane is done: otherwise a budget that
//! spans several objects would be counted on a false world.
//!
//! A plan writes into its key's cluster and no other. Into a member nothing is written before it has said, a moment ago, that it is the
//! cluster that it is taken for.

mod identity;
mod refused;
mod settle;
mod statuses;
mod throttle;
mod write;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use serde_json::Value;
use slipway_api::names::FIELD_MANAGER;
use slipway_kernel::action::{Action, CopyOf, FieldManager, Target, copied};
use slipway_kernel::event::Event;
use slipway_kernel::identity::{Key, ObjectRef};
use slipway_kernel::plan::{Plan, Step};
use slipway_kernel::store::Meta;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::clusters::Clusters;
use crate::message::Message;
use crate::queue::{LaneId, Requeue};
use crate::request::{ApiRequest, Outcome, Reason};
use crate::state::Shared;

pub(crate) use identity::way_into;
pub(crate) use settle::{LATE, UnconfirmedWrite};
pub(crate) use throttle::Throttle;

/// Steps of one plan before the next plan: a new spec takes hold in the middle of a backlog.
const BATCH: usize = 64;

/// How one step or status ended.
#[derive(Debug, Clone, Copy)]
enum StepResult {
    /// It is done, or was not worth doing.
    Done,
    /// It has to wait.
    Waits(Timestamp),
    /// The object is not what the plan took it for.
    Outdated,
    /// The API refused; the next plan knows.
    Refused,
    /// The server has too much to do for this object, which waits; for so many that all of the lane waits for this long.
    Busy(Option<Duration>),
    /// Nobody knows; it is unconfirmed now.
    Unknown,
    /// This replica may not act any more.
    Deposed,
    /// The member does not say now that it is the cluster that was confirmed.
    Unidentified,
    /// A restore of the API's storage was noticed before the answer came: it is of another history.
    Outlived,
}

/// How a plan ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) verdict: Requeue,
    /// Nothing of the lane is to be sent for this long.
    pub(crate) pause: Option<Duration>,
    /// Look again then, also if the plan did not ask for it.
    pub(crate) wake: Option<Timestamp>,
    /// Whether something was refused that should have been done. A missing right to do more than deleting is none: what
    /// it is for is off then.
    pub(crate) failed: bool,
    /// Whether something was answered after a restore that had been sent before it was noticed: it was not taken in, and may
    /// have been done to what is there now.
    pub(crate) outlived: bool,
}

impl Report {
    fn new() -> Self {
        Self {
            verdict: Requeue::Done,
            pause: None,
            wake: None,
            failed: false,
            outlived: false,
        }
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |known| known.min(at)));
    }

    /// Takes in how one part ended; gives whether to go on.
    fn add(&mut self, ended: StepResult) -> bool {
        let verdict = match ended {
            StepResult::Done => return true,
            StepResult::Waits(until) => {
                self.wake(until);
                return true;
            }
            StepResult::Outdated => Requeue::Collided,
            StepResult::Refused | StepResult::Unknown => Requeue::Again,
            StepResult::Busy(pause) => {
                self.pause = self.pause.max(pause);
                Requeue::Again
            }
            StepResult::Outlived => {
                self.outlived = true;
                Requeue::Done
            }
            StepResult::Deposed => Requeue::Done,
            StepResult::Unidentified => Requeue::Failed,
        };
        self.verdict = self.verdict.max(verdict);
        false
    }
}

/// A plan that is being carried out.
pub(crate) struct Execution {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clusters: Clusters,
    pub(crate) inbox: mpsc::UnboundedSender<Message>,
    pub(crate) key: Key,
    pub(crate) lane: LaneId,
    pub(crate) lease: &'static str,
    pub(crate) plan: Plan,
    /// The number of the last hold that the plan knows of, or that is our own.
    holds: AtomicU64,
    stopped: AtomicBool,
    failed: AtomicBool,
    /// Something was to be written that the next plan would not see.
    unseen: AtomicBool,
    /// The history of versions that the plan is of: see [`crate::state::State::rewind`].
    history: u64,
}

impl Execution {
    pub(crate) fn new(
        shared: Arc<Shared>,
        clusters: Clusters,
        inbox: mpsc::UnboundedSender<Message>,
        (key, lane): (Key, LaneId),
        lease: &'static str,
        plan: Plan,
        (holds, history): (u64, u64),
    ) -> Self {
        Self {
            history,
            shared,
            clusters,
            inbox,
            key,
            lane,
            lease,
            plan,
            holds: AtomicU64::new(holds),
            stopped: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            unseen: AtomicBool::new(false),
        }
    }

    /// Carries it out.
    pub(crate) async fn run(mut self) -> Report {
        let mut report = Report::new();
        self.keep_within_cluster();
        if !self.is_identified().await {
            report.verdict = Requeue::Failed;
            return report;
        }
        let steps = std::mem::take(&mut self.plan.steps);
        // What the next plan rests on does not wait for its turn.
        let is_intent = self.plan.prepares && steps.is_empty();
        let more = self.steps(steps.into(), &mut report).await;
        if !self.is_stopped() {
            self.statuses(is_intent, &mut report).await;
        }
        if !self.is_stopped() {
            for event in std::mem::take(&mut self.plan.events) {
                self.tell(Message::Publish(self.key.clone(), Box::new(event), None));
            }
        }
        report.failed = self.failed.load(Ordering::Acquire);
        if self.has_unconfirmed() && !self.settle().await {
            report.verdict = report.verdict.max(Requeue::Failed);
        }
        // Whoever waits for a moment wakes by itself; planning at once would come too early, again and again. So it would
        // where a watch has yet to tell of what was prepared.
        let is_seen = !self.unseen.load(Ordering::Acquire);
        let is_prepared = self.plan.prepares && is_seen && report.wake.is_none() && !report.failed;
        if more {
            report.verdict = report.verdict.max(Requeue::Again);
        } else if is_prepared {
            report.verdict = report.verdict.max(Requeue::Prepared);
        }
        report
    }

    /// Looks up which writes are unconfirmed, and does nothing else: the plan was made on a world that may be false.
    pub(crate) async fn resolve_only(self) -> Report {
        let mut report = Report::new();
        let clear = self.settle().await;
        report.verdict = if clear {
            Requeue::Again
        } else {
            Requeue::Failed
        };
        report
    }

    /// Carries steps out; gives whether there are more than fit into one batch.
    async fn steps(&self, mut waiting: VecDeque<Step>, report: &mut Report) -> bool {
        let mut running = FuturesUnordered::new();
        let mut busy: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut left = BATCH;
        loop {
            while !self.is_stopped()
                && left > 0
                && running.len() < self.shared.settings.concurrency.max(1)
                && let Some(step) = waiting.front()
            {
                let object = step.action.object().cloned();
                if object.as_ref().is_some_and(|object| busy.contains(object)) {
                    break;
                }
                let by = step.action.manager();
                let until = object
                    .as_ref()
                    .and_then(|object| self.refused_until(object, by));
                let Some(step) = waiting.pop_front() else {
                    break;
                };
                if let Some(until) = until {
                    report.wake(until);
                    continue;
                }
                left -= 1;
                busy.extend(object.clone());
                running.push(async { (object, self.step(step).await) });
            }
            let Some((object, ended)) = running.next().await else {
                return left == 0 && !waiting.is_empty();
            };
            if let Some(object) = object {
                busy.remove(&object);
            }
            if !report.add(ended) {
                self.stopped.store(true, Ordering::Release);
            }
        }
    }

    fn refused_until(&self, object: &ObjectRef, by: &str) -> Option<Timestamp> {
        let now = self.shared.environment.now();
        self.shared.lock().refused_until((object, by), now)
    }

    /// Whether nothing more of it is to be done, also because what it was decided on is of another history.
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || self.is_outlived()
    }

    /// Whether a restore of the API's storage has been noticed since the plan was made: what is known now is of another
    /// history than what comes of it.
    fn is_outlived(&self) -> bool {
        self.shared.lock().history(&self.key.cluster) != Some(self.history)
    }

    fn tell(&self, message: Message) {
        // Nobody listens when the replica is about to end.
        let _ = self.inbox.send(message);
    }

    async fn step(&self, step: Step) -> StepResult {
        let purpose = step.action.purpose();
        let (verb, Some(object)) = (step.action.verb(), step.action.object().cloned()) else {
            // Questions are the loop's.
            return StepResult::Done;
        };
        let target = match &step.action {
            Action::Patch { target, .. } | Action::Delete { target, .. } => Some(target.clone()),
            Action::Copy(copy) => copy.over.clone(),
            Action::Apply { .. } | Action::Ask(_) => None,
        };
        if let Some(early) = self.too_early((&object, step.action.manager()), target.as_ref()) {
            return early;
        }
        let unconfirmed = UnconfirmedWrite::about(&step.action, step.events.clone());
        let (deletes, wanted) = match step.action {
            Action::Patch { target, body, .. } => (false, ApiRequest::patch(&target, "", body)),
            Action::Delete { target, .. } => (true, ApiRequest::delete(&target)),
            Action::Apply {
                object, body, by, ..
            } => (false, ApiRequest::apply(&object, body, &by)),
            Action::Copy(copy) => match self.copy(*copy).await {
                Ok(wanted) => (false, wanted),
                Err(Some(outcome)) => {
                    return self.on_failed_write(&object, unconfirmed, outcome).await;
                }
                Err(None) => return StepResult::Outdated,
            },
            Action::Ask(_) => return StepResult::Done,
        };
        // From here on webhooks count it as gone, and what they have let go since the plan was made is planned for first.
        if deletes && !self.hold(&unconfirmed.uid) {
            return StepResult::Outdated;
        }
        let outcome = match self.write(&object, wanted, (verb, purpose)).await {
            Ok(outcome) => outcome,
            Err(unsent) => {
                self.release(&unconfirmed.uid, None);
                return unsent;
            }
        };
        let uid = unconfirmed.uid.clone();
        if self.is_outlived() {
            if deletes {
                // It may have been done to what is there now, which has yet to be seen.
                self.release(&uid, Some(self.shared.environment.now()));
            }
            return StepResult::Outlived;
        }
        let ended = self.take_in(
            &object,
            (step.events, unconfirmed),
            outcome,
            deletes,
            target.is_some(),
        );
        let ended = ended.await;
        if deletes && !matches!(ended, StepResult::Unknown) {
            self.release(&uid, None);
        }
        ended
    }

    /// Reads what is to be copied, and what is copied over, and gives what is to be sent; no outcome if one of them is not what
    /// the plan took it for.
    async fn copy(&self, copy: CopyOf) -> Result<ApiRequest, Option<Outcome>> {
        let original = self.meant(&copy.from).await?;
        let Some(over) = &copy.over else {
            let body = copied(copy.body, &original, None, copy.fields);
            // Somebody else's of this name is left to them.
            let by = FieldManager::default().without_force();
            return Ok(ApiRequest::apply(&copy.object, body, &by));
        };
        let known = self.meant(over).await?;
        let body = copied(copy.body, &original, Some(&known), copy.fields);
        Ok(ApiRequest::patch(over, "", body))
    }

    /// Reads an object that has to be as it was seen.
    async fn meant(&self, target: &Target) -> Result<Value, Option<Outcome>> {
        match self.fetch(target.object()).await {
            Outcome::Done(found) => {
                let meta = Meta::of(&found);
                if meta.uid == target.uid() && meta.version == target.version() {
                    return Ok(found);
                }
                if !self.is_outlived() {
                    self.shared.lock().overlay(target.object(), &found);
                }
                Err(None)
            }
            Outcome::Absent(_) | Outcome::Conflict => Err(None),
            // Nothing was written, whatever became of the read.
            Outcome::Unknown(_, after) => Err(Some(Outcome::Busy(after))),
            outcome => Err(Some(outcome)),
        }
    }

    /// Forgets that an object is being deleted, at once or, if it may yet be, after a while.
    fn release(&self, uid: &str, open: Option<Timestamp>) {
        let mut state = self.shared.lock();
        state.release_deletion(&self.key.cluster, uid, open);
    }

    /// Takes in how a write ended.
    async fn take_in(
        &self,
        object: &ObjectRef,
        (events, unconfirmed): (Vec<Event>, UnconfirmedWrite),
        outcome: Outcome,
        deletes: bool,
        is_known: bool,
    ) -> StepResult {
        match outcome {
            Outcome::Done(value) => {
                if deletes {
                    self.deleted(object, &unconfirmed.uid, &value);
                } else {
                    self.written(object, unconfirmed.by(), &value);
                }
                for event in events {
                    let acted = Some(Box::new(object.clone()));
                    let (key, event) = (self.key.clone(), Box::new(event));
                    self.tell(Message::Publish(key, event, acted));
                }
                StepResult::Done
            }
            Outcome::Absent(refused) if is_known && refused.reason != Reason::NotServed => {
                self.shared.lock().overlay_absence(object, &unconfirmed.uid);
                StepResult::Outdated
            }
            outcome => {
                if deletes && matches!(outcome, Outcome::Refused(_)) {
                    self.failed.store(true, Ordering::Release);
                }
                self.on_failed_write(object, unconfirmed, outcome).await
            }
        }
    }

    /// Holds an object that is about to be deleted, unless a webhook has let something go since the plan was made.
    fn hold(&self, uid: &str) -> bool {
        let now = self.shared.environment.now();
        let mut state = self.shared.lock();
        let seen = self.holds.load(Ordering::Acquire);
        let held = state.hold_deletion(&self.key.cluster, seen, uid, now);
        let Some(number) = held else {
            return false;
        };
        self.holds.store(number, Ordering::Release);
        true
    }

    /// What keeps a write from being sent, if anything does.
    fn too_early(
        &self,
        (object, by): (&ObjectRef, &str),
        target: Option<&Target>,
    ) -> Option<StepResult> {
        if let Some(until) = self.refused_until(object, by) {
            return Some(StepResult::Waits(until));
        }
        let state = self.shared.lock();
        let known = state.of(&object.cluster);
        let ledger = known.map(|known| &known.ledger);
        let stale = target
            .zip(ledger)
            .is_some_and(|(target, l)| l.is_stale(target));
        stale.then_some(StepResult::Outdated)
    }

    /// A write under this name has made the object this.
    fn written(&self, object: &ObjectRef, by: &str, value: &Value) {
        if !self.shared.lock().wrote(object, by, value) {
            self.unseen.store(true, Ordering::Release);
        }
    }

    /// A deletion was accepted: the object is gone, or on its way.
    fn deleted(&self, object: &ObjectRef, uid: &str, value: &Value) {
        let going = value.pointer("/metadata/deletionTimestamp").is_some();
        let mut state = self.shared.lock();
        if going {
            state.wrote(object, FIELD_MANAGER, value);
        } else {
            state.overlay_absence(object, uid);
        }
    }

    /// What follows from a write that was not done.
    async fn on_failed_write(
        &self,
        object: &ObjectRef,
        unconfirmed: UnconfirmedWrite,
        outcome: Outcome,
    ) -> StepResult {
        match outcome {
            Outcome::Conflict => {
                let _ = self.read(object, &unconfirmed.uid).await;
                StepResult::Outdated
            }
            Outcome::Refused(refused) | Outcome::Absent(refused) => {
                if refused.reason != Reason::NoRight {
                    self.failed.store(true, Ordering::Release);
                }
                let now = self.shared.environment.now();
                let backoff = self.shared.settings.backoff;
                let mut state = self.shared.lock();
                state.refuse((object, unconfirmed.by()), refused, None, backoff, now);
                StepResult::Refused
            }
            Outcome::Busy(asked) => self.busy(object, unconfirmed.by(), asked),
            Outcome::Unknown(refused, after) => {
                self.leave_unconfirmed(object, unconfirmed.because(refused, after));
                StepResult::Unknown
            }
            Outcome::Done(_) => StepResult::Done,
        }
    }
}

impl Execution {
    /// When the monotonic clock shows `at`, as a moment of this replica's clock.
    fn moment(&self, at: Instant) -> Timestamp {
        let left = at.saturating_duration_since(Instant::now());
        let now = self.shared.environment.now();
        now.checked_add(left).unwrap_or(Timestamp::MAX)
    }
}
