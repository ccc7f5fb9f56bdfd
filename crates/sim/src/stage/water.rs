//! One cluster of a stage: its server, the person at it, and what its name leads to.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use slipway_apiserver::authenticate::User as Account;
use slipway_apiserver::cluster::{Cluster as Server, Config};
use slipway_apiserver::collect;
use slipway_apiserver::environment::{Clock, InProcess};
use slipway_kernel::identity::ClusterId;
use tokio::task::JoinSet;

use super::setup::{ACCOUNT, ADMIN, INNER, NAMESPACE, Prepared, Start, TOKEN, Unplayable};
use crate::actors::{Actors, Reach};
use crate::history::Recorder;
use crate::quick::Rollouts;
use crate::scenario::{Cluster, Controllers, HOME, Scenario};
use crate::user::User;
use crate::wire::{Address, Port};

/// Where the ids of what is there at the start come from.
pub(super) const HOME_SEED: u64 = 0x0511_9aa7;

/// The same of the n-th cluster besides home, and of the one that can take its place.
pub(super) fn member_seeds(n: usize) -> (u64, u64) {
    let first = HOME_SEED.wrapping_add(1 + n as u64);
    (first, first.wrapping_add(1_000_000))
}

/// What the operator shows to be let into a cluster besides home. Its Secret at home says `NAME TOKEN`.
pub(super) fn token(cluster: &str) -> String {
    format!("{cluster}-token")
}

/// What an operator that runs in a cluster besides home shows there.
pub(super) fn inner_token(cluster: &str) -> String {
    format!("within-{cluster}-token")
}

/// A clock that is off.
#[derive(Debug)]
struct Off {
    clock: Arc<dyn Clock>,
    by: SignedDuration,
}

impl Clock for Off {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        now.checked_add(self.by).unwrap_or(now)
    }
}

/// The time in a cluster whose clock is off by these seconds.
pub(super) fn clock(clock: &Arc<dyn Clock>, off: i64) -> Arc<dyn Clock> {
    if off == 0 {
        return clock.clone();
    }
    Arc::new(Off {
        clock: clock.clone(),
        by: SignedDuration::from_secs(off),
    })
}

/// A server, and whom it calls.
fn config(name: &str, token: &str, seed: u64, clock: &Arc<dyn Clock>) -> (Config, Arc<InProcess>) {
    let services = Arc::new(InProcess::default());
    let config = Config::seeded(name, seed, services.clone())
        .with_clock(clock.clone())
        .with_admin(ADMIN)
        .with_token(token, Account::service_account(NAMESPACE, ACCOUNT, "0"))
        .with_token(
            &inner_token(name),
            Account::service_account(NAMESPACE, INNER, "1"),
        );
    (config, services)
}

/// Home without anything in it.
pub(super) fn fresh(seed: u64, clock: &Arc<dyn Clock>) -> Arc<Server> {
    config(HOME, TOKEN, seed, clock).0.build()
}

/// Another cluster without anything in it.
pub(super) fn fresh_member(member: &Cluster, seed: u64, clock: &Arc<dyn Clock>) -> Arc<Server> {
    let token = token(&member.name);
    config(&member.name, &token, seed, clock).0.build()
}

fn actors(cluster: &Arc<Server>, scenario: &Scenario, clock: &Arc<dyn Clock>, seed: u64) -> Actors {
    Actors::new(
        client(cluster),
        clock.clone(),
        scenario.script.clone(),
        seed,
    )
}

/// What controllers work through.
fn client(cluster: &Arc<Server>) -> Client {
    Client::new(cluster.service(ADMIN).with_agent("actors"), "default")
}

/// How the controllers of one cluster reach those of others: whichever has the name then.
pub(super) fn reach(waters: &[Water]) -> Reach {
    let addresses: Vec<Arc<Address>> = waters.iter().map(|water| water.address.clone()).collect();
    Arc::new(move |name| {
        let address = addresses.iter().find(|one| one.name.as_str() == name)?;
        Some(client(&address.port().cluster))
    })
}

/// Makes the nodes of a cluster.
pub(super) async fn provision(
    cluster: &Arc<Server>,
    scenario: &Scenario,
    seed: u64,
    clock: &Arc<dyn Clock>,
) -> Result<(), Unplayable> {
    let nodes = actors(cluster, scenario, clock, seed).provision().await;
    nodes.map_err(|error| Unplayable::Nodes(scenario.name.clone(), error))
}

/// One cluster of a stage.
pub(super) struct Water {
    /// What its name leads to, for the operator.
    pub(super) address: Arc<Address>,
    /// Who does what people do there.
    pub(super) user: User,
    clock: Arc<dyn Clock>,
    /// Whether somebody looks after workloads.
    has_actors: bool,
    /// The start of a cluster that can take its place.
    other: Option<Start>,
    /// The cluster of the beginning, and those that have taken its place, each by the number of the spell that it is there for.
    first: Port,
    others: Vec<(usize, Port)>,
    /// How many have been there under this name.
    incarnations: u64,
}

