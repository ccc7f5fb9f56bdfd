//! The whole operator on the embedded API server, in virtual time, with everything going wrong that can.
//!
//! `cargo test -p slipway --test simulation` plays all scenarios, breaks them at every request and every watch event,
//! tries seeds, and hunts mutants. `cargo xtask sim` runs the same for longer, or one run again.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "this is a test with an output of its own, which tells how long it took"
)]

#[path = "simulation/arguments.rs"]
mod arguments;
#[path = "simulation/convoy.rs"]
mod convoy;
#[path = "simulation/fingerprints.rs"]
mod fingerprints;
#[path = "simulation/lookout.rs"]
mod lookout;
#[path = "simulation/mutants.rs"]
mod mutants;
#[path = "simulation/rights.rs"]
mod rights;

/// A run allocates a lot and keeps nothing: a fifth of its time is the system's allocator's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arguments::Arguments;
use mutants::Catch;
use slipway::scenarios;
use slipway_sim::explore::{self, Effort, Known, Report};
use slipway_sim::history;
use slipway_sim::runner;
use slipway_sim::scenario::Scenario;
use slipway_sim::share;
use slipway_sim::stage::Wiring;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            println!("{problem}");
            return ExitCode::from(2);
        }
    };
    let wiring = lookout::wiring(convoy::wiring(scenarios::wiring()));
    if let Some((scenario, trial)) = &arguments.replay {
        return replay(&wiring, scenario, trial);
    }
    let mut chosen = scenarios::all().unwrap();
    chosen.extend(convoy::scenarios());
    chosen.extend(lookout::scenarios());
    if let Some(name) = &arguments.scenario {
        chosen.retain(|scenario| is_meant(name, &scenario.name));
    }
    if arguments.time {
        return measure(&wiring, &chosen);
    }
    if let Some(seeds) = arguments.fingerprints {
        return fingerprints::tell(&wiring, &chosen, &arguments.effort, seeds);
    }
    let report = run(&wiring, &chosen, &arguments);
    conclude(&wiring, &report)
}

/// Whether a scenario has this text in its name, or has not, if it begins with `!`.
fn is_meant(text: &str, name: &str) -> bool {
    match text.strip_prefix('!') {
        Some(text) => !name.contains(text),
        None => name.contains(text),
    }
}

/// How many runs are looked at for one in which a mutant shows that the gate does not find yet (`--keep-killers`).
const MAX_RUNS: usize = 2_500;

/// The capabilities whose scenarios are broken only when they are asked for: what happens in them when nothing goes wrong is always
/// judged, but that nothing is found in any of their runs with faults has not been seen yet.
const YOUNG: &[&str] = &["fleet"];

/// The capabilities whose runs are so long that a budget does not reach beyond what is always tried of each scenario: it bounds that
/// too, and how much of it was reached is told.
const BOUNDED: &[&str] = &["canary"];

/// Whether a scenario is only played as it is.
fn is_young(wiring: &Wiring, arguments: &Arguments, name: &str) -> bool {
    let mut young = wiring
        .shares
        .iter()
        .filter(|share| YOUNG.contains(&share.name));
    arguments.scenario.is_none() && young.any(|share| share.has(name))
}

