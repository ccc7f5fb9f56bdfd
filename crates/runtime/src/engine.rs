//! The loop: takes in news, plans what is due, starts what was planned.
//!
//! Everything that a replica does is a future owned by its engine, polled in the order in which it was woken. Nothing is
//! spawned: dropping the engine ends all of it at once.

mod bump;
mod fence;
mod intake;
mod outage;
mod questions;
mod restore;
mod selections;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use slipway_kernel::capability::Controller;
use slipway_kernel::identity::{ClusterId, Key};
use slipway_kernel::interest::{Interest, Need, Triggers};
use slipway_kernel::parts::Parts;
use slipway_kernel::selector::Selector;
use slipway_kernel::store::StoreKey;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::clusters::Clusters;
use crate::election::{Candidate, Taken};
use crate::environment::after;
use crate::error::Error;
use crate::events::Recorder;
use crate::gather::Gather;
use crate::message::Message;
use crate::queue::{Lane, Queue};
use crate::rights::Rights;
use crate::state::{Phase, Shared, Standing, StoreSelector, Trust, WatchState};
use crate::watch::{Control, Times, Watch, WatchKey, attended};
use crate::webhook::Readings;

pub(crate) use bump::Bumped;
use questions::Questions;

/// The loop turns at least this often, so that its health shows.
const TURN: Duration = Duration::from_secs(20);
/// How long one page of a list may take.
const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// One watch, and what hangs on it.
struct Watched {
    control: Arc<Control>,
    stores: BTreeSet<StoreKey>,
    /// What some projection of its objects reads.
    reads: Parts,
}

/// What a store's changes lead to.
struct Feeds {
    triggers: Vec<Triggers>,
}

/// A running replica.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    clusters: Clusters,
    capabilities: BTreeMap<&'static str, Arc<dyn Controller>>,
    gatherer: Arc<dyn Gather>,
    queue: Queue,
    recorder: Recorder,
    watches: BTreeMap<WatchKey, Watched>,
    feeds: BTreeMap<StoreKey, Feeds>,
    /// What each controller cannot do without, and all that it sees.
    needs: BTreeMap<&'static str, BTreeSet<WatchKey>>,
    started: BTreeSet<Lane>,
    /// Work of which passes are shown.
    shown: BTreeSet<Key>,
    fences: BTreeMap<&'static str, fence::Fencing>,
    questions: Questions,
    /// Reads of what became of what webhooks let go.
    readings: Option<Arc<Readings>>,
    /// Namespaces in which no events are told until then.
    events_off: BTreeMap<String, Instant>,
    outages: outage::Outages,
    inbox: mpsc::UnboundedReceiver<Message>,
    sender: mpsc::UnboundedSender<Message>,
    running: FuturesUnordered<BoxFuture<'static, Message>>,
    /// Ends taking part in elections.
    candidacies: Vec<AbortHandle>,
    /// Plans being carried out, and events being told.
    executing: usize,
    telling: usize,
    /// What webhooks left to be undone.
    undoing: usize,
    next_beat: Instant,
}

impl Engine {
    pub(crate) fn new(
        shared: Arc<Shared>,
        gatherer: Arc<dyn Gather>,
        (sender, inbox): (
            mpsc::UnboundedSender<Message>,
            mpsc::UnboundedReceiver<Message>,
        ),
        capabilities: Vec<Arc<dyn Controller>>,
    ) -> Result<Self, Error> {
        let settings = &shared.settings;
        let queue = Queue::new(settings.debounce, settings.backoff);
        let mut engine = Self {
            clusters: Clusters::default(),
            capabilities: BTreeMap::new(),
            gatherer,
            queue,
            recorder: Recorder::default(),
            watches: BTreeMap::new(),
            feeds: BTreeMap::new(),
            needs: BTreeMap::new(),
            started: BTreeSet::new(),
            shown: BTreeSet::new(),
            fences: BTreeMap::new(),
            questions: Questions::default(),
            readings: None,
            events_off: BTreeMap::new(),
            outages: outage::Outages::default(),
            inbox,
            sender,
            running: FuturesUnordered::new(),
            candidacies: Vec::new(),
            executing: 0,
            telling: 0,
            undoing: 0,
            next_beat: Instant::now(),
            shared,
        };
        for capability in capabilities {
            let name = capability.name();
            if engine.capabilities.insert(name, capability).is_some() {
                return Err(Error::Name(name));
            }
        }
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
        selections::agree(self.capabilities.values().flat_map(|c| c.interests()))
    }

    /// Begins to work on a cluster.
    pub(crate) fn add_cluster(&mut self, cluster: &ClusterId, client: &kube::Client) {
        let concurrency = self.shared.settings.concurrency;
        self.clusters
            .add(cluster.clone(), client.clone(), concurrency);
        let capabilities: Vec<Arc<dyn Controller>> = self.capabilities.values().cloned().collect();
        let mut needs: BTreeMap<WatchKey, Need> = BTreeMap::new();
        for capability in &capabilities {
            let name = capability.name();
            self.queue.hold(&(cluster.clone(), name), true);
            for interest in capability.interests() {
                for key in self.open(cluster, &interest) {
                    self.needs.entry(name).or_default().insert(key.clone());
                    let all = needs.entry(key).or_insert(Need::Optional);
                    *all = interest.need.max(*all);
                }
            }
        }
        for (key, need) in needs {
            self.watch(key, need, client);
        }
    }