impl Water {
    /// Home, and whom it calls.
    pub(super) fn home(
        prepared: &Prepared,
        clock: &Arc<dyn Clock>,
        seed: u64,
    ) -> (Self, Arc<InProcess>) {
        let (config, dialled) = config(HOME, TOKEN, seed, clock);
        let start = &prepared.home;
        let cluster = config.beginning_with(&start.snapshot).build();
        let recorder = Recorder::new(cluster.clone(), clock.clone(), &start.beginning);
        let port = Port {
            id: ClusterId::local(),
            cluster,
            recorder,
        };
        (Self::of(port, clock.clone(), true, None), dialled)
    }

    /// The n-th cluster besides home, written down beside it; none if there is no such.
    pub(super) fn member(
        scenario: &Scenario,
        prepared: &Prepared,
        home: &Recorder,
        n: usize,
        seed: u64,
    ) -> Option<Self> {
        let member = scenario.clusters.get(n)?;
        let (first, other) = prepared.members.get(n)?;
        let clock = clock(&home.clock(), member.clock);
        let seed = seed.wrapping_add(1_000_003 * (n as u64 + 1));
        let id = ClusterId::remote(&member.name);
        let port = begin(&id, &id, first, &clock, home, seed);
        Some(Self::of(port, clock, member.actors, Some(other.clone())))
    }

    fn of(port: Port, clock: Arc<dyn Clock>, has_actors: bool, other: Option<Start>) -> Self {
        Self {
            user: User::new(&port.cluster, ADMIN, clock.clone()),
            first: port.clone(),
            others: Vec::new(),
            address: Arc::new(Address::new(port.id.clone(), port)),
            clock,
            has_actors,
            other,
            incarnations: 1,
        }
    }

    /// The cluster that is there now.
    pub(super) fn cluster(&self) -> Arc<Server> {
        self.address.port().cluster
    }

    /// Where what happens in it is written down.
    pub(super) fn recorder(&self) -> Recorder {
        self.address.port().recorder
    }

    /// Another cluster takes its place for a spell, if there is one that can; gives whether there is.
    pub(super) fn replace(&mut self, spell: usize, seed: u64) -> bool {
        let Some(other) = &self.other else {
            return false;
        };
        self.incarnations += 1;
        let name = &self.address.name;
        let id = ClusterId::remote(&format!("{name}~{}", self.incarnations));
        let seed = seed.wrapping_add(1_000_033 * self.incarnations);
        let beside = &self.first.recorder;
        let port = begin(name, &id, other, &self.clock, beside, seed);
        self.others.push((spell, port));
        self.lead();
        true
    }

    /// A spell is over: whoever was there for it is there no more.
    pub(super) fn give_back(&mut self, spell: usize) {
        self.others.retain(|(number, _)| *number != spell);
        self.lead();
    }

    /// The name leads to whoever came last, also for people.
    fn lead(&mut self) {
        let port = self.others.last().map_or(&self.first, |(_, port)| port);
        self.user = User::new(&port.cluster, ADMIN, self.clock.clone());
        self.address.lead_to(port.clone());
    }

    /// What the name leads to now.
    pub(super) fn port(&self) -> Port {
        self.address.port()
    }

    /// Starts whoever looks after workloads in one of the clusters of this name. They end when what this gives is dropped.
    pub(super) fn look_after(
        &self,
        port: &Port,
        scenario: &Scenario,
        reach: Reach,
        seed: u64,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let cluster = port.cluster.clone();
        tasks.spawn(collect::run(cluster.clone()));
        if !self.has_actors {
            return tasks;
        }
        match scenario.controllers {
            Controllers::Full => {
                let actors = actors(&cluster, scenario, &self.clock, seed);
                tasks.spawn(actors.reaching(reach).run());
            }
            Controllers::Quick => {
                let client = client(&cluster);
                let takes = scenario.script.start.try_into().unwrap_or_default();
                let clock = self.clock.clone();
                tasks.spawn(Rollouts::new(cluster, client, clock, takes).run());
            }
        }
        tasks
    }
}

/// A cluster of this name begins as it was, and is written down as `id`.
fn begin(
    name: &ClusterId,
    id: &ClusterId,
    start: &Start,
    clock: &Arc<dyn Clock>,
    beside: &Recorder,
    seed: u64,
) -> Port {
    let (config, _) = config(name.as_str(), &token(name.as_str()), seed, clock);
    let cluster = config.beginning_with(&start.snapshot).build();
    let recorder = beside.beside(id.clone(), cluster.clone(), &start.beginning);
    Port {
        id: id.clone(),
        cluster,
        recorder,
    }
}
