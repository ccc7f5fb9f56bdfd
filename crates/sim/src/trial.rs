//! One run of a scenario: which seed, which faults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use slipway_apiserver::environment::{Entropy, SeededEntropy};

use crate::fault::{Injection, Rates};
use crate::scenario::{Cluster, Scenario};
use crate::spell::{Disturbance, Spell};

/// What distinguishes one run of a scenario from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Where everything that is drawn comes from.
    pub seed: u64,
    /// Faults at places.
    pub injections: Vec<Injection>,
    /// What goes wrong for a time.
    pub spells: Vec<Spell>,
    /// Whether faults are drawn as well.
    pub storm: bool,
}

impl Trial {
    /// The seed of all runs that are not about seeds.
    pub const SEED: u64 = 1;

    /// Nothing goes wrong.
    pub fn calm() -> Self {
        Self {
            seed: Self::SEED,
            injections: Vec::new(),
            spells: Vec::new(),
            storm: false,
        }
    }

    /// One thing goes wrong.
    pub fn with(injection: Injection) -> Self {
        Self {
            injections: vec![injection],
            ..Self::calm()
        }
    }

    /// These things go wrong for a time.
    pub fn under(spells: Vec<Spell>) -> Self {
        Self {
            spells,
            ..Self::calm()
        }
    }

    /// Whatever the seed brings goes wrong.
    pub fn storm(seed: u64) -> Self {
        Self {
            seed,
            injections: Vec::new(),
            spells: Vec::new(),
            storm: true,
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spells = self.spells.iter().map(ToString::to_string);
        let faults = self.injections.iter().map(ToString::to_string);
        let faults: Vec<String> = faults.chain(spells).collect();
        match (self.storm, faults.is_empty()) {
            (true, _) => write!(f, "seed={}", self.seed),
            (false, true) => f.write_str("calm"),
            (false, false) => write!(f, "fault={}", faults.join(",")),
        }
    }
}

/// Why a text tells no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} tells no run; write `calm`, `seed=7`, `fault=request:17:crash-after` or `fault=outage@30s+10s`"
)]
pub struct NoTrial(String);

impl FromStr for Trial {
    type Err = NoTrial;

    fn from_str(text: &str) -> Result<Self, NoTrial> {
        let wrong = || NoTrial(text.to_owned());
        if text == "calm" {
            return Ok(Self::calm());
        }
        match text.split_once('=').ok_or_else(wrong)? {
            ("seed", seed) => seed.parse().map(Self::storm).map_err(|_| wrong()),
            ("fault", faults) => {
                let mut trial = Self::calm();
                for fault in faults.split(',') {
                    if fault.contains('@') {
                        trial.spells.push(fault.parse().map_err(|_| wrong())?);
                    } else {
                        trial.injections.push(fault.parse().map_err(|_| wrong())?);
                    }
                }
                Ok(trial)
            }
            _ => Err(wrong()),
        }
    }
}

/// What happens to a replica in a storm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// It dies.
    Crash,
    /// It stands still.
    Pause(Duration),
    /// It is cut off.
    CutOff(Duration),
    /// It goes on in a new process whose clock is off by these seconds.
    Skew(i64),
}

/// What a seed brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storm {
    /// How often what goes wrong.
    pub rates: Rates,
    /// From when.
    pub from: Duration,
    /// Until when.
    pub to: Duration,
    /// What happens to which replica when.
    pub blows: Vec<(Duration, u32, Blow)>,
    /// What happens to clusters besides home.
    pub spells: Vec<Spell>,
}

/// How far a storm sets clocks off, in seconds.
const MAX_SKEW: u64 = 30;

impl Storm {
    /// The storm of a seed: over before two thirds of the scenario are. A definition that goes missing is one of these `kinds`.
    pub fn of(scenario: &Scenario, seed: u64, kinds: &[String]) -> Self {
        let dice = SeededEntropy::new(seed ^ 0x0057_0412);
        let below = |most: u64| u64::try_from(dice.draw() % u128::from(most.max(1))).unwrap_or(0);
        let millis = u64::try_from(scenario.duration.as_millis()).unwrap_or(u64::MAX);
        let latest = millis / 3 * 2;
        let from = below(latest / 2);
        let to = from + below(latest - from);
        let mut storm = Self {
            rates: rates(&below),
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            blows: Vec::new(),
            spells: Vec::new(),
        };
        for _ in 0..below(4) {
            let at = Duration::from_millis(from + below(latest - from));
            let replica = u32::try_from(below(u64::from(scenario.replicas))).unwrap_or_default();
            let seconds = Duration::from_secs(1 + below(90));
            let blow = match below(6) {
                0 | 1 => Blow::Crash,
                2 | 3 => Blow::Pause(seconds),
                4 => Blow::CutOff(seconds),
                _ => {
                    let off = i64::try_from(below(2 * MAX_SKEW)).unwrap_or_default();
                    Blow::Skew(off - i64::try_from(MAX_SKEW).unwrap_or_default())
                }
            };
            storm.blows.push((at, replica, blow));
        }
        storm.blows.sort_by_key(|(at, _, _)| *at);
        // Drawn last, so that a scenario without other clusters has the storms that it always had.
        if !scenario.clusters.is_empty() {
            storm.spells = squalls(scenario, (from, latest), kinds, &below);
        }
        storm
    }
}

