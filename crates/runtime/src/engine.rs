//! The loop: takes in news, plans what is due, starts what was planned.
//!
//! Everything that a replica does is a future owned by its engine, polled in the order in which it was woken. Nothing is
//! spawned: dropping the engine ends all of it at once.

mod bump;
mod changes;
mod crowd;
mod ending;
mod fence;
mod intake;
mod members;
mod outage;
mod questions;
mod restore;
mod selections;
mod site;
mod telling;
mod unseen;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use slipway_kernel::capability::Controller;
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::store::Stores;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::clusters::Clusters;
use crate::connect::Connect;
use crate::election::{Candidate, Taken};
use crate::environment::after;
use crate::error::Error;
use crate::events::Recorder;
use crate::gather::Gather;
use crate::message::Message;
use crate::queue::{Queue, Sharing};
use crate::rights::Rights;
use crate::state::{Phase, Shared, Standing, Trust};
use crate::webhook::Readings;

pub(crate) use bump::Bumped;
use ending::Counts;
pub(crate) use members::{Said, identify};
pub(crate) use questions::Pending;
use questions::Questions;
use site::Site;

/// The loop turns at least this often, so that its health shows.
const TURN: Duration = Duration::from_secs(20);

/// Whoever has more keys than this in a cluster has each looked at in its own time, and not all at once.
const MANY: usize = 1_000;

