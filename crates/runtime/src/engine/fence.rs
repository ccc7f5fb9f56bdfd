//! Makes sure that a former leader cannot act any more, before this one does.
//!
//! ```text
//! given up in good order   list ─► act
//! Fence::WaitOut           wait ─► list ─► act
//! Fence::BumpVersions      list ─► bump ─► act      where that is forbidden or fails: wait ─► list ─► act
//! ```
//!
//! The wait is until every request of the former one must have ended. Everything is listed consistently, so that its
//! last writes are seen.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use slipway_kernel::action::Target;
use slipway_kernel::capability::{Controller, Fence};
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::ObjectRef;
use tokio::time::Instant;

use super::Engine;
use super::bump::{Bump, Bumped};
use crate::election::Taken;
use crate::message::Message;
use crate::state::Phase;
use crate::watch::WatchKey;

/// What a new leader still waits for.
#[derive(Debug)]
pub(super) struct Fencing {
    epoch: i64,
    /// When the lease was taken.
    since: Instant,
    /// Whether objects are bumped after the lists.
    bump: bool,
    /// Lists of at least this number.
    lists: Option<BTreeMap<WatchKey, u64>>,
}

impl Engine {
    pub(super) fn taken(&mut self, lease: &'static str, epoch: i64, taken: Taken) {
        let all_bump = self
            .of_lease(lease)
            .all(|c| c.fence() == Fence::BumpVersions);
        let bump = taken == Taken::Expired && all_bump;
        let fencing = Fencing {
            epoch,
            since: Instant::now(),
            bump,
            lists: None,
        };
        self.fences.insert(lease, fencing);
        match (taken, &self.shared.settings.election) {
            (Taken::Fresh, _) | (_, None) => self.acts(lease, epoch),
            (Taken::Released, _) => self.waited_out(lease, epoch),
            (Taken::Expired, Some(_)) if bump => self.waited_out(lease, epoch),
            (Taken::Expired, Some(_)) => self.wait_out(lease, epoch),
        }
    }

    fn of_lease(&self, lease: &'static str) -> impl Iterator<Item = &Arc<dyn Controller>> {
        let all = self.capabilities.values();
        all.filter(move |capability| capability.lease() == lease)
    }

    /// Waits until every request that the former leader sent before the lease was taken must have ended.
    fn wait_out(&mut self, lease: &'static str, epoch: i64) {
        let (Some(fencing), Some(election)) =
            (self.fences.get(lease), &self.shared.settings.election)
        else {
            return;
        };
        let until = fencing.since + self.shared.settings.request_timeout + election.skew;
        let left = until.saturating_duration_since(Instant::now());
        let environment = self.shared.environment.clone();
        self.start(async move {
            environment.sleep(left).await;
            Message::WaitedOut(lease, epoch)
        });
    }

    pub(super) fn waited_out(&mut self, lease: &'static str, epoch: i64) {
        let Some(fencing) = self.fences.get_mut(lease) else {
            return;
        };
        if fencing.epoch != epoch {
            return;
        }
        let controllers = self.capabilities.values().filter(|c| c.lease() == lease);
        let mut lists = BTreeMap::new();
        for key in controllers
            .filter_map(|c| self.needs.get(c.name()))
            .flatten()
        {
            let off = {
                let state = self.shared.lock();
                state.watches.get(key).is_some_and(|watch| watch.off)
            };
            if let Some(watched) = self.watches.get(key)
                && !off
            {
                lists
                    .entry(key.clone())
                    .or_insert_with(|| watched.control.relist());
            }
        }
        let done = lists.is_empty();
        fencing.lists = Some(lists);
        if done {
            self.listed_all(lease, epoch);
        }
    }

    /// A watch has made its list of this number.
    pub(super) fn relisted(&mut self, key: &WatchKey, round: u64) {
        let mut done = Vec::new();
        for (lease, fencing) in &mut self.fences {
            let Some(lists) = &mut fencing.lists else {
                continue;
            };
            if lists.get(key).is_some_and(|wanted| round >= *wanted) {
                lists.remove(key);
                if lists.is_empty() {
                    done.push((*lease, fencing.epoch));
                }
            }
        }
        for (lease, epoch) in done {
            self.listed_all(lease, epoch);
        }
    }

