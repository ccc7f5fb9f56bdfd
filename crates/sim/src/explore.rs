//! Breaks scenarios in every way there is, and sees whether what must hold still does.
//!
//! First each scenario without faults, twice: the reference, and the proof that a run is a function of its seed. Then every
//! fault at every position: at each request, at each watch event, at each call to the world outside, and for a time from
//! each moment at which the operator writes. There are many, so that a budget of processor time goes over them in an order
//! that is drawn: first a few of each scenario, always the same, then others each time. Then seeds. Each run is
//! single-threaded; many runs go on at once.

mod hunt;
mod order;
mod pool;
mod positions;
mod report;
mod spells;
mod twins;

pub use hunt::{Hunt, Means, Reach, hunt};
pub use pool::on_processor;
pub use report::{Failure, Report, Score};
pub use twins::twins;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use positions::Class;

use crate::fault::{CALL_FAULTS, EVENT_FAULTS, Injection, REQUEST_FAULTS, RequestFault};
use crate::oracles::Verdict;
use crate::runner::{self, Outcome};
use crate::scenario::Scenario;
use crate::stage::{Prepared, Unplayable, Wiring};
use crate::trial::Trial;

/// How far to go.
#[derive(Debug, Clone)]
pub struct Effort {
    /// How much processor time faults get for each share of the scenarios; without it, every position is tried.
    pub budget: Option<Duration>,
    /// What the order of positions is drawn from.
    pub draw: u64,
    /// Whether faults at positions are tried at all.
    pub exhaustive: bool,
    /// Whether the budget bounds also what is otherwise tried whatever it is, but for what is kept: for scenarios whose runs are
    /// long, and have much that is always tried.
    pub is_bounded: bool,
    /// Whether it is far enough for every right to be needed once.
    pub is_whole: bool,
    /// The first seed.
    pub first_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// For how many positions of each scenario a run is made that is said not to differ, and compared.
    pub twins: usize,
    /// How many runs at once.
    pub threads: usize,
    /// After so many failures it is enough.
    pub most_failures: usize,
}

impl Default for Effort {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            // As many runs as four minutes were before runs became a quarter cheaper.
            budget: Some(Duration::from_mins(3)),
            draw: 0,
            exhaustive: true,
            is_bounded: false,
            is_whole: true,
            first_seed: 1,
            seeds: 100,
            // Asked for by hand until a whole run of pairs has been seen to agree (0012).
            twins: 0,
            threads,
            most_failures: 5,
        }
    }
}

