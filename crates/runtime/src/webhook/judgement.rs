//! One review, from the first look at it to its verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::StreamExt;
use slipway_kernel::action::Action;
use slipway_kernel::admission::{Admission, Admit, Remarks, Review, Verdict};
use slipway_kernel::fact::{Answer, Facts, QuestionId};
use slipway_kernel::store::Stores;
use tokio::time::{Instant, sleep_until};

use super::Inner;
use super::carry::{AT_ONCE, Carrier, Ended};
use crate::message::Message;

/// How often a review is looked at: enough for the largest downscale, and an end for a webhook that asks in circles.
const MOST_LOOKS: u32 = 2_048;

/// A review that is being judged.
pub(super) struct Judgement<'a> {
    inner: &'a Inner,
    hook: &'a dyn Admit,
    review: &'a Review,
    deadline: Instant,
    /// What is known besides the stores; the answers are this review's own.
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
            facts: Facts::default(),
        }
    }

    /// The verdict, and what is noted beside it; none if the webhook has a defect.
    pub(super) async fn reach(mut self) -> Option<(Verdict, Remarks)> {
        for _ in 0..MOST_LOOKS {
            let (admission, remarks) = self.look()?;
            let needs = match admission {
                Admission::Decide(verdict, actions) => {
                    if !actions.is_empty() {
                        self.carry_out(actions).await;
                    }
                    return Some((verdict, remarks));
                }
                Admission::Need(needs) => needs,
            };
            if !self.gather(needs).await {
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
            let Some((what, until)) = &remarks.hold else {
                return Some((admission, remarks));
            };
            if shared.lock().hold(seen, what, *until, now) {
                return Some((admission, remarks));
            }
        }
    }

    /// What is known now; the number is that of the last hold.
    fn world(&mut self) -> (Stores, u64) {
        if self.hook.is_self_contained() {
            return (self.inner.nothing.clone(), 0);
        }
        let state = self.inner.shared.lock();
        self.facts.missing.clone_from(&state.facts.missing);
        self.facts.holds.clone_from(&state.facts.holds);
        (state.stores.clone(), state.holds)
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
