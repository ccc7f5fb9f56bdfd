//! `cargo xtask test`: everything, in tiers, one line each.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile};
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
}

/// What a tier came to.
struct Outcome {
    name: &'static str,
    summary: String,
    time: Duration,
    failed: bool,
}

/// Numbers out of the closing lines of test runners.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    conformance: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut tiers = Tiers {
        only: arguments.only.clone(),
        outcomes: Vec::new(),
        left_out: Vec::new(),
    };
    for (name, cargo_arguments) in STATIC {
        tiers.run(name, workspace::cargo().args(*cargo_arguments));
    }
    if tiers.wants("conformance") || tiers.wants("kubectl") {
        against_a_server(&mut tiers, arguments)?;
    }
    conclude(&tiers.outcomes, &tiers.left_out)
}

/// What has been run, and what has not.
struct Tiers {
    only: Option<String>,
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

/// Tiers that run on the embedded server, and on a real one where there can be one.
fn against_a_server(tiers: &mut Tiers, arguments: &Arguments) -> Result<()> {
    let real = match (arguments.no_controlplane, controlplane::tools::available()) {
        (true, _) => Err("--no-controlplane".to_owned()),
        (false, Err(error)) => Err(error.to_string()),
        (false, Ok(())) => Ok(()),
    };
    // Each tier has a server of its own, so that neither sees what the other leaves.
    let borrowed = match real {
        Ok(()) => {
            Some(Borrowed::start(2, Profile::Collectors).context("starting real control planes")?)
        }
        Err(why) => {
            tiers
                .left_out
                .push(format!("conformance and kubectl on a real server: {why}"));
            None
        }
    };
    let mut conformance = workspace::cargo();
    conformance.args([
        "test",
        "--release",
        "--quiet",
        "-p",
        "slipway-apiserver",
        "--test",
        "conformance",
    ]);
    let mut kubectl = workspace::cargo();
    kubectl.args([
        "test",
        "--release",
        "--quiet",
        "-p",
        "slipway-e2e",
        "--test",
        "kubectl",
    ]);
    if let Some(borrowed) = &borrowed {
        conformance.env("SLIPWAY_CONFORMANCE_REAL", borrowed.kubeconfig(0));
        kubectl.env("SLIPWAY_REAL_BARE", borrowed.kubeconfig(1));
        kubectl.env(
            "SLIPWAY_KUBECTL",
            controlplane::tools::locate()?.path("kubectl")?,
        );
    }
    tiers.run("conformance", &mut conformance);
    if borrowed.is_none() && workspace::which("kubectl").is_none() {
        tiers
            .left_out
            .push("kubectl: there is none on the PATH, and no Go to build one".to_owned());
        return Ok(());
    }
    tiers.run(
        "kubectl binary",
        workspace::cargo().args(["build", "--release", "--quiet", "-p", "slipway"]),
    );
    tiers.run("kubectl", &mut kubectl);
    Ok(())
}

/// Tiers that need nothing but Rust.
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
    ("tidy", &["test", "--release", "--quiet", "-p", "xtask"]),
    (
        "units",
        &[
            "test",
            "--release",
            "--quiet",
            "--workspace",
            "--exclude",
            "xtask",
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
            "-p",
            "slipway-apiserver",
            "--test",
            "integration",
        ],
    ),
    (
        "simulation",
        &[
            "test",
            "--release",
            "--quiet",
            "-p",
            "slipway",
            "--test",
            "simulation",
        ],
    ),
    (
        "documentation",
        &["test", "--release", "--quiet", "--workspace", "--doc"],
    ),
];

/// `cargo xtask tidy`.
pub(crate) fn tidy() -> Result<()> {
    let outcome = tier(
        "tidy",
        workspace::cargo().args(["test", "--release", "--quiet", "-p", "xtask"]),
    );
    conclude(&[outcome], &[])
}

fn conclude(outcomes: &[Outcome], left_out: &[String]) -> Result<()> {
    report::line("");
    for outcome in outcomes {
        let verdict = if outcome.failed { "FAILED" } else { "ok" };
        report::line(&format!(
            "{:14} {verdict:7} {:>14}  {}",
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
    let summary = match (result, &counts.conformance) {
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
        let summaries = ["conformance: ", "kubectl: ", "simulation: "];
        if summaries.iter().any(|start| line.starts_with(start)) {
            self.conformance = Some(line.to_owned());
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
