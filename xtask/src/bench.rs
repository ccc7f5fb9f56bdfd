//! `cargo xtask bench`: figures, side by side on the embedded and on a real server.

pub(crate) mod figures;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate of tests exports it, and uses all of it"
)]
#[path = "../../crates/e2e/src/figures.rs"]
mod measured;
#[cfg(test)]
#[path = "../../crates/e2e/src/bench/restarts_turns.rs"]
mod restarts_turns;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile, Shape};
use crate::report;
use crate::workspace;

/// A bench, and whether what it says is kept.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    bench: Bench,
    /// Write what it says into docs/figures.md, with commit, machine and date
    #[arg(long, global = true)]
    keep: bool,
}

/// A bench whose figures fall short of a goal.
#[derive(Debug)]
pub(crate) struct Missed;

/// What a bench ends with that missed a goal, and so does this program.
pub(crate) const MISSED: u8 = 3;

impl std::fmt::Display for Missed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a goal was missed: the line above says which")
    }
}

impl std::error::Error for Missed {}

#[derive(clap::Subcommand)]
enum Bench {
    /// The API server: start, requests, watches, lists and memory, beside a real kube-apiserver
    Apiserver {
        /// How many objects are listed, and weighed
        #[arg(long, default_value_t = 100_000)]
        objects: usize,
        /// Leave out the real API server
        #[arg(long)]
        no_controlplane: bool,
    },
    /// Canaries without a mesh, beside Flagger: requests, processor time, one run, memory; and in ours alone how late ticks come
    Canary {
        /// How many Canaries both have
        #[arg(long, default_value_t = 200)]
        canaries: usize,
        /// How many ours has alone, one run for each number
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 5_000])]
        alone: Vec<usize>,
    },
    /// Restarts of many Deployments: memory, processor time, delay from due to patched, writes
    Restarts {
        /// How many Deployments
        #[arg(long, default_value_t = 10_000)]
        deployments: usize,
        /// Another operator's program, measured in turns with ours: twice each, which takes four times as long
        #[arg(long)]
        peer: Option<PathBuf>,
        /// Leave out the real API server
        #[arg(long)]
        no_controlplane: bool,
    },
    /// An operator that works on many clusters: memory, connections, tasks, start, delay from a change to a write, growth
    Clusters {
        /// How many members, one run for each number
        #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000])]
        members: Vec<usize>,
        /// For how many seconds is looked what it costs when nothing happens; less than 300 s leave heartbeats out
        #[arg(long, default_value_t = 300)]
        idle: u64,
    },
    /// Questions to the world outside, every ten seconds: lateness, processor time, memory
    Facts {
        /// How many keys ask three questions each
        #[arg(long, default_value_t = 1_000)]
        keys: usize,
        /// For how many minutes
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// The fleet over many clusters: memory, start, one rollout, delay from a cluster's news to a write, writes, growth
    Fleet {
        /// How many clusters, one run for each number
        #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
        clusters: Vec<usize>,
    },
    /// Rollouts of zones and their webhooks: memory, delays, requests, answers in a second
    Zones {
        /// The original's program, measured in the same way on the same control plane
        #[arg(long)]
        peer: Option<PathBuf>,
        /// The largest number of pods
        #[arg(long, default_value_t = 3_000)]
        pods: usize,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    workspace::build_programs()?;
    let keep = arguments.keep;
    match &arguments.bench {
        Bench::Apiserver {
            objects,
            no_controlplane,
        } => {
            let profile = (!no_controlplane).then(|| (Profile::Bare.into(), "SLIPWAY_REAL_BARE"));
            let size = ["--objects".to_owned(), objects.to_string()];
            measure(
                "bench-apiserver",
                &size,
                &Whom::Shipped(None, profile),
                keep,
            )
        }
        Bench::Restarts {
            deployments,
            peer,
            no_controlplane,
        } => {
            let profile = (!no_controlplane).then(|| (Profile::Bare.into(), "SLIPWAY_REAL_BARE"));
            let size = ["--deployments".to_owned(), deployments.to_string()];
            let whom = Whom::Shipped(peer.as_deref(), profile);
            measure("bench-restarts", &size, &whom, keep)
        }
        Bench::Canary { canaries, alone } => {
            let with_flagger = Shape {
                flagger: true,
                ..Shape::default()
            };
            let programs = controlplane::tools::locate(&with_flagger)?;
            let alone: Vec<String> = alone.iter().map(ToString::to_string).collect();
            let size = [
                "--canaries".to_owned(),
                canaries.to_string(),
                "--alone".to_owned(),
                alone.join(","),
            ];
            // The bench starts and ends Flagger itself.
            let audited = Shape {
                audit: true,
                ..Profile::Full.into()
            };
            let real = Some((audited, "SLIPWAY_REAL_FULL"));
            let whom = Whom::Shipped(Some(programs.path("flagger")?), real);
            measure("bench-canary", &size, &whom, keep)
        }
        Bench::Clusters { members, idle } => {
            let members: Vec<String> = members.iter().map(ToString::to_string).collect();
            let size = [
                "--members".to_owned(),
                members.join(","),
                "--idle".to_owned(),
                idle.to_string(),
            ];
            measure("bench-clusters", &size, &Whom::Own, keep)
        }
        Bench::Fleet { clusters } => {
            let clusters: Vec<String> = clusters.iter().map(ToString::to_string).collect();
            let size = ["--clusters".to_owned(), clusters.join(",")];
            measure("bench-fleet", &size, &Whom::Shipped(None, None), keep)
        }
        Bench::Facts { keys, minutes } => {
            let words = [
                "--keys".to_owned(),
                keys.to_string(),
                "--minutes".to_owned(),
                minutes.to_string(),
            ];
            measure("bench-facts", &words, &Whom::Own, keep)
        }
        Bench::Zones { peer, pods } => {
            let profile = Some((Profile::Full.into(), "SLIPWAY_REAL_FULL"));
            let size = ["--pods".to_owned(), pods.to_string()];
            let whom = Whom::Shipped(peer.as_deref(), profile);
            measure("bench-zones", &size, &whom, keep)
        }
    }
}

/// Whose figures a bench gives.
enum Whom<'a> {
    /// The program's as it is shipped, and another's if one is named, on a control plane of this kind, which is found by that
    /// variable.
    Shipped(Option<&'a Path>, Option<(Shape, &'static str)>),
    /// Those of an operator that is a part of the bench.
    Own,
}