fn run(wiring: &Wiring, chosen: &[Scenario], arguments: &Arguments) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    let mut known = explore::references(chosen, wiring, &mut report).unwrap();
    for known in &known {
        println!(
            "{:24} {:>4} requests {:>4} watch events {:>4} calls",
            known.scenario.name,
            known.reference.history.requests.len(),
            known.reference.events,
            known.reference.history.asked.len()
        );
    }
    if !report.failures.is_empty() && !arguments.keep_going {
        tell(&report);
        return report;
    }
    let played = known.len();
    known.retain(|one| !is_young(wiring, arguments, &one.scenario.name));
    report.spared = (played - known.len()) as u64;
    let chosen: Vec<Scenario> = known.iter().map(|one| one.scenario.clone()).collect();
    if arguments.only_mutants {
        hunt(&known, wiring, arguments.keep_killers, &mut report);
        return report;
    }
    let mut report = broken(&known, wiring, &arguments.effort, report);
    let runs = report.runs;
    let time = started.elapsed().as_secs_f64();
    println!(
        "{runs} runs in {time:.1} s, {:.0} a second",
        runs as f64 / time
    );
    // Some rights are needed only when something went wrong.
    if arguments.scenario.is_some() {
        rights::tell(wiring, &chosen, &mut report);
    } else if arguments.effort.exhaustive && arguments.effort.is_whole {
        rights::unused(wiring, &chosen, &mut report);
        report.asked_all(wiring.oracles.all().map(|oracle| oracle.id));
    }
    // Hunts are long: what was found is told before them, so that nobody waits for it.
    tell(&report);
    if arguments.mutants {
        hunt(&known, wiring, arguments.keep_killers, &mut report);
    }
    report
}

/// All that goes wrong: at positions, with as much time for each share of the scenarios as it weighs, and by seeds.
fn broken(known: &[Arc<Known>], wiring: &Wiring, effort: &Effort, mut report: Report) -> Report {
    let names = known.iter().map(|known| known.scenario.name.as_str());
    let misplaced = share::misplaced(&wiring.shares, names);
    assert_eq!(misplaced, None, "a scenario is in no share, or in two");
    let kept = mutants::killers::all();
    for share in wiring.shares.iter().filter(|_| effort.exhaustive) {
        let own = known.iter().filter(|one| share.has(&one.scenario.name));
        let own: Vec<Arc<Known>> = own.cloned().collect();
        if own.is_empty() {
            continue;
        }
        let (runs, started) = (report.runs, Instant::now());
        let effort = Effort {
            budget: effort.budget.map(|budget| share.of(budget)),
            is_bounded: effort.is_bounded || BOUNDED.contains(&share.name),
            ..effort.clone()
        };
        report = explore::explore(&own, wiring, &effort, &kept, report).unwrap();
        println!(
            "{}: {} runs in {:.1} s",
            share.name,
            report.runs - runs,
            started.elapsed().as_secs_f64()
        );
    }
    if effort.exhaustive {
        explore::twins(known, wiring, effort, &mut report).unwrap();
    }
    explore::storms(known, wiring, effort, report).unwrap()
}

