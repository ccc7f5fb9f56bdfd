//! `cargo xtask test`: everything, in tiers, one line each.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile, Shape};
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

/// How the closing lines begin of tests that count in their own way.
const SUMMARIES: &[&str] = &[
    "conformance: ",
    "kubectl: ",
    "actors: ",
    "e2e: ",
    "zones: ",
    "simulation: ",
    "foreign: ",
    "replay: ",
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
        outcomes: Vec::new(),
        left_out: Vec::new(),
    };
    for (name, cargo_arguments) in STATIC {
        tiers.run(name, workspace::cargo().args(*cargo_arguments));
    }
    for tier in ON_SERVERS {
        let unavailable = if arguments.no_controlplane {
            Some("--no-controlplane".to_owned())
        } else {
            let missing = controlplane::tools::available(&tier.shape()).err();
            missing.map(|error| error.to_string())
        };
        on_servers(&mut tiers, tier, unavailable)?;
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

/// A tier that runs on the embedded server, and on a real control plane where there can be one.
struct OnServers {
    name: &'static str,
    test: &'static str,
    /// The variable that names the real one's kubeconfig.
    variable: &'static str,
    profile: Profile,
    /// Whether it runs the `slipway` program and kubectl.
    is_driven_by_kubectl: bool,
    /// Whether Flux and Flagger run on the real one, and all of its programs on an embedded one too.
    is_foreign: bool,
}

impl OnServers {
    /// What its real control plane is made of.
    fn shape(&self) -> Shape {
        Shape {
            flux: self.is_foreign,
            flagger: self.is_foreign,
            ..self.profile.into()
        }
    }
}

/// Each has a control plane of its own, so that none sees what another leaves.
const ON_SERVERS: &[OnServers] = &[
    OnServers {
        name: "conformance",
        test: "conformance",
        variable: "SLIPWAY_CONFORMANCE_REAL",
        profile: Profile::Collectors,
        is_driven_by_kubectl: false,
        is_foreign: false,
    },
    OnServers {
        name: "kubectl",
        test: "kubectl",
        variable: "SLIPWAY_REAL_BARE",
        profile: Profile::Collectors,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "actors",
        test: "reality",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: false,
        is_foreign: false,
    },
    OnServers {
        name: "end to end",
        test: "restarts",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "end to end, zones",
        test: "zones",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "foreign programs",
        test: "foreign",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: true,
    },
];

/// The variable that names the kubeconfig of an embedded server with the programs of a real control plane on it.
const EMBEDDED: &str = "SLIPWAY_EMBEDDED_FULL";

fn on_servers(tiers: &mut Tiers, tier: &OnServers, unavailable: Option<String>) -> Result<()> {
    if !tiers.wants(tier.name) {
        return Ok(());
    }
    let mut command = workspace::cargo();
    command.args([
        "test",
        "--release",
        "--quiet",
        "--workspace",
        "--test",
        tier.test,
    ]);
    if tier.is_driven_by_kubectl {
        workspace::build_programs()?;
    }
    let mut borrowed = Vec::new();
    match unavailable {
        None => {
            let shape = tier.shape();
            let real = Borrowed::start(1, &shape).context("starting a real control plane")?;
            command.env(tier.variable, real.kubeconfig(0));
            borrowed.push(real);
            if tier.is_foreign {
                let shape = Shape {
                    embedded: true,
                    ..shape
                };
                let embedded = Borrowed::start(1, &shape)
                    .context("starting foreign programs on the embedded server")?;
                command.env(EMBEDDED, embedded.kubeconfig(0));
                borrowed.push(embedded);
            }
        }
        Some(why) if tier.is_foreign => {
            tiers.left_out.push(format!("{}: {why}", tier.name));
            return Ok(());
        }
        Some(why) => tiers
            .left_out
            .push(format!("{} on a real control plane: {why}", tier.name)),
    }
    if tier.is_driven_by_kubectl {
        if !borrowed.is_empty() {
            command.env(
                "SLIPWAY_KUBECTL",
                controlplane::tools::locate(&Shape::default())?.path("kubectl")?,
            );
        } else if workspace::which("kubectl").is_none() {
            tiers.left_out.push(format!(
                "{}: there is no kubectl on the PATH, and no Go to build one",
                tier.name
            ));
            return Ok(());
        }
    }
    tiers.run(tier.name, &mut command);
    Ok(())
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
        "simulation",
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