/// A running replica.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    clusters: Clusters,
    capabilities: BTreeMap<&'static str, Arc<dyn Controller>>,
    gatherer: Arc<dyn Gather>,
    connect: Arc<dyn Connect>,
    queue: Queue,
    sharing: Sharing,
    recorder: Recorder,
    /// All clusters that are worked on.
    sites: BTreeMap<ClusterId, Site>,
    /// Clusters of which something has changed that lanes may wait for.
    unsettled: BTreeSet<ClusterId>,
    members: members::Members,
    /// Numbers of watches and of connections.
    runs: u64,
    leaderships: BTreeMap<&'static str, fence::Leadership>,
    /// Work of which passes are shown.
    shown: BTreeSet<Key>,
    questions: Questions,
    /// Reads of what became of what webhooks let go.
    readings: Option<Arc<Readings>>,
    /// Namespaces in which no events are told until then.
    events_off: BTreeMap<(ClusterId, String), Instant>,
    inbox: mpsc::UnboundedReceiver<Message>,
    sender: mpsc::UnboundedSender<Message>,
    running: FuturesUnordered<BoxFuture<'static, Message>>,
    /// Ends taking part in elections.
    candidacies: Vec<AbortHandle>,
    /// Plans being carried out, in each cluster, and events being told.
    executing: Counts<(ClusterId, &'static str)>,
    telling: Counts<ClusterId>,
    /// What webhooks left to be undone.
    undoing: usize,
    next_beat: Instant,
    /// When each member's work is looked for again.
    beats: BTreeSet<(Instant, ClusterId)>,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (gatherer, connect): (Arc<dyn Gather>, Arc<dyn Connect>),
        (sender, inbox): (
            mpsc::UnboundedSender<Message>,
            mpsc::UnboundedReceiver<Message>,
        ),
        all: Vec<Arc<dyn Controller>>,
    ) -> Result<Self, Error> {
        let settings = &shared.settings;
        let mut capabilities: BTreeMap<&'static str, Arc<dyn Controller>> = BTreeMap::new();
        for capability in all {
            let name = capability.name();
            if capabilities.insert(name, capability).is_some() {
                return Err(Error::Name(name));
            }
        }
        let sharing = sharing(capabilities.clone());
        let queue = Queue::new(settings.debounce, settings.backoff, sharing.clone());
        let engine = Self {
            clusters: Clusters::default(),
            capabilities,
            gatherer,
            connect,
            queue,
            sharing,
            recorder: Recorder::default(),
            sites: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            members: members::Members::default(),
            runs: 0,
            leaderships: BTreeMap::new(),
            shown: BTreeSet::new(),
            questions: Questions::default(),
            readings: None,
            events_off: BTreeMap::new(),
            inbox,
            sender,
            running: FuturesUnordered::new(),
            candidacies: Vec::new(),
            executing: Counts::default(),
            telling: Counts::default(),
            undoing: 0,
            next_beat: Instant::now(),
            beats: BTreeSet::new(),
            shared,
        };
        engine.check()?;
        Ok(engine)
    }

    /// What cannot work is said at the start.
    fn check(&self) -> Result<(), Error> {
        if let Some(election) = &self.shared.settings.election
            && election.renew_deadline >= election.lease_duration
        {
            let problem = "must be shorter than lease_duration, or two replicas could act at once";
            return Err(Error::Settings {
                field: "election.renew_deadline",
                problem: problem.to_owned(),
            });
        }
        self.shared.settings.members.check()?;
        selections::agree(self.capabilities.values().flat_map(|c| c.interests()))
    }

    /// Begins to work on the cluster that this replica runs in.
    pub(crate) fn add_home(&mut self, client: &kube::Client) {
        let home = ClusterId::local();
        let concurrency = self.shared.settings.concurrency;
        let connection = (0, client.clone().into());
        self.clusters.add(home.clone(), connection, concurrency);
        self.sites.insert(home.clone(), Site::default());
        self.unsettled.insert(home.clone());
        let controllers: Vec<&'static str> = self.capabilities.keys().copied().collect();
        for &name in &controllers {
            self.queue.hold(&(home.clone(), name), true);
        }
        let watches = self.open_all(&home, &controllers);
        self.watch_all(&home, watches, Trust::Sound);
        self.discover(&home);
    }

    /// Takes part in the election of each lease.
    pub(crate) fn elect(&mut self, client: &kube::Client) {
        let leases: BTreeSet<&'static str> =
            self.capabilities.values().map(|c| c.lease()).collect();
        for lease in leases {
            if let Some(times) = self.shared.settings.election.clone() {
                let candidate = Candidate {
                    shared: self.shared.clone(),
                    client: client.clone(),
                    lease,
                    times,
                    inbox: self.sender.clone(),
                    rights: Rights::default(),
                };
                let (candidacy, handle) = abortable(candidate.run());
                self.candidacies.push(handle);
                self.start(async move {
                    let _ = candidacy.await;
                    Message::Ended
                });
            } else {
                let standing = Standing {
                    phase: Phase::Fencing,
                    ..Standing::default()
                };
                self.shared.lock().standings.insert(lease, standing);
                self.receive(Message::Taken(lease, 0, Taken::Fresh));
            }
        }
    }

    fn start(&mut self, future: impl Future<Output = Message> + Send + 'static) {
        self.running.push(Box::pin(future));
    }

    /// Runs until `stop`, then until all writes under way have been answered and `guests` is over.
    pub(crate) async fn run(
        mut self,
        client: kube::Client,
        stop: impl Future<Output = ()> + Send,
        guests: BoxFuture<'static, ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        loop {
            self.turn();
            let now = Instant::now();
            let next = self
                .queue
                .next_due()
                .map_or(now + TURN, |due| due.min(now + TURN));
            let message = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(message) = self.inbox.recv() => message,
                Some(message) = self.running.next(), if !self.running.is_empty() => message,
                () = sleep_until(next) => continue,
            };
            self.receive(message);
            self.drain_inbox();
        }
        self.end(&client).await;
        self.host(guests).await;
    }

    /// Takes in all that has been told: one plan is better than many.
    fn drain_inbox(&mut self) {
        for _ in 0..1_024 {
            match self.inbox.try_recv() {
                Ok(message) => self.receive(message),
                Err(_) => return,
            }
        }
    }

    /// Plans and starts what is due.
    fn turn(&mut self) {
        let now = Instant::now();
        self.take_changes();
        self.beat(now);
        while let Some(key) = self.queue.take(now) {
            self.work(key);
        }
        let depth = self.queue.depth(now);
        let mut state = self.shared.lock();
        state.progress = Some(now);
        state.depth.clone_from(depth);
        state.tasks = self.running.len();
    }

    /// With every heartbeat, looks for work that no change has told of.
    fn beat(&mut self, now: Instant) {
        let heartbeat = self.shared.settings.heartbeat;
        let mut due: Vec<ClusterId> = Vec::new();
        if now >= self.next_beat {
            self.next_beat = after(now, heartbeat);
            due.push(ClusterId::local());
        }
        while let Some((at, _)) = self.beats.first()
            && *at <= now
            && let Some((at, cluster)) = self.beats.pop_first()
        {
            let site = self.sites.get_mut(&cluster);
            // Of one that was removed meanwhile there may be an older one.
            let link = site.and_then(|site| site.link.as_mut());
            if let Some(link) = link.filter(|link| link.beat == at) {
                link.beat = after(now, heartbeat);
                self.beats.insert((link.beat, cluster.clone()));
                due.push(cluster);
            }
        }
        if due.is_empty() {
            return;
        }
        let stores = self.shared.lock().stores.clone();
        for cluster in due {
            for controller in self.started(&cluster) {
                self.look_for_work(&cluster, controller, &stores, now);
            }
            if cluster.is_local() {
                self.events_off.retain(|_, until| now < *until);
                self.name_untold_members(&stores);
            }
        }
    }

    /// Who has begun to work in a cluster.
    fn started(&self, cluster: &ClusterId) -> Vec<&'static str> {
        let site = self.sites.get(cluster);
        site.map_or_else(Vec::new, |site| site.started.iter().copied().collect())
    }

    fn look_for_work(
        &mut self,
        cluster: &ClusterId,
        controller: &'static str,
        stores: &Stores,
        now: Instant,
    ) {
        let keys = self.keys_in(controller, stores, cluster);
        // Each key that is known wakes by itself as often. So of many only those are looked at that are not.
        let is_each = cluster.is_local() && keys.len() <= MANY;
        for key in keys {
            if is_each || !self.queue.knows(&key) {
                self.queue.changed(&key, now);
            }
        }
    }

    /// The work of a controller in a cluster.
    fn keys_in(&self, controller: &'static str, stores: &Stores, cluster: &ClusterId) -> Vec<Key> {
        let Some(capability) = self.capabilities.get(controller) else {
            return Vec::new();
        };
        let keys = || capability.keys_in(stores, cluster);
        catch_unwind(AssertUnwindSafe(keys)).unwrap_or_default()
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Watch(key, run, news, room) => {
                self.news(&key, run, news);
                drop(room);
            }
            Message::Rewound(cluster, history) => self.read_older(&cluster, history),
            Message::ListAgain(cluster) => self.list_if_due(&cluster),
            Message::Executed(key, tenure, report) => self.executed(&key, tenure, &report),
            Message::Publish(key, event, acted) => self.publish(&key, &event, acted.as_deref()),
            Message::Answered(asked, answer) => self.answered(*asked, answer),
            Message::Taken(lease, epoch, taken) => self.taken(lease, epoch, taken),
            Message::WaitedOut(cluster, lease, epoch) => self.waited_out(&cluster, lease, epoch),
            Message::Bumped(cluster, lease, epoch, bumped) => {
                self.bumped(&cluster, lease, epoch, bumped);
            }
            Message::Connected(cluster, run, made) => self.connected(&cluster, run, made),
            Message::Reconnect(cluster, run) => self.reconnect(&cluster, run),
            Message::Attended(cluster, asked, said) => self.attended(&cluster, asked, said),
            Message::Discovered(cluster, run, kinds) => self.discovered(&cluster, run, kinds),
            Message::Lost(lease) => self.lost(lease),
            Message::Told(slot, tenure, untold) => self.told(&slot, tenure, untold),
            Message::Undo(actions) => self.undo(actions),
            Message::Held(hold) => self.held(*hold),
            Message::Undone => self.undoing = self.undoing.saturating_sub(1),
            Message::Ended => {}
        }
    }
}

/// What keys share, as their controllers say.
fn sharing(capabilities: BTreeMap<&'static str, Arc<dyn Controller>>) -> Sharing {
    Sharing::new(move |key| {
        let Some(capability) = capabilities.get(key.controller) else {
            return slipway_kernel::Lane::Cluster;
        };
        catch_unwind(AssertUnwindSafe(|| capability.lane(key))).unwrap_or_default()
    })
}
