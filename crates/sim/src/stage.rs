//! Where a scenario is played: clusters with their controllers, replicas of the operator, people.
//!
//! A stage lives inside a tokio runtime, in virtual or in real time. [`crate::runner`] plays it in virtual time.

mod connect;
mod door;
mod ordeal;
mod pods;
mod process;
mod setup;
mod water;
mod world;
mod yard;

pub use setup::{
    ADMIN, Feign, NAMESPACE, Prepared, Probe, Right, Setup, TOKEN, Tamper, Unplayable, Wiring,
    rights,
};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use slipway_api::names::CONFIRM_CLUSTER;
use slipway_apiserver::authorize::Denied;
use slipway_apiserver::cluster::Cluster;
use slipway_apiserver::environment::Clock;
use slipway_kernel::identity::ClusterId;
use slipway_runtime::View;
use tokio::task::JoinSet;

use crate::fault::{Adversary, Rates};
use crate::history::{Event, Recorder};
use crate::runner::Outcome;
use crate::scenario::{Confirmation, Deed, Marks, Scenario};
use crate::trial::{Blow, Storm, Trial};
use crate::user::Undone;
use crate::wire::Weather;
use ordeal::{Kept, Turn};
use process::Crew;
use water::Water;

/// How often people try what a webhook refuses, and how long they wait in between.
const MAX_TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_secs(5);

/// Which rights were used, and which were missing.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Roles with the numbers of their rules and the verbs that were allowed by them.
    pub used: BTreeSet<(String, usize, String)>,
    /// What was refused for want of a right.
    pub denied: Vec<Denied>,
}

/// A scenario in progress.
pub struct Stage {
    scenario: Scenario,
    clock: Arc<dyn Clock>,
    /// All that have been there; first those of the start, home before all.
    clusters: Vec<Arc<Cluster>>,
    /// What is behind each name; home is the first.
    waters: Vec<Water>,
    recorder: Recorder,
    adversary: Arc<Mutex<Adversary>>,
    storm: Option<Storm>,
    /// Whether somebody looks when replicas are ready.
    is_watched: bool,
    crew: Arc<Crew>,
    /// Operators that run in other clusters, and when they start.
    within: Vec<(Duration, Arc<Crew>)>,
    tasks: JoinSet<()>,
    /// Who looks after workloads, in each cluster.
    controllers: BTreeMap<ClusterId, JoinSet<()>>,
    kept: BTreeMap<usize, Kept>,
    weather: Arc<Weather>,
    definitions: Arc<Vec<serde_json::Value>>,
    seed: u64,
    began: tokio::time::Instant,
}

/// What happens at a moment of the scenario.
enum Cue {
    Action(usize),
    Blow(u32, Blow),
    Rates(Rates),
    Spell(usize, Turn),
    Operator,
    /// An operator of another cluster starts, by its number.
    Within(usize),
}

impl Stage {
    /// Sets everything up: clusters, definitions, roles, controllers, the objects of the start. The operator comes when
    /// the scenario says so.
    pub async fn open(
        scenario: &Scenario,
        wiring: &Wiring,
        trial: &Trial,
    ) -> Result<Self, Unplayable> {
        let prepared = Prepared::new(scenario, wiring).await?;
        setup::begin(scenario, wiring, &prepared, trial)
    }

    /// The same from what was set up before.
    pub fn begin(
        scenario: &Scenario,
        wiring: &Wiring,
        prepared: &Prepared,
        trial: &Trial,
    ) -> Result<Self, Unplayable> {
        setup::begin(scenario, wiring, prepared, trial)
    }

    /// Home and the other clusters, in the scenario's order, and after these whoever took the place of one.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }

    /// The time on this stage.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Windows into the running replicas.
    pub fn views(&self) -> Vec<View> {
        self.crew.views()
    }

    /// Everything that was written down so far.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Plays to the end of the scenario.
    pub async fn play(&mut self) {
        for (at, cue) in self.cues() {
            tokio::time::sleep_until(self.began + at).await;
            self.act(&cue).await;
        }
        tokio::time::sleep_until(self.began + self.scenario.duration).await;
    }

    /// Ends everything.
    pub fn close(mut self) -> Outcome {
        self.recorder.catch_up();
        let hash = self
            .clusters
            .iter()
            .map(|cluster| cluster.trace().hash())
            .collect();
        let audit = self.audit();
        let history = self.recorder.close();
        self.tasks.abort_all();
        let (_, events) = self
            .adversary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .counts();
        Outcome {
            history,
            events,
            hash,
            audit,
        }
    }

    fn audit(&self) -> Audit {
        let mut all = Audit::default();
        for cluster in &self.clusters {
            let record = cluster.audit();
            let ours = |role: &str| role.contains(setup::ROLE);
            let allowed = record.allowed();
            let used = allowed.iter().filter(|(rule, _)| ours(&rule.role));
            for (rule, uses) in used {
                let verbs = uses.keys().map(|what| what.verb.clone());
                all.used
                    .extend(verbs.map(|verb| (rule.role.clone(), rule.index, verb)));
            }
            let denied = record.denied().into_iter();
            all.denied
                .extend(denied.filter(|denied| setup::accounts().contains(&denied.user)));
        }
        all
    }

