//! Breaks scenarios in every way there is, and sees whether what must hold still does.
//!
//! First each scenario without faults, twice: the reference, and the proof that a run is a function of its seed. Then
//! every fault at every place, for scenarios that are small enough; of the others a sample. Then seeds. Each run is
//! single-threaded; many runs go on at once.

mod pool;
mod positions;
mod report;
mod spells;

pub use report::{Failure, Report, Score};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use positions::Class;

use crate::fault::{EVENT_FAULTS, Injection, REQUEST_FAULTS, RequestFault};
use crate::oracles::Verdict;
use crate::runner::{self, Outcome};
use crate::scenario::Scenario;
use crate::stage::{Prepared, Unplayable, Wiring};
use crate::trial::Trial;

/// How far to go.
#[derive(Debug, Clone)]
pub struct Effort {
    /// Scenarios with at most so many requests of the operator are broken at every one of them.
    pub positions: usize,
    /// And at so many events, evenly.
    pub events: usize,
    /// Of others at so many.
    pub sample: usize,
    /// Spells begin with the operator, and at so many moments when it writes.
    pub moments: usize,
    /// Whether single faults are tried at all.
    pub exhaustive: bool,
    /// Whether it is far enough for every right to be needed once.
    pub is_whole: bool,
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// How many runs at once.
    pub threads: usize,
    /// After so many failures it is enough.
    pub most_failures: usize,
}

impl Default for Effort {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            positions: 10,
            events: 5,
            sample: 4,
            moments: 2,
            exhaustive: true,
            is_whole: true,
            first_seed: 1,
            seeds: 100,
            threads,
            most_failures: 5,
        }
    }
}

impl Effort {
    /// What people wait for at their desk: all scenarios, broken here and there. The gate goes the whole way.
    pub fn brief() -> Self {
        Self {
            positions: 0,
            events: 1,
            sample: 1,
            moments: 0,
            seeds: 25,
            is_whole: false,
            ..Self::default()
        }
    }
}

/// A scenario with its run without faults.
pub struct Known {
    /// The scenario.
    pub scenario: Scenario,
    /// Its start.
    pub prepared: Prepared,
    /// What comes of it when nothing goes wrong.
    pub reference: Outcome,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    Request,
    Event,
    Standstill,
    Spell(&'static str),
    Seed,
}

/// A run that is to be made.
struct Job {
    known: Arc<Known>,
    trial: Trial,
    aim: Aim,
    /// How many runs it stands for: with itself, those that cannot differ from it.
    stands_for: u64,
}

/// Plays scenarios without faults, twice each.
pub fn references(
    scenarios: &[Scenario],
    wiring: &Wiring,
    report: &mut Report,
) -> Result<Vec<Arc<Known>>, Unplayable> {
    let mut all = Vec::new();
    for scenario in scenarios {
        let prepared = runner::prepare(scenario, wiring)?;
        let calm = Trial::calm();
        let reference = runner::play(scenario, wiring, &prepared, &calm)?;
        let verdicts = wiring.oracles.judge(scenario, &reference.history, None);
        let again = runner::play(scenario, wiring, &prepared, &calm)?;
        report.scenarios += 1;
        report.take(scenario, &Trial::calm(), &reference, verdicts);
        report.same_seed(scenario, &reference, &again);
        all.push(Arc::new(Known {
            scenario: scenario.clone(),
            prepared,
            reference,
        }));
    }
    Ok(all)
}

/// Breaks all of them; what is found is added to the report.
pub fn explore(
    known: &[Arc<Known>],
    wiring: &Wiring,
    effort: &Effort,
    report: Report,
) -> Result<Report, Unplayable> {
    let mut jobs = Vec::new();
    if effort.exhaustive {
        for known in known {
            jobs.extend(singles(known, effort));
            jobs.extend(under_spells(known, effort));
        }
    }
    let draw = Draw::new(known);
    for seed in effort.first_seed..effort.first_seed + effort.seeds {
        if let Some(known) = draw.of(seed) {
            jobs.push(Job {
                known: known.clone(),
                trial: Trial::storm(seed),
                aim: Aim::Seed,
                stands_for: 1,
            });
        }
    }
    pool::work(&jobs, wiring, effort, report)
}

/// Which scenario a seed is for: small ones more often, so that each scenario gets about as much time.
struct Draw<'a> {
    /// Each with the upper end of its share.
    shares: Vec<(u64, &'a Arc<Known>)>,
    total: u64,
}

impl<'a> Draw<'a> {
    fn new(known: &'a [Arc<Known>]) -> Self {
        let mut total = 0;
        let mut shares = Vec::new();
        for known in known {
            let size = positions::size(&known.reference.history) as u64 + known.reference.events;
            total += 1_000_000 / size.max(1);
            shares.push((total, known));
        }
        Self { shares, total }
    }

    fn of(&self, seed: u64) -> Option<&'a Arc<Known>> {
        // An odd factor spreads neighbours; it is no secret.
        let at = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.total.max(1);
        let share = self.shares.iter().find(|(end, _)| at < *end);
        share.map(|(_, known)| *known)
    }
}

