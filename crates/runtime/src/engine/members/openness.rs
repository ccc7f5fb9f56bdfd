//! What follows from what a member says: whether it is watched, whether it is worked on, what is said of it.

use std::sync::Arc;

use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Severity;
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::interest::Need;
use slipway_kernel::member::{Identity, Reach, reasons};
use tokio::time::Instant;

use super::hearing::{hear, turn};
use super::{Engine, Said};
use crate::journal;
use crate::state::{Asked, ClusterState, State, Trust};

/// Whose blockers are about members as such.
const MEMBER: &str = "member";

/// What every member goes through, and nobody has to be told of.
const PASSING: [&str; 2] = [reasons::NOT_SYNCED, reasons::CLUSTER_UNCONFIRMED];

/// What people mend step by step: each step is told of.
const MENDED: [&str; 2] = [reasons::CREDENTIALS_MISSING, reasons::CREDENTIALS_REFUSED];

impl Engine {
    /// A member has said which cluster it is, or nothing.
    pub(in crate::engine) fn attended(&mut self, cluster: &ClusterId, asked: Asked, said: Said) {
        if !self.is_current(cluster, asked.run) {
            return;
        }
        let now = self.shared.environment.now();
        let turn = {
            let mut state = self.shared.lock();
            let known = state.member_mut(cluster);
            let Some(member) = known else {
                return;
            };
            member.over = asked.over;
            hear(member, asked.doubts, said, now)
        };
        if turn.is_other {
            tracing::warn!(%cluster, "another cluster answers for a member; what was known of the former one is dropped");
            self.forget_member(cluster);
        }
        if turn.is_reached {
            if let Some(lost) = turn.returns {
                self.list_anew(cluster, lost);
            }
            self.recognise(cluster);
        } else {
            self.hold(cluster);
        }
        self.unsettled.insert(cluster.clone());
        self.assess(cluster);
        self.shared.notify_observers();
    }

    /// Watches a member, or does not, by which cluster it is.
    pub(super) fn recognise(&mut self, cluster: &ClusterId) {
        // What it said last counts also while there is no client; whoever makes one asks it again.
        let is_connected = self.clusters.get(cluster).is_some();
        let is_wanted = is_connected && {
            let state = self.shared.lock();
            let known = state.of(cluster).and_then(|known| known.member.as_ref());
            // One that may not be identified is looked at, and not written to.
            known.is_some_and(|m| {
                m.state.is_reached() && m.state.identity != Identity::Unread && !m.is_replaced()
            })
        };
        let Some(link) = self.link(cluster) else {
            return;
        };
        if is_wanted && !link.is_open {
            link.is_open = true;
            let controllers = self.controllers_of(cluster);
            let watches = self.open_all(cluster, &controllers);
            self.watch_all(cluster, watches, Trust::Sound);
            self.unsettled.insert(cluster.clone());
        } else if !is_wanted && link.is_open {
            self.close_member(cluster);
        }
    }

    /// Has lists of a member made that begin after it last did not answer, and nothing planned before: a stream may have died without
    /// a word while nobody answered, and what happened meanwhile would be told by none. What can be done without is listed too and
    /// not waited for: it may fail for ever.
    fn list_anew(&mut self, cluster: &ClusterId, lost: Instant) {
        self.hold(cluster);
        let state = self.shared.lock();
        let (Some(site), Some(known)) = (self.sites.get_mut(cluster), state.of(cluster)) else {
            return;
        };
        let lists = known.watches.iter().filter_map(|(key, watch)| {
            let round = watch.list_after(lost)?;
            (watch.need != Need::Optional).then(|| (key.clone(), round))
        });
        site.returning = lists.collect();
    }

    /// A member says what there is of a kind, or that there is none. If that may be another cluster's answer, nothing is planned on it
    /// before it is known whose it is: not at home either, where what is not in it would count as gone. Gives whether it may be.
    pub(in crate::engine) fn suspect(&mut self, cluster: &ClusterId) -> bool {
        let reached = self.clusters.get(cluster).filter(|_| !cluster.is_local());
        let Some(reached) = reached else {
            return false;
        };
        let over = reached.client.connection();
        let is_suspect = {
            let mut state = self.shared.lock();
            let member = state.member_mut(cluster);
            member.is_some_and(|member| member.suspect(over))
        };
        if is_suspect {
            self.hold(cluster);
        }
        is_suspect
    }

    /// Ends the watches of a member. What they have shown stays to be seen, and nothing is decided on it.
    pub(super) fn close_member(&mut self, cluster: &ClusterId) {
        self.hold(cluster);
        self.end_watches(cluster);
        self.unlisted(cluster);
        if let Some(site) = self.sites.get_mut(cluster) {
            site.outages = super::super::outage::Outages::default();
        }
        if let Some(link) = self.link(cluster) {
            link.is_open = false;
        }
    }

