//! `cargo xtask bench`: figures, side by side on the embedded and on a real server.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile};
use crate::report;
use crate::workspace;

#[derive(clap::Subcommand)]
pub(crate) enum Bench {
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
}

pub(crate) fn run(bench: &Bench) -> Result<()> {
    let Bench::Restarts {
        deployments,
        peer,
        no_controlplane,
    } = bench;
    let built = workspace::cargo()
        .args(["build", "--release", "--quiet", "--workspace", "--bins"])
        .status()
        .context("building the programs to measure")?;
    if !built.success() {
        bail!("building the programs to measure failed");
    }
    let real = if *no_controlplane {
        None
    } else {
        Some(Borrowed::start(1, Profile::Bare).context("starting a real API server")?)
    };
    let mut bench = Command::new(workspace::target().join("release/bench-restarts"));
    bench.args(["--deployments", &deployments.to_string()]);
    if let Some(peer) = peer {
        bench.arg("--peer").arg(peer);
    }
    if let Some(real) = &real {
        bench.env("SLIPWAY_REAL_BARE", real.kubeconfig(0)).env(
            "SLIPWAY_KUBECTL",
            controlplane::tools::locate()?.path("kubectl")?,
        );
    }
    report::line("measuring; this takes some minutes");
    let ended = bench.status().context("starting the bench")?;
    if !ended.success() {
        bail!("the bench ended with {ended}");
    }
    Ok(())
}
