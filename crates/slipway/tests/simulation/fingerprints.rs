//! What came of runs, a line for each: the same before and after a change that must not change any run.
//!
//! The hash of a run is about requests; here is also what was in their bodies, what became of all objects, and what the oracles say.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use slipway_sim::explore::Effort;
use slipway_sim::fault::{EVENT_FAULTS, Injection, REQUEST_FAULTS};
use slipway_sim::history::{self, History};
use slipway_sim::oracles::Verdict;
use slipway_sim::runner::{self, Outcome};
use slipway_sim::scenario::Scenario;
use slipway_sim::stage::{Prepared, Wiring};
use slipway_sim::trial::Trial;

/// How many requests, and how many watch events, of each scenario go wrong, each in a run of its own.
const BROKEN: u64 = 6;

/// Prints a line for each run of these scenarios: without faults, with some single ones, and with so many seeds.
pub(crate) fn tell(wiring: &Wiring, chosen: &[Scenario], effort: &Effort, seeds: u64) -> ExitCode {
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                while let Some(scenario) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let lines = of(wiring, scenario, seeds);
                    told.lock().unwrap().push((scenario.name.clone(), lines));
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap();
    told.sort();
    for line in told.iter().flat_map(|(_, lines)| lines) {
        println!("{line}");
    }
    ExitCode::SUCCESS
}

fn of(wiring: &Wiring, scenario: &Scenario, seeds: u64) -> Vec<String> {
    let prepared = runner::prepare(scenario, wiring).unwrap();
    let calm = Trial::calm();
    let reference = runner::play(scenario, wiring, &prepared, &calm).unwrap();
    let (requests, events) = (reference.history.requests.len() as u64, reference.events);
    let mut trials = vec![calm];
    let places = (0..BROKEN).zip(REQUEST_FAULTS.iter().cycle());
    trials.extend(places.map(|(n, fault)| {
        Trial::with(Injection::Request(
            requests * (2 * n + 1) / (2 * BROKEN),
            *fault,
        ))
    }));
    let places = (0..BROKEN).zip(EVENT_FAULTS.iter().cycle());
    trials.extend(places.map(|(n, fault)| {
        Trial::with(Injection::Event(
            events * (2 * n + 1) / (2 * BROKEN),
            *fault,
        ))
    }));
    trials.extend((1..=seeds).map(Trial::storm));
    let lines = trials.iter();
    lines
        .map(|trial| line(wiring, scenario, (&prepared, &reference), trial))
        .collect()
}

fn line(
    wiring: &Wiring,
    scenario: &Scenario,
    known: (&Prepared, &Outcome),
    trial: &Trial,
) -> String {
    let (prepared, reference) = known;
    let outcome = runner::play(scenario, wiring, prepared, trial).unwrap();
    let history = &outcome.history;
    let reference = Some(&reference.history);
    let verdicts = wiring.oracles.judge(scenario, history, reference);
    let objections = verdicts
        .iter()
        .map(|verdict| verdict.findings.violations.len());
    format!(
        "{} {trial}: {} requests, {} events, {} objections, {:016x}, {:016x}, {}",
        scenario.name,
        history.requests.len(),
        outcome.events,
        objections.sum::<usize>(),
        digest(history),
        judged(&verdicts),
        outcome.hash
    )
}

/// Everything that oracles can read of a run.
fn digest(history: &History) -> u64 {
    let mut hasher = DefaultHasher::new();
    for line in history::tell(history, history.end, usize::MAX) {
        line.hash(&mut hasher);
    }
    for request in &history.requests {
        let context = (&request.context.controller, &request.context.basis);
        (request.body.to_string(), context, request.tide).hash(&mut hasher);
    }
    let members = history.members.values().map(|course| &course.changes);
    for change in std::iter::once(&history.changes)
        .chain(members)
        .flat_map(|log| log.iter())
    {
        let after = change.after.as_ref().map(|image| image.value().to_string());
        (change.version, &change.object, change.by, after).hash(&mut hasher);
    }
    for review in &history.reviews {
        let said = review.said.as_ref().map(ToString::to_string);
        (review.asked.to_string(), said).hash(&mut hasher);
    }
    for asked in &history.asked {
        (&asked.url, &asked.body, &asked.said).hash(&mut hasher);
    }
    hasher.finish()
}

fn judged(verdicts: &[Verdict]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for verdict in verdicts {
        (verdict.id, verdict.findings.checked).hash(&mut hasher);
        for violation in &verdict.findings.violations {
            (&violation.text, violation.at).hash(&mut hasher);
        }
    }
    hasher.finish()
}
