//! Plans a key, and starts what was planned.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use slipway_kernel::action::Action;
use slipway_kernel::admission::{Hold, Reading};
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::{Controller, Severity};
use slipway_kernel::event::Event;
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use slipway_kernel::plan::Plan;
use tokio::time::{Instant, sleep};

use super::Engine;
use crate::clusters::Cluster;
use crate::collection::Reader;
use crate::environment::after;
use crate::events::{self, Slot, Telling, Untold};
use crate::execute::{Execution, Report};
use crate::journal;
use crate::message::Message;
use crate::metrics;
use crate::queue::{Requeue, lane};
use crate::request::{ApiRequest, Outcome, Reason};
use crate::settings::Backoff;
use crate::state::Shared;
use crate::webhook::{Carrier, Readings};

/// How often an event is tried to be told.
const TELLINGS: u32 = 3;
/// For how long none is told in a namespace that refuses them although there is the right: it has no room for more, or goes.
const EVENTS_PAUSE: Duration = Duration::from_secs(30);
/// A moment that has passed when it is asked for would be asked for again and again.
const SOONEST: Duration = Duration::from_millis(100);

/// Between reads that are to show what became of something that was let go.
const HOLD_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(10),
};

/// A pass over a key, where passes are shown.
struct Pass {
    is_shown: bool,
    /// What the plan itself counts as a failure.
    failure: Option<String>,
}

impl Pass {
    fn new(capability: &dyn Controller, plan: &Plan) -> Self {
        let mut blockers = plan.blockers.iter();
        let failure = blockers.find(|b| capability.severity(b.reason) == Severity::Error);
        Self {
            is_shown: capability.passes().is_some(),
            failure: failure.map(|blocker| blocker.message.clone()),
        }
    }

    fn begin(&self, key: &Key) {
        if self.is_shown {
            journal::began(key);
        }
    }

    fn end(self, shared: &Shared, key: &Key, took: Duration, refused: bool) {
        if !self.is_shown {
            return;
        }
        let refused = refused.then_some("the API did not do what was asked");
        let failure = self.failure.as_deref().or(refused);
        let pass = metrics::Pass {
            took,
            at: shared.environment.now(),
            failed: failure.is_some(),
        };
        shared.metrics.passed(key, pass);
        journal::ended(key, failure);
    }
}