    /// Drops all that is known of a member, because it is about another cluster.
    fn forget_member(&mut self, cluster: &ClusterId) {
        self.close_member(cluster);
        self.forget_work(cluster);
        self.runs += 1;
        let tenure = self.runs;
        if let Some(link) = self.link(cluster) {
            link.tenure = tenure;
        }
        for controller in self.controllers_of(cluster) {
            self.queue.hold(&(cluster.clone(), controller), true);
        }
        let mut state = self.shared.lock();
        let member = state.of_mut(cluster).and_then(|known| known.member.take());
        state.drop_member(cluster);
        let known = ClusterState::of_member(member);
        state.members.insert(cluster.clone(), known);
        state.begin_history(cluster);
    }

    /// Forgets the work of a cluster, its questions and what was told there.
    pub(super) fn forget_work(&mut self, cluster: &ClusterId) {
        for key in self.shown_in(cluster) {
            self.shared.metrics.forget(&key);
            self.shown.remove(&key);
        }
        self.queue.drop_cluster(cluster);
        self.questions.drop_cluster(cluster);
        self.recorder.drop_cluster(cluster);
        let first = (cluster.clone(), String::new());
        let off = self.events_off.range(first..).map(|(place, _)| place);
        let off = off.take_while(|(of, _)| of == cluster);
        for place in off.cloned().collect::<Vec<_>>() {
            self.events_off.remove(&place);
        }
    }

    /// There are no credentials for a member.
    pub(super) fn without_credentials(&mut self, cluster: &ClusterId, why: String) {
        let now = self.shared.environment.now();
        {
            let mut state = self.shared.lock();
            if let Some(member) = state.of_mut(cluster).and_then(|k| k.member.as_mut()) {
                turn(member, Reach::NoCredentials(why), now);
            }
        }
        self.hold(cluster);
        self.assess(cluster);
    }

    /// Says of a member what is known of it now: as facts, as a blocker, and to those whose work it is.
    pub(in crate::engine) fn assess(&mut self, cluster: &ClusterId) {
        let is_synced = self.is_synced(cluster);
        let shared = self.shared.clone();
        let now = shared.environment.now();
        let mut state = shared.lock();
        let known = state.member_mut(cluster);
        let Some(member) = known else {
            return;
        };
        member.state.synced = is_synced;
        let unsynced = member.state.unsynced.unwrap_or(now);
        member.state.unsynced = (!is_synced).then_some(unsynced);
        member.state.excess = member.excess.values().next().cloned();
        let said = Arc::new(member.state.clone());
        let blocker = member.blocker();
        let opened = member.opened();
        let home = &mut state.home.facts.members;
        let before = home.insert(cluster.clone(), said.clone());
        if let Some(known) = state.of_mut(cluster) {
            known.facts.members.insert(cluster.clone(), said.clone());
            known.facts.discovery.clone_from(&said.discovery);
        }
        let news = show(&mut state, cluster, blocker);
        drop(state);
        if let Some(news) = news.filter(|news| !PASSING.contains(&news.reason)) {
            journal::blocked(&news, Severity::Warning);
        }
        let is_turned = before.is_none_or(|before| {
            let what = |state: &slipway_kernel::MemberState| {
                let kinds = state.discovery.clone();
                (
                    state.reach.clone(),
                    state.identity.clone(),
                    state.synced,
                    state.excess.clone(),
                    kinds,
                )
            };
            what(&before) != what(&said)
        });
        if is_turned {
            self.tell_of(cluster);
        }
        // What was planned while nothing could be written.
        let now = Instant::now();
        let started = self.started(cluster).into_iter();
        for controller in started.filter(|name| opened.contains(name)) {
            for key in self.queue.keys(&(cluster.clone(), controller)) {
                self.queue.at_once(&key, now);
            }
        }
    }

    /// Has the work looked at that is about what is known of a member.
    pub(in crate::engine) fn tell_of(&mut self, cluster: &ClusterId) {
        let stores = self.shared.lock().stores.clone();
        let now = Instant::now();
        let capabilities: Vec<_> = self.capabilities.values().cloned().collect();
        for capability in capabilities {
            let keys = || capability.member_keys(&stores, cluster);
            let keys = std::panic::catch_unwind(std::panic::AssertUnwindSafe(keys));
            for key in keys.unwrap_or_default() {
                self.queue.changed(&key, now);
            }
        }
    }
}

/// Shows why nothing is done in a member; gives it if it is news.
fn show(state: &mut State, cluster: &ClusterId, blocker: Option<Blocker>) -> Option<Blocker> {
    let key = Key {
        cluster: cluster.clone(),
        controller: MEMBER,
        namespace: String::new(),
        name: String::new(),
    };
    let Some(blocker) = blocker else {
        state.blockers.remove(&key);
        return None;
    };
    let before = state.blockers.insert(key, vec![blocker.clone()]);
    // How a member does not answer differs from attempt to attempt; what is wrong with its credentials is for somebody to mend.
    let is_mended = MENDED.contains(&blocker.reason);
    let is_same =
        |b: &Blocker| b.reason == blocker.reason && (!is_mended || b.message == blocker.message);
    let is_known = before.is_some_and(|all| all.iter().any(is_same));
    (!is_known).then_some(blocker)
}
