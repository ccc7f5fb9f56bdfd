//! Finds out what became of writes that were not answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use slipway_api::names::FIELD_MANAGER;
use slipway_api::purpose::runtime as purpose;
use slipway_kernel::action::{Action, Target};
use slipway_kernel::event::Event;
use slipway_kernel::fields::merge;
use slipway_kernel::identity::ObjectRef;
use slipway_kernel::store::{Meta, number};
use tokio::time::Instant;

use super::Execution;
use crate::message::Message;
use crate::request::{ApiRequest, Outcome, Reason, Refused};

/// How often an object is read before giving up for now.
const ATTEMPTS: u32 = 5;
/// Between two reads, whatever the server asks for: all of the lane waits for what is found.
const LONGEST: Duration = Duration::from_secs(10);

/// For how long a deletion that was not answered may yet be carried out: the API server's own limit for a request.
pub(crate) const LATE: Duration = Duration::from_mins(1);

/// A write that may or may not have been done.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnconfirmedWrite {
    /// The object's uid before it; empty where there was none.
    pub(crate) uid: String,
    /// Its version before it.
    pub(crate) version: String,
    /// The name that it was sent under, if that is one of its own.
    manager: Option<String>,
    refused: Option<Refused>,
    /// Since when it is unconfirmed.
    since: Option<Instant>,
    /// Do not ask before this time is over.
    after: Option<Duration>,
    /// What the object looks like if it was done.
    aim: Aim,
    /// What is told if it was done.
    events: Vec<Event>,
}

/// What tells that a write was done.
#[derive(Debug, Clone, Default)]
enum Aim {
    /// Nothing does.
    #[default]
    Unknown,
    /// The object has all of this merge patch, which is hardly ever looked at, and is kept as text.
    Has(Box<str>),
    /// The object is gone, or on its way.
    Gone,
}

impl Aim {
    fn has(patch: &Value) -> Self {
        Self::Has(patch.to_string().into())
    }
}

impl UnconfirmedWrite {
    /// Whether it is about a deletion.
    pub(crate) fn is_deletion(&self) -> bool {
        matches!(self.aim, Aim::Gone)
    }

    /// Whether the API server cannot be at work on it any more.
    fn is_over(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() >= LATE)
    }

    /// The name that it was sent under.
    pub(super) fn by(&self) -> &str {
        self.manager.as_deref().unwrap_or(FIELD_MANAGER)
    }

    /// About a step of which these events are told when it is done.
    pub(crate) fn about(action: &Action, events: Vec<Event>) -> Self {
        let (target, aim) = match action {
            Action::Patch { target, body, .. } => (Some(target), Aim::has(body)),
            Action::Delete { target, .. } => (Some(target), Aim::Gone),
            Action::Apply { body, .. } => (None, Aim::has(body)),
            // What was copied is not known here.
            Action::Copy(copy) => (copy.over.as_ref(), Aim::Unknown),
            Action::Ask(_) => (None, Aim::Unknown),
        };
        Self {
            manager: Some(action.manager().to_owned()),
            aim,
            events,
            ..Self::of(target)
        }
    }

    /// Whether what was found is what the write was to bring about.
    fn is_done(&self, found: Option<&Value>) -> bool {
        match (&self.aim, found) {
            (Aim::Unknown, _) | (Aim::Has(_), None) => false,
            (Aim::Has(patch), Some(object)) => has(object, &read(patch)),
            (Aim::Gone, None) => true,
            (Aim::Gone, Some(object)) => {
                let meta = Meta::of(object);
                meta.uid != self.uid || object.pointer("/metadata/deletionTimestamp").is_some()
            }
        }
    }

    pub(crate) fn of(target: Option<&Target>) -> Self {
        target.map_or_else(Self::default, |target| Self {
            uid: target.uid().to_owned(),
            version: target.version().to_owned(),
            ..Self::default()
        })
    }

    pub(crate) fn because(self, refused: Refused, after: Option<Duration>) -> Self {
        Self {
            refused: Some(refused),
            after,
            ..self
        }
    }
}

/// A merge patch that is kept as text. It was written out of one.
fn read(patch: &str) -> Value {
    serde_json::from_str(patch).unwrap_or_default()
}

/// Whether a merge patch would change nothing.
fn has(object: &Value, patch: &Value) -> bool {
    let mut merged = object.clone();
    merge(&mut merged, patch);
    merged == *object
}

/// What a read found.
pub(super) enum Found {
    /// This.
    Object(Value),
    /// Nothing.
    Nothing,
    /// Its kind is not served, by this server at least: that says nothing about the object.
    NotServed(Refused),
    /// That there is no right to read it, in whatever way.
    NoRight(Refused),
    /// No answer; try again after this time if the server said so.
    NoAnswer(Option<Duration>),
}