/// One thing goes wrong, at every place. Of runs that cannot differ one is made.
fn singles(known: &Arc<Known>, effort: &Effort) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    let history = &known.reference.history;
    let mut add = |injection, aim| {
        let class = Class::of(history, injection);
        if let Some(job) = classes.get(&class).and_then(|at| jobs.get_mut(*at)) {
            job.stands_for += 1;
            return;
        }
        classes.insert(class, jobs.len());
        jobs.push(Job {
            known: known.clone(),
            trial: Trial::with(injection),
            aim,
            stands_for: 1,
        });
    };
    let small = positions::size(history) <= effort.positions;
    let most = if small { usize::MAX } else { effort.sample };
    for at in positions::requests(history, most) {
        for fault in REQUEST_FAULTS {
            add(Injection::Request(at, fault), Aim::Request);
        }
        if known.scenario.replicas > 1 {
            let standstill = Injection::Request(at, RequestFault::Standstill);
            add(standstill, Aim::Standstill);
        }
    }
    let events = if small {
        effort.events
    } else {
        effort.sample * 2
    };
    for at in positions::spread(known.reference.events, events) {
        for fault in EVENT_FAULTS {
            add(Injection::Event(at, fault), Aim::Event);
        }
    }
    jobs
}

/// Something goes wrong for a time.
fn under_spells(known: &Arc<Known>, effort: &Effort) -> Vec<Job> {
    let all = spells::of(known, effort.moments).into_iter();
    all.map(|(class, spells)| Job {
        known: known.clone(),
        trial: Trial::under(spells),
        aim: Aim::Spell(class),
        stands_for: 1,
    })
    .collect()
}

/// Plays one run and asks the oracles, also whether it ended as the reference.
pub fn examine(
    known: &Known,
    wiring: &Wiring,
    trial: &Trial,
) -> Result<(Outcome, Vec<Verdict>), Unplayable> {
    let outcome = runner::play(&known.scenario, wiring, &known.prepared, trial)?;
    let reference = Some(&known.reference.history);
    let verdicts = wiring
        .oracles
        .judge(&known.scenario, &outcome.history, reference);
    Ok((outcome, verdicts))
}

/// What came of a hunt.
#[derive(Debug, Default)]
pub struct Hunt {
    /// How many runs it took.
    pub runs: usize,
    /// The run in which an oracle objected that is meant to, and none does without the mutant.
    pub caught: Option<Failure>,
    /// Oracles that objected on the way to it, and are not meant to.
    pub others: BTreeSet<&'static str>,
    /// Runs on the way to it in which an oracle objects to the sound operator as well.
    pub unsound: Vec<Failure>,
}

/// Looks for a run in which one of the oracles `by` objects to the `bent` operator, and none at all to the `sound` one: the one
/// that is `kept` from earlier, then those without faults, then with single ones, at most `most` in all.
pub fn hunt(
    known: &[Arc<Known>],
    (sound, bent): (&Wiring, &Wiring),
    by: &[&str],
    kept: Option<(&Arc<Known>, Trial)>,
    most: usize,
) -> Result<Hunt, Unplayable> {
    let mut hunt = Hunt::default();
    let calm = known.iter().map(|known| (known, Trial::calm()));
    let first = kept.into_iter();
    let mut singles: Vec<(&Arc<Known>, Trial)> = Vec::new();
    for known in known {
        let effort = Effort {
            positions: 60,
            sample: 120,
            events: usize::MAX,
            moments: 3,
            ..Effort::default()
        };
        let of_one = self::singles(known, &effort).into_iter();
        let of_one = under_spells(known, &effort).into_iter().chain(of_one);
        singles.extend(of_one.map(|job| (known, job.trial)));
    }
    // Not in order: neighbours are alike.
    let stride = (singles.len() / 2 + 1) | 1;
    let mut order: Vec<usize> = (0..singles.len()).collect();
    order.sort_by_key(|n| (n * stride * 7919) % singles.len().max(1));
    let scattered = order.into_iter().filter_map(|n| singles.get(n).cloned());
    for (known, trial) in first.chain(calm).chain(scattered).take(most) {
        hunt.runs += 1;
        let Some(failure) = failure_of(known, bent, &trial)? else {
            continue;
        };
        let is_meant = |(id, _): &(&str, _)| by.contains(id);
        if !failure.violations.iter().any(is_meant) {
            hunt.others
                .extend(failure.violations.iter().map(|(id, _)| *id));
            continue;
        }
        let Some(unsound) = failure_of(known, sound, &trial)? else {
            hunt.caught = Some(failure);
            break;
        };
        hunt.unsound.push(unsound);
    }
    Ok(hunt)
}

fn failure_of(
    known: &Known,
    wiring: &Wiring,
    trial: &Trial,
) -> Result<Option<Failure>, Unplayable> {
    let (outcome, verdicts) = examine(known, wiring, trial)?;
    Ok(Failure::of(&known.scenario, trial, &outcome, &verdicts))
}