impl Engine {
    /// Plans a key that was taken from the queue.
    pub(super) fn work(&mut self, key: Key) {
        let began = Instant::now();
        let Some(capability) = self.capabilities.get(key.controller).cloned() else {
            self.queue.finish(&key, Requeue::Done, began);
            self.queue.forget(&key);
            return;
        };
        let now = self.shared.environment.now();
        let (stores, facts, doubtful, numbers) = {
            let mut state = self.shared.lock();
            state.keep_time(now);
            let doubtful = state.unconfirmed.contains_key(&lane(&key));
            let (facts, numbers) = (state.facts.clone(), (state.holds, state.history));
            (state.stores.clone(), facts, doubtful, numbers)
        };
        let planned = catch_unwind(AssertUnwindSafe(|| {
            capability.plan(&stores, &facts, &key, now)
        }));
        drop((stores, facts));
        let mut plan = match planned {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                self.queue.finish(&key, Requeue::Done, began);
                self.queue.forget(&key);
                self.fall_silent(&key);
                self.forget_answers(&key, &BTreeSet::new());
                self.shown.remove(&key);
                self.shared.metrics.forget(&key);
                self.shared.lock().blockers.remove(&key);
                self.shared.notify_observers();
                return;
            }
            Err(_) => {
                tracing::error!(%key, "planner panicked; backing off");
                self.shared.metrics.reconciled(key.controller, "panic", 0.0);
                self.queue.finish(&key, Requeue::Failed, began);
                return;
            }
        };
        let leads = self.shared.leads(capability.lease()).is_some();
        let pass = Pass::new(capability.as_ref(), &plan);
        if pass.is_shown {
            self.shown.insert(key.clone());
        }
        if leads {
            pass.begin(&key);
        }
        self.show(&key, &plan, leads.then_some(capability.as_ref()));
        self.wake(&key, plan.wake_at);
        self.forget_answers(&key, &plan.keeps);
        if !leads {
            self.fall_silent(&key);
            // A write may have ended without an answer after the lease was lost.
            let now = self.shared.environment.now();
            let mut state = self.shared.lock();
            state.bound_deletions(now, |of| *of == lane(&key));
            drop(state);
        } else if !doubtful {
            self.inquire(&key, &mut plan);
        }
        let idle = plan.steps.is_empty() && plan.statuses.is_empty() && plan.events.is_empty();
        if !leads {
            self.shared.metrics.forget(&key);
            self.shared
                .metrics
                .reconciled(key.controller, "followed", 0.0);
            self.queue.finish(&key, Requeue::Done, began);
            return;
        }
        if idle && !doubtful {
            self.shared
                .metrics
                .reconciled(key.controller, "nothing", 0.0);
            pass.end(&self.shared, &key, began.elapsed(), false);
            self.queue.finish(&key, Requeue::Done, began);
            return;
        }
        self.execute(key, capability.lease(), (plan, numbers), doubtful, pass);
    }

    /// Others see why nothing happens. Whoever acts also logs it, once.
    fn show(&self, key: &Key, plan: &Plan, acting: Option<&dyn Controller>) {
        let before = {
            let mut state = self.shared.lock();
            if plan.blockers.is_empty() {
                state.blockers.remove(key)
            } else {
                state.blockers.insert(key.clone(), plan.blockers.clone())
            }
        };
        if let Some(capability) = acting {
            let before = before.unwrap_or_default();
            let is_new = |blocker: &&Blocker| {
                let same = |b: &Blocker| b.reason == blocker.reason && b.object == blocker.object;
                !before.iter().any(same)
            };
            for blocker in plan.blockers.iter().filter(is_new) {
                journal::blocked(blocker, capability.severity(blocker.reason));
            }
        }
        self.shared.notify_observers();
    }

    /// When to look again: when the plan asked for it, and at the latest with the next heartbeat.
    fn wake(&mut self, key: &Key, at: Option<jiff::Timestamp>) {
        let now = Instant::now();
        let heartbeat = after(now, self.shared.settings.heartbeat);
        let soonest = now + SOONEST;
        let passed = |at: jiff::Timestamp| at <= self.shared.environment.now();
        let at = at
            .map(|at| {
                if passed(at) {
                    soonest
                } else {
                    self.instant(at)
                }
            })
            .map_or(heartbeat, |at| at.min(heartbeat));
        self.queue.wake(key, at);
    }

    fn instant(&self, at: jiff::Timestamp) -> Instant {
        let left = at.duration_since(self.shared.environment.now());
        let left = Duration::try_from(left).unwrap_or_default();
        let now = Instant::now();
        now.checked_add(left)
            .unwrap_or_else(|| after(now, self.shared.settings.heartbeat))
    }

    fn execute(
        &mut self,
        key: Key,
        lease: &'static str,
        (plan, numbers): (Plan, (u64, u64)),
        doubtful: bool,
        pass: Pass,
    ) {
        let shared = self.shared.clone();
        let execution = Execution::new(
            shared.clone(),
            self.clusters.clone(),
            self.sender.clone(),
            key.clone(),
            lease,
            plan,
            numbers,
        );
        self.executing += 1;
        self.start(async move {
            let began = Instant::now();
            let report = if doubtful {
                // The plan was made on a world that may be false.
                execution.resolve_only().await
            } else {
                execution.run().await
            };
            let outcome = match report.verdict {
                Requeue::Done => "done",
                Requeue::Again | Requeue::Prepared => "again",
                Requeue::Collided => "conflict",
                Requeue::Failed => "failed",
            };
            let took = began.elapsed();
            let seconds = took.as_secs_f64();
            shared.metrics.reconciled(key.controller, outcome, seconds);
            let failed = report.failed || report.verdict == Requeue::Failed;
            pass.end(&shared, &key, took, failed);
            Message::Executed(key, report)
        });
    }

    pub(super) fn executed(&mut self, key: &Key, report: &Report) {
        self.executing = self.executing.saturating_sub(1);
        let now = Instant::now();
        self.queue.finish(key, report.verdict, now);
        if let Some(pause) = report.pause {
            self.queue.pause(&lane(key), after(now, pause));
        }
        if let Some(at) = report.wake {
            let at = self.instant(at);
            self.queue.wake_by(key, at);
        }
        if report.outlived {
            self.outlived(&key.cluster);
        }
        self.shared.notify_observers();
    }

    /// Tells an event, in its own time.
    pub(super) fn publish(
        &mut self,
        controller: &'static str,
        event: &Event,
        acted: Option<&ObjectRef>,
    ) {
        let Some(telling) = self.recorder.take(event) else {
            return;
        };
        let is_logged = telling == Telling::Again || {
            let state = self.shared.lock();
            let mut blockers = state.blockers.values().flatten();
            blockers.any(|blocker| blocker.message == event.note)
        };
        if !is_logged {
            journal::told(event, acted);
        }
        let (now, slot) = (Instant::now(), events::slot(event));
        self.events_off.retain(|_, until| now < *until);
        if self.events_off.contains_key(&slot.0) {
            self.recorder.untold(&slot);
            return;
        }
        let Some(cluster) = self.clusters.get(&event.regarding.cluster) else {
            return;
        };
        let shared = self.shared.clone();
        let replica = &shared.settings.replica;
        let wanted = events::render(event, controller, replica, shared.environment.now());
        self.telling += 1;
        self.start(async move {
            let untold = tell(&shared, &cluster, &wanted, (controller, &slot.0)).await;
            Message::Told(slot, untold)
        });
    }

    /// An event was told, or none can be told in its namespace just now: then it is, if there is still cause for it later.
    pub(super) fn told(&mut self, slot: &Slot, untold: Option<Untold>) {
        self.telling = self.telling.saturating_sub(1);
        let Some(untold) = untold else {
            return;
        };
        self.recorder.untold(slot);
        let namespace = slot.0.as_str();
        let pause = match untold {
            Untold::NoRight(why) => {
                let mut state = self.shared.lock();
                let known = state.facts.missing.iter();
                let is_bounded = known.filter(|one| one.right == Right::Tell).count() < MAX_TOLD_OF;
                if is_bounded && state.facts.missing.insert(events_in(namespace)) {
                    tracing::warn!(
                        namespace,
                        why,
                        "no events can be told; the operator goes on without"
                    );
                }
                self.shared.settings.heartbeat
            }
            Untold::Refused(why) => {
                tracing::warn!(namespace, why, "event not told; later ones may be");
                EVENTS_PAUSE
            }
        };
        let until = after(Instant::now(), pause);
        self.events_off.insert(namespace.to_owned(), until);
    }

    /// Undoes what a webhook began, for as long as it takes.
    pub(super) fn undo(&mut self, actions: Vec<Action>) {
        let Some(cluster) = self.clusters.get(&ClusterId::local()) else {
            return;
        };
        let carrier = Carrier {
            shared: self.shared.clone(),
            client: cluster.client,
            gatherer: self.gatherer.clone(),
        };
        self.undoing += 1;
        self.start(async move {
            carrier.until_done(actions).await;
            Message::Undone
        });
    }

    /// Finds out what became of something that a webhook let go: it counts as away until a read that begins after its time
    /// has shown it, gone or still there.
    pub(super) fn held(&mut self, hold: Hold) {
        let Some(cluster) = self.clusters.get(&ClusterId::local()) else {
            return;
        };
        let reader = Reader {
            shared: self.shared.clone(),
            client: cluster.client,
            inbox: self.sender.clone(),
        };
        let shared = self.shared.clone();
        let readings = &mut self.readings;
        let readings = readings.get_or_insert_with(|| Arc::new(Readings::new(reader)));
        let readings = readings.clone();
        self.start(async move {
            outlast(&shared, &readings, hold).await;
            Message::Ended
        });
    }
}