impl Execution {
    pub(super) fn leave_unconfirmed(&self, object: &ObjectRef, unconfirmed: UnconfirmedWrite) {
        let mut state = self.shared.lock();
        if let Some(known) = state.of_mut(&self.key.cluster) {
            let all = known.unconfirmed.entry(self.lane.clone()).or_default();
            let since = Some(Instant::now());
            let unconfirmed = UnconfirmedWrite {
                since,
                ..unconfirmed
            };
            all.insert(object.clone(), unconfirmed);
        }
    }

    pub(super) fn has_unconfirmed(&self) -> bool {
        let state = self.shared.lock();
        let known = state.of(&self.key.cluster);
        known.is_some_and(|known| known.unconfirmed.contains_key(&self.lane))
    }

    /// Reads all objects of unconfirmed writes; gives whether that succeeded. Until it does, the lane does nothing else.
    pub(crate) async fn settle(&self) -> bool {
        let all = {
            let state = self.shared.lock();
            let known = state.of(&self.key.cluster);
            known.and_then(|known| known.unconfirmed.get(&self.lane).cloned())
        };
        for (object, unconfirmed) in all.unwrap_or_default() {
            if !self.settle_one(&object, &unconfirmed).await {
                return false;
            }
            let mut state = self.shared.lock();
            let Some(known) = state.of_mut(&self.key.cluster) else {
                return true;
            };
            if let Some(unconfirmed) = known.unconfirmed.get_mut(&self.lane) {
                unconfirmed.remove(&object);
                if unconfirmed.is_empty() {
                    known.unconfirmed.remove(&self.lane);
                }
            }
        }
        true
    }

    /// Nobody will be told what became of it: it counts as refused.
    fn give_up(&self, object: &ObjectRef, unconfirmed: &UnconfirmedWrite, refused: Refused) {
        let (now, backoff) = (self.shared.environment.now(), self.shared.settings.backoff);
        let mut state = self.shared.lock();
        if unconfirmed.is_deletion() {
            let cluster = &self.key.cluster;
            state.release_deletion(cluster, &unconfirmed.uid, Some(now));
        }
        state.refuse((object, unconfirmed.by()), refused, None, backoff, now);
    }

    /// Whether this replica ends, and the next leader waits for what may be under way in the member, and lists it.
    fn is_left_to_the_next(&self) -> bool {
        let is_ending = self.shared.draining.load(Ordering::Acquire);
        is_ending && !self.key.cluster.is_local()
    }

    async fn settle_one(&self, object: &ObjectRef, unconfirmed: &UnconfirmedWrite) -> bool {
        let backoff = self.shared.settings.backoff;
        let mut wait = unconfirmed.after;
        for attempt in 1..=ATTEMPTS {
            if let Some(wait) = wait {
                self.shared.environment.sleep(wait.min(LONGEST)).await;
            }
            if self.is_left_to_the_next() {
                return false;
            }
            let found = self.read(object, &unconfirmed.uid).await;
            if self.is_outlived() {
                // It is forgotten, and what there is now is listed.
                return true;
            }
            let found = match found {
                Found::Object(value) => Some(value),
                Found::Nothing => None,
                Found::NotServed(refused) => {
                    // Who waited for its kind would wait for ever where the definition is gone.
                    self.give_up(object, unconfirmed, refused);
                    return true;
                }
                Found::NoRight(refused) if unconfirmed.is_over() => {
                    // So would who waited for the right. It was done by now, or never will be.
                    tracing::warn!(%object, "lost answer cannot be looked up without the right to get or list; going on");
                    self.give_up(object, unconfirmed, refused);
                    return true;
                }
                Found::NoRight(_) => {
                    wait = Some(backoff.after(attempt));
                    continue;
                }
                Found::NoAnswer(after) => {
                    wait = Some(after.unwrap_or_else(|| backoff.after(attempt)));
                    continue;
                }
            };
            let unchanged = match &found {
                Some(value) => Meta::of(value).version == unconfirmed.version,
                None => unconfirmed.uid.is_empty(),
            };
            if !unchanged && unconfirmed.is_done(found.as_ref()) {
                for event in unconfirmed.events.clone() {
                    self.tell(Message::Publish(
                        self.key.clone(),
                        Box::new(event),
                        Some(Box::new(object.clone())),
                    ));
                }
            }
            if unconfirmed.is_deletion() {
                // What was not done may be on its way yet; what was done is seen.
                let now = self.shared.environment.now();
                let open = unchanged.then_some(now);
                self.release(&unconfirmed.uid, open);
            }
            if unchanged && let Some(refused) = &unconfirmed.refused {
                // It was not done, and would not be if tried again at once.
                let now = self.shared.environment.now();
                let mut state = self.shared.lock();
                state.refuse(
                    (object, unconfirmed.by()),
                    refused.clone(),
                    None,
                    backoff,
                    now,
                );
            }
            tracing::info!(%object, unchanged, "lost answer looked up");
            return true;
        }
        tracing::warn!(%object, "lost answer not yet looked up; nothing else is done before");
        false
    }

