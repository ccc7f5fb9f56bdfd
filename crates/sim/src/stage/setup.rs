//! How a stage is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use kube::Client;
use serde_json::{Value, json};
use slipway_apiserver::authenticate::User as Account;
use slipway_apiserver::cluster::{Cluster, Config, Snapshot};
use slipway_apiserver::collect;
use slipway_apiserver::environment::{Clock, InProcess, TokioClock};
use slipway_kernel::Controller;
use slipway_kernel::admission::Admit;
use slipway_kernel::permission::{Grantee, Permission, roles};
use slipway_runtime::{Election, Settings};
use tokio::task::JoinSet;

use super::Stage;
use super::door::door;
use super::pods::Pods;
use super::process::Crew;
use crate::actors::Actors;
use crate::fault::Adversary;
use crate::history::{Event, Recorder};
use crate::oracles::Oracles;
use crate::quick::Rollouts;
use crate::scenario::{Controllers, Scenario, Unreadable};
use crate::trial::{Storm, Trial};
use crate::user::{Undone, User};
use crate::wire::Weather;

/// The operator's own namespace in simulations.
pub const NAMESPACE: &str = "slipway-system";
/// Its service account.
const ACCOUNT: &str = "slipway";
/// Its roles are called so.
pub(super) const ROLE: &str = "slipway-simulated";
/// What it shows to be let in.
pub const TOKEN: &str = "operator-token";
/// What people and controllers show to be let in.
pub const ADMIN: &str = "admin-token";

/// The operator's name, as the API server sees it.
pub(super) fn account() -> String {
    format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
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
    /// What the operator may do, each line once.
    pub permissions: Vec<Permission>,
    /// What happens to its requests on their way, for mutants.
    pub tamper: Option<Tamper>,
    /// What is answered in the API's place, for mutants.
    pub feign: Option<Feign>,
    /// How it tells whether it is ready, for mutants.
    pub probe: Probe,
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
}

/// The clusters of a scenario at its start, from which any number of runs can begin.
#[derive(Debug, Clone)]
pub struct Prepared(Vec<Snapshot>);

impl Prepared {
    /// Makes all that is there at the start. Call it inside a tokio runtime.
    pub async fn new(scenario: &Scenario, wiring: &Wiring) -> Result<Self, Unplayable> {
        let name = || scenario.name.clone();
        let start = |error| Unplayable::Start(name(), error);
        let setup = assemble(scenario, wiring)?;
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(scenario.start));
        let mut snapshots = Vec::new();
        for (n, cluster_name) in scenario.clusters.iter().enumerate() {
            let seed = SEED.wrapping_add(n as u64);
            let (config, _) = config(cluster_name, seed, clock.clone());
            let cluster = config.build();
            let user = User::new(&cluster, ADMIN, clock.clone());
            prepare(&user, scenario, wiring).await.map_err(start)?;
            let client = Client::new(cluster.service(ADMIN).with_agent("actors"), "default");
            let script = scenario.script.clone();
            let actors = Actors::new(client, clock.clone(), script, seed);
            let nodes = actors.provision().await;
            nodes.map_err(|error| Unplayable::Nodes(name(), error))?;
            if n == 0 {
                grant(&user, &setup).await.map_err(start)?;
                for manifest in scenario.manifests().iter().chain(&setup.registrations) {
                    user.apply(manifest).await.map_err(start)?;
                }
            }
            snapshots.push(cluster.snapshot());
        }
        Ok(Self(snapshots))
    }
}

/// Where the ids of what is there at the start come from.
const SEED: u64 = 0x0511_9aa7;

