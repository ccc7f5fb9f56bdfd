//! What follows from a restore of the API's storage: nothing is planned before everything has been listed again; and from a kind of
//! a member that cannot be read any more.
//!
//! Lanes are held as at the start, and go on with a plan of all their keys. What was decided before is cut off where it is
//! ([`crate::execute`]). An answer to it that comes later is taken in by nobody, so after it everything is listed once more:
//! what was written may have been written to the storage that is there now.

use slipway_kernel::identity::ClusterId;
use tokio::time::Instant;

use super::Engine;
use crate::message::Message;
use crate::state::State;
use crate::watch::WatchKey;

impl Engine {
    /// A read has shown that the storage was restored, unless what it was compared with is of another history.
    pub(super) fn read_older(&mut self, cluster: &ClusterId, history: u64) {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if state.history(cluster) == Some(history) {
            self.rewound(&mut state, cluster);
        }
        drop(state);
        shared.notify_observers();
    }

    /// The storage was restored, as something shows that was listed before.
    pub(super) fn rewound(&mut self, state: &mut State, cluster: &ClusterId) {
        let wait = state.rewind(cluster, self.shared.environment.now());
        tracing::warn!(
            %cluster,
            "versions of the API have run backwards, as after a restore; dropping what was decided before, and doing nothing until everything has been listed again"
        );
        self.hold(cluster);
        if let Some(member) = state.of_mut(cluster).and_then(|k| k.member.as_mut()) {
            // It may be another cluster: nothing is planned before it has said that it is not.
            member.distrust();
        }
        if wait.is_zero() {
            self.list_again(state, cluster);
            return;
        }
        let (environment, cluster) = (self.shared.environment.clone(), cluster.clone());
        self.start(async move {
            environment.sleep(wait).await;
            Message::ListAgain(cluster)
        });
    }

    /// It is time to list everything again, unless that was done meanwhile.
    pub(super) fn list_if_due(&mut self, cluster: &ClusterId) {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if state.is_list_due(cluster) {
            self.list_again(&mut state, cluster);
        }
    }

    /// An answer came to what was decided before a restore, after that was noticed.
    pub(super) fn outlived(&mut self, cluster: &ClusterId) {
        let shared = self.shared.clone();
        self.hold(cluster);
        self.list_again(&mut shared.lock(), cluster);
    }

    /// Nothing of the cluster is planned until all that it rests on has been listed, and nothing asked for plans of before.
    pub(super) fn hold(&mut self, cluster: &ClusterId) {
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        for controller in std::mem::take(&mut site.started) {
            self.queue.hold(&(cluster.clone(), controller), true);
        }
        self.unsettled.insert(cluster.clone());
        self.questions.take_back(cluster);
    }

    /// A kind of a member cannot be read, and has not been for a while, though the member answers. Nothing is planned where it is
    /// needed: a replica that began now would not have all of it either. The watch may go on as if nothing had happened, so it is
    /// listed before work goes on. What was only asked for at run time is waited for by nobody.
    pub(super) fn unread(&mut self, state: &State, key: &WatchKey, since: Instant) {
        let Some(site) = self.sites.get_mut(&key.cluster) else {
            return;
        };
        let needs = |name: &&'static str| {
            let needs = site.needs.get(name);
            needs.is_some_and(|needs| needs.contains(key))
        };
        if !site.started.iter().any(needs) {
            return;
        }
        let known = state.of(&key.cluster);
        let watch = known.and_then(|known| known.watches.get(key));
        if let Some(round) = watch.and_then(|watch| watch.list_after(since)) {
            site.returning.insert(key.clone(), round);
        }
        self.hold(&key.cluster);
    }

    /// Has everything listed again. What was the newest version is none any more: whoever noticed nothing would take the
    /// next answer for another restore.
    fn list_again(&self, state: &mut State, cluster: &ClusterId) {
        let site = self.sites.get(cluster).into_iter();
        let rounds: Vec<(WatchKey, u64)> = site
            .flat_map(|site| &site.watches)
            .map(|(key, watched)| {
                watched.control.forget_versions();
                (key.clone(), watched.control.relist())
            })
            .collect();
        state.await_lists(cluster, rounds, self.shared.environment.now());
    }
}