    /// Reads an object, consistently. One that is older than what was known before tells of a restore of the API's storage
    /// that no watch has noticed, because versions have been given out again since.
    pub(super) async fn fetch(&self, object: &ObjectRef) -> Outcome {
        let before = self.known(object);
        let outcome = self.fetch_only(object).await;
        self.compare(object, before, &outcome);
        outcome
    }

    /// The newest version of an object that is known, and of which history that is, if it is sure.
    pub(super) fn known(&self, object: &ObjectRef) -> (u64, Option<u64>) {
        let state = self.shared.lock();
        let history = state.history_of(&object.cluster, &object.kind);
        (state.newest(object), history)
    }

    /// Tells of a restore of the API's storage, if an answer is older than what was known before it was asked for.
    pub(super) fn compare(
        &self,
        object: &ObjectRef,
        (known, history): (u64, Option<u64>),
        outcome: &Outcome,
    ) {
        if let (Outcome::Done(value), Some(history)) = (outcome, history)
            && (1..known).contains(&number(&Meta::of(value).version))
        {
            self.tell(Message::Rewound(object.cluster.clone(), history));
        }
    }

    async fn fetch_only(&self, object: &ObjectRef) -> Outcome {
        let Some(cluster) = self.clusters.get(&object.cluster) else {
            return Outcome::Busy(None);
        };
        // What another cluster says that answers for a member is said of another object.
        let Some(way) = Box::pin(self.way_to(object, &cluster)).await else {
            return Outcome::Busy(None);
        };
        let timeout = self.shared.settings.request_timeout;
        let context = self.context(0, purpose::READ);
        let wanted = ApiRequest::get(object).traced(context.clone());
        let outcome = wanted.send(&way, timeout).await;
        let Outcome::Refused(_) = outcome else {
            return outcome;
        };
        // Who may watch a kind may list it.
        let wanted = ApiRequest::find(object).traced(context);
        only(wanted.send(&way, timeout).await)
    }

    /// Reads an object, consistently, and takes in what it is, unless it was asked for in another history.
    pub(super) async fn read(&self, object: &ObjectRef, uid: &str) -> Found {
        let outcome = self.fetch(object).await;
        let is_of_now = !self.is_outlived();
        match outcome {
            Outcome::Done(value) => {
                if is_of_now {
                    self.shared.lock().overlay(object, &value);
                }
                Found::Object(value)
            }
            Outcome::Absent(refused) if refused.reason == Reason::NotServed => {
                Found::NotServed(refused)
            }
            Outcome::Absent(_) => {
                if is_of_now {
                    self.shared.lock().overlay_absence(object, uid);
                }
                Found::Nothing
            }
            Outcome::Busy(after) | Outcome::Unknown(_, after) => Found::NoAnswer(after),
            Outcome::Refused(refused)
                if refused.is_forbidden() && self.may_not_read(object).await =>
            {
                Found::NoRight(Refused {
                    reason: Reason::NoRight,
                    ..refused
                })
            }
            Outcome::Refused(_) | Outcome::Conflict => Found::NoAnswer(None),
        }
    }

    /// Whether the API says that an object may neither be read nor listed.
    async fn may_not_read(&self, object: &ObjectRef) -> bool {
        let Some(cluster) = self.clusters.get(&object.cluster) else {
            return false;
        };
        let timeout = self.shared.settings.request_timeout;
        for wanted in [ApiRequest::get(object), ApiRequest::find(object)] {
            let (client, uri) = (&cluster.client, &wanted.uri);
            let rights = &cluster.rights;
            if !rights
                .is_missing(client, &wanted.method, uri, timeout)
                .await
            {
                return false;
            }
        }
        true
    }
}

/// The one object in a list of it.
fn only(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(list) => match list.pointer("/items/0") {
            Some(object) => Outcome::Done(object.clone()),
            None => Outcome::Absent(Refused::new("NotFound", "it is not in the list")),
        },
        other => other,
    }
}
