//! What home knows of a member besides its objects, and the doubts that there are about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use slipway_kernel::blocker::Blocker;
use slipway_kernel::member::{Member, MemberState};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::channel::Channel;
use crate::watch::WatchKey;

/// Doubts whether a member is the cluster that it is taken for, by their numbers. An answer ends those that there were when it was
/// asked for, and none that has arisen since: it may be the answer of whoever was there before.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    count: AtomicU64,
    again: Notify,
}

impl Doubts {
    /// There is one more, so the member is asked at once. Gives its number.
    pub(crate) fn rise(&self) -> u64 {
        let number = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        self.again.notify_one();
        number
    }

    /// The number of the last one; 0 if there has been none.
    pub(crate) fn last(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits for one that nobody has waited for yet.
    pub(crate) async fn risen(&self) {
        self.again.notified().await;
    }
}

/// When a member was asked which cluster it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The number of the connection that was used.
    pub(crate) run: u64,
    /// The number of the last doubt that there was.
    pub(crate) doubts: u64,
    /// Over which connection it was asked: see [`Channel::connection`].
    pub(crate) over: Option<u64>,
}

impl Asked {
    /// A question that is about to be asked.
    pub(crate) fn now(run: u64, doubts: &Doubts, channel: &Channel) -> Self {
        Self {
            run,
            doubts: doubts.last(),
            over: channel.connection(),
        }
    }
}

/// What home knows of a member.
#[derive(Debug)]
pub(crate) struct Membership {
    /// How it is reached: as the first of those who name it says.
    pub(crate) member: Arc<Member>,
    /// As each controller names it that works on it. Each has an object of its own, by which it was confirmed or not.
    pub(crate) named: BTreeMap<&'static str, Arc<Member>>,
    /// The number of the connection to it.
    pub(crate) run: u64,
    pub(crate) state: MemberState,
    /// When it last answered which cluster it is; none if there is a doubt.
    pub(crate) checked: Option<Instant>,
    /// Over which connection it last answered.
    pub(crate) over: Option<u64>,
    pub(crate) doubts: Arc<Doubts>,
    /// The last doubt that an answer has ended.
    ended: u64,
    /// The last doubt that nothing is planned before the end of: something was seen that another cluster would show.
    distrust: Option<u64>,
    /// When it last did not answer, if it has not answered since.
    pub(crate) lost: Option<Instant>,
    /// The uid of the cluster that what is known is about: the last that was read.
    pub(crate) seen: Option<String>,
    /// Of which kinds there is more than is taken in, in words.
    pub(crate) excess: BTreeMap<WatchKey, Arc<str>>,
    /// Who could write to it when that was last looked at.
    was_open: BTreeSet<&'static str>,
    /// Leases, and the leadership in which no former leader can act here any more.
    pub(crate) fenced: BTreeMap<&'static str, i64>,
}

impl Membership {
    /// One that has not been tried yet.
    pub(crate) fn new(
        member: Arc<Member>,
        named: BTreeMap<&'static str, Arc<Member>>,
        now: Timestamp,
    ) -> Self {
        Self {
            member,
            named,
            run: 0,
            state: MemberState::new(now),
            checked: None,
            over: None,
            doubts: Arc::default(),
            ended: 0,
            distrust: None,
            lost: None,
            seen: None,
            excess: BTreeMap::new(),
            was_open: BTreeSet::new(),
            fenced: BTreeMap::new(),
        }
    }

    /// Whether a controller may write to it: it is the cluster that was confirmed to that one, and all of it is known.
    pub(crate) fn is_open_to(&self, controller: &str) -> bool {
        self.state.synced && self.is_confirmed_to(controller)
    }

    /// Whether it is the cluster that was confirmed to a controller.
    pub(crate) fn is_confirmed_to(&self, controller: &str) -> bool {
        let is_confirmed = |member: &Arc<Member>| self.state.is_confirmed(member);
        self.named.get(controller).is_some_and(is_confirmed)
    }

    /// Who may write to it now, and could not when that was last asked.
    pub(crate) fn opened(&mut self) -> BTreeSet<&'static str> {
        let names = self.named.keys().copied();
        let open: BTreeSet<_> = names.filter(|name| self.is_open_to(name)).collect();
        let opened = open.difference(&self.was_open).copied().collect();
        self.was_open = open;
        opened
    }

    /// Whether it is another cluster than that which was confirmed, to all who name it.
    pub(crate) fn is_replaced(&self) -> bool {
        let mut named = self.named.values();
        !self.named.is_empty() && named.all(|member| self.state.is_replaced(member))
    }

    /// Whether another uid is confirmed to somebody by these.
    pub(crate) fn is_confirmed_otherwise(
        &self,
        named: &BTreeMap<&'static str, Arc<Member>>,
    ) -> bool {
        let confirmed = |all: &BTreeMap<&'static str, Arc<Member>>| {
            let all = all.iter();
            let all = all.map(|(name, member)| (*name, member.confirmed.clone()));
            all.collect::<Vec<_>>()
        };
        confirmed(&self.named) != confirmed(named)
    }

    /// Why nothing is done there, for one at least of those who name it.
    pub(crate) fn blocker(&self) -> Option<Blocker> {
        let mut named = self.named.values();
        named.find_map(|member| self.state.blocker(member))
    }

    /// It may be another cluster: whoever writes asks first. Gives the number of the doubt.
    pub(crate) fn doubt(&mut self) -> u64 {
        self.checked = None;
        self.doubts.rise()
    }

    /// The same, and nothing is planned before it has said that it is not.
    pub(crate) fn distrust(&mut self) {
        self.distrust = Some(self.doubt());
    }

    /// What it tells now comes over this connection, or comes while there is a doubt: it may be another cluster's, and then nothing is
    /// planned before it has said that it is not. Gives whether that is so.
    pub(crate) fn suspect(&mut self, over: Option<u64>) -> bool {
        let is_other = over.is_none() || over != self.over;
        if is_other {
            self.distrust();
        } else if self.doubts.last() > self.ended {
            // It is being asked.
            self.distrust = Some(self.doubts.last());
        }
        self.is_distrusted()
    }

    /// Whether it has yet to be asked since something was seen that another cluster would show.
    pub(crate) fn is_distrusted(&self) -> bool {
        self.distrust.is_some()
    }

    /// Whether it has said which cluster it is within this time, and over the connection that what is sent next goes over.
    pub(crate) fn is_fresh(&self, time: Duration, over: Option<u64>) -> bool {
        let is_recent = self.checked.is_some_and(|at| at.elapsed() < time);
        is_recent && over.is_some() && self.over == over
    }

    /// It has just said that it is the cluster that was confirmed to a controller, as it had said before: what is sent next over that
    /// connection need not ask it again. Whatever else follows from an answer follows when the loop hears of it.
    pub(crate) fn vouch(&mut self, controller: &str, asked: &Asked) {
        let is_sure = self.run == asked.run && self.doubts.last() == asked.doubts;
        if is_sure && self.is_open_to(controller) {
            self.checked = Some(Instant::now());
            self.over = asked.over;
        }
    }

    /// It has answered, to somebody who asked after this doubt; `is_known` if it has said which cluster it is.
    pub(crate) fn assure(&mut self, doubts: u64, is_known: bool) {
        if self.distrust.is_some_and(|number| number <= doubts) {
            self.distrust = None;
        }
        self.ended = self.ended.max(doubts);
        let is_sure = is_known && self.doubts.last() == doubts;
        self.checked = is_sure.then(Instant::now);
    }
}
