//! The operator's replicas: each dies and comes back as the scenario wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use jiff::SignedDuration;
use slipway_apiserver::environment::Clock;
use slipway_kernel::Controller;
use slipway_kernel::admission::Admit;
use slipway_runtime::gather::Gatherer;
use slipway_runtime::webhook::Admissions;
use slipway_runtime::{Environment, Operator, Settings, View};

use super::connect::{Anchorage, Sockets};
use super::pods::{Line, Pods};
use super::setup::{Feign, Probe, Tamper};
use super::world::{Way, World};
use crate::fault::Adversary;
use crate::history::{Event, Recorder};
use crate::replica::{Alive, End, Replica};
use crate::trial::Blow;
use crate::wire::{Address, Weather};

/// How long it takes until a process that died is replaced.
const RESTART: Duration = Duration::from_secs(5);

/// How often somebody looks whether replicas are ready.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of a replica beyond its process.
#[derive(Default)]
pub(super) struct Berth {
    replica: Option<Arc<Replica>>,
    view: Option<View>,
    admissions: Option<Admissions>,
    skew: i64,
}

/// All replicas of an operator.
pub(super) struct Crew {
    /// What the names of its replicas begin with.
    pub(super) name: String,
    /// What they show where they run.
    pub(super) token: String,
    /// By how many seconds the clocks are off where they run.
    pub(super) off: i64,
    /// What the names of clusters lead to; the one that it runs in is the first.
    pub(super) addresses: Vec<Arc<Address>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recorder: Recorder,
    pub(super) adversary: Arc<Mutex<Adversary>>,
    pub(super) settings: Settings,
    pub(super) capabilities: Vec<Arc<dyn Controller>>,
    pub(super) seed: u64,
    pub(super) tamper: Option<Tamper>,
    pub(super) feign: Option<Feign>,
    pub(super) probe: Probe,
    pub(super) is_narrow: bool,
    pub(super) weather: Arc<Weather>,
    pub(super) berths: Mutex<BTreeMap<u32, Berth>>,
    pub(super) hooks: Vec<Arc<dyn Admit>>,
    pub(super) pods: Arc<Pods>,
    pub(super) world: Arc<World>,
    /// How many times somebody came to the door.
    pub(super) turns: AtomicUsize,
}

impl Crew {
    fn berths(&self) -> MutexGuard<'_, BTreeMap<u32, Berth>> {
        self.berths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn views(&self) -> Vec<View> {
        let berths = self.berths();
        berths.values().filter_map(|b| b.view.clone()).collect()
    }

