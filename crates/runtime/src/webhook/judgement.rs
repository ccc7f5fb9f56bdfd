//! One review, from the first look at it to its verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::StreamExt;
use slipway_kernel::action::Action;
use slipway_kernel::admission::{Admission, Admit, Collection, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Facts, QuestionId};
use slipway_kernel::identity::ClusterId;
use slipway_kernel::store::Stores;
use tokio::time::{Instant, sleep_until};

use super::Inner;
use super::carry::{AT_ONCE, Carrier, Ended};
use super::reading::Ticket;
use crate::message::Message;

/// How often a review is looked at: enough for the largest downscale, and an end for a webhook that asks in circles.
const MAX_LOOKS: u32 = 2_048;

/// A review that is being judged.
pub(super) struct Judgement<'a> {
    inner: &'a Inner,
    hook: &'a dyn Admit,
    review: &'a Review,
    deadline: Instant,
    /// When it arrived, among all reviews and reads.
    arrived: Ticket,
    /// What is known besides the stores; answers and readings are this review's own.
    facts: Facts,
}

impl<'a> Judgement<'a> {
    pub(super) fn new(
        inner: &'a Inner,
        hook: &'a dyn Admit,
        review: &'a Review,
        deadline: Instant,
    ) -> Self {
        Self {
            inner,
            hook,
            review,
            deadline,
            arrived: inner.readings.ticket(),
            facts: Facts::default(),
        }
    }

    /// The verdict, and what is noted beside it; none if the webhook has a defect.
    pub(super) async fn reach(mut self) -> Option<(Verdict, Remarks)> {
        for _ in 0..MAX_LOOKS {
            let (admission, remarks) = self.look()?;
            let goes_on = match admission {
                Admission::Decide(verdict, actions) => {
                    if !actions.is_empty() {
                        self.carry_out(actions).await;
                    }
                    return Some((verdict, remarks));
                }
                Admission::Need(needs) => self.gather(needs).await,
                Admission::Read(collections) => self.read(collections).await,
            };
            if !goes_on {
                break;
            }
        }
        let verdict = self.expire()?;
        Some((verdict, Remarks::default()))
    }

    /// Looks at the review once. A hold that comes of it is remembered only if no other was since: two reviews that
    /// want the last place do not both get it, and nobody waits for a judgement to end.
    fn look(&mut self) -> Option<(Admission, Remarks)> {
        let shared = &self.inner.shared;
        loop {
            let (stores, seen) = self.world();
            let now = shared.environment.now();
            let (admission, remarks) = catch_unwind(AssertUnwindSafe(|| {
                self.hook.judge(self.review, &stores, &self.facts, now)
            }))
            .ok()?;
            drop(stores);
            let Some(hold) = &remarks.hold else {
                return Some((admission, remarks));
            };
            let taken = shared.lock().hold(seen, hold);
            let Some(is_new) = taken else {
                continue;
            };
            if is_new {
                // Nobody listens when the replica has ended.
                let _ = self.inner.late.send(Message::Held(Box::new(hold.clone())));
            }
            return Some((admission, remarks));
        }
    }

    /// What is known now; the number is that of the last hold.
    fn world(&mut self) -> (Stores, u64) {
        if self.hook.is_self_contained() {
            return (self.inner.nothing.clone(), 0);
        }
        let now = self.inner.shared.environment.now();
        let mut state = self.inner.shared.lock();
        state.keep_time(now);
        self.facts.missing.clone_from(&state.home.facts.missing);
        self.facts
            .evictions_allowed_here
            .clone_from(&state.home.facts.evictions_allowed_here);
        self.facts.deletions.clone_from(&state.home.facts.deletions);
        // Webhooks are about home: what members do copies nothing of theirs.
        let stores = state.stores.only(&ClusterId::local());
        (stores, state.home.holds)
    }

    /// Does what is needed, as far as there is time. False if there is none left, or nothing to do.
    async fn gather(&mut self, needs: Vec<Action>) -> bool {
        let facts = &mut self.facts;
        let open: Vec<Action> = needs
            .into_iter()
            .filter(|action| match action {
                Action::Ask(question) => !facts.answers.contains_key(&question.id),
                _ => true,
            })
            .collect();
        if open.is_empty() {
            return false;
        }
        let carrier = self.inner.carrier();
        let mut running = futures::stream::iter(open)
            .map(|action| carrier.tell(action))
            .buffer_unordered(AT_ONCE);
        let mut out_of_time = std::pin::pin!(sleep_until(self.deadline));
        loop {
            let told: Told = tokio::select! {
                biased;
                () = &mut out_of_time => return false,
                told = running.next() => match told {
                    Some(told) => told,
                    None => return true,
                },
            };
            if let Some((id, answer)) = told {
                let now = self.inner.shared.environment.now();
                facts.answers.insert(id, (now, answer));
            }
        }
    }

    /// Has the stores brought up to what is there now. False if there is no time left, or nothing to read.
    async fn read(&mut self, collections: Vec<Collection>) -> bool {
        let readings = &self.inner.readings;
        let known = &self.facts.readings;
        let open: Vec<Collection> = collections
            .into_iter()
            .filter(|collection| !known.contains_key(collection))
            .collect();
        if open.is_empty() {
            return false;
        }
        let arrived = self.arrived;
        let all = open.into_iter().map(|collection| async move {
            let reading = readings.read(&collection, arrived).await;
            (collection, reading)
        });
        tokio::select! {
            biased;
            () = sleep_until(self.deadline) => false,
            read = futures::future::join_all(all) => {
                self.facts.readings.extend(read);
                true
            }
        }
    }

    /// Does what belongs to a verdict; what is not done in time is done later.
    async fn carry_out(&self, actions: Vec<Action>) {
        let carrier = self.inner.carrier();
        let mut actions = actions.into_iter();
        let mut late: Vec<Action> = Vec::new();
        while let Some(action) = actions.next() {
            let ended = tokio::select! {
                biased;
                () = sleep_until(self.deadline) => Ended::Open,
                ended = carrier.once(action.clone()) => ended,
            };
            if ended == Ended::Open {
                late.push(action);
                late.extend(actions);
                break;
            }
        }
        self.leave(late);
    }

    fn expire(&mut self) -> Option<Verdict> {
        let (stores, _) = self.world();
        let now = self.inner.shared.environment.now();
        let expiry = catch_unwind(AssertUnwindSafe(|| {
            self.hook.expire(self.review, &stores, &self.facts, now)
        }))
        .ok()?;
        self.leave(expiry.undo);
        Some(expiry.verdict)
    }

    /// Leaves something to be done after the answer.
    fn leave(&self, actions: Vec<Action>) {
        if actions.is_empty() {
            return;
        }
        let n = actions.len();
        let uid = &self.review.uid;
        tracing::warn!(uid, n, "time is up; the rest is undone after the answer");
        self.inner.leave(actions);
    }
}

/// An answer to a question; none for other actions.
pub(super) type Told = Option<(QuestionId, Answer)>;

impl Inner {
    fn carrier(&self) -> Carrier {
        Carrier {
            shared: self.shared.clone(),
            client: self.client.clone(),
            gatherer: self.gatherer.clone(),
        }
    }

    fn leave(&self, actions: Vec<Action>) {
        // Nobody listens when the replica has ended.
        let _ = self.late.send(Message::Undo(actions));
    }
}
