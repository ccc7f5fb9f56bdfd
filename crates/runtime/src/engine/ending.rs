//! The end of a replica: nothing new is begun, answers are awaited, and the leases given up.
//!
//! What is under way at home keeps its lease, and nobody else's. A member that does not answer keeps none: it is named in the Lease
//! ([`crate::lease`]), and the next leader waits for what may be under way there, and begins everywhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use slipway_kernel::identity::{ClusterId, Key};
use tokio::time::{Instant, sleep_until};

use super::{Engine, TURN};
use crate::election::release;
use crate::environment::after;

/// For how long the answers of members are awaited.
const MEMBERS: Duration = Duration::from_secs(1);

/// A Lease that names more than this, in bytes, could not be written.
const MOST_NAMED: usize = 64 * 1024;

/// How much of each is under way.
#[derive(Debug)]
pub(super) struct Counts<K>(BTreeMap<K, usize>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Counts<K> {
    pub(super) fn add(&mut self, of: K) {
        *self.0.entry(of).or_default() += 1;
    }

    /// One less.
    pub(super) fn take(&mut self, of: &K) {
        if let Some(count) = self.0.get_mut(of) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(of);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

impl Counts<(ClusterId, &'static str)> {
    /// Whether anything is under way in a cluster.
    pub(super) fn has(&self, cluster: &ClusterId) -> bool {
        let mut all = self.0.range((cluster.clone(), "")..);
        all.next().is_some_and(|((first, _), _)| first == cluster)
    }
}

impl Engine {
    /// No new steps; answers are awaited, then the leases given up.
    pub(super) async fn end(&mut self, client: &kube::Client) {
        self.shared.draining.store(true, Ordering::Release);
        let now = Instant::now();
        let home = after(now, self.shared.settings.request_timeout);
        let members = home.min(after(now, MEMBERS));
        // Whoever is slow outside does not keep the lease from the next leader, who asks again under the same name.
        self.questions.leave_the_world();
        // What webhooks have just left to be undone is not lost.
        self.drain_inbox();
        while let Some(is_home) = self.is_under_way() {
            let patience = if is_home { home } else { members };
            let message = tokio::select! {
                biased;
                () = sleep_until(patience) => break,
                Some(message) = self.inbox.recv() => message,
                Some(message) = self.running.next(), if !self.running.is_empty() => message,
            };
            self.receive(message);
        }
        for candidacy in self.candidacies.drain(..) {
            candidacy.abort();
        }
        let leases: Vec<&'static str> = self.shared.lock().standings.keys().copied().collect();
        for lease in leases {
            // What is still under way has no answer: the next leader has to wait for it.
            let unanswered = self.unanswered(lease);
            let named: usize = unanswered.iter().map(|of| of.as_str().len() + 3).sum();
            if named <= MOST_NAMED && !unanswered.contains(&ClusterId::local()) {
                release(&self.shared, client, (lease, unanswered)).await;
            }
        }
        self.shared.notify_observers();
    }

    /// Whether anything is awaited, and if so whether any of it at home.
    fn is_under_way(&self) -> Option<bool> {
        let executing = self.executing.all().map(|(cluster, _)| cluster);
        let asking = self.questions.under_way_inside().map(|key| &key.cluster);
        let mut all = executing.chain(self.telling.all()).chain(asking).peekable();
        let is_any = all.peek().is_some() || self.undoing > 0;
        is_any.then(|| self.undoing > 0 || all.any(ClusterId::is_local))
    }

    /// Where something that was done under a lease may yet be carried out: there is no answer to it, or a former leader that was
    /// waited for may still act.
    fn unanswered(&self, lease: &'static str) -> BTreeSet<ClusterId> {
        let names: BTreeSet<&'static str> = self.of_lease(lease).map(|one| one.name()).collect();
        let executing = self.executing.all();
        let executing = executing.filter(|(_, controller)| names.contains(controller));
        let asking = self.questions.under_way_inside();
        let asking = asking.filter(|key: &&Key| names.contains(key.controller));
        let mut all: BTreeSet<ClusterId> = executing.map(|(cluster, _)| cluster.clone()).collect();
        all.extend(asking.map(|key| key.cluster.clone()));
        all.extend(self.unfenced(lease));
        let state = self.shared.lock();
        let lost = state.members.iter().filter(|(_, known)| {
            let mut lanes = known.unconfirmed.keys();
            lanes.any(|lane| names.contains(lane.controller))
        });
        all.extend(lost.map(|(cluster, _)| cluster.clone()));
        all
    }

    /// Keeps what webhooks decide on new, and undoes what they leave to be undone, until `guests` is over.
    pub(super) async fn host(&mut self, mut guests: BoxFuture<'static, ()>) {
        loop {
            self.shared.lock().progress = Some(Instant::now());
            let message = tokio::select! {
                biased;
                () = &mut guests => return,
                Some(message) = self.inbox.recv() => message,
                Some(message) = self.running.next(), if !self.running.is_empty() => message,
                () = sleep_until(Instant::now() + TURN) => continue,
            };
            self.receive(message);
            self.drain_inbox();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_in_a_cluster_is_so_until_all_of_it_has_ended() {
        let mut counts = Counts::default();
        let (north, west) = (ClusterId::remote("north"), ClusterId::remote("west"));
        for controller in ["agent", "hub", "hub"] {
            counts.add((north.clone(), controller));
        }
        for controller in ["hub", "agent", "hub"] {
            assert!(counts.has(&north) && !counts.has(&west));
            counts.take(&(north.clone(), controller));
        }
        assert!(!counts.has(&north));
        assert_eq!(counts.all().count(), 0);
    }
}