    /// Who answers for the webhooks now: the living replicas in turns.
    pub(super) fn doorkeeper(self: Arc<Self>) -> Option<(Arc<Replica>, Admissions, Arc<Self>)> {
        let berths = self.berths();
        let living: Vec<_> = berths
            .values()
            .filter_map(|berth| Some((berth.replica.as_ref()?, berth.admissions.as_ref()?)))
            .filter(|(replica, _)| !replica.is_dead())
            .collect();
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) % living.len().max(1);
        let chosen = living.get(turn);
        let (replica, admissions) = chosen.map(|(r, a)| (Arc::clone(r), (*a).clone()))?;
        drop(berths);
        Some((replica, admissions, self))
    }

    /// Runs a replica, and another one in its place when it dies.
    pub(super) async fn keep_alive(self: Arc<Self>, index: u32) {
        let mut incarnation = 0_u64;
        loop {
            let name = format!("{}-{index}-{incarnation}", self.name);
            self.live(index, name, incarnation).await;
            incarnation += 1;
            tokio::time::sleep(RESTART).await;
        }
    }

    async fn live(&self, index: u32, name: String, incarnation: u64) {
        let replica = Arc::new(Replica::new(name.clone()));
        let skew = self.berths().entry(index).or_default().skew;
        let Some(operator) = self.operator(&replica, index, incarnation, skew) else {
            return;
        };
        {
            let mut berths = self.berths();
            let berth = berths.entry(index).or_default();
            berth.replica = Some(replica.clone());
            berth.view = Some(operator.view());
            let serves = !self.hooks.is_empty();
            berth.admissions = serves.then(|| operator.admissions());
        }
        self.recorder.mark(Event::Started(name.clone()));
        let process = operator.run(std::future::pending());
        let process = AssertUnwindSafe(Alive::new(&replica, process)).catch_unwind();
        let what = match process.await {
            Ok(End::Crashed) => Event::Crashed(name),
            Ok(End::Done(Ok(()))) => Event::Ended(name, "without being asked".to_owned()),
            Ok(End::Done(Err(error))) => Event::Ended(name, error.to_string()),
            Err(panic) => Event::Panicked(message(panic.as_ref())),
        };
        replica.crash();
        self.recorder.mark(what);
    }

    /// A replica; none if there is no cluster for it to run in.
    fn operator(
        &self,
        replica: &Arc<Replica>,
        index: u32,
        incarnation: u64,
        skew: i64,
    ) -> Option<Operator> {
        let sockets = Sockets {
            agent: format!("slipway/{}", replica.name()),
            clock: self.clock.clone(),
            replica: replica.clone(),
            adversary: self.adversary.clone(),
            tamper: self.tamper,
            feign: self.feign,
            weather: self.weather.clone(),
            index,
            relist: self.settings.relist,
            namespace: self.settings.namespace.clone(),
            token: self.token.clone(),
        };
        let client = sockets.home(self.addresses.first()?);
        let seed = self.seed ^ (u64::from(index) << 32) ^ (incarnation << 48);
        let environment = Environment::virtual_from(self.clock.now(), seed)
            .skewed(SignedDuration::from_secs(skew + self.off));
        let settings = Settings {
            replica: replica.name().to_owned(),
            ..self.settings.clone()
        };
        let operator = Operator::new(environment, client, settings);
        let line = Line {
            pods: self.pods.clone(),
            replica: replica.name().to_owned(),
        };
        let way = Way {
            world: self.world.clone(),
            replica: replica.clone(),
            adversary: self.adversary.clone(),
        };
        let gatherer = Gatherer::new(operator.client(), Arc::new(line)).asking(&way.outside());
        let operator = self
            .capabilities
            .iter()
            .cloned()
            .fold(operator, Operator::with)
            .gathering(Arc::new(gatherer))
            .admitting(self.hooks.clone());
        let anchorage = Anchorage::new(sockets, &self.addresses, self.is_narrow);
        Some(operator.connecting(Arc::new(anchorage)))
    }

    /// Which replica leads; the first if none does.
    pub(super) fn leader(&self) -> u32 {
        let leads = |view: &View| self.capabilities.iter().any(|c| view.is_leader(c.name()));
        let berths = self.berths();
        let mut leading = berths.iter().filter(|(_, berth)| {
            let alive = berth
                .replica
                .as_ref()
                .is_some_and(|replica| !replica.is_dead());
            alive && berth.view.as_ref().is_some_and(leads)
        });
        leading.next().map_or(0, |(index, _)| *index)
    }

    /// Writes down when replicas say that they are ready and when not, until dropped.
    pub(super) async fn watch_readiness(self: Arc<Self>) {
        let mut said: BTreeMap<String, bool> = BTreeMap::new();
        let mut lost: BTreeSet<String> = BTreeSet::new();
        loop {
            let now: Vec<(String, bool)> = {
                let berths = self.berths();
                let living = berths.values().filter_map(|berth| {
                    let replica = berth.replica.as_ref().filter(|r| !r.is_dead())?;
                    Some((replica.name().to_owned(), berth.view.as_ref()?.is_ready()))
                });
                living.collect()
            };
            for (replica, ready) in now {
                let ready = match (self.probe, said.get(&replica)) {
                    // It begins by not being ready.
                    (Probe::LatchesOff, Some(false)) => ready && !lost.contains(&replica),
                    (Probe::LatchesOn, Some(true)) => true,
                    _ => ready,
                };
                if said.get(&replica) == Some(&true) && !ready {
                    lost.insert(replica.clone());
                }
                if said.insert(replica.clone(), ready) != Some(ready) {
                    self.recorder.mark(Event::Ready(replica, ready));
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Something happens to a replica.
    pub(super) fn strike(&self, index: u32, blow: Blow) {
        let mut berths = self.berths();
        let berth = berths.entry(index).or_default();
        let replica = berth.replica.clone();
        if let Blow::Skew(seconds) = blow {
            // Also a replica that comes later has this clock.
            berth.skew = seconds;
            let name = replica.as_ref().map_or_else(
                || format!("{}-{index}", self.name),
                |replica| replica.name().to_owned(),
            );
            self.recorder.mark(Event::Skewed(name, seconds));
        }
        drop(berths);
        let Some(replica) = replica else {
            return;
        };
        match blow {
            Blow::Crash | Blow::Skew(_) => replica.crash(),
            Blow::Pause(time) => replica.pause(time, &self.recorder),
            Blow::CutOff(time) => replica.cut_off(time, &self.recorder),
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").to_owned()
}
