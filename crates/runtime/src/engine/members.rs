//! Clusters that come and go: those that capabilities name.
//!
//! ```text
//! named ─► credentials read ─► attended to ─► identified ─► watched ─► listed, fenced, confirmed ─► worked on
//!            ▲ again when the Secret changes    │ another cluster: all that is known is dropped
//! not named any more: watches end; stores, work, facts and series go
//! ```
//!
//! Each step is the member's own: one that does not get on waits by itself. Nothing of a member makes home unready.

mod attend;
mod credentials;
mod hearing;
mod kinds;
mod openness;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, abortable};
use slipway_kernel::identity::ClusterId;
use slipway_kernel::member::{Attention, Member};
use slipway_kernel::store::Stores;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Engine;
use super::site::Site;
use crate::channel::Channel;
use crate::connect::Unconnected;
use crate::environment::after;
use crate::message::Message;
use crate::settings::{Backoff, Quiet};
use crate::state::{ClusterState, Membership};

use attend::{Attend, jittered};
pub(crate) use attend::{Said, identify};

/// Between attempts to make a client.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(1),
};

/// Which clusters are named, and by whom.
#[derive(Debug, Default)]
pub(super) struct Members {
    named: BTreeMap<ClusterId, BTreeMap<&'static str, Arc<Member>>>,
}

/// How a member is reached.
#[derive(Debug)]
pub(super) struct Link {
    /// The number of the connection: what is told of another one is not heard.
    run: u64,
    attempts: u32,
    /// Ends what is under way besides watches.
    ends: Vec<AbortHandle>,
    /// What is told over it ends with this.
    telling: watch::Sender<()>,
    /// Whether it is watched.
    pub(super) is_open: bool,
    /// The number of what is known of it: another one since all of that was dropped. Plans of before have no lane any more.
    pub(super) tenure: u64,
    /// When its work is looked for again.
    pub(super) beat: Instant,
}

impl Engine {
    /// Looks for all members that a controller names.
    pub(super) fn name_members(&mut self, controller: &'static str, stores: &Stores) {
        let Some(capability) = self.capabilities.get(controller).cloned() else {
            return;
        };
        let Ok(all) = catch_unwind(AssertUnwindSafe(|| capability.members(stores))) else {
            tracing::error!(
                controller,
                "planner panicked when asked for its members; they stay as they are"
            );
            return;
        };
        let mut wanted: BTreeMap<ClusterId, Member> = BTreeMap::new();
        for member in all {
            wanted.entry(member.cluster.clone()).or_insert(member);
        }
        let named = self.members.named.iter();
        let before: Vec<ClusterId> = named
            .filter(|(_, by)| by.contains_key(controller))
            .map(|(cluster, _)| cluster.clone())
            .collect();
        for cluster in before {
            if !wanted.contains_key(&cluster) {
                self.set_member(&cluster, controller, None);
            }
        }
        for (cluster, member) in wanted {
            self.set_member(&cluster, controller, Some(member));
        }
    }

    /// With every heartbeat: the members of those whose interests do not tell which ones a change is about.
    pub(super) fn name_untold_members(&mut self, stores: &Stores) {
        for controller in self.started(&ClusterId::local()) {
            let capability = self.capabilities.get(controller);
            let mut interests = capability
                .map(|c| c.interests())
                .unwrap_or_default()
                .into_iter();
            if interests.all(|interest| interest.means.is_none()) {
                self.name_members(controller, stores);
            }
        }
    }

    /// Looks again whether a controller names a member, and how.
    pub(super) fn name_member(
        &mut self,
        cluster: &ClusterId,
        controller: &'static str,
        stores: &Stores,
    ) {
        // Before home has been listed, what is not there may only not have been listed.
        let is_known = self.started(&ClusterId::local()).contains(&controller);
        let Some(capability) = self.capabilities.get(controller).filter(|_| is_known) else {
            return;
        };
        let member = || capability.member(stores, cluster);
        let Ok(member) = catch_unwind(AssertUnwindSafe(member)) else {
            tracing::error!(controller, %cluster, "planner panicked when asked for a member; it stays as it is");
            return;
        };
        self.set_member(cluster, controller, member);
    }

    fn set_member(
        &mut self,
        cluster: &ClusterId,
        controller: &'static str,
        member: Option<Member>,
    ) {
        if cluster.is_local() {
            tracing::error!(controller, "home is named as a member; it is none");
            return;
        }
        let by = self.members.named.entry(cluster.clone()).or_default();
        let before = match member {
            Some(member) => {
                if by.get(controller).is_some_and(|known| **known == member) {
                    return;
                }
                by.insert(controller, Arc::new(member))
            }
            None => by.remove(controller),
        };
        // Whoever comes or goes has other interests: that is as if the cluster had.
        let is_other = before.is_none() || !by.contains_key(controller);
        if by.is_empty() {
            self.members.named.remove(cluster);
        }
        if is_other && self.sites.contains_key(cluster) {
            self.remove_member(cluster);
        }
        self.attend_to(cluster);
    }

