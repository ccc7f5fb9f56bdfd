//! Agrees with other replicas, through a Lease, on who acts.
//!
//! A leader acts until `renew_deadline` after the start of its last renewal that was confirmed; others take the Lease
//! over no earlier than `lease_duration` after the last change of it that they saw, and then wait until nothing that
//! the former leader has sent can be under way. Durations are measured with the monotonic clock, and a leadership ends
//! by whichever of both clocks is first: a machine that slept has not been the leader meanwhile.
//!
//! A replica that is kept from the Lease does not act. When that has lasted, without any other answer, for as long as a
//! lease does, it says so; and if it was told that it is the only one, and the API says that a right is missing, it acts
//! without. A Lease that was ever seen has other users: then nobody acts without.

mod without;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use slipway_api::purpose::runtime as purpose;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::environment::after;
use crate::lease::{Observed, Record, micro};
use crate::message::Message;
use crate::request::{ApiRequest, Outcome, Reason};
use crate::rights::Rights;
use crate::settings::Election;
use crate::state::{Phase, Shared, Standing};
use without::{Obstacle, Stance};

/// How a lease came to be ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There was none, as far as this replica knows.
    Fresh,
    /// Its holder gave it up in good order, except in these members, where something of it may be under way.
    Released(Arc<BTreeSet<ClusterId>>),
    /// Its holder may still believe that it is the leader.
    Expired,
}

/// A replica that wants one lease.
pub(crate) struct Candidate {
    pub(crate) shared: Arc<Shared>,
    pub(crate) client: kube::Client,
    pub(crate) lease: &'static str,
    pub(crate) times: Election,
    pub(crate) inbox: mpsc::UnboundedSender<Message>,
    pub(crate) rights: Rights,
}

/// How an attempt ended.
enum Attempt {
    Won(Record, Instant, Taken),
    /// Somebody else has it.
    Held,
    /// It could not be seen or taken just now.
    Wait(Duration),
    /// The Lease cannot be used.
    Kept(Obstacle),
}

impl Candidate {
    fn object(&self) -> ObjectRef {
        let namespace = self.shared.settings.namespace.clone();
        ObjectRef::local(kinds::LEASE, namespace, self.lease)
    }

    /// Follows and leads in turns, for ever.
    pub(crate) async fn run(self) {
        let mut observed = Observed::default();
        let mut stance = Stance::Electing;
        let mut leader = String::new();
        // Since when there has been no other answer than that the Lease cannot be used.
        let mut kept: Option<Instant> = None;
        loop {
            let attempt = self.attempt(&mut observed).await;
            if !matches!(attempt, Attempt::Kept(_)) {
                kept = None;
            }
            match attempt {
                Attempt::Won(record, began, taken) => {
                    self.take_part(&mut stance);
                    leader.clone_from(&record.holder);
                    self.lead(record, began, taken, &mut observed).await;
                }
                Attempt::Held => {
                    self.take_part(&mut stance);
                    self.follow(&mut leader, observed.holder());
                    self.shared
                        .environment
                        .sleep(self.until_look(&observed))
                        .await;
                }
                Attempt::Wait(wait) => self.shared.environment.sleep(wait).await,
                Attempt::Kept(obstacle) => {
                    let since = *kept.get_or_insert_with(Instant::now);
                    let has_lasted = since.elapsed() >= self.times.lease_duration;
                    self.bear(&mut stance, &obstacle, has_lasted, observed.any());
                    self.shared.environment.sleep(self.until_next(stance)).await;
                }
            }
        }
    }

    /// How long until the Lease is looked at again: no longer than its holder has left, so that nobody is waited for twice.
    fn until_look(&self, observed: &Observed) -> Duration {
        let left = observed.left(self.times.lease_duration, Instant::now());
        left.map_or(self.times.retry_period, |left| {
            left.min(self.times.retry_period)
        })
    }

    /// Says who leads, when that has changed.
    fn follow(&self, leader: &mut String, holder: &str) {
        if leader != holder {
            holder.clone_into(leader);
            tracing::info!(lease = self.lease, holder, "another replica leads");
        }
    }

    fn tell(&self, message: Message) {
        // Nobody listens when the replica is about to end.
        let _ = self.inbox.send(message);
    }

    async fn send(&self, wanted: ApiRequest) -> Outcome {
        let patience = self.times.renew_deadline / 2;
        let timeout = self.shared.settings.request_timeout.min(patience);
        let context = format!(
            "controller=election;replica={};purpose={}",
            self.shared.settings.replica,
            purpose::LEASE
        );
        let wanted = wanted.traced(context);
        let outcome = wanted.send(&self.client, timeout).await;
        self.rights
            .tell_apart(&self.client, &wanted, outcome, timeout)
            .await
    }