    /// The last writes of the former leader that were done are known.
    fn listed_all(&mut self, lease: &'static str, epoch: i64) {
        let Some(fencing) = self.fences.get_mut(lease) else {
            return;
        };
        fencing.lists = None;
        if !fencing.bump {
            self.acts(lease, epoch);
            return;
        }
        let Some(targets) = self.targets(lease) else {
            self.wait_instead(lease, epoch);
            return;
        };
        let bump = Bump {
            shared: self.shared.clone(),
            clusters: self.clusters.clone(),
            lease,
            epoch,
            history: self.shared.lock().history,
            targets,
        };
        let count = bump.targets.len();
        tracing::info!(
            lease,
            epoch,
            count,
            "versions bumped against a former leader"
        );
        self.start(async move { Message::Bumped(lease, epoch, bump.run().await) });
    }

    /// All that the former leader could act on, each object once; none if that cannot be told.
    fn targets(&self, lease: &'static str) -> Option<Vec<(&'static str, Target)>> {
        let stores = self.shared.lock().stores.clone();
        let mut seen: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut all = Vec::new();
        for capability in self.of_lease(lease) {
            for key in self.keys_of(capability.name(), &stores) {
                let targets = || capability.objects_to_bump(&stores, &key);
                for target in catch_unwind(AssertUnwindSafe(targets)).ok()? {
                    if seen.insert(target.object().clone()) {
                        all.push((capability.name(), target));
                    }
                }
            }
        }
        Some(all)
    }

    fn wait_instead(&mut self, lease: &'static str, epoch: i64) {
        if let Some(fencing) = self.fences.get_mut(lease) {
            fencing.bump = false;
        }
        self.wait_out(lease, epoch);
    }

    /// Goes on after the bumps, or waits where they were not possible.
    pub(super) fn bumped(&mut self, lease: &'static str, epoch: i64, bumped: Bumped) {
        if self.fences.get(lease).is_none_or(|f| f.epoch != epoch) {
            return;
        }
        match bumped {
            Bumped::All => {
                let mut state = self.shared.lock();
                state.facts.missing.retain(|one| one.right != Right::Fence);
                drop(state);
                self.acts(lease, epoch);
            }
            Bumped::Lost => {}
            Bumped::Forbidden(object, why) => {
                let mut state = self.shared.lock();
                let missing = Missing::new(&object.cluster, &object.kind, Right::Fence);
                if state.facts.missing.insert(missing) {
                    let kind = object.kind.kind.as_ref();
                    tracing::warn!(
                        kind,
                        why,
                        "a former leader cannot be fenced off by bumping versions; it is waited for"
                    );
                }
                drop(state);
                self.wait_instead(lease, epoch);
            }
            Bumped::Failed(object) => {
                tracing::warn!(%object, "object not bumped; the former leader is waited for");
                self.wait_instead(lease, epoch);
            }
        }
    }

    /// From now on this replica acts.
    fn acts(&mut self, lease: &'static str, epoch: i64) {
        self.fences.remove(lease);
        let lanes: Vec<_> = {
            let mut state = self.shared.lock();
            match state.standings.get_mut(lease) {
                Some(standing) if standing.epoch == epoch && standing.phase == Phase::Fencing => {
                    standing.phase = Phase::Acting;
                }
                _ => return,
            }
            let names: Vec<&'static str> = self
                .capabilities
                .values()
                .filter(|c| c.lease() == lease)
                .map(|c| c.name())
                .collect();
            // What was unconfirmed has been listed since.
            let now = self.shared.environment.now();
            state.bound_deletions(now, |(_, name)| names.contains(name));
            state
                .unconfirmed
                .retain(|(_, name), _| !names.contains(name));
            let lanes = self.started.iter().filter(|lane| names.contains(&lane.1));
            lanes.cloned().collect()
        };
        tracing::info!(lease, epoch, "became leader");
        let now = Instant::now();
        for lane in lanes {
            for key in self.queue.keys(&lane) {
                self.queue.at_once(&key, now);
            }
        }
        self.shared.notify_observers();
    }

    pub(super) fn lost(&mut self, lease: &'static str) {
        self.fences.remove(lease);
        let names: Vec<&'static str> = self.of_lease(lease).map(|c| c.name()).collect();
        let now = self.shared.environment.now();
        let mut state = self.shared.lock();
        state.bound_deletions(now, |(_, name)| names.contains(name));
        drop(state);
        self.shared.notify_observers();
    }
}