/// What befalls clusters besides home, between these two moments in milliseconds.
fn squalls(
    scenario: &Scenario,
    (from, latest): (u64, u64),
    kinds: &[String],
    below: &dyn Fn(u64) -> u64,
) -> Vec<Spell> {
    let (mut all, mut is_other) = (Vec::new(), false);
    for _ in 0..below(4) {
        let n = below(scenario.clusters.len() as u64);
        let cluster = usize::try_from(n)
            .ok()
            .and_then(|n| scenario.clusters.get(n));
        let Some(cluster) = cluster else { continue };
        let disturbance = befalls(kinds, cluster, &mut is_other, below);
        let at = from + below(latest.saturating_sub(from));
        let mut lasts = below(latest.saturating_sub(at)).min(120_000);
        if disturbance == Disturbance::Restore {
            // It is put back to a time that there was.
            lasts = lasts.min(at);
        }
        let (at, lasts) = (Duration::from_millis(at), Duration::from_millis(lasts));
        all.push(Spell::new(disturbance, at, lasts).within(&cluster.name));
    }
    all
}

/// What befalls one of them. What makes another cluster of it comes once in a storm: two of these would undo each other.
fn befalls(
    kinds: &[String],
    cluster: &Cluster,
    is_other: &mut bool,
    below: &dyn Fn(u64) -> u64,
) -> Disturbance {
    let kind = below(kinds.len() as u64);
    let kind = usize::try_from(kind).ok().and_then(|n| kinds.get(n));
    let kind = kind.filter(|_| cluster.definitions);
    let drawn = below(9);
    if drawn >= 6 && std::mem::replace(is_other, true) {
        return Disturbance::Outage;
    }
    match (drawn, kind) {
        (0, _) => Disturbance::Outage,
        (1, _) => Disturbance::BlackHole,
        (2, _) => Disturbance::AnswersLost,
        (3, _) => Disturbance::RequestsLost,
        (4, _) => Disturbance::Slow(1 + below(15)),
        (5, _) => Disturbance::Revoked,
        (6, _) => Disturbance::Replaced,
        (7, Some(kind)) => Disturbance::Undefined(kind.clone()),
        _ => Disturbance::Restore,
    }
}

/// Rates of up to 30 % in all, spread over some of the kinds.
fn rates(below: &dyn Fn(u64) -> u64) -> Rates {
    let most = below(300);
    let kinds = 1 + below(6);
    let each = u16::try_from(most / kinds).unwrap_or_default();
    let mut rates = Rates::default();
    for _ in 0..kinds {
        match below(14) {
            0 => rates.crash += each / 4,
            1 => rates.lost += each,
            2 => rates.unreachable += each,
            3 => rates.conflict += each,
            4 => rates.throttled += each,
            5 => rates.error += each,
            6 => rates.timeout += each,
            7 => rates.forbidden += each,
            8 => rates.slow += each / 4,
            9 => rates.drop += each,
            10 => rates.duplicate += each,
            11 => rates.delay += each,
            12 => rates.close += each,
            _ => rates.gone += each,
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_can_be_told_and_read() {
        let with = |text: &str| Trial::with(text.parse().unwrap());
        for trial in [
            Trial::calm(),
            Trial::storm(77),
            with("request:3:lost"),
            with("event:0:gone"),
            Trial::under(vec!["outage@1s+2s".parse().unwrap()]),
            "fault=request:3:lost,outage/1@1s+2s".parse().unwrap(),
        ] {
            assert_eq!(trial.to_string().parse(), Ok(trial));
        }
        assert!("fault=request:3".parse::<Trial>().is_err());
    }

    #[test]
    fn whatever_can_befall_a_cluster_is_drawn() {
        let scenario =
            "{about: A., name: a, duration: 10m, settings: {}, clusters: [{name: east}]}";
        let scenario = Scenario::read("a", scenario).unwrap();
        let kinds = ["widgets.toy.dev".to_owned()];
        let storms = (0..500).map(|seed| Storm::of(&scenario, seed, &kinds));
        let mut drawn: Vec<String> = Vec::new();
        for spell in storms.flat_map(|storm| storm.spells) {
            assert_eq!(spell.cluster.as_deref(), Some("east"));
            let name = spell.disturbance.to_string();
            drawn.push(name.split(':').next().unwrap_or_default().to_owned());
        }
        drawn.sort();
        drawn.dedup();
        let all = [
            "answers-lost",
            "black-hole",
            "outage",
            "replaced",
            "requests-lost",
            "restore",
            "revoked",
            "slow",
            "undefined",
        ];
        assert_eq!(drawn, all);
    }
}
