//! Where operators are made: the one that runs at home, and those that run in other clusters.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use slipway_apiserver::environment::Clock;

use super::pods::Pods;
use super::process::Crew;
use super::setup::{Setup, TOKEN, Unplayable, Wiring, assemble, assemble_within};
use super::water::{self, Water};
use super::world::World;
use crate::fault::Adversary;
use crate::history::WITHIN;
use crate::scenario::Scenario;
use crate::wire::Weather;

/// What the replicas at home are called, and a number.
const HOME: &str = "slipway";

/// What all operators of a run have in common.
pub(super) struct Yard<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) wiring: &'a Wiring,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) adversary: &'a Arc<Mutex<Adversary>>,
    pub(super) weather: &'a Arc<Weather>,
    pub(super) seed: u64,
}

/// Whom an operator is.
struct Called {
    name: String,
    token: String,
    off: i64,
    seed: u64,
}

impl Yard<'_> {
    /// The operator at home, which can reach all clusters.
    pub(super) fn home(&self, waters: (&Water, &[Water])) -> Result<Arc<Crew>, Unplayable> {
        let setup = assemble(self.scenario, self.wiring)?;
        let called = Called {
            name: HOME.to_owned(),
            token: TOKEN.to_owned(),
            off: 0,
            seed: self.seed,
        };
        let (home, others) = waters;
        Ok(self.crew(setup, home, others, called))
    }

    /// The operators of other clusters, and when each starts. None of them can reach any other cluster.
    pub(super) fn within(
        &self,
        others: &[Water],
    ) -> Result<Vec<(Duration, Arc<Crew>)>, Unplayable> {
        let mut all = Vec::new();
        let members = others.iter().zip(&self.scenario.clusters);
        for (n, (water, member)) in members.enumerate() {
            let Some(within) = &member.operator else {
                continue;
            };
            let setup = assemble_within(self.scenario, within, self.wiring)?;
            let called = Called {
                name: format!("{WITHIN}{}", member.name),
                token: water::inner_token(&member.name),
                off: member.clock,
                seed: self.seed ^ (0x51ed_270b * (n as u64 + 1)),
            };
            let crew = self.crew(setup, water, &[], called);
            all.push((within.starts, crew));
        }
        Ok(all)
    }

    /// An operator that runs in one cluster, and can reach others.
    fn crew(&self, setup: Setup, own: &Water, others: &[Water], called: Called) -> Arc<Crew> {
        let recorder = own.recorder();
        let all = std::iter::once(own).chain(others);
        let addresses = all.map(|water| water.address.clone());
        Arc::new(Crew {
            name: called.name,
            token: called.token,
            off: called.off,
            weather: self.weather.clone(),
            addresses: addresses.collect(),
            clock: self.clock.clone(),
            recorder: recorder.clone(),
            adversary: self.adversary.clone(),
            settings: setup.settings,
            capabilities: setup.capabilities,
            tamper: setup.tamper,
            feign: setup.feign,
            probe: setup.probe,
            is_narrow: setup.is_narrow,
            seed: called.seed,
            berths: Mutex::default(),
            hooks: setup.hooks,
            pods: Arc::new(Pods {
                script: self.scenario.script.clone(),
                start: self.scenario.start,
                clock: self.clock.clone(),
                recorder: recorder.clone(),
                prepared: Mutex::default(),
            }),
            world: Arc::new(World {
                peers: self.scenario.world.clone(),
                start: self.scenario.start,
                clock: self.clock.clone(),
                recorder: recorder.clone(),
            }),
            turns: AtomicUsize::new(0),
        })
    }
}
