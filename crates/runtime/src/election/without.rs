//! What a replica does that is kept from its Lease.

use std::time::Duration;

use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Severity;
use slipway_kernel::event::{Event, EventType};
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::{ClusterId, Key};

use super::{Candidate, Taken};
use crate::journal;
use crate::message::Message;
use crate::settings::WithoutLease;
use crate::state::{Phase, Standing};

/// How long a replica that acts without a right to the Lease waits before it looks whether it has got one.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Why a replica that may not use its Lease does nothing.
const NO_LEASE: &str = "LeaseUnusable";

/// What keeps a replica from the Lease.
pub(super) struct Obstacle {
    pub(super) why: String,
    /// Whether it keeps all replicas from it for good: there is no right to it, or no place for it.
    pub(super) is_lasting: bool,
}

/// What a replica makes of being kept from the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stance {
    /// It takes part.
    Electing,
    /// It acts without.
    Alone,
    /// It does not act, and has said so.
    Waiting,
}

impl Candidate {
    fn missing(&self) -> Missing {
        let object = self.object();
        Missing {
            namespace: object.namespace,
            ..Missing::new(&object.cluster, &object.kind, Right::Lead(object.name))
        }
    }

    /// What the Lease is to those who look for blockers.
    fn key(&self) -> Key {
        Key {
            cluster: ClusterId::local(),
            controller: "election",
            namespace: self.shared.settings.namespace.clone(),
            name: self.lease.to_owned(),
        }
    }

    /// The Lease cannot be used. A refusal may be an accident, and a second leader would come of it: so nothing follows
    /// before it has lasted.
    pub(super) fn bear(
        &self,
        stance: &mut Stance,
        obstacle: &Obstacle,
        has_lasted: bool,
        was_seen: bool,
    ) {
        let is_alone =
            obstacle.is_lasting && !was_seen && self.times.without_lease == WithoutLease::Alone;
        let next = if is_alone {
            Stance::Alone
        } else {
            Stance::Waiting
        };
        // Others may use the Lease now.
        let is_over = *stance == Stance::Alone && !is_alone;
        if *stance == next || !(has_lasted || is_over) {
            return;
        }
        if is_over {
            self.depose();
        }
        *stance = next;
        self.shared.lock().home.facts.missing.insert(self.missing());
        match next {
            Stance::Alone => self.act_alone(&obstacle.why),
            Stance::Electing | Stance::Waiting => self.stand_by(&obstacle.why),
        }
    }

    /// This replica was told that it is the only one.
    fn act_alone(&self, why: &str) {
        let lease = self.lease;
        tracing::warn!(lease, why, "no lease can be used; one replica is assumed");
        {
            let mut state = self.shared.lock();
            state.blockers.remove(&self.key());
            let standing = Standing {
                phase: Phase::Fencing,
                epoch: 0,
                until: None,
                record: None,
            };
            state.standings.insert(self.lease, standing);
        }
        self.tell(Message::Taken(self.lease, 0, Taken::Fresh));
    }

    /// Says why nothing is done, in all places where people look.
    fn stand_by(&self, why: &str) {
        let object = self.object();
        let message = format!("Lease {object} cannot be used, so this replica does nothing: {why}");
        let blocker = Blocker {
            reason: NO_LEASE,
            message: message.clone(),
            object: object.clone(),
            since: self.shared.environment.now(),
            until: None,
            unblock: "the right to get, create and update the Lease in a namespace that is there; \
                      or, where there can be no second replica, running without leader election"
                .to_owned(),
        };
        journal::blocked(&blocker, Severity::Warning);
        let mut state = self.shared.lock();
        state.blockers.insert(self.key(), vec![blocker]);
        drop(state);
        let event = Event {
            regarding: object,
            uid: String::new(),
            severity: EventType::Warning,
            reason: NO_LEASE,
            action: "Elect",
            note: message,
            instance: self.shared.settings.replica.clone(),
        };
        self.tell(Message::Publish(self.key(), Box::new(event), None));
        self.shared.notify_observers();
    }

    /// The Lease can be used.
    pub(super) fn take_part(&self, stance: &mut Stance) {
        let before = std::mem::replace(stance, Stance::Electing);
        if before == Stance::Electing {
            return;
        }
        tracing::info!(lease = self.lease, "the lease can be used again");
        {
            let mut state = self.shared.lock();
            state.home.facts.missing.remove(&self.missing());
            state.blockers.remove(&self.key());
        }
        self.depose();
    }

    /// How long until the next attempt.
    pub(super) fn until_next(&self, stance: Stance) -> Duration {
        match stance {
            Stance::Alone => self.shared.settings.heartbeat.min(LOOK_AGAIN),
            Stance::Electing | Stance::Waiting => self.times.retry_period,
        }
    }
}
