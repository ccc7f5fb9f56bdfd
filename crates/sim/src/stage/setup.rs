//! How a stage is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster as Server, Snapshot};
use slipway_apiserver::environment::{Clock, TokioClock};
use slipway_kernel::Controller;
use slipway_kernel::admission::Admit;
use slipway_kernel::permission::{Grantee, Permission, roles};
use slipway_runtime::{Election, Settings};
use tokio::task::JoinSet;

use super::Stage;
use super::door::door;
use super::water::{self, Water};
use super::yard::Yard;
use crate::actors::{flux_definitions, gateway_definitions};
use crate::fault::Adversary;
use crate::history::{Beginning, Event};
use crate::oracles::Oracles;
use crate::scenario::{Cluster, Scenario, Unreadable, Within};
use crate::share::Share;
use crate::trial::{Storm, Trial};
use crate::user::{Undone, User};
use crate::wire::Weather;

/// The operator's own namespace in simulations.
pub const NAMESPACE: &str = "slipway-system";
/// Its service account.
pub(super) const ACCOUNT: &str = "slipway";
/// The service account of one that runs in a cluster besides home.
pub(super) const INNER: &str = "slipway-within";
/// Its roles are called so.
pub(super) const ROLE: &str = "slipway-simulated";
/// What it shows to be let in at home.
pub const TOKEN: &str = "operator-token";
/// What people and controllers show to be let in.
pub const ADMIN: &str = "admin-token";

/// The operators' names, as the API server sees them.
pub(super) fn accounts() -> [String; 2] {
    [ACCOUNT, INNER].map(|account| format!("system:serviceaccount:{NAMESPACE}:{account}"))
}

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum Unplayable {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The capabilities cannot be set up as it wants.
    #[error("scenario {0}: settings: {1}")]
    Settings(String, String),
    /// Something could not be made at the start.
    #[error("scenario {0}: setting it up: {1}")]
    Start(String, Undone),
    /// The nodes could not be made.
    #[error("scenario {0}: making its nodes: {1}")]
    Nodes(String, kube::Error),
}

/// The operator as a scenario wants it.
pub struct Setup {
    /// How replicas run; their names are given here.
    pub settings: Settings,
    /// What they do.
    pub capabilities: Vec<Arc<dyn Controller>>,
    /// What they are asked by the API server.
    pub hooks: Vec<Arc<dyn Admit>>,
    /// The manifests by which the API server knows that: they name a service in [`NAMESPACE`].
    pub registrations: Vec<Value>,
    /// What the operator may do at home, each line once.
    pub permissions: Vec<Permission>,
    /// What it may do in other clusters.
    pub member_permissions: Vec<Permission>,
    /// What happens to its requests on their way, for mutants.
    pub tamper: Option<Tamper>,
    /// What is answered in the API's place, for mutants.
    pub feign: Option<Feign>,
    /// How it tells whether it is ready, for mutants.
    pub probe: Probe,
    /// Whether its requests to all clusters besides home go one after the other, for mutants.
    pub is_narrow: bool,
}

/// Changes the body of a request: method, path, body.
pub type Tamper = fn(&str, &str, &mut Value);

/// The code that a request is refused with, if it is: method and path.
pub type Feign = fn(&str, &str) -> Option<u16>;

/// How a replica tells whether it is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Probe {
    /// As it is.
    #[default]
    Honest,
    /// Once it is not, it never is again.
    LatchesOff,
    /// Once it is, it always is.
    LatchesOn,
}

/// A right that a role gives: the role, the number of its rule, the verb, and what it is about.
pub type Right = (String, usize, String, String);

type Assemble = dyn Fn(&Value) -> Result<Setup, String> + Send + Sync;

/// What the simulator does not know: the capabilities, their definitions, and what is true of them.
#[derive(Clone)]
pub struct Wiring {
    /// Sets the operator up from a scenario's `settings`.
    pub operator: Arc<Assemble>,
    /// The definitions to install.
    pub definitions: Arc<Vec<Value>>,
    /// Who judges.
    pub oracles: Oracles,
    /// Which scenarios have a budget together.
    pub shares: Vec<Share>,
}

/// The clusters of a scenario at its start, from which any number of runs can begin.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(super) home: Start,
    /// Each of the others, and another one with the same objects that can take its place.
    pub(super) members: Vec<(Start, Start)>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) snapshot: Snapshot,
    pub(super) beginning: Beginning,
}

impl Start {
    fn of(cluster: &Server) -> Self {
        Self {
            snapshot: cluster.snapshot(),
            beginning: Beginning::of(cluster),
        }
    }
}