/// Waits until something that was let go cannot go any more, however often it is let go again, and reads what became of it.
/// Many that are let go together end together: one read serves all that wait for it.
async fn outlast(shared: &Shared, readings: &Readings, mut hold: Hold) {
    let environment = &shared.environment;
    let (mut failures, mut waited) = (0, None);
    loop {
        let Some(until) = shared.lock().held_until(&hold.uid) else {
            return;
        };
        hold.until = until;
        let left = until.duration_since(environment.now());
        // Once: after that its time is over, also if the clock was set back meanwhile.
        if left.is_positive() && waited.replace(until) != Some(until) {
            let left = Duration::try_from(left).unwrap_or_default();
            environment.sleep(left).await;
            continue;
        }
        let ended = readings.ticket();
        if let Reading::Failed(_) = readings.read(&hold.within, ended).await {
            failures += 1;
            environment.sleep(HOLD_BACKOFF.after(failures)).await;
        } else {
            shared.lock().release(&hold);
        }
    }
}

/// In how many namespaces it is said that no events can be told: namespaces come and go.
const MAX_TOLD_OF: usize = 64;

/// What is missing where events cannot be told.
fn events_in(namespace: &str) -> Missing {
    Missing::new(&ClusterId::local(), &kinds::EVENT, Right::Tell).within(namespace)
}

/// Tells an event; gives why none can be told in its namespace, if that is so.
async fn tell(
    shared: &Shared,
    cluster: &Cluster,
    wanted: &ApiRequest,
    (controller, namespace): (&'static str, &str),
) -> Option<Untold> {
    let (settings, client) = (&shared.settings, &cluster.client);
    let timeout = settings.request_timeout;
    for attempt in 1..=TELLINGS {
        let outcome = wanted.send(client, timeout).await;
        let outcome = cluster.rights.tell_apart(client, wanted, outcome, timeout);
        match outcome.await {
            Outcome::Done(_) | Outcome::Conflict => {
                shared.metrics.published(controller);
                let mut state = shared.lock();
                state.facts.missing.remove(&events_in(namespace));
                return None;
            }
            Outcome::Refused(refused) if refused.reason == Reason::NoRight => {
                return Some(Untold::NoRight(refused.message));
            }
            Outcome::Refused(refused) if refused.is_forbidden() => {
                return Some(Untold::Refused(refused.message));
            }
            Outcome::Refused(refused) | Outcome::Absent(refused) => {
                tracing::warn!(message = refused.message, "event not told");
                return None;
            }
            Outcome::Busy(asked) | Outcome::Unknown(_, asked) => {
                sleep(asked.unwrap_or_else(|| settings.backoff.after(attempt))).await;
            }
        }
    }
    None
}