    /// Whether a controller works on a cluster: on home, and on the members that it names.
    pub(super) fn works_on(&self, cluster: &ClusterId, controller: &str) -> bool {
        let by = || self.members.named.get(cluster);
        cluster.is_local() || by().is_some_and(|by| by.contains_key(controller))
    }

    /// The number of what is known of a cluster; of home it is always the same.
    pub(super) fn tenure(&self, cluster: &ClusterId) -> u64 {
        let site = self.sites.get(cluster);
        let link = site.and_then(|site| site.link.as_ref());
        link.map_or(0, |link| link.tenure)
    }

    /// Who works on a cluster.
    pub(super) fn controllers_of(&self, cluster: &ClusterId) -> Vec<&'static str> {
        if cluster.is_local() {
            return self.capabilities.keys().copied().collect();
        }
        let by = self.members.named.get(cluster).into_iter();
        by.flat_map(|by| by.keys().copied()).collect()
    }

    /// Brings a member to what is named now.
    pub(super) fn attend_to(&mut self, cluster: &ClusterId) {
        let by = self.members.named.get(cluster).cloned().unwrap_or_default();
        let Some(member) = by.values().next().cloned() else {
            return;
        };
        if !self.sites.contains_key(cluster) {
            // Plans of before it was removed may yet be answered: they would share its budget unseen.
            if !self.executing.has(cluster) {
                self.add_member(cluster, member, by);
            }
            return;
        }
        let before = {
            let mut state = self.shared.lock();
            let known = state.member_mut(cluster);
            known.map(|known| {
                let is_told_otherwise = known.is_confirmed_otherwise(&by);
                known.named = by;
                let before = std::mem::replace(&mut known.member, member.clone());
                (before, is_told_otherwise)
            })
        };
        let Some((before, is_told_otherwise)) = before else {
            return;
        };
        if before.uid != member.uid || before.object != member.object {
            self.remove_member(cluster);
            self.attend_to(cluster);
            return;
        }
        if before.credentials != member.credentials {
            tracing::info!(%cluster, "credentials of a member have changed");
            self.reopen(cluster);
        }
        if before.attention != member.attention {
            self.be_quiet(cluster);
        }
        if is_told_otherwise {
            self.recognise(cluster);
        }
        self.assess(cluster);
    }

    fn add_member(
        &mut self,
        cluster: &ClusterId,
        member: Arc<Member>,
        named: BTreeMap<&'static str, Arc<Member>>,
    ) {
        let now = self.shared.environment.now();
        let (name, object) = (cluster.as_str(), &member.object);
        tracing::info!(cluster = name, %object, "member added");
        {
            let mut state = self.shared.lock();
            let known = ClusterState::of_member(Some(Membership::new(member, named, now)));
            state.members.insert(cluster.clone(), known);
            state.begin_history(cluster);
        }
        let beat = jittered(&self.shared, self.shared.settings.heartbeat);
        let beat = after(Instant::now(), beat);
        self.runs += 1;
        let site = Site::of_member(Link {
            beat,
            tenure: self.runs,
            run: 0,
            attempts: 0,
            ends: Vec::new(),
            telling: watch::Sender::new(()),
            is_open: false,
        });
        self.sites.insert(cluster.clone(), site);
        for controller in self.controllers_of(cluster) {
            self.queue.hold(&(cluster.clone(), controller), true);
        }
        self.beats.insert((beat, cluster.clone()));
        self.fence_all(cluster);
        self.connect(cluster);
        self.assess(cluster);
    }

    /// Makes a client for a member, by its credentials as they are now.
    fn connect(&mut self, cluster: &ClusterId) {
        self.runs += 1;
        let run = self.runs;
        // The former one's credentials may have been taken away on purpose.
        self.clusters.remove(cluster);
        let member = {
            let mut state = self.shared.lock();
            let known = state.member_mut(cluster);
            known.map(|known| {
                known.run = run;
                known.checked = None;
                // Connections are counted anew.
                known.over = None;
                known.member.clone()
            })
        };
        let home = self.clusters.get(&ClusterId::local());
        let (Some(member), Some(home)) = (member, home) else {
            return;
        };
        let (connect, id) = (self.connect.clone(), cluster.clone());
        let timeout = self.shared.settings.request_timeout;
        let shared = self.shared.clone();
        let connecting = async move {
            let made = credentials::client(&home.client, &connect, &member, timeout).await;
            let made = made.map(|channel| channel.measured(&shared));
            Message::Connected(id, run, made)
        };
        let (connecting, end) = abortable(connecting);
        if let Some(link) = self.link(cluster) {
            link.run = run;
            link.end();
            link.ends.push(end);
        }
        self.start(async move { connecting.await.unwrap_or(Message::Ended) });
    }

    /// Makes a client anew: watches end, and begin again on it.
    fn reopen(&mut self, cluster: &ClusterId) {
        self.close_member(cluster);
        if let Some(link) = self.link(cluster) {
            link.attempts = 0;
        }
        self.connect(cluster);
    }

    pub(super) fn reconnect(&mut self, cluster: &ClusterId, run: u64) {
        if self.is_current(cluster, run) {
            self.connect(cluster);
        }
    }

    /// There is a client for a member, or there cannot be one.
    pub(super) fn connected(
        &mut self,
        cluster: &ClusterId,
        run: u64,
        made: Result<Channel, Unconnected>,
    ) {
        if !self.is_current(cluster, run) {
            return;
        }
        let client = match made {
            Ok(client) => client,
            Err(Unconnected(why)) => {
                self.without_credentials(cluster, why);
                let link = self.link(cluster);
                let attempts = link.map_or(1, |link| {
                    link.attempts = link.attempts.saturating_add(1);
                    link.attempts
                });
                let wait = jittered(&self.shared, BACKOFF.after(attempts));
                let (environment, id) = (self.shared.environment.clone(), cluster.clone());
                self.start_of(cluster, async move {
                    environment.sleep(wait).await;
                    Message::Reconnect(id, run)
                });
                return;
            }
        };
        let concurrency = self.shared.settings.concurrency;
        let connection = (run, client.clone());
        self.clusters.add(cluster.clone(), connection, concurrency);
        let Some(link) = self.link(cluster) else {
            return;
        };
        link.attempts = 0;
        let doubts = {
            let state = self.shared.lock();
            let known = state.of(cluster).and_then(|known| known.member.as_ref());
            known.map(|member| member.doubts.clone())
        };
        let discovers = self.discovers(cluster);
        let attend = Attend {
            shared: self.shared.clone(),
            cluster: cluster.clone(),
            run,
            client,
            doubts: doubts.unwrap_or_default(),
            inbox: self.sender.clone(),
            discovers,
        };
        self.start_of(cluster, async move {
            attend.run().await;
            Message::Ended
        });
    }

    /// Starts something that ends with the connection to a member.
    fn start_of(
        &mut self,
        cluster: &ClusterId,
        future: impl Future<Output = Message> + Send + 'static,
    ) {
        let (future, end) = abortable(future);
        if let Some(link) = self.link(cluster) {
            link.ends.push(end);
        }
        self.start(async move { future.await.unwrap_or(Message::Ended) });
    }

    /// When the connection to a cluster ends that there is now.
    pub(super) fn ended(&self, cluster: &ClusterId) -> Ending {
        let site = self.sites.get(cluster);
        let link = site.and_then(|site| site.link.as_ref());
        Ending(link.map(|link| link.telling.subscribe()))
    }

    fn link(&mut self, cluster: &ClusterId) -> Option<&mut Link> {
        self.sites.get_mut(cluster)?.link.as_mut()
    }

    /// Whether something is told of the connection that there is now.
    fn is_current(&self, cluster: &ClusterId, run: u64) -> bool {
        let site = self.sites.get(cluster);
        let link = site.and_then(|site| site.link.as_ref());
        link.is_some_and(|link| link.run == run)
    }

    /// A watch of a member does not get on, or its stream has ended, as whoever takes the member's place makes it: is it the member?
    pub(super) fn doubt(&self, cluster: &ClusterId) {
        let mut state = self.shared.lock();
        if let Some(member) = state.of_mut(cluster).and_then(|k| k.member.as_mut()) {
            member.doubt();
        }
    }

    /// Takes a member out, and all that is of it.
    pub(super) fn remove_member(&mut self, cluster: &ClusterId) {
        let controllers = self.started(cluster);
        self.close_member(cluster);
        if let Some(link) = self.link(cluster) {
            link.end();
            let beat = link.beat;
            self.beats.remove(&(beat, cluster.clone()));
        }
        self.sites.remove(cluster);
        self.clusters.remove(cluster);
        self.forget_work(cluster);
        self.unsettled.remove(cluster);
        self.shared.lock().drop_member(cluster);
        tracing::info!(%cluster, ?controllers, "member removed");
        self.tell_of(cluster);
        self.shared.notify_observers();
    }

    /// How often a cluster is read instead of being watched, if it is.
    pub(super) fn quiet_of(&self, cluster: &ClusterId) -> Option<Duration> {
        let Quiet::Read { every } = self.shared.settings.members.quiet else {
            return None;
        };
        let state = self.shared.lock();
        let member = state.of(cluster)?.member.as_ref()?;
        let is_quiet = member.member.attention == Attention::Quiet;
        drop(state);
        is_quiet.then(|| jittered(&self.shared, every))
    }

    /// Watches a member more or less closely.
    fn be_quiet(&mut self, cluster: &ClusterId) {
        let every = self.quiet_of(cluster);
        let site = self.sites.get(cluster).into_iter();
        for watched in site.flat_map(|site| site.watches.values()) {
            watched.control.set_quiet(every);
        }
    }
}

impl Link {
    /// Ends what is under way for it.
    fn end(&mut self) {
        for end in self.ends.drain(..) {
            end.abort();
        }
        self.telling = watch::Sender::new(());
    }
}

/// The end of a connection to a member. Home's never ends.
pub(super) struct Ending(Option<watch::Receiver<()>>);

impl Ending {
    pub(super) async fn recv(&mut self) {
        let Some(telling) = &mut self.0 else {
            return std::future::pending().await;
        };
        while telling.changed().await.is_ok() {}
    }
}
