//! Makes sure that a former leader cannot act any more, before this one does.
//!
//! ```text
//! given up in good order   list ─► act               but in members that the Lease names as unanswered, as below
//! Fence::WaitOut           wait ─► list ─► act
//! Fence::BumpVersions      list ─► bump ─► act      where that is forbidden or fails: wait ─► list ─► act
//! ```
//!
//! The wait is until every request of the former one must have ended. Everything is listed consistently, so that its
//! last writes are seen.
//!
//! Each cluster is fenced by itself, and home goes first: in a member nothing is done before home is fenced, because its plans
//! rest on what home says, and before the member itself is. What is bumped in a member is known when home has been listed: a
//! former leader may have begun something there that only home tells of. A member that does not answer is fenced when it does,
//! and delays no other.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use slipway_kernel::action::Target;
use slipway_kernel::capability::{Controller, Fence};
use slipway_kernel::fact::{Missing, Right};
use slipway_kernel::identity::{ClusterId, ObjectRef};
use tokio::time::Instant;

use super::Engine;
use super::bump::{Basis, Bump, Bumped};
use super::site::Site;
use crate::election::Taken;
use crate::message::Message;
use crate::state::Phase;
use crate::watch::WatchKey;

/// A lease that this replica has.
#[derive(Debug, Clone)]
pub(super) struct Leadership {
    epoch: i64,
    /// When it was taken.
    since: Instant,
    taken: Taken,
}

/// What a new leader still waits for in a cluster.
#[derive(Debug)]
pub(super) struct Fencing {
    epoch: i64,
    /// When the lease was taken.
    since: Instant,
    /// Whether objects are bumped after the lists.
    bump: bool,
    /// The histories of versions that the lists are of.
    basis: Basis,
    progress: Progress,
}

/// How far a fence has come.
#[derive(Debug)]
enum Progress {
    /// The former leader is waited for.
    Waits,
    /// Lists of at least these numbers are.
    Lists(BTreeMap<WatchKey, u64>),
    /// Home's lists are, without which nobody knows what is to be bumped here.
    Parked,
    /// Objects are being bumped.
    Bumps,
}

impl Fencing {
    /// Whether the last writes of the former leader may not be known yet.
    fn is_unlisted(&self) -> bool {
        matches!(self.progress, Progress::Waits | Progress::Lists(_))
    }
}

impl Engine {
    pub(super) fn taken(&mut self, lease: &'static str, epoch: i64, taken: Taken) {
        let since = Instant::now();
        let leadership = Leadership {
            epoch,
            since,
            taken,
        };
        self.leaderships.insert(lease, leadership.clone());
        let clusters: Vec<ClusterId> = self.sites.keys().cloned().collect();
        for cluster in clusters {
            self.fence(&cluster, lease, leadership.clone());
        }
    }

    /// Fences a cluster that is worked on from now on, for the leases that this replica has.
    pub(super) fn fence_all(&mut self, cluster: &ClusterId) {
        for (lease, leadership) in self.leaderships.clone() {
            self.fence(cluster, lease, leadership);
        }
    }

    fn fence(&mut self, cluster: &ClusterId, lease: &'static str, leadership: Leadership) {
        let Leadership {
            epoch,
            since,
            taken,
        } = leadership;
        let all_bump = self
            .of_lease(lease)
            .all(|c| c.fence() == Fence::BumpVersions);
        // What a former leader could act on in a member that has not been listed is not known: there it is waited for.
        let is_known = cluster.is_local() || !self.started(cluster).is_empty();
        let is_left = match &taken {
            Taken::Fresh => false,
            Taken::Released(unanswered) => unanswered.contains(cluster),
            Taken::Expired => true,
        };
        let bump = is_left && all_bump && is_known;
        let fencing = Fencing {
            epoch,
            since,
            bump,
            basis: Basis::default(),
            progress: Progress::Waits,
        };
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        site.fences.insert(lease, fencing);
        if taken == Taken::Fresh || self.shared.settings.election.is_none() {
            self.acts(cluster, lease, epoch);
        } else if is_left && !bump {
            self.wait_out(cluster, lease, epoch);
        } else {
            self.waited_out(cluster, lease, epoch);
        }
    }