/// Runs a bench, and keeps what it says if that is wanted.
fn measure(program: &str, arguments: &[String], whom: &Whom<'_>, keep: bool) -> Result<()> {
    let mut bench = Command::new(workspace::target().join("release/examples").join(program));
    bench.args(arguments);
    let mut shape = None;
    if let Whom::Shipped(peer, real) = whom {
        bench.env("SLIPWAY_BIN", workspace::build_shipped()?);
        if let Some(peer) = peer {
            bench.arg("--peer").arg(peer);
        }
        shape.clone_from(real);
    }
    let real = shape
        .map(|(shape, variable)| Ok::<_, anyhow::Error>((Borrowed::start(1, &shape)?, variable)))
        .transpose()
        .context("starting a real control plane")?;
    if let Some((real, variable)) = &real {
        let kubectl = controlplane::tools::locate(&Shape::default())?;
        bench
            .env(variable, real.kubeconfig(0))
            .env("SLIPWAY_KUBECTL", kubectl.path("kubectl")?);
    }
    let heading = figures::heading()?;
    report::line(&heading);
    report::line("measuring; this takes some minutes");
    let mut child = bench
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the bench")?;
    let mut said = Vec::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading what the bench says")?;
            report::line(&line);
            said.push(line);
        }
    }
    let ended = child.wait().context("waiting for the bench")?;
    let is_missed = ended.code() == Some(i32::from(MISSED));
    if !ended.success() && !is_missed {
        bail!("the bench ended with {ended}");
    }
    if keep {
        figures::keep(program, &heading, &said)?;
    }
    if is_missed {
        return Err(Missed.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::measured::{self, Earlier, Goal, Row, verdict};

    fn row(name: &str, ours: f64, goal: Goal) -> Row {
        Row {
            name: name.to_owned(),
            unit: "MB",
            ours: Some(ours),
            theirs: None,
            earlier: Some(Earlier::Derived(10.0)),
            goal,
        }
    }

    #[test]
    fn a_missed_goal_ends_with_three_and_is_named() {
        let met = row("memory", 2.0, Goal::Below(0.5));
        assert_eq!(verdict(std::slice::from_ref(&met)).0, 0);
        let (code, line) = verdict(&[met, row("  p99", 7.0, Goal::Most(5.0))]);
        assert_eq!((code, code), (super::MISSED, measured::MISSED));
        assert_eq!(line, "goals: 1 of 2 met; MISSED: p99");
    }

    #[test]
    fn what_was_never_measured_bears_another_mark() {
        let line = row("evictions", 20.0, Goal::None).line();
        assert!(line.contains("10.0~ MB"), "{line}");
    }
}