    /// Our own record for a Lease that is to be taken or renewed.
    fn record(&self, epoch: i64, version: &str, acquired: Option<String>) -> Record {
        let now = micro(self.shared.environment.now());
        Record {
            holder: self.shared.settings.replica.clone(),
            duration: self.times.lease_duration,
            epoch,
            acquired: acquired.unwrap_or_else(|| now.clone()),
            renewed: now,
            version: version.to_owned(),
            unanswered: Some(BTreeSet::new()),
        }
    }

    /// Looks at the Lease, and takes it if nobody has it.
    async fn attempt(&self, observed: &mut Observed) -> Attempt {
        let known = observed.any();
        match self.send(ApiRequest::get(&self.object())).await {
            Outcome::Done(lease) => {
                let record = Record::read(&lease);
                let now = Instant::now();
                observed.see(record.clone(), now);
                let taken = if record.holder.is_empty() {
                    // Where nobody can tell who owes an answer, anybody may.
                    let unanswered = record.unanswered.clone();
                    unanswered.map_or(Taken::Expired, |all| Taken::Released(Arc::new(all)))
                } else if observed.is_expired(self.times.lease_duration, now) {
                    Taken::Expired
                } else {
                    return Attempt::Held;
                };
                let mine = self.record(record.epoch.saturating_add(1), &record.version, None);
                let wanted = ApiRequest::replace(&self.object(), mine.render(&self.object()));
                self.take(wanted, taken).await
            }
            Outcome::Absent(_) => {
                // It was there before: its holder may not know yet that it is gone.
                let taken = if known { Taken::Expired } else { Taken::Fresh };
                let mine = self.record(observed.epoch().saturating_add(1), "", None);
                let body = mine.render(&self.object());
                let namespace = &self.shared.settings.namespace;
                let wanted = ApiRequest::create(&kinds::LEASE, namespace, body);
                self.take(wanted, taken).await
            }
            other => self.on_failed_write(other),
        }
    }

    async fn take(&self, wanted: ApiRequest, taken: Taken) -> Attempt {
        let began = Instant::now();
        match self.send(wanted).await {
            Outcome::Done(lease) => Attempt::Won(Record::read(&lease), began, taken),
            other => self.on_failed_write(other),
        }
    }

    fn on_failed_write(&self, outcome: Outcome) -> Attempt {
        match outcome {
            Outcome::Refused(refused) => Attempt::Kept(Obstacle {
                is_lasting: refused.reason == Reason::NoRight,
                why: refused.message,
            }),
            Outcome::Absent(refused) => Attempt::Kept(Obstacle {
                is_lasting: true,
                why: refused.message,
            }),
            Outcome::Busy(Some(asked)) | Outcome::Unknown(_, Some(asked)) => {
                // Nobody leads meanwhile: not longer than a dead leader keeps the Lease.
                let most = self.times.lease_duration;
                Attempt::Wait(asked.min(most).max(self.times.retry_period))
            }
            _ => Attempt::Wait(self.times.retry_period),
        }
    }

    /// Sets the end of the leadership, from the start of the renewal.
    fn extend(&self, record: &Record, began: Instant) -> bool {
        let now = self.shared.environment.now();
        let passed = began.elapsed();
        let Some(left) = self.times.renew_deadline.checked_sub(passed) else {
            return false;
        };
        let Ok(until) = now.checked_add(left) else {
            return false;
        };
        let mut state = self.shared.lock();
        let standing = state.standings.entry(self.lease).or_default();
        standing.until = Some((after(began, self.times.renew_deadline), until));
        standing.record = Some(record.clone());
        standing.epoch = record.epoch;
        true
    }

    fn depose(&self) {
        {
            let mut state = self.shared.lock();
            state.standings.insert(self.lease, Standing::default());
        }
        self.tell(Message::Lost(self.lease));
    }

    /// Renews until that fails for too long, or somebody else has the Lease.
    async fn lead(&self, record: Record, began: Instant, taken: Taken, seen: &mut Observed) {
        let (lease, epoch) = (self.lease, record.epoch);
        seen.see(record.clone(), Instant::now());
        if !self.extend(&record, began) {
            return;
        }
        {
            let mut state = self.shared.lock();
            state.standings.entry(lease).or_default().phase = Phase::Fencing;
        }
        tracing::info!(lease, epoch, how = ?taken, "lease taken");
        self.tell(Message::Taken(lease, epoch, taken));
        let mut tenure = Tenure {
            record,
            end: after(began, self.times.renew_deadline),
            wait: self.times.retry_period,
            unanswered: None,
        };
        loop {
            let left = tenure.end.saturating_duration_since(Instant::now());
            self.shared.environment.sleep(tenure.wait.min(left)).await;
            if Instant::now() >= tenure.end {
                tracing::warn!(lease, epoch, "lease not renewed in time; no longer acting");
                break;
            }
            let held = self.renew(&mut tenure).await;
            seen.see(tenure.record.clone(), Instant::now());
            if !held {
                let holder = &tenure.record.holder;
                tracing::warn!(lease, epoch, holder, "lease lost; no longer acting");
                break;
            }
        }
        self.depose();
    }