    /// Where a former leader may still act under a lease that this replica has.
    pub(super) fn unfenced(&self, lease: &'static str) -> Vec<ClusterId> {
        let is_open = |site: &Site| {
            let fencing = site.fences.get(lease);
            fencing.is_some_and(|one| one.bump || matches!(one.progress, Progress::Waits))
        };
        let sites = self.sites.iter().filter(|(_, site)| is_open(site));
        let mut all: Vec<ClusterId> = sites.map(|(cluster, _)| cluster.clone()).collect();
        let taken = self.leaderships.get(lease).map(|one| &one.taken);
        if let Some(Taken::Released(unanswered)) = taken {
            // Nobody has named them here yet.
            let unknown = unanswered.iter().filter(|of| !self.sites.contains_key(*of));
            all.extend(unknown.cloned());
        }
        all
    }

    pub(super) fn of_lease(
        &self,
        lease: &'static str,
    ) -> impl Iterator<Item = &Arc<dyn Controller>> {
        let all = self.capabilities.values();
        all.filter(move |capability| capability.lease() == lease)
    }

    fn fencing(&self, cluster: &ClusterId, lease: &'static str, epoch: i64) -> Option<&Fencing> {
        let fencing = self.sites.get(cluster)?.fences.get(lease)?;
        (fencing.epoch == epoch).then_some(fencing)
    }

    fn fencing_mut(&mut self, cluster: &ClusterId, lease: &'static str) -> Option<&mut Fencing> {
        self.sites.get_mut(cluster)?.fences.get_mut(lease)
    }

    /// Waits until every request that the former leader sent before the lease was taken must have ended.
    fn wait_out(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        let (Some(fencing), Some(election)) = (
            self.fencing(cluster, lease, epoch),
            &self.shared.settings.election,
        ) else {
            return;
        };
        let until = fencing.since + self.shared.settings.request_timeout + election.skew;
        let left = until.saturating_duration_since(Instant::now());
        let (environment, cluster) = (self.shared.environment.clone(), cluster.clone());
        self.start(async move {
            environment.sleep(left).await;
            Message::WaitedOut(cluster, lease, epoch)
        });
    }

    pub(super) fn waited_out(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        if self.fencing(cluster, lease, epoch).is_none() {
            return;
        }
        let mut lists = BTreeMap::new();
        if let Some(site) = self.sites.get(cluster) {
            let state = self.shared.lock();
            let known = state.of(cluster);
            let is_off = |key: &WatchKey| {
                let watch = known.and_then(|known| known.watches.get(key));
                watch.is_some_and(|watch| watch.off)
            };
            let controllers = self.of_lease(lease).map(|c| c.name());
            for key in controllers
                .filter_map(|name| site.needs.get(name))
                .flatten()
            {
                if let Some(watched) = site.watches.get(key)
                    && !is_off(key)
                {
                    lists
                        .entry(key.clone())
                        .or_insert_with(|| watched.control.relist());
                }
            }
        }
        let done = lists.is_empty();
        // What is to be done in a member is known from home's lists as well.
        let basis = Basis::now(&self.shared.lock(), [cluster, &ClusterId::local()]);
        if let Some(fencing) = self.fencing_mut(cluster, lease) {
            fencing.basis = basis;
            fencing.progress = Progress::Lists(lists);
        }
        if done {
            self.listed_all(cluster, lease, epoch);
        }
    }

