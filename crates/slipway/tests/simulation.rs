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
    reason = "this is a test with an output of its own, which tells how long it took"
)]

#[path = "simulation/arguments.rs"]
mod arguments;

use std::process::ExitCode;
use std::time::Instant;

use arguments::Arguments;
use slipway::scenarios;
use slipway_sim::explore::{self, Effort, Report};
use slipway_sim::history;
use slipway_sim::scenario::Scenario;
use slipway_sim::stage::Wiring;
use slipway_sim::{oracles, runner};

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            println!("{problem}");
            return ExitCode::from(2);
        }
    };
    let wiring = scenarios::wiring();
    if let Some((scenario, trial)) = &arguments.replay {
        return replay(&wiring, scenario, trial);
    }
    let mut chosen = scenarios::all().unwrap();
    if let Some(name) = &arguments.scenario {
        chosen.retain(|scenario| scenario.name.contains(name.as_str()));
    }
    let report = run(&wiring, &chosen, &arguments.effort, arguments.keep_going);
    conclude(&report)
}

fn run(wiring: &Wiring, chosen: &[Scenario], effort: &Effort, keep_going: bool) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    let known = explore::references(chosen, wiring, &mut report).unwrap();
    for known in &known {
        println!(
            "{:24} {:>4} requests {:>4} watch events",
            known.scenario.name,
            known.reference.history.requests.len(),
            known.reference.events
        );
    }
    if !report.failures.is_empty() && !keep_going {
        return report;
    }
    let report = explore::explore(&known, wiring, effort, report).unwrap();
    let runs =
        report.requests.done + report.events.done + report.standstills.done + report.seeds.done;
    let time = started.elapsed().as_secs_f64();
    println!(
        "{runs} runs in {time:.1} s, {:.0} a second",
        runs as f64 / time
    );
    report
}

fn replay(wiring: &Wiring, name: &str, trial: &slipway_sim::trial::Trial) -> ExitCode {
    let Some(scenario) = scenarios::find(name) else {
        println!("there is no scenario {name}");
        return ExitCode::from(2);
    };
    let scenario = scenario.unwrap();
    let calm = slipway_sim::trial::Trial::calm();
    let reference = runner::play(&scenario, wiring, &calm).unwrap();
    let outcome = runner::play(&scenario, wiring, trial).unwrap();
    for line in history::tell(&outcome.history, outcome.history.end, usize::MAX) {
        println!("{line}");
    }
    for request in outcome.history.requests.iter().filter(|r| r.is_write()) {
        println!("#{} {}", request.number, request.body);
    }
    let mut report = Report::default();
    let verdicts = oracles::judge(&scenario, &outcome.history, Some(&reference.history));
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

fn conclude(report: &Report) -> ExitCode {
    for failure in &report.failures {
        println!("{failure}\n");
    }
    for line in report.table() {
        println!("{line}");
    }
    println!("{}", report.line());
    if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    }
}