/// The operator as the scenario wants it.
fn assemble(scenario: &Scenario, wiring: &Wiring) -> Result<Setup, Unplayable> {
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
    let setup = assemble(scenario, wiring)?;
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(scenario.start));
    let began = tokio::time::Instant::now();
    let mut tasks = JoinSet::new();
    let mut clusters = Vec::new();
    let mut people = Vec::new();
    let mut services = Vec::new();
    let names = scenario.clusters.iter().zip(&prepared.0);
    for (n, (name, snapshot)) in names.enumerate() {
        let seed = trial.seed.wrapping_add(1_000_003 * n as u64);
        let (config, dialled) = config(name, seed, clock.clone());
        services.push(dialled);
        let cluster = config.beginning_with(snapshot).build();
        people.push(User::new(&cluster, ADMIN, clock.clone()));
        clusters.push(cluster);
    }
    let Some(home) = clusters.first().cloned() else {
        let problem = "there are no clusters".to_owned();
        return Err(Unplayable::Settings(scenario.name.clone(), problem));
    };
    let recorder = Recorder::new(home.clone(), clock.clone());
    recorder.mark(Event::User("everything is set up".to_owned()));
    tasks.spawn(recorder.clone().follow());
    let mut looking_after = JoinSet::new();
    for cluster in &clusters {
        controllers(&mut looking_after, cluster, scenario, &clock, trial.seed);
    }
    let adversary = Adversary::new(trial.injections.clone(), trial.seed);
    let adversary = Arc::new(Mutex::new(adversary));
    let weather = Arc::new(Weather::new(began, trial.spells.clone()));
    let crew = Arc::new(Crew {
        weather: weather.clone(),
        cluster: home,
        clock: clock.clone(),
        recorder: recorder.clone(),
        adversary: adversary.clone(),
        settings: setup.settings,
        capabilities: setup.capabilities,
        tamper: setup.tamper,
        feign: setup.feign,
        probe: setup.probe,
        seed: trial.seed,
        berths: Mutex::default(),
        hooks: setup.hooks,
        pods: Arc::new(Pods {
            script: scenario.script.clone(),
            start: scenario.start,
            clock: clock.clone(),
            recorder: recorder.clone(),
            prepared: Mutex::default(),
        }),
        turns: AtomicUsize::new(0),
    });
    if let Some(services) = services.first() {
        services.register("https://", door(&crew));
    }
    Ok(Stage {
        scenario: scenario.clone(),
        clock,
        clusters,
        people,
        recorder,
        adversary,
        storm: trial.storm.then(|| Storm::of(scenario, trial.seed)),
        crew,
        tasks,
        controllers: looking_after,
        spells: trial.spells.clone(),
        kept: BTreeMap::new(),
        weather,
        definitions: wiring.definitions.clone(),
        seed: trial.seed,
        began,
    })
}

/// Starts whoever looks after workloads.
pub(super) fn controllers(
    tasks: &mut JoinSet<()>,
    cluster: &Arc<Cluster>,
    scenario: &Scenario,
    clock: &Arc<dyn Clock>,
    seed: u64,
) {
    tasks.spawn(collect::run(cluster.clone()));
    let client = Client::new(cluster.service(ADMIN).with_agent("actors"), "default");
    match scenario.controllers {
        Controllers::Full => {
            let script = scenario.script.clone();
            tasks.spawn(Actors::new(client, clock.clone(), script, seed).run());
        }
        Controllers::Quick => {
            let takes = scenario.script.start.try_into().unwrap_or_default();
            tasks.spawn(Rollouts::new(cluster.clone(), client, clock.clone(), takes).run());
        }
    }
}

/// A cluster, and whom it calls.
fn config(name: &str, seed: u64, clock: Arc<dyn Clock>) -> (Config, Arc<InProcess>) {
    let services = Arc::new(InProcess::default());
    let config = Config::seeded(name, seed, services.clone())
        .with_clock(clock)
        .with_admin(ADMIN)
        .with_token(TOKEN, Account::service_account(NAMESPACE, ACCOUNT, "0"));
    (config, services)
}

/// What was there before our definitions, and these.
async fn prepare(user: &User, scenario: &Scenario, wiring: &Wiring) -> Result<(), Undone> {
    for manifest in scenario.before.iter().chain(wiring.definitions.iter()) {
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

fn grantee<'a>(setup: &'a Setup, role: &'a str) -> Grantee<'a> {
    Grantee {
        role,
        namespace: NAMESPACE,
        account: ACCOUNT,
        watched: &setup.settings.namespaces,
    }
}

/// Exactly the rights that the capabilities and the runtime ask for.
async fn grant(user: &User, setup: &Setup) -> Result<(), Undone> {
    let role = role(setup);
    let to = grantee(setup, &role);
    for manifest in roles(&setup.permissions, &to) {
        user.apply(&manifest).await?;
    }
    Ok(())
}

/// All rights that the operator has in simulations, as an audit names them.
pub fn rights(setup: &Setup) -> BTreeSet<Right> {
    let name = role(setup);
    let to = grantee(setup, &name);
    let mut all = BTreeSet::new();
    for manifest in roles(&setup.permissions, &to) {
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