    /// A watch has made its list of this number.
    pub(super) fn relisted(&mut self, key: &WatchKey, round: u64) {
        let Some(site) = self.sites.get_mut(&key.cluster) else {
            return;
        };
        if site
            .returning
            .get(key)
            .is_some_and(|wanted| round >= *wanted)
        {
            site.returning.remove(key);
        }
        let mut done = Vec::new();
        for (lease, fencing) in &mut site.fences {
            let Progress::Lists(lists) = &mut fencing.progress else {
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
            self.listed_all(&key.cluster, lease, epoch);
        }
    }

    /// The watches of a cluster have ended. Whatever is listed from now on is listed after the former leader was waited for, so
    /// nobody waits for the lists that were asked for; what it could act on is not known any more.
    pub(super) fn unlisted(&mut self, cluster: &ClusterId) {
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        let mut done = Vec::new();
        for (lease, fencing) in &mut site.fences {
            if matches!(fencing.progress, Progress::Lists(_) | Progress::Parked) {
                fencing.progress = Progress::Waits;
                done.push((*lease, fencing.epoch, fencing.bump));
            }
        }
        for (lease, epoch, bump) in done {
            if bump {
                self.wait_instead(cluster, lease, epoch);
            } else {
                self.acts(cluster, lease, epoch);
            }
        }
    }

    /// The last writes of the former leader that were done in a cluster are known.
    fn listed_all(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        let home = self.fencing(&ClusterId::local(), lease, epoch);
        let is_early = !cluster.is_local() && home.is_some_and(Fencing::is_unlisted);
        let Some(fencing) = self.fencing_mut(cluster, lease) else {
            return;
        };
        if !fencing.bump {
            self.acts(cluster, lease, epoch);
        } else if is_early {
            fencing.progress = Progress::Parked;
        } else {
            fencing.progress = Progress::Bumps;
            self.bump(cluster, lease, epoch);
        }
        if cluster.is_local() {
            self.unpark(lease, epoch);
        }
    }

    /// Home has been listed: members whose fences wait for that go on.
    fn unpark(&mut self, lease: &'static str, epoch: i64) {
        let is_parked = |fencing: &Fencing| matches!(fencing.progress, Progress::Parked);
        let parked = self.sites.iter().filter(|(_, site)| {
            let fencing = site.fences.get(lease);
            fencing.is_some_and(|fencing| fencing.epoch == epoch && is_parked(fencing))
        });
        let parked: Vec<ClusterId> = parked.map(|(cluster, _)| cluster.clone()).collect();
        for cluster in parked {
            self.listed_all(&cluster, lease, epoch);
        }
    }

    /// Changes all that the former leader could act on in a cluster.
    fn bump(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        let Some(targets) = self.targets(cluster, lease) else {
            self.wait_instead(cluster, lease, epoch);
            return;
        };
        let Some(fencing) = self.fencing(cluster, lease, epoch) else {
            return;
        };
        let bump = Bump {
            shared: self.shared.clone(),
            clusters: self.clusters.clone(),
            cluster: cluster.clone(),
            lease,
            epoch,
            basis: fencing.basis.clone(),
            targets,
        };
        let count = bump.targets.len();
        tracing::info!(
            lease,
            epoch,
            count,
            "versions bumped against a former leader"
        );
        let cluster = cluster.clone();
        self.start(async move { Message::Bumped(cluster, lease, epoch, bump.run().await) });
    }

    /// All that the former leader could act on in a cluster, each object once; none if that cannot be told.
    fn targets(
        &self,
        cluster: &ClusterId,
        lease: &'static str,
    ) -> Option<Vec<(&'static str, Target)>> {
        let stores = self.shared.lock().stores.clone();
        let mut seen: BTreeSet<ObjectRef> = BTreeSet::new();
        let mut all = Vec::new();
        for capability in self.of_lease(lease) {
            for key in self.keys_in(capability.name(), &stores, cluster) {
                let targets = || capability.objects_to_bump(&stores, &key);
                for target in catch_unwind(AssertUnwindSafe(targets)).ok()? {
                    let object = target.object();
                    if object.cluster == *cluster && seen.insert(object.clone()) {
                        all.push((capability.name(), target));
                    }
                }
            }
        }
        Some(all)
    }

    fn wait_instead(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        if let Some(fencing) = self.fencing_mut(cluster, lease) {
            fencing.bump = false;
            fencing.progress = Progress::Waits;
        }
        self.wait_out(cluster, lease, epoch);
    }

    /// Goes on after the bumps, or waits where they were not possible.
    pub(super) fn bumped(
        &mut self,
        cluster: &ClusterId,
        lease: &'static str,
        epoch: i64,
        bumped: Bumped,
    ) {
        let fencing = self.fencing(cluster, lease, epoch);
        // It may be about a cluster that has been removed, and has come back meanwhile.
        if fencing.is_none_or(|fencing| !matches!(fencing.progress, Progress::Bumps)) {
            return;
        }
        match bumped {
            Bumped::All if self.suspect(cluster) => {
                tracing::warn!(%cluster, "what was bumped may have been another cluster's; the former leader is waited for");
                self.wait_instead(cluster, lease, epoch);
            }
            Bumped::All => {
                let mut state = self.shared.lock();
                if let Some(known) = state.of_mut(cluster) {
                    let missing = &mut known.facts.missing;
                    missing.retain(|one| one.right != Right::Fence);
                }
                drop(state);
                self.acts(cluster, lease, epoch);
            }
            // Where the lease is lost, that is told as well, and ends the wait. It may be that only the clock was set: then the next
            // renewal puts it right, and nobody says anything.
            Bumped::Lost => self.wait_instead(cluster, lease, epoch),
            Bumped::Forbidden(object, why) => {
                let mut state = self.shared.lock();
                let missing = Missing::new(&object.cluster, &object.kind, Right::Fence);
                let known = state.of_mut(cluster);
                if known.is_some_and(|known| known.facts.missing.insert(missing)) {
                    let kind = object.kind.kind.as_ref();
                    tracing::warn!(
                        kind,
                        why,
                        "a former leader cannot be fenced off by bumping versions; it is waited for"
                    );
                }
                drop(state);
                self.wait_instead(cluster, lease, epoch);
            }
            Bumped::Failed(object) => {
                tracing::warn!(%object, "object not bumped; the former leader is waited for");
                self.wait_instead(cluster, lease, epoch);
            }
            Bumped::Outlived => {
                tracing::warn!(%cluster, "what was bumped is of before a restore, or of another cluster; the former leader is waited for");
                self.wait_instead(cluster, lease, epoch);
            }
        }
    }

    /// From now on this replica acts in a cluster.
    fn acts(&mut self, cluster: &ClusterId, lease: &'static str, epoch: i64) {
        if let Some(site) = self.sites.get_mut(cluster) {
            site.fences.remove(lease);
        }
        let names: Vec<&'static str> = self.of_lease(lease).map(|c| c.name()).collect();
        {
            let mut state = self.shared.lock();
            let Some(standing) = state.standings.get_mut(lease) else {
                return;
            };
            if standing.epoch != epoch || standing.phase == Phase::Following {
                return;
            }
            if cluster.is_local() {
                if standing.phase != Phase::Fencing {
                    return;
                }
                standing.phase = Phase::Acting;
            }
            // What was unconfirmed has been listed since.
            let now = self.shared.environment.now();
            let is_meant = |controller: &str| names.contains(&controller);
            state.bound_deletions(cluster, now, |lane| is_meant(lane.controller));
            if let Some(known) = state.of_mut(cluster) {
                known
                    .unconfirmed
                    .retain(|lane, _| !is_meant(lane.controller));
                if let Some(member) = &mut known.member {
                    member.fenced.insert(lease, epoch);
                }
            }
        }
        if !cluster.is_local() {
            self.begin(cluster, &names);
            return;
        }
        tracing::info!(lease, epoch, "became leader");
        // In members that are fenced already home was waited for.
        let clusters: Vec<ClusterId> = self.sites.keys().cloned().collect();
        for cluster in clusters {
            self.begin(&cluster, &names);
        }
        self.shared.notify_observers();
    }

    /// All work of these controllers in a cluster is planned at once.
    fn begin(&mut self, cluster: &ClusterId, names: &[&'static str]) {
        let now = Instant::now();
        for name in self.started(cluster) {
            if !names.contains(&name) {
                continue;
            }
            for key in self.queue.keys(&(cluster.clone(), name)) {
                self.queue.at_once(&key, now);
            }
        }
    }

    pub(super) fn lost(&mut self, lease: &'static str) {
        self.leaderships.remove(lease);
        let names: Vec<&'static str> = self.of_lease(lease).map(|c| c.name()).collect();
        let now = self.shared.environment.now();
        let mut state = self.shared.lock();
        for (cluster, site) in &mut self.sites {
            site.fences.remove(lease);
            state.bound_deletions(cluster, now, |lane| names.contains(&lane.controller));
        }
        drop(state);
        self.ask_no_more(&names);
        self.shared.notify_observers();
    }
}
