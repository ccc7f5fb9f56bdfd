//! What follows from what a member says: whether it is watched, whether it is worked on, what is said of it.

use std::sync::Arc;

use slipway_kernel::blocker::Blocker;
use slipway_kernel::capability::Severity;
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::interest::Where;
use slipway_kernel::member::{Discovery, Identity, Reach, reasons};
use tokio::time::Instant;

use super::attend::{discover, jittered};
use super::{Engine, Said};
use crate::journal;
use crate::message::Message;
use crate::state::{ClusterState, Membership, State, Trust};

/// Whose blockers are about members as such.
const MEMBER: &str = "member";

/// What every member goes through, and nobody has to be told of.
const PASSING: [&str; 2] = [reasons::NOT_SYNCED, reasons::CLUSTER_UNCONFIRMED];

/// What one answer changes.
struct Turn {
    /// It is another cluster than the one that was seen before.
    is_other: bool,
    is_reached: bool,
    /// It answers again, and had not answered before.
    returns: bool,
}

impl Engine {
    /// A member has said which cluster it is, or nothing.
    pub(in crate::engine) fn attended(&mut self, cluster: &ClusterId, run: u64, said: Said) {
        if !self.is_current(cluster, run) {
            return;
        }
        let now = self.shared.environment.now();
        let turn = {
            let mut state = self.shared.lock();
            let known = state
                .of_mut(cluster)
                .and_then(|known| known.member.as_mut());
            let Some(member) = known else {
                return;
            };
            hear(member, said, now)
        };
        if turn.is_other {
            tracing::warn!(%cluster, "another cluster answers for a member; what was known of the former one is dropped");
            self.forget_member(cluster);
        }
        if turn.is_reached {
            if turn.returns {
                self.list_anew(cluster);
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
        let is_wanted = {
            let state = self.shared.lock();
            let known = state.of(cluster).and_then(|known| known.member.as_ref());
            // One that may not be identified is looked at, and not written to.
            known.is_some_and(|m| {
                m.state.is_reached()
                    && m.state.identity != Identity::Unread
                    && !m.state.is_replaced(&m.member)
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

    /// Has all lists of a member made again, and nothing planned before: a stream may have died without a word while nobody
    /// answered, and what happened meanwhile would be told by none.
    fn list_anew(&mut self, cluster: &ClusterId) {
        self.hold(cluster);
        let Some(site) = self.sites.get_mut(cluster) else {
            return;
        };
        let watches = site.watches.iter();
        let lists = watches.map(|(key, watched)| (key.clone(), watched.control.relist()));
        site.returning = lists.collect();
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
        let mut state = shared.lock();
        let known = state
            .of_mut(cluster)
            .and_then(|known| known.member.as_mut());
        let Some(member) = known else {
            return;
        };
        member.state.synced = is_synced;
        let said = Arc::new(member.state.clone());
        let blocker = member.state.blocker(&member.member);
        let is_open = member.is_open();
        let is_opened = !std::mem::replace(&mut member.was_open, is_open) && is_open;
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
                    kinds,
                )
            };
            what(&before) != what(&said)
        });
        if is_turned {
            self.tell_of(cluster);
        }
        if is_opened {
            // What was planned while nothing could be written.
            let now = Instant::now();
            for controller in self.started(cluster) {
                for key in self.queue.keys(&(cluster.clone(), controller)) {
                    self.queue.at_once(&key, now);
                }
            }
        }
    }

    /// Has the work looked at that is about what is known of a member.
    pub(super) fn tell_of(&mut self, cluster: &ClusterId) {
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

    /// Whether somebody wants to know which kinds a cluster serves.
    pub(super) fn discovers(&self, cluster: &ClusterId) -> bool {
        let mut all = self.capabilities.values();
        all.any(|c| c.discovers().is_some_and(|at: Where| at.holds(cluster)))
    }

    /// Asks home now and then which kinds it serves, if somebody wants to know.
    pub(in crate::engine) fn discover(&mut self, home: &ClusterId) {
        let Some(reached) = self.clusters.get(home).filter(|_| self.discovers(home)) else {
            return;
        };
        let (shared, inbox, home) = (self.shared.clone(), self.sender.clone(), home.clone());
        self.start(async move {
            loop {
                let timeout = shared.settings.request_timeout;
                if let Some(kinds) = discover(&reached.client, timeout).await {
                    let said = Message::Discovered(home.clone(), 0, Arc::new(kinds));
                    if inbox.send(said).is_err() {
                        return Message::Ended;
                    }
                }
                let wait = jittered(&shared, shared.settings.heartbeat);
                shared.environment.sleep(wait).await;
            }
        });
    }

    /// A cluster has said which kinds it serves.
    pub(in crate::engine) fn discovered(
        &mut self,
        cluster: &ClusterId,
        run: u64,
        kinds: Arc<Discovery>,
    ) {
        if !cluster.is_local() && !self.is_current(cluster, run) {
            return;
        }
        let is_new = {
            let mut state = self.shared.lock();
            // Clusters that serve the same share what is known of it.
            let kinds = state.shared_kinds(kinds);
            let Some(known) = state.of_mut(cluster) else {
                return;
            };
            if let Some(member) = &mut known.member {
                member.state.discovery = Some(kinds.clone());
            }
            let is_new = known.facts.discovery.as_ref() != Some(&kinds);
            if is_new {
                known.facts.discovery = Some(kinds);
            }
            is_new
        };
        if !is_new {
            return;
        }
        self.assess(cluster);
        for controller in self.started(cluster) {
            self.look_for_interests(cluster, controller);
        }
        self.replan(cluster);
    }
}

/// Takes in what a member says.
fn hear(member: &mut Membership, said: Said, now: jiff::Timestamp) -> Turn {
    let (reach, identity) = match said {
        Said::Uid(uid) => (Reach::Reached, Some(Identity::Uid(uid))),
        Said::Forbidden(why) => (Reach::Reached, Some(Identity::Forbidden(why))),
        Said::Refused(why) => (Reach::Refused(why), None),
        Said::Failed(why) => (Reach::Unreachable(why), None),
        Said::Silent(why) => {
            member.is_lost = true;
            (Reach::Unreachable(why), None)
        }
    };
    let is_reached = reach == Reach::Reached;
    turn(member, reach, now);
    if is_reached {
        member.state.contact = Some(now);
        member.is_doubted = false;
    }
    member.checked = None;
    if let Some(identity) = identity {
        if matches!(identity, Identity::Uid(_)) {
            member.checked = Some(Instant::now());
        }
        member.state.identity = identity;
    }
    let is_other = is_other(member);
    if is_other {
        // What the former one serves is not what this one does.
        member.state.discovery = None;
    }
    let returns = is_reached && std::mem::take(&mut member.is_lost);
    Turn {
        is_other,
        is_reached,
        returns,
    }
}

/// Whether the cluster that answers is another one than the last that has said which one it is: in between it may have been one
/// that does not say so.
fn is_other(member: &mut Membership) -> bool {
    let Identity::Uid(uid) = &member.state.identity else {
        return false;
    };
    let before = member.seen.replace(uid.clone());
    before.is_some_and(|before| before != *uid)
}

/// Notes whether a member can be reached, and since when that is so. Another text about the same is no other state.
fn turn(member: &mut Membership, reach: Reach, now: jiff::Timestamp) {
    let state = &mut member.state;
    let is_same = std::mem::discriminant(&state.reach) == std::mem::discriminant(&reach);
    if !is_same {
        state.since = now;
        state.reach = reach;
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
    let is_known = before.is_some_and(|all| all.iter().any(|b| b.reason == blocker.reason));
    (!is_known).then_some(blocker)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use slipway_kernel::identity::{ObjectRef, kinds};
    use slipway_kernel::member::{Attention, Credentials, Member, MemberState};

    use super::*;

    fn member() -> Membership {
        let name = "north";
        Membership {
            member: Member {
                cluster: ClusterId::remote(name),
                object: ObjectRef::local(kinds::CONFIG_MAP, "default", name),
                uid: "object".to_owned(),
                credentials: Credentials {
                    namespace: "default".to_owned(),
                    name: name.to_owned(),
                    key: "token".to_owned(),
                    version: "1".to_owned(),
                },
                labels: BTreeMap::new(),
                confirmed: None,
                attention: Attention::Close,
            },
            run: 1,
            state: MemberState::new(Timestamp::UNIX_EPOCH),
            checked: None,
            is_doubted: false,
            is_lost: false,
            seen: None,
            was_open: false,
            fenced: BTreeMap::new(),
        }
    }

    /// Whether what a member says last, after all of these, is said by another cluster.
    fn is_other(member: &mut Membership, said: impl IntoIterator<Item = Said>) -> bool {
        let now = Timestamp::UNIX_EPOCH;
        let turns = said.into_iter().map(|said| hear(member, said, now));
        turns.last().is_some_and(|turn| turn.is_other)
    }

    fn uid(text: &str) -> Said {
        Said::Uid(text.to_owned())
    }

    #[test]
    fn another_cluster_is_noticed_whatever_was_said_in_between() {
        let betweens = [
            Said::Forbidden("no right".to_owned()),
            Said::Refused("nobody".to_owned()),
            Said::Failed("busy".to_owned()),
            Said::Silent("no answer".to_owned()),
        ];
        assert!(!is_other(&mut member(), [uid("a")]));
        assert!(is_other(&mut member(), [uid("a"), uid("b")]));
        for between in betweens {
            let said = |last: &str| [uid("a"), between.clone(), uid(last)];
            assert!(is_other(&mut member(), said("b")), "{between:?}");
            assert!(!is_other(&mut member(), said("a")), "{between:?}");
        }
    }

    #[test]
    fn what_another_cluster_serves_is_not_what_the_former_one_did() {
        let mut member = member();
        hear(&mut member, uid("a"), Timestamp::UNIX_EPOCH);
        member.state.discovery = Some(Arc::new(Discovery::new(Vec::new())));
        hear(&mut member, uid("a"), Timestamp::UNIX_EPOCH);
        assert!(member.state.discovery.is_some());
        hear(&mut member, uid("b"), Timestamp::UNIX_EPOCH);
        assert!(member.state.discovery.is_none());
    }

    #[test]
    fn only_one_that_did_not_answer_is_listed_anew() {
        let returns = |said: Said| {
            let mut member = member();
            hear(&mut member, said, Timestamp::UNIX_EPOCH);
            hear(&mut member, uid("a"), Timestamp::UNIX_EPOCH).returns
        };
        assert!(returns(Said::Silent("no answer".to_owned())));
        assert!(!returns(Said::Failed("busy".to_owned())));
        assert!(!returns(Said::Refused("nobody".to_owned())));
    }
}