impl Effort {
    /// What people wait for at their desk: all scenarios, broken here and there. The gate goes further.
    pub fn brief() -> Self {
        Self {
            budget: Some(Duration::ZERO),
            seeds: 25,
            twins: 0,
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
    Call,
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
    /// Whether it is made whatever the budget is, unless the effort is bounded.
    is_always: bool,
    /// Whether it is made in any case.
    is_kept: bool,
    /// One of those that cannot differ from it.
    twin: Option<Trial>,
}

impl Job {
    /// Whether it is made on every commit, where the budget bounds also what is otherwise always made, or does not.
    fn is_owed(&self, is_bounded: bool) -> bool {
        self.is_kept || self.is_always && !is_bounded
    }
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

/// Breaks a share of the scenarios at their positions; what is found is added to the report. Runs that are `kept`, by scenario,
/// are always made: in each of them a bug has once been found that others might not show.
pub fn explore(
    share: &[Arc<Known>],
    wiring: &Wiring,
    effort: &Effort,
    kept: &[(String, Trial)],
    report: Report,
) -> Result<Report, Unplayable> {
    let mut jobs = Vec::new();
    for known in share {
        let mut of_it = singles(known);
        of_it.extend(under_spells(known));
        let of_scenario = kept.iter().filter(|(name, _)| *name == known.scenario.name);
        for (_, trial) in of_scenario {
            keep(&mut of_it, known, trial);
        }
        jobs.extend(of_it);
    }
    let jobs = order::drawn(jobs, effort);
    pool::work(&jobs, wiring, effort, effort.budget, report)
}

/// The class of runs that are kept and are at no position: such as the second of two that cannot differ.
const KEPT: &str = "other runs that are kept";

/// Has a run made whatever the budget is.
fn keep(jobs: &mut Vec<Job>, known: &Arc<Known>, trial: &Trial) {
    if *trial == Trial::calm() {
        // The reference.
        return;
    }
    if let Some(job) = jobs.iter_mut().find(|job| job.trial == *trial) {
        (job.is_always, job.is_kept) = (true, true);
        return;
    }
    jobs.push(Job {
        known: known.clone(),
        trial: trial.clone(),
        aim: Aim::Spell(KEPT),
        stands_for: 1,
        is_always: true,
        is_kept: true,
        twin: None,
    });
}

/// Plays scenarios with faults that are drawn from seeds.
pub fn storms(
    known: &[Arc<Known>],
    wiring: &Wiring,
    effort: &Effort,
    report: Report,
) -> Result<Report, Unplayable> {
    let draw = Draw::new(known);
    let seeds = effort.first_seed..effort.first_seed.saturating_add(effort.seeds);
    let jobs: Vec<Job> = seeds
        .filter_map(|seed| {
            Some(Job {
                known: draw.of(seed)?.clone(),
                trial: Trial::storm(seed),
                aim: Aim::Seed,
                stands_for: 1,
                is_always: true,
                is_kept: false,
                twin: None,
            })
        })
        .collect();
    pool::work(&jobs, wiring, effort, None, report)
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
fn singles(known: &Arc<Known>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    let history = &known.reference.history;
    let mut add = |injection, aim, is_always: bool| {
        // An answer that is lost makes an operator look: so every right is needed once, whatever else is left out.
        let is_lost = matches!(injection, Injection::Request(_, RequestFault::Lost));
        let is_kept = is_always && is_lost;
        let class = if known.scenario.faults.is_empty() {
            Class::of(history, injection)
        } else {
            Class::Own(injection)
        };
        if let Some(job) = classes.get(&class).and_then(|at| jobs.get_mut(*at)) {
            job.stands_for += 1;
            let mut twin = Trial::with(injection);
            if is_always && !job.is_always {
                // Of those that cannot differ, the one that is made for its own sake.
                (job.is_always, job.is_kept) = (true, is_kept);
                std::mem::swap(&mut job.trial, &mut twin);
            }
            job.twin = Some(twin);
            return;
        }
        classes.insert(class, jobs.len());
        jobs.push(Job {
            known: known.clone(),
            trial: Trial::with(injection),
            aim,
            stands_for: 1,
            is_always,
            is_kept,
            twin: None,
        });
    };
    let always: BTreeSet<u64> = positions::always(history).into_iter().collect();
    for request in &history.requests {
        let (at, is_always) = (request.number, always.contains(&request.number));
        let method = request.method.as_str();
        for fault in REQUEST_FAULTS
            .into_iter()
            .filter(|one| one.can_befall(method))
        {
            add(Injection::Request(at, fault), Aim::Request, is_always);
        }
        if known.scenario.replicas > 1 {
            let standstill = Injection::Request(at, RequestFault::Standstill);
            add(standstill, Aim::Standstill, is_always);
        }
    }
    let always = positions::spread(known.reference.events, positions::ALWAYS_EVENTS);
    for at in 0..known.reference.events {
        for fault in EVENT_FAULTS {
            add(
                Injection::Event(at, fault),
                Aim::Event,
                always.contains(&at),
            );
        }
    }
    // Few, and no two alike: whoever is asked decides what happens next.
    for asked in &history.asked {
        for fault in CALL_FAULTS {
            add(Injection::Call(asked.number, fault), Aim::Call, true);
        }
    }
    jobs
}

/// Something goes wrong for a time.
fn under_spells(known: &Arc<Known>) -> Vec<Job> {
    let all = spells::of(known).into_iter();
    all.map(|(class, spells, is_always)| Job {
        known: known.clone(),
        trial: Trial::under(spells),
        aim: Aim::Spell(class),
        stands_for: 1,
        is_always,
        is_kept: false,
        twin: None,
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
