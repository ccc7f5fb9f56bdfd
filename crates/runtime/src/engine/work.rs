//! Plans a key, and starts what was planned.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use slipway_kernel::action::Action;
use slipway_kernel::admission::{Hold, Reading};
use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::{Controller, Severity};
use slipway_kernel::fact::{Facts, Missing, Right, Unseen};
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::plan::Plan;
use tokio::time::Instant;

use super::Engine;
use crate::collection::Reader;
use crate::environment::after;
use crate::execute::{Execution, Report};
use crate::journal;
use crate::message::Message;
use crate::metrics;
use crate::queue::{Requeue, post};
use crate::settings::Backoff;
use crate::state::Shared;
use crate::webhook::{Carrier, Readings};

/// A moment that has passed when it is asked for would be asked for again and again.
const SOONEST: Duration = Duration::from_millis(100);

/// Between reads that are to show what became of something that was let go.
const HOLD_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(10),
};

/// The kinds of a member that are there and may not be seen: whoever tells of it must not take that for "there are none".
fn hidden(told: &Facts) -> impl Iterator<Item = &Missing> {
    let is_hidden = |one: &&Missing| one.right == Right::See(Unseen::Forbidden);
    told.missing.iter().filter(is_hidden)
}

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
        let capability = self.capabilities.get(key.controller);
        // Of a member that a controller does not name it sees nothing.
        let capability = capability.filter(|_| self.works_on(&key.cluster, key.controller));
        let Some(capability) = capability.cloned() else {
            self.no_work(&key, began);
            return;
        };
        let now = self.shared.environment.now();
        let lane = self.sharing.lane(&key);
        let told = self.told_of(&key, capability.as_ref());
        let known = {
            let mut state = self.shared.lock();
            state.keep_time(now);
            let stores = state.stores.clone();
            // What is refused in a member is told at home, and that there may be what nobody can see.
            let told = told.and_then(|member| state.facts_of(&member));
            state.of_mut(&key.cluster).map(|known| {
                // A plan sees what its own key was told.
                known.facts.answers = known.answers.of(&key);
                let doubtful = known.unconfirmed.contains_key(&lane);
                let numbers = (known.holds, known.history);
                let mut facts = known.facts.clone();
                // Hardly ever is there any, and to add nothing would be a copy of all that is known of all members.
                let is_any =
                    |told: &Facts| told.refused().next().is_some() || hidden(told).next().is_some();
                if let Some(told) = told.filter(|told| is_any(told)) {
                    facts.refusals.extend(told.refusals.clone());
                    facts.refused_parts.extend(told.refused_parts.clone());
                    facts.missing.extend(hidden(&told).cloned());
                }
                (stores, facts, doubtful, numbers)
            })
        };
        let Some((stores, facts, doubtful, numbers)) = known else {
            // It is work in a cluster that is none of ours.
            self.no_work(&key, began);
            return;
        };
        let planned = catch_unwind(AssertUnwindSafe(|| {
            capability.plan(&stores, &facts, &key, now)
        }));
        drop((stores, facts));
        self.take_answers_back(&key);
        let mut plan = match planned {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                self.no_work(&key, began);
                return;
            }
            Err(_) => {
                tracing::error!(%key, "planner panicked; backing off");
                self.shared.metrics.reconciled(key.controller, "panic", 0.0);
                self.queue.finish(&key, Requeue::Failed, began);
                return;
            }
        };
        let leads = self
            .shared
            .leads_in(capability.lease(), &key.cluster, key.controller);
        let leads = leads.is_some();
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
            state.bound_deletions(&key.cluster, now, |of| *of == lane);
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

    /// The member of which a plan at home tells.
    fn told_of(&self, key: &Key, capability: &dyn Controller) -> Option<ClusterId> {
        let stores = key
            .cluster
            .is_local()
            .then(|| self.shared.lock().stores.clone())?;
        let member = || capability.tells_of(&stores, key);
        catch_unwind(AssertUnwindSafe(member)).unwrap_or_default()
    }

    /// There is nothing to do for a key any more, and nothing is left of what there was.
    fn no_work(&mut self, key: &Key, began: Instant) {
        self.queue.finish(key, Requeue::Done, began);
        self.queue.forget(key);
        self.fall_silent(key);
        self.forget_answers(key, &BTreeSet::new());
        self.shown.remove(key);
        self.shared.metrics.forget(key);
        self.shared.lock().blockers.remove(key);
        self.shared.notify_observers();
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
            // A fleet may have a thousand of them in each plan.
            let known: BTreeSet<_> = before.iter().map(|b| (b.reason, &b.object)).collect();
            let is_new = |blocker: &&Blocker| !known.contains(&(blocker.reason, &blocker.object));
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
            (key.clone(), self.sharing.lane(&key)),
            lease,
            plan,
            numbers,
        );
        self.executing.add((key.cluster.clone(), key.controller));
        let tenure = self.tenure(&key.cluster);
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
            Message::Executed(key, tenure, report)
        });
    }

    pub(super) fn executed(&mut self, key: &Key, tenure: u64, report: &Report) {
        self.execution_ended(key);
        if self.tenure(&key.cluster) != tenure {
            // Its lane has been dropped. One of its name may be another plan's by now.
            return;
        }
        let now = Instant::now();
        self.queue.finish(key, report.verdict, now);
        if !self.queue.knows(key) {
            // Its cluster is gone, or has come back meanwhile.
            return;
        }
        if let Some(pause) = report.pause {
            self.queue.pause(&post(key), after(now, pause));
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

    /// One plan less is carried out in a cluster. A member that has come back waits for those of before.
    fn execution_ended(&mut self, key: &Key) {
        let cluster = &key.cluster;
        self.executing.take(&(cluster.clone(), key.controller));
        if !self.executing.has(cluster) {
            self.attend_to(cluster);
        }
    }

    /// The way to the home cluster.
    fn home(&self) -> Option<kube::Client> {
        let home = self.clusters.get(&ClusterId::local());
        home.map(|home| home.client.client(""))
    }

    /// Undoes what a webhook began, for as long as it takes.
    pub(super) fn undo(&mut self, actions: Vec<Action>) {
        let Some(client) = self.home() else { return };
        let carrier = Carrier {
            shared: self.shared.clone(),
            client,
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
        let Some(client) = self.home() else { return };
        let reader = Reader {
            shared: self.shared.clone(),
            client,
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
