//! One tier: a command whose closing lines are counted.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::report;

/// What a tier came to.
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) summary: String,
    pub(super) time: Duration,
    pub(super) failed: bool,
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
    "prometheus: ",
];

/// Numbers out of the closing lines of test runners.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    summary: Option<String>,
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
    let summary = match (result, &counts.summary) {
        (Err(error), _) => error.to_string(),
        (Ok(_), Some(line)) => line.clone(),
        (Ok(_), None) if counts.passed + counts.failed > 0 => {
            format!("{} passed, {} failed", counts.passed, counts.failed)
        }
        (Ok(_), None) => String::new(),
    };
    Outcome {
        name,
        summary,
        time: start.elapsed(),
        failed,
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
        if SUMMARIES.iter().any(|start| line.starts_with(start)) {
            self.summary = Some(line.to_owned());
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