impl Prepared {
    /// Makes all that is there at the start. Call it inside a tokio runtime.
    pub async fn new(scenario: &Scenario, wiring: &Wiring) -> Result<Self, Unplayable> {
        let start = |error| Unplayable::Start(scenario.name.clone(), error);
        let setup = assemble(scenario, wiring)?;
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(scenario.start));
        let home = water::fresh(water::HOME_SEED, &clock);
        let user = User::new(&home, ADMIN, clock.clone());
        let before = [foreign(scenario), scenario.before.clone()].concat();
        prepare(&user, &before, &wiring.definitions)
            .await
            .map_err(start)?;
        water::provision(&home, scenario, water::HOME_SEED, &clock).await?;
        let role = role(&setup);
        let to = grantee(&setup, &role, ACCOUNT);
        let granted = grant(&user, &to, &setup.permissions).await;
        granted.map_err(start)?;
        for manifest in scenario.manifests().iter().chain(&setup.registrations) {
            user.apply(manifest).await.map_err(start)?;
        }
        let mut members = Vec::new();
        for (n, member) in scenario.clusters.iter().enumerate() {
            let seeds = water::member_seeds(n);
            let first = Self::member(scenario, wiring, &setup, member, seeds.0).await?;
            let other = Self::member(scenario, wiring, &setup, member, seeds.1).await?;
            members.push((first, other));
        }
        let home = Start::of(&home);
        Ok(Self { home, members })
    }

    /// A cluster besides home, whose ids come from this seed.
    async fn member(
        scenario: &Scenario,
        wiring: &Wiring,
        setup: &Setup,
        member: &Cluster,
        seed: u64,
    ) -> Result<Start, Unplayable> {
        let start =
            |error| Unplayable::Start(format!("{} in {}", scenario.name, member.name), error);
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(scenario.start));
        let clock = water::clock(&clock, member.clock);
        let cluster = water::fresh_member(member, seed, &clock);
        let user = User::new(&cluster, ADMIN, clock.clone());
        let definitions: &[Value] = if member.definitions {
            &wiring.definitions
        } else {
            &[]
        };
        prepare(&user, &foreign(scenario), definitions)
            .await
            .map_err(start)?;
        if member.actors {
            water::provision(&cluster, scenario, seed, &clock).await?;
        }
        let mut permissions = setup.member_permissions.clone();
        permissions.retain(|one| !member.lacks.iter().any(|lacks| lacks == one.resource));
        let called = role_in_members(setup);
        let to = grantee(setup, &called, ACCOUNT);
        grant(&user, &to, &permissions).await.map_err(start)?;
        if let Some(within) = &member.operator {
            let inner = assemble_within(scenario, within, wiring)?;
            let called = role_within(&inner);
            let to = grantee(&inner, &called, INNER);
            let granted = grant(&user, &to, &inner.permissions).await;
            granted.map_err(start)?;
        }
        for manifest in scenario.manifests_in(member) {
            user.apply(&manifest).await.map_err(start)?;
        }
        Ok(Start::of(&cluster))
    }
}

/// The operator that runs in a cluster besides home, as the scenario wants it.
pub(super) fn assemble_within(
    scenario: &Scenario,
    within: &Within,
    wiring: &Wiring,
) -> Result<Setup, Unplayable> {
    let mut setup = (wiring.operator)(&within.settings)
        .map_err(|problem| Unplayable::Settings(scenario.name.clone(), problem))?;
    NAMESPACE.clone_into(&mut setup.settings.namespace);
    setup.settings.election = None;
    Ok(setup)
}

/// Definitions of others that the scenario's clusters have.
fn foreign(scenario: &Scenario) -> Vec<Value> {
    let script = &scenario.script;
    let flux = script.flux.iter().flat_map(|_| flux_definitions());
    let gateway = script.gateway.iter().flat_map(|_| gateway_definitions());
    flux.chain(gateway).collect()
}

/// The operator as the scenario wants it.
pub(super) fn assemble(scenario: &Scenario, wiring: &Wiring) -> Result<Setup, Unplayable> {
    let mut setup = (wiring.operator)(&scenario.settings)
        .map_err(|problem| Unplayable::Settings(scenario.name.clone(), problem))?;
    NAMESPACE.clone_into(&mut setup.settings.namespace);
    setup.settings.election = match (scenario.replicas, setup.settings.election) {
        (0 | 1, _) => None,
        (_, Some(election)) => Some(election),
        (_, None) => Some(Election::default()),
    };
    Ok(setup)
}