    /// All that happens, in order. What people do comes before what goes wrong.
    fn cues(&self) -> Vec<(Duration, Cue)> {
        let mut cues: Vec<(Duration, Cue)> = Vec::new();
        for (n, spell) in self.weather.spells().iter().enumerate() {
            let turns = ordeal::turns(spell).into_iter();
            cues.extend(turns.map(|(at, turn)| (at, Cue::Spell(n, turn))));
        }
        cues.push((self.scenario.operator_starts, Cue::Operator));
        let within = self.within.iter().enumerate();
        cues.extend(within.map(|(n, (at, _))| (*at, Cue::Within(n))));
        let actions = self.scenario.actions.iter().enumerate();
        cues.extend(actions.map(|(n, action)| (action.at, Cue::Action(n))));
        for window in &self.scenario.faults {
            cues.push((window.from, Cue::Rates(window.rates)));
            cues.push((window.to, Cue::Rates(Rates::default())));
        }
        if let Some(storm) = &self.storm {
            cues.push((storm.from, Cue::Rates(storm.rates)));
            cues.push((storm.to, Cue::Rates(Rates::default())));
            let blows = storm.blows.iter();
            cues.extend(blows.map(|(at, replica, blow)| (*at, Cue::Blow(*replica, *blow))));
        }
        cues.sort_by_key(|(at, _)| *at);
        cues
    }

    async fn act(&mut self, cue: &Cue) {
        match cue {
            Cue::Operator => {
                for index in 0..self.scenario.replicas {
                    self.tasks.spawn(self.crew.clone().keep_alive(index));
                }
                if self.is_watched {
                    self.tasks.spawn(self.crew.clone().watch_readiness());
                }
            }
            Cue::Within(n) => {
                if let Some((_, crew)) = self.within.get(*n) {
                    self.tasks.spawn(crew.clone().keep_alive(0));
                }
            }
            Cue::Rates(rates) => {
                if *rates == Rates::default() {
                    self.recorder.disturbed_for(Duration::ZERO);
                }
                self.adversary
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .set_rates(*rates);
            }
            Cue::Blow(replica, blow) => self.strike(*replica, *blow, true),
            Cue::Spell(number, turn) => self.turn(*number, *turn).await,
            Cue::Action(n) => {
                if let Some(action) = self.scenario.actions.get(*n).cloned() {
                    self.carry_out(&action).await;
                }
            }
        }
    }

    async fn carry_out(&self, action: &crate::scenario::Action) {
        if let Some(note) = &action.note {
            self.recorder.mark(Event::User(note.clone()));
        }
        let Ok(deed) = action.deed() else {
            return;
        };
        match deed {
            Deed::Crash(replica) => return self.strike(replica, Blow::Crash, false),
            Deed::Pause(stop) => return self.strike(stop.replica, Blow::Pause(stop.time), false),
            Deed::Partition(stop) => {
                return self.strike(stop.replica, Blow::CutOff(stop.time), false);
            }
            Deed::Skew(skew) => return self.strike(skew.replica, Blow::Skew(skew.by), false),
            _ => {}
        }
        let marks;
        let deed = match deed {
            Deed::Confirm(confirmation) => {
                marks = self.confirmation(confirmation);
                Deed::Annotate(&marks)
            }
            deed => deed,
        };
        let at = self.scenario.place(action.cluster.as_deref());
        let Some(water) = at.and_then(|at| self.waters.get(at)) else {
            return;
        };
        let user = water.user.trying(action.dry_run);
        let mut came = user.carry_out(deed).await;
        for _ in 0..MAX_TRIES {
            // People try again what is refused because a webhook could not be asked, or knew too little.
            let again = action.refused.is_none() && came.as_ref().is_err_and(Undone::is_refused);
            if !again {
                break;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
            came = user.carry_out(deed).await;
        }
        let depends = action.evict.is_some();
        let event = match (came, &action.refused) {
            (Ok(done), None) if done.is_empty() => return,
            (Ok(done), None) => Event::User(done),
            (Ok(done), Some(text)) => Event::Otherwise(format!("{done}: not refused: {text}")),
            (Err(error), Some(text)) if error.to_string().contains(text.as_str()) => {
                Event::User(format!("is refused: {error}"))
            }
            (Err(error), _) if error.is_refused() || depends => Event::Otherwise(error.to_string()),
            (Err(error), _) => Event::Failed(error.to_string()),
        };
        self.recorder.mark(event);
    }

    /// What a person writes to say that the cluster that has a name now is the one that is meant.
    fn confirmation(&self, confirmation: &Confirmation) -> Marks {
        let at = self.scenario.place(Some(&confirmation.member));
        let water = at.and_then(|at| self.waters.get(at));
        let system = ("/namespaces".into(), "".into(), "kube-system".into());
        let system = water.and_then(|water| water.recorder().latest(&system));
        let uid = system.and_then(|image| image.text("/metadata/uid").map(str::to_owned));
        Marks {
            object: confirmation.object.clone(),
            set: BTreeMap::from([(CONFIRM_CLUSTER.to_owned(), uid)]),
        }
    }

    /// Something happens to a replica; `fault` says that it is none of the scenario's own doing.
    fn strike(&self, replica: u32, blow: Blow, fault: bool) {
        let lasts = match blow {
            Blow::Pause(time) | Blow::CutOff(time) => time,
            Blow::Crash | Blow::Skew(_) => Duration::ZERO,
        };
        if fault {
            self.recorder.disturbed_for(lasts);
        }
        self.crew.strike(replica, blow);
    }
}
