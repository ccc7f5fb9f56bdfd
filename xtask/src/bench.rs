//! `cargo xtask bench`: figures, side by side on the embedded and on a real server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile, Shape};
use crate::report;
use crate::workspace;

#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// The API server: start, requests, watches, lists and memory, beside a real kube-apiserver
    Apiserver {
        /// How many objects are listed, and weighed
        #[arg(long, default_value_t = 100_000)]
        objects: usize,
        /// Leave out the real API server
        #[arg(long)]
        no_controlplane: bool,
    },
    /// Restarts of many Deployments: memory, processor time, delay from due to patched, writes
    Restarts {
        /// How many Deployments
        #[arg(long, default_value_t = 10_000)]
        deployments: usize,
        /// Another operator's program, measured in the same way
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

pub(crate) fn run(bench: &Bench) -> Result<()> {
    workspace::build_programs()?;
    match bench {
        Bench::Apiserver {
            objects,
            no_controlplane,
        } => {
            let profile = (!no_controlplane).then_some((Profile::Bare, "SLIPWAY_REAL_BARE"));
            let size = ["--objects".to_owned(), objects.to_string()];
            measure("bench-apiserver", &size, None, profile)
        }
        Bench::Restarts {
            deployments,
            peer,
            no_controlplane,
        } => {
            let profile = (!no_controlplane).then_some((Profile::Bare, "SLIPWAY_REAL_BARE"));
            let size = ["--deployments".to_owned(), deployments.to_string()];
            measure("bench-restarts", &size, peer.as_deref(), profile)
        }
        Bench::Clusters { members } => {
            let members: Vec<String> = members.iter().map(ToString::to_string).collect();
            let size = ["--members".to_owned(), members.join(",")];
            measure("bench-clusters", &size, None, None)
        }
        Bench::Zones { peer, pods } => {
            let profile = Some((Profile::Full, "SLIPWAY_REAL_FULL"));
            let size = ["--pods".to_owned(), pods.to_string()];
            measure("bench-zones", &size, peer.as_deref(), profile)
        }
    }
}

/// Runs a bench beside a control plane of this kind, which it finds by that variable.
fn measure(
    program: &str,
    arguments: &[String],
    peer: Option<&Path>,
    profile: Option<(Profile, &str)>,
) -> Result<()> {
    let mut bench = Command::new(workspace::target().join("release/examples").join(program));
    bench
        .args(arguments)
        .env("SLIPWAY_BIN", workspace::build_shipped()?);
    if let Some(peer) = peer {
        bench.arg("--peer").arg(peer);
    }
    let real = profile
        .map(|(profile, variable)| {
            Ok::<_, anyhow::Error>((Borrowed::start(1, &profile.into())?, variable))
        })
        .transpose()
        .context("starting a real control plane")?;
    if let Some((real, variable)) = &real {
        let kubectl = controlplane::tools::locate(&Shape::default())?;
        bench
            .env(variable, real.kubeconfig(0))
            .env("SLIPWAY_KUBECTL", kubectl.path("kubectl")?);
    }
    report::line("measuring; this takes some minutes");
    let ended = bench.status().context("starting the bench")?;
    if !ended.success() {
        bail!("the bench ended with {ended}");
    }
    Ok(())
}
