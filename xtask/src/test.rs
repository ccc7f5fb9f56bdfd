//! `cargo xtask test`: everything, in tiers, one line each.

mod servers;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::controlplane;
use crate::report;
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the tiers whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Leave out what needs a real control plane
    #[arg(long)]
    no_controlplane: bool,
    /// Only the tiers that run on servers, the embedded one and a real one
    #[arg(long)]
    servers: bool,
    /// Of the tiers that run on servers, only the tests with all of these words in their names
    #[arg(last = true)]
    words: Vec<String>,
}

/// The tier that goes the whole way only where nobody waits for it.
const SIMULATION: &str = "simulation";

/// What a tier came to.
struct Outcome {
    name: &'static str,
    summary: String,
    time: Duration,
    failed: bool,
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
];

/// Numbers out of the closing lines of test runners.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    summary: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut tiers = Tiers {
        only: arguments.only.clone(),
        words: arguments.words.clone(),
        outcomes: Vec::new(),
        left_out: Vec::new(),
    };
    let without_servers = if arguments.servers { &[] } else { STATIC };
    for (name, cargo_arguments) in without_servers {
        let mut command = workspace::cargo();
        command.args(*cargo_arguments);
        if *name == SIMULATION && !workspace::is_ci() && tiers.wants(name) {
            command.args(["--", "--brief"]);
            let text =
                "most faults, seeds and mutants of the simulation: CI=true, or cargo xtask sim";
            tiers.left_out.push(text.to_owned());
        }
        tiers.run(name, &mut command);
    }
    for tier in servers::ON_SERVERS {
        let unavailable = if arguments.no_controlplane {
            Some("--no-controlplane".to_owned())
        } else {
            let missing = controlplane::tools::available(&tier.shape()).err();
            missing.map(|error| error.to_string())
        };
        servers::run(&mut tiers, tier, unavailable)?;
    }
    conclude(&tiers.outcomes, &tiers.left_out)
}

/// What has been run, and what has not.
struct Tiers {
    only: Option<String>,
    words: Vec<String>,
    outcomes: Vec<Outcome>,
    left_out: Vec<String>,
}

impl Tiers {
    fn wants(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    }

    fn run(&mut self, name: &'static str, command: &mut Command) {
        if self.wants(name) {
            self.outcomes.push(tier(name, command));
        }
    }
}

/// Tiers that need nothing but Rust. Each selects the whole workspace and then targets by name: with a single package
/// selected, cargo would build the dependencies anew with that package's features.
const STATIC: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    (
        "lint",
        &[
            "clippy",
            "--release",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    ("tidy", TIDY),
    (
        "units",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--lib",
            "--bins",
        ],
    ),
    (
        "integration",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "integration",
        ],
    ),
    (
        "capabilities",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "suite",
            "--test",
            "admit",
        ],
    ),
    (
        "actors alone",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "actors",
        ],
    ),
    (
        "program",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "cli",
        ],
    ),
    (
        SIMULATION,
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "simulation",
        ],
    ),
    (
        "replay",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "replay",
        ],
    ),
    (
        "fuzz",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--test",
            "fuzz",
        ],
    ),
    (
        "documentation",
        &["test", "--release", "--quiet", "--workspace", "--doc"],
    ),
];

const TIDY: &[&str] = &[
    "test",
    "--release",
    "--quiet",
    "--workspace",
    "--test",
    "tidy",
];

/// `cargo xtask tidy`.
pub(crate) fn tidy() -> Result<()> {
    let outcome = tier("tidy", workspace::cargo().args(TIDY));
    conclude(&[outcome], &[])
}

fn conclude(outcomes: &[Outcome], left_out: &[String]) -> Result<()> {
    report::line("");
    for outcome in outcomes {
        let verdict = if outcome.failed { "FAILED" } else { "ok" };
        report::line(&format!(
            "{:17} {verdict:7} {:>14}  {}",
            outcome.name,
            report::duration(outcome.time),
            outcome.summary
        ));
    }
    for text in left_out {
        report::line(&format!("LEFT OUT: {text}"));
    }
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|o| o.failed)
        .map(|o| o.name)
        .collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    if !left_out.is_empty() && workspace::is_ci() {
        bail!("with CI set nothing may be left out");
    }
    Ok(())
}

/// Runs one tier: its output goes through, its closing lines are counted.
fn tier(name: &'static str, command: &mut Command) -> Outcome {
    report::line(&format!("── {name}"));
    let start = Instant::now();
    let mut counts = Counts::default();
    let result = stream(command, &mut counts);
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

fn stream(command: &mut Command, counts: &mut Counts) -> Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo")?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading cargo's output")?;
            counts.read(&line);
            report::line(&line);
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