/// Mutants, several at once.
fn hunt(known: &[Arc<Known>], wiring: &Wiring, keep: bool, report: &mut Report) {
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let chosen = |mutant: &&mutants::Mutant| mutant.needs_only(known);
    let all: Vec<&mutants::Mutant> = mutants::all().filter(chosen).collect();
    let spared = mutants::all().count() - all.len();
    if spared > 0 {
        println!("{spared} mutants are not hunted: not all of their scenarios are broken here");
    }
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..Effort::default().threads {
            scope.spawn(|| {
                while let Some(mutant) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let catch = mutant.hunt(known, wiring, keep.then_some(MAX_RUNS));
                    let end = match (catch.killer(), &catch.hunt.caught) {
                        (Some(id), Some((run, means))) => {
                            let (scenario, trial) = (&run.scenario, &run.trial);
                            format!("killed by {id} in {scenario} {trial}, {}", means.name())
                        }
                        _ => format!("lives, {:?} object", catch.hunt.others),
                    };
                    println!(
                        "mutant: {}: {end} after {} runs",
                        catch.mutant, catch.hunt.runs
                    );
                    found.lock().unwrap().push(catch);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_unstable_by_key(|catch| catch.mutant);
    let runs: usize = found.iter().map(|catch| catch.hunt.runs).sum();
    let time = started.elapsed().as_secs_f64();
    println!("{} mutants in {runs} runs and {time:.1} s", found.len());
    if keep {
        mutants::killers::keep(&found).unwrap();
    }
    for Catch { mutant, by, hunt } in found {
        let is_killed = hunt.caught.is_some();
        report.mutants.of += 1;
        report.mutants.done += u64::from(is_killed);
        if let Some((_, means)) = &hunt.caught {
            *report.means.entry(*means).or_default() += 1;
        }
        let text = format!(
            "the mutant {mutant:?} lives after {} runs: {by:?} do not object",
            hunt.runs
        );
        report.note("mutants", is_killed, &text);
        let text = format!("the mutant {mutant:?} asked nothing in {} runs", hunt.idle);
        report.note("mutants", hunt.idle == 0, &text);
        for failure in hunt.unsound {
            println!("without any mutant: {failure}\n");
            let text = format!("hunting {mutant:?}: {failure}");
            report.note("hunts", false, &text);
        }
    }
}

/// How much of a processor the parts of a run take.
fn measure(wiring: &Wiring, chosen: &[Scenario]) -> ExitCode {
    const RUNS: u32 = 20;
    let calm = slipway_sim::trial::Trial::calm();
    let started = Instant::now();
    let now = || explore::on_processor().map_or_else(|| started.elapsed(), Duration::from_nanos);
    for scenario in chosen {
        let start = now();
        let prepared = runner::prepare(scenario, wiring).unwrap();
        let setup = now().saturating_sub(start);
        let start = now();
        let mut last = None;
        for _ in 0..RUNS {
            last = Some(runner::play(scenario, wiring, &prepared, &calm).unwrap());
        }
        let whole = now().saturating_sub(start) / RUNS;
        let last = last.unwrap();
        let start = now();
        for _ in 0..RUNS {
            wiring
                .oracles
                .judge(scenario, &last.history, Some(&last.history));
        }
        let judged = now().saturating_sub(start) / RUNS;
        println!(
            "{:24} {:>5} requests, set up {setup:.1?}, play {whole:.1?}, judge {judged:.1?}; {} changes",
            scenario.name,
            last.history.requests.len(),
            last.history.changes.len()
        );
    }
    ExitCode::SUCCESS
}

fn replay(wiring: &Wiring, name: &str, trial: &slipway_sim::trial::Trial) -> ExitCode {
    let known = scenarios::find(name).map(Result::unwrap);
    let Some(scenario) = known
        .or_else(|| convoy::find(name))
        .or_else(|| lookout::find(name))
    else {
        println!("there is no scenario {name}");
        return ExitCode::from(2);
    };
    let calm = slipway_sim::trial::Trial::calm();
    let prepared = runner::prepare(&scenario, wiring).unwrap();
    let reference = runner::play(&scenario, wiring, &prepared, &calm).unwrap();
    let outcome = runner::play(&scenario, wiring, &prepared, trial).unwrap();
    for line in history::tell(&outcome.history, outcome.history.end, usize::MAX) {
        println!("{line}");
    }
    for request in outcome.history.requests.iter().filter(|r| r.is_write()) {
        println!("#{} {}", request.number, request.body);
    }
    let mut report = Report::default();
    let reference = Some(&reference.history);
    let verdicts = wiring.oracles.judge(&scenario, &outcome.history, reference);
    report.take(&scenario, trial, &outcome, verdicts);
    for line in report.table() {
        println!("{line}");
    }
    for failure in &report.failures {
        for (id, violation) in &failure.violations {
            println!("{id} at {}: {}", violation.at, violation.text);
        }
    }
    println!("hash {}", outcome.hash);
    if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    }
}

/// The runs that an oracle objects to.
fn tell(report: &Report) {
    for failure in &report.failures {
        println!("{failure}\n");
    }
}

fn conclude(wiring: &Wiring, report: &Report) -> ExitCode {
    for line in report.table() {
        println!("{line}");
    }
    println!("not compared by G8:");
    for mask in wiring.oracles.masks() {
        println!("  {mask}");
    }
    for note in &report.notes {
        println!("{note}");
    }
    println!("{}", report.line());
    if report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    }
}