    /// One renewal; gives whether the Lease is still ours, as far as is known.
    async fn renew(&self, tenure: &mut Tenure) -> bool {
        tenure.wait = self.times.retry_period;
        // What became of the last one is found out first: it may be the version to go on from.
        if tenure.unanswered.is_some() && !self.look_up(tenure).await {
            return false;
        }
        let began = Instant::now();
        let (epoch, acquired) = (tenure.record.epoch, tenure.record.acquired.clone());
        let mine = self.record(epoch, &tenure.record.version, Some(acquired));
        let wanted = ApiRequest::replace(&self.object(), mine.render(&self.object()));
        match self.send(wanted).await {
            Outcome::Done(renewed) => {
                tenure.record = Record::read(&renewed);
                self.prolong(tenure, began);
            }
            Outcome::Conflict => return self.look_up(tenure).await,
            Outcome::Absent(_) => {
                tenure.record.holder = String::new();
                return false;
            }
            Outcome::Unknown(_, asked) => {
                tenure.unanswered = Some((mine.renewed, began));
                tenure.wait = self.patience(asked);
            }
            Outcome::Busy(asked) => tenure.wait = self.patience(asked),
            Outcome::Refused(_) => {}
        }
        true
    }

    /// How long a leader waits that is asked to: not so long that it is none any more.
    fn patience(&self, asked: Option<Duration>) -> Duration {
        let most = self.times.renew_deadline / 2;
        let asked = asked.unwrap_or_default().min(most);
        asked.max(self.times.retry_period)
    }

    fn prolong(&self, tenure: &mut Tenure, began: Instant) {
        if self.extend(&tenure.record, began) {
            tenure.end = after(began, self.times.renew_deadline);
        }
    }

    /// Reads the Lease, and gives whether it may still be ours. A renewal that was not answered counts from when it
    /// began, if the Lease shows that it was done.
    async fn look_up(&self, tenure: &mut Tenure) -> bool {
        let found = match self.send(ApiRequest::get(&self.object())).await {
            Outcome::Done(found) => Record::read(&found),
            Outcome::Absent(_) => {
                tenure.record.holder = String::new();
                return false;
            }
            _ => return true,
        };
        let ours = found.holder == tenure.record.holder
            && found.epoch == tenure.record.epoch
            && found.acquired == tenure.record.acquired;
        tenure.record = found;
        let done = tenure.unanswered.take();
        if let Some((wrote, began)) = done
            && ours
            && wrote == tenure.record.renewed
        {
            self.prolong(tenure, began);
        } else if ours {
            // Somebody's edit: renew this version at once.
            tenure.wait = Duration::ZERO;
        }
        ours
    }
}

/// A leadership.
struct Tenure {
    record: Record,
    /// When it ends unless it is renewed.
    end: Instant,
    /// Until the next attempt.
    wait: Duration,
    /// What the last unanswered renewal wrote, and when it began.
    unanswered: Option<(String, Instant)>,
}

/// Gives a lease up, so that the next leader need not wait, except in these members. Only after the last write anywhere else has been
/// answered.
pub(crate) async fn release(
    shared: &Shared,
    client: &kube::Client,
    (lease, unanswered): (&'static str, BTreeSet<ClusterId>),
) {
    let namespace = shared.settings.namespace.clone();
    let object = ObjectRef::local(kinds::LEASE, namespace, lease);
    let record = shared
        .lock()
        .standings
        .remove(lease)
        .and_then(|standing| standing.record);
    let Some(mut record) = record else {
        return;
    };
    let (holder, epoch) = (record.holder.clone(), record.epoch);
    let timeout = shared.settings.request_timeout;
    for _ in 0..2 {
        record.holder = String::new();
        record.unanswered = Some(unanswered.clone());
        record.duration = Duration::from_secs(1);
        record.renewed = micro(shared.environment.now());
        let wanted = ApiRequest::replace(&object, record.render(&object));
        match wanted.send(client, timeout).await {
            Outcome::Conflict => {}
            Outcome::Done(_) => {
                let unanswered = unanswered.len();
                tracing::info!(lease, epoch, unanswered, "lease released");
                return;
            }
            _ => return,
        }
        // A renewal of ours may have been under way.
        let Outcome::Done(found) = ApiRequest::get(&object).send(client, timeout).await else {
            return;
        };
        let found = Record::read(&found);
        if found.holder != holder || found.epoch != epoch || found.acquired != record.acquired {
            return;
        }
        record = found;
    }
}