pub(super) fn begin(
    scenario: &Scenario,
    wiring: &Wiring,
    prepared: &Prepared,
    trial: &Trial,
) -> Result<Stage, Unplayable> {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(scenario.start));
    let began = tokio::time::Instant::now();
    let mut tasks = JoinSet::new();
    let (home, dialled) = Water::home(prepared, &clock, trial.seed);
    let recorder = home.recorder();
    recorder.mark(Event::User("everything is set up".to_owned()));
    let members = 0..scenario.clusters.len();
    let members = members
        .filter_map(|n| Water::member(scenario, prepared, &recorder, n, trial.seed))
        .collect::<Vec<Water>>();
    let reach = water::reach(&members);
    let all = || std::iter::once(&home).chain(&members);
    for water in all() {
        tasks.spawn(water.recorder().follow());
    }
    let controllers = all().map(|water| {
        let port = water.port();
        let tasks = water.look_after(&port, scenario, reach.clone(), trial.seed);
        (port.id, tasks)
    });
    let controllers = controllers.collect();
    let adversary = Adversary::new(trial.injections.clone(), trial.seed);
    let adversary = Arc::new(Mutex::new(adversary));
    let kinds = kinds(&wiring.definitions);
    let storm = trial.storm.then(|| Storm::of(scenario, trial.seed, &kinds));
    let drawn = storm
        .as_ref()
        .map_or(&[][..], |storm| storm.spells.as_slice());
    let others = [trial.spells.as_slice(), drawn].concat();
    let weather = Arc::new(Weather::new(began, &scenario.spells, &others));
    let yard = Yard {
        scenario,
        wiring,
        clock: &clock,
        adversary: &adversary,
        weather: &weather,
        seed: trial.seed,
    };
    let crew = yard.home((&home, &members))?;
    let within = yard.within(&members)?;
    let waters: Vec<Water> = std::iter::once(home).chain(members).collect();
    dialled.register("https://", door(&crew));
    Ok(Stage {
        scenario: scenario.clone(),
        clock,
        clusters: waters.iter().map(Water::cluster).collect(),
        waters,
        recorder,
        adversary,
        is_watched: storm.is_none() || !trial.spells.is_empty(),
        storm,
        crew,
        within,
        tasks,
        controllers,
        kept: BTreeMap::new(),
        weather,
        definitions: wiring.definitions.clone(),
        seed: trial.seed,
        began,
    })
}

/// What definitions define, as `plural.group`.
fn kinds(definitions: &[Value]) -> Vec<String> {
    let names = definitions.iter().filter_map(|definition| {
        let name = definition.pointer("/metadata/name");
        name.and_then(Value::as_str).map(str::to_owned)
    });
    names.collect()
}

/// What was there before our definitions, and these.
async fn prepare(user: &User, before: &[Value], definitions: &[Value]) -> Result<(), Undone> {
    for manifest in before.iter().chain(definitions) {
        user.apply(manifest).await?;
    }
    let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    user.apply(&home).await?;
    Ok(())
}

/// The name of the roles: operators with different capabilities or rights have different ones, so that an audit can tell
/// their rules apart.
fn role(setup: &Setup) -> String {
    let names = setup.capabilities.iter().map(|c| c.name());
    let role = names.fold(ROLE.to_owned(), |role, name| format!("{role}-{name}"));
    format!("{role}-{}", setup.permissions.len())
}

/// The same in members. Its rules are others: an audit must not take them for those at home.
fn role_in_members(setup: &Setup) -> String {
    format!("{}-member", role(setup))
}

/// The same of an operator that runs in a member.
fn role_within(setup: &Setup) -> String {
    format!("{}-within", role(setup))
}

fn grantee<'a>(setup: &'a Setup, role: &'a str, account: &'a str) -> Grantee<'a> {
    Grantee {
        role,
        namespace: NAMESPACE,
        account,
        watched: &setup.settings.namespaces,
    }
}

/// Exactly the rights that the capabilities and the runtime ask for.
async fn grant(user: &User, to: &Grantee<'_>, permissions: &[Permission]) -> Result<(), Undone> {
    for manifest in roles(permissions, to) {
        user.apply(&manifest).await?;
    }
    Ok(())
}

/// All rights that the operator has in simulations, at home and in members, as an audit names them.
pub fn rights(setup: &Setup) -> BTreeSet<Right> {
    let mut all = rights_of(setup, &role(setup), &setup.permissions);
    let abroad = rights_of(setup, &role_in_members(setup), &setup.member_permissions);
    all.extend(abroad.into_iter().map(|(role, rule, verb, about)| {
        let about = format!("{about} in members");
        (role, rule, verb, about)
    }));
    all
}

/// All rights that an operator has in simulations that runs in another cluster.
pub fn rights_within(setup: &Setup) -> BTreeSet<Right> {
    rights_of(setup, &role_within(setup), &setup.permissions)
}

fn rights_of(setup: &Setup, name: &str, permissions: &[Permission]) -> BTreeSet<Right> {
    let to = grantee(setup, name, ACCOUNT);
    let mut all = BTreeSet::new();
    for manifest in roles(permissions, &to) {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
        let role = match (text("/kind"), text("/metadata/name")) {
            (Some("ClusterRole"), Some(name)) => format!("ClusterRole {name}"),
            (Some("Role"), Some(name)) => {
                let namespace = text("/metadata/namespace").unwrap_or_default();
                format!("Role {namespace}/{name}")
            }
            _ => continue,
        };
        let rules = manifest.get("rules").and_then(Value::as_array);
        for (n, rule) in rules.into_iter().flatten().enumerate() {
            let about = rule.pointer("/resources/0").and_then(Value::as_str);
            let verbs = rule.get("verbs").and_then(Value::as_array);
            for verb in verbs.into_iter().flatten().filter_map(Value::as_str) {
                let about = about.unwrap_or_default().to_owned();
                all.insert((role.clone(), n, verb.to_owned(), about));
            }
        }
    }
    all
}
