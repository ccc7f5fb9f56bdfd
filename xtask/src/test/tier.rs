//! One tier: a command whose closing lines are counted.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::failures::Failures;
use crate::report;

/// What a tier came to.
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) summary: String,
    pub(super) time: Duration,
    pub(super) failed: bool,
    pub(super) failures: Failures,
}

/// How the closing lines begin of tests that count in their own way.
const SUMMARIES: &[&str] = &[
    "conformance: ",
    "kubectl: ",
    "actors: ",
    "e2e: ",
    "zones: ",
    "pages: ",
    "simulation: ",
    "foreign: ",
    "replay: ",
    "fuzz: ",
    "drop-in: ",
    "members: ",
    "canary: ",
    "fleet: ",
    "prometheus: ",
];

/// Of these several programs of a tier have a line each, and all of them are shown.
const OF_EACH: &str = "fuzz: ";

/// Numbers out of the closing lines of test runners.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    summary: Vec<String>,
    failures: Failures,
}

/// Runs one tier: its output goes through, its closing lines are counted.
pub(super) fn run(name: &'static str, command: &mut Command) -> Outcome {
    report::line(&format!("── {name}"));
    watch(name, command, &mut report::line)
}

/// Runs one tier among others: its output goes through, each line with its name.
pub(super) fn run_among(name: &'static str, command: &mut Command) -> Outcome {
    report::line(&format!("── {name}"));
    watch(name, command, &mut |line| {
        report::line(&format!("{name} │ {line}"));
    })
}

/// Runs one tier beside others: its output is kept, and told when it has ended.
pub(super) fn run_beside(name: &'static str, command: &mut Command) -> (Outcome, Vec<String>) {
    let mut lines = vec![format!("── {name}, beside the others")];
    let outcome = watch(name, command, &mut |line| lines.push(line.to_owned()));
    (outcome, lines)
}

fn watch(name: &'static str, command: &mut Command, tell: &mut dyn FnMut(&str)) -> Outcome {
    let start = Instant::now();
    let mut counts = Counts::default();
    let result = stream(command, &mut counts, tell);
    let failed = !matches!(result, Ok(true)) || counts.failed > 0;
    let summary = match result {
        Err(error) => error.to_string(),
        Ok(_) if !counts.summary.is_empty() => counts.summary.join("; "),
        Ok(_) if counts.passed + counts.failed > 0 => {
            format!("{} passed, {} failed", counts.passed, counts.failed)
        }
        Ok(_) => String::new(),
    };
    Outcome {
        name,
        summary,
        time: start.elapsed(),
        failed,
        failures: counts.failures,
    }
}

fn stream(command: &mut Command, counts: &mut Counts, tell: &mut dyn FnMut(&str)) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo")?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading cargo's output")?;
            counts.read(&line);
            tell(&line);
        }
    }
    Ok(child.wait().context("waiting for cargo")?.success())
}

impl Counts {
    fn read(&mut self, line: &str) {
        self.failures.read(line);
        if SUMMARIES.iter().any(|start| line.starts_with(start)) {
            if !line.starts_with(OF_EACH) {
                self.summary.clear();
            }
            self.summary.push(line.to_owned());
        }
        let Some(rest) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in rest.split(['.', ';']) {
            let mut words = part.split_whitespace();
            if let (Some(number), Some(word)) = (words.next(), words.next())
                && let Ok(number) = number.parse::<u64>()
            {
                match word {
                    "passed" => self.passed += number,
                    "failed" => self.failed += number,
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    fn summary(lines: &[&str]) -> String {
        let mut counts = Counts::default();
        for line in lines {
            counts.read(line);
        }
        counts.summary.join("; ")
    }

    #[test]
    fn the_last_line_counts_and_every_program_of_fuzz_targets() {
        let of_replay = ["replay: a rule moved", "replay: 5910 pairs"];
        assert_eq!(summary(&of_replay), "replay: 5910 pairs");
        let of_fuzz = ["fuzz: 16 targets", "test result: ok.", "fuzz: 5 targets"];
        assert_eq!(summary(&of_fuzz), "fuzz: 16 targets; fuzz: 5 targets");
    }

    #[test]
    fn failures_of_all_programs_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured",
        ] {
            counts.read(line);
        }
        assert_eq!((counts.passed, counts.failed), (7, 3));
    }
}
