//! Tells events, each in its own time, and gives up for a while where none can be told.

use std::sync::Arc;
use std::time::Duration;

use slipway_kernel::event::Event;
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::{ClusterId, Key, ObjectRef, kinds};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::Engine;
use crate::channel::Tied;
use crate::clusters::Cluster;
use crate::environment::after;
use crate::events::{self, Slot, Telling, Untold};
use crate::execute::way_into;
use crate::journal;
use crate::message::Message;
use crate::request::{ApiRequest, Outcome, Reason};
use crate::state::Shared;

/// How often an event is tried to be told.
const TELLINGS: u32 = 3;
/// Between them, whatever the server asks for: who is told may be another one by then.
const LONGEST: Duration = Duration::from_secs(10);
/// For how long none is told in a namespace that refuses them although there is the right: it has no room for more, or goes.
const EVENTS_PAUSE: Duration = Duration::from_secs(30);

impl Engine {
    /// Tells an event, in its own time.
    pub(super) fn publish(&mut self, key: &Key, event: &Event, acted: Option<&ObjectRef>) {
        let controller = key.controller;
        let Some(telling) = self.recorder.take(event) else {
            return;
        };
        let is_logged = telling == Telling::Again || {
            let state = self.shared.lock();
            let mut blockers = state.blockers.get(key).into_iter().flatten();
            blockers.any(|blocker| blocker.message == event.note)
        };
        if !is_logged {
            journal::told(event, acted);
        }
        let (now, slot) = (Instant::now(), events::slot(event));
        let place = (slot.0.clone(), slot.1.clone());
        if self
            .events_off
            .get(&place)
            .is_some_and(|until| now < *until)
        {
            self.recorder.untold(&slot);
            return;
        }
        if event.regarding.cluster != key.cluster {
            tracing::error!(%key, object = %event.regarding, "event about another cluster's object; not told");
            return;
        }
        let Some(cluster) = self.clusters.get(&event.regarding.cluster) else {
            self.recorder.untold(&slot);
            return;
        };
        let (shared, inbox) = (self.shared.clone(), self.sender.clone());
        let replica = &shared.settings.replica;
        let wanted = events::render(event, controller, replica, shared.environment.now());
        self.telling.add(place.0.clone());
        let tenure = self.tenure(&place.0);
        let mut ended = self.ended(&place.0);
        let lease = self.capabilities.get(controller).map(|one| one.lease());
        let tell = Tell {
            shared,
            inbox,
            cluster,
            wanted,
            controller,
            lease: lease.unwrap_or_default(),
            place,
        };
        self.start(async move {
            let untold = tokio::select! {
                biased;
                () = ended.recv() => Some(Untold::Elsewhere),
                untold = tell.run() => untold,
            };
            Message::Told(slot, tenure, untold)
        });
    }

    /// An event was told, or none can be told in its namespace just now: then it is, if there is still cause for it later.
    pub(super) fn told(&mut self, slot: &Slot, tenure: u64, untold: Option<Untold>) {
        let (cluster, namespace) = (&slot.0, slot.1.as_str());
        self.telling.take(cluster);
        // Of a member that is gone, or has another cluster in its place, nothing is remembered.
        let is_known = self.sites.contains_key(cluster) && self.tenure(cluster) == tenure;
        let Some(untold) = untold.filter(|_| is_known) else {
            return;
        };
        self.recorder.untold(slot);
        let pause = match untold {
            Untold::NoRight(why) => {
                let mut state = self.shared.lock();
                let is_new = state.of_mut(cluster).is_some_and(|known| {
                    let missing = &mut known.facts.missing;
                    let told_of = missing.iter().filter(|one| one.right == Right::Tell);
                    told_of.count() < MAX_TOLD_OF && missing.insert(events_in(cluster, namespace))
                });
                if is_new {
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
            // Whoever works there waits until it is known which cluster it is.
            Untold::Elsewhere => return,
        };
        let until = after(Instant::now(), pause);
        let place = (cluster.clone(), namespace.to_owned());
        self.events_off.insert(place, until);
    }
}

/// In how many namespaces it is said that no events can be told: namespaces come and go.
const MAX_TOLD_OF: usize = 64;

/// What is missing where events cannot be told.
fn events_in(cluster: &ClusterId, namespace: &str) -> Missing {
    Missing::new(cluster, &kinds::EVENT, Right::Tell).within(namespace)
}

/// An event on its way.
struct Tell {
    shared: Arc<Shared>,
    inbox: mpsc::UnboundedSender<Message>,
    cluster: Cluster,
    wanted: ApiRequest,
    controller: &'static str,
    lease: &'static str,
    /// The cluster and the namespace that it is told in.
    place: (ClusterId, String),
}

impl Tell {
    /// Tells it; gives why none can be told in its namespace, if that is so.
    async fn run(&self) -> Option<Untold> {
        for attempt in 1..=TELLINGS {
            let Some(way) = self.way(attempt).await else {
                return Some(Untold::Elsewhere);
            };
            let wait = match self.once(&way).await {
                Ok(untold) => return untold,
                Err(asked) => asked,
            };
            let wait = wait.unwrap_or_else(|| self.shared.settings.backoff.after(attempt));
            sleep(wait.min(LONGEST)).await;
        }
        None
    }

    /// The way to tell it there, if it may be. An event brings something into being, which needs no object to be there: so whoever answers is
    /// asked each time, and a member is told nothing again by a replica that does not lead any more.
    async fn way(&self, attempt: u32) -> Option<Tied> {
        let (shared, cluster) = (&self.shared, &self.place.0);
        if cluster.is_local() {
            return Some(self.cluster.client.over(None));
        }
        let leads = attempt == 1 || shared.holds(self.lease).is_some();
        if !leads {
            return None;
        }
        let whose = (cluster, self.controller);
        way_into(shared, &self.inbox, whose, &self.cluster).await
    }

    /// Tries once; no end of it if that is to be done again, after what the server asked for.
    async fn once(&self, way: &Tied) -> Result<Option<Untold>, Option<Duration>> {
        let (shared, client, wanted) = (&self.shared, &self.cluster.client, &self.wanted);
        let timeout = shared.settings.request_timeout;
        let outcome = wanted.send(way, timeout).await;
        let rights = &self.cluster.rights;
        let outcome = rights.tell_apart(client, wanted, outcome, timeout);
        Ok(match outcome.await {
            Outcome::Done(_) | Outcome::Conflict => {
                shared.metrics.published(self.controller);
                let (of, namespace) = &self.place;
                let mut state = shared.lock();
                let missing = events_in(of, namespace);
                if let Some(known) = state.of_mut(of)
                    && known.facts.missing.contains(&missing)
                {
                    known.facts.missing.remove(&missing);
                }
                None
            }
            Outcome::Refused(refused) if refused.reason == Reason::NoRight => {
                Some(Untold::NoRight(refused.message))
            }
            Outcome::Refused(refused) if refused.is_forbidden() => {
                Some(Untold::Refused(refused.message))
            }
            Outcome::Refused(refused) | Outcome::Absent(refused) => {
                tracing::warn!(message = refused.message, "event not told");
                None
            }
            Outcome::Busy(asked) | Outcome::Unknown(_, asked) => return Err(asked),
        })
    }
}