    /// Makes room for an interest; gives the watches that it needs.
    fn open(&mut self, cluster: &ClusterId, interest: &Interest) -> Vec<WatchKey> {
        let namespaces = match interest.own {
            Some(_) => vec![self.shared.settings.namespace.clone()],
            None if interest.kind.namespaced => self.shared.settings.namespaces.clone(),
            None => Vec::new(),
        };
        let store = {
            let mut state = self.shared.lock();
            let store = state.stores.open(cluster, interest);
            let selector = StoreSelector {
                labels: Selector::parse(&interest.labels),
                named: interest.own.is_some() || interest.named.is_some(),
                namespaces: namespaces.clone(),
            };
            state.selectors.insert(store.clone(), selector);
            store
        };
        let feeds = self.feeds.entry(store.clone()).or_insert_with(|| Feeds {
            triggers: Vec::new(),
        });
        feeds.triggers.push(interest.triggers);
        let everywhere = vec![String::new()];
        let places = if namespaces.is_empty() {
            everywhere
        } else {
            namespaces
        };
        let keys: Vec<WatchKey> = places
            .into_iter()
            .map(|namespace| WatchKey {
                cluster: cluster.clone(),
                kind: interest.kind.clone(),
                labels: interest.labels.clone(),
                namespace,
                name: interest.own.or(interest.named),
            })
            .collect();
        for key in &keys {
            let watched = self.watches.entry(key.clone()).or_insert_with(|| Watched {
                control: Arc::default(),
                stores: BTreeSet::new(),
                reads: Parts::NONE,
            });
            watched.stores.insert(store.clone());
            watched.reads = watched.reads.or(interest.reads);
        }
        keys
    }

    fn watch(&mut self, key: WatchKey, need: Need, client: &kube::Client) {
        let Some(watched) = self.watches.get(&key) else {
            return;
        };
        let state = WatchState {
            need,
            listed: false,
            off: false,
            trust: Trust::Sound,
            control: watched.control.clone(),
            stores: watched.stores.iter().cloned().collect(),
            place: 0,
            rewound: None,
        };
        self.shared.lock().watches.insert(key.clone(), state);
        let attended = attended(
            client.clone(),
            key.clone(),
            &watched.control,
            self.sender.clone(),
        );
        let cluster = self.clusters.get(&key.cluster);
        let rights = cluster.map(|cluster| cluster.rights).unwrap_or_default();
        let watch = Watch {
            key,
            rights,
            client: attended,
            plain: client.clone(),
            need,
            reads: watched.reads,
            times: Times {
                answer: LIST_PATIENCE,
                missing: self.shared.settings.heartbeat,
                relist: self.shared.settings.relist,
                poll: self.shared.settings.poll,
            },
            control: watched.control.clone(),
            places: self.shared.lock().ledger.places(),
            news: self.sender.clone(),
        };
        self.start(async move {
            watch.run().await;
            Message::Ended
        });
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
        let mut state = self.shared.lock();
        state.progress = Some(now);
        state.depth = self.queue.depth(now);
    }

    /// With every heartbeat, looks for work that no change has told of.
    fn beat(&mut self, now: Instant) {
        if now < self.next_beat {
            return;
        }
        self.next_beat = after(now, self.shared.settings.heartbeat);
        let stores = self.shared.lock().stores.clone();
        let lanes: Vec<Lane> = self.started.iter().cloned().collect();
        for (_, controller) in lanes {
            for key in self.keys_of(controller, &stores) {
                self.queue.changed(&key, now);
            }
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::Watch(key, news) => self.news(&key, news),
            Message::Rewound(cluster, history) => self.read_older(&cluster, history),
            Message::ListAgain(cluster) => self.list_if_due(&cluster),
            Message::Executed(key, report) => self.executed(&key, &report),
            Message::Publish(controller, event, acted) => {
                self.publish(controller, &event, acted.as_deref());
            }
            Message::Answered(key, id, answer) => self.answered(&key, id, answer),
            Message::Taken(lease, epoch, taken) => self.taken(lease, epoch, taken),
            Message::WaitedOut(lease, epoch) => self.waited_out(lease, epoch),
            Message::Bumped(lease, epoch, bumped) => self.bumped(lease, epoch, bumped),
            Message::Lost(lease) => self.lost(lease),
            Message::Told(slot, untold) => self.told(&slot, untold),
            Message::Undo(actions) => self.undo(actions),
            Message::Held(hold) => self.held(*hold),
            Message::Undone => self.undoing = self.undoing.saturating_sub(1),
            Message::Ended => {}
        }
    }

    /// No new steps; answers are awaited, then the leases given up.
    async fn end(&mut self, client: &kube::Client) {
        self.shared.draining.store(true, Ordering::Release);
        let patience = after(Instant::now(), self.shared.settings.request_timeout);
        // What webhooks have just left to be undone is not lost.
        self.drain_inbox();
        while self.executing > 0
            || self.telling > 0
            || self.undoing > 0
            || self.questions.is_under_way()
        {
            let message = tokio::select! {
                biased;
                () = sleep_until(patience) => break,
                Some(message) = self.inbox.recv() => message,
                Some(message) = self.running.next(), if !self.running.is_empty() => message,
            };
            self.receive(message);
        }
        // What is still under way has no answer: the next leader has to wait for it.
        let clean = self.executing == 0 && !self.questions.is_under_way();
        for candidacy in self.candidacies.drain(..) {
            candidacy.abort();
        }
        let leases: Vec<&'static str> = self.shared.lock().standings.keys().copied().collect();
        for lease in leases {
            if clean {
                crate::election::release(&self.shared, client, lease).await;
            }
        }
        self.shared.notify_observers();
    }

    /// Keeps what webhooks decide on new, and undoes what they leave to be undone, until `guests` is over.
    async fn host(&mut self, mut guests: BoxFuture<'static, ()>) {
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
