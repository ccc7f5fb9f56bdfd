//! `cargo xtask sim`: the simulation for as many seeds as one likes, or one run of it again.

use anyhow::{Context, Result, bail};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many seeds, after every fault at every place
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Only scenarios whose name contains this, or does not, after a `!`
    #[arg(long)]
    scenario: Option<String>,
    /// Leave out the single faults: seeds only
    #[arg(long)]
    no_faults: bool,
    /// Seconds of processor time for the faults of each capability; without it, every position of every scenario is tried,
    /// which takes hours
    #[arg(long)]
    budget: Option<u64>,
    /// One run again, as a failure tells it: 'scenario=X fault=request:17:lost' or 'scenario=X seed=7'
    #[arg(long)]
    replay: Option<String>,
    /// Compiled for speed alone, which takes minutes more and a folder of its own: for runs of hours
    #[arg(long)]
    fast: bool,
}

/// A profile for this command alone: nobody else waits for as long until something is compiled.
const FAST: &[&str] = &[
    "profile.sim.inherits='release'",
    "profile.sim.opt-level=3",
    "profile.sim.lto='thin'",
    "profile.sim.codegen-units=4",
    "profile.sim.incremental=false",
    "profile.sim.debug=false",
    // What the gate's profile compiles quicker is inherited too.
    "profile.sim.package.slipway-api.opt-level=3",
    "profile.sim.package.slipway-fleet.opt-level=3",
    "profile.sim.package.slipway.opt-level=3",
    "profile.sim.package.slipway-runtime.opt-level=3",
];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--workspace"]);
    if arguments.fast {
        command.args(["--profile", "sim"]);
        command.args(FAST.iter().flat_map(|setting| ["--config", setting]));
    } else {
        command.arg("--release");
    }
    command.args(["--test", "simulation", "--"]);
    command.args(words(arguments));
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!("the simulation found something, or could not run");
    }
    Ok(())
}

fn words(arguments: &Arguments) -> Vec<String> {
    if let Some(replay) = &arguments.replay {
        return vec!["--replay".to_owned(), replay.clone()];
    }
    let mut words = vec!["--seeds".to_owned(), arguments.seeds.to_string()];
    match arguments.budget {
        Some(seconds) => words.extend(["--budget".to_owned(), seconds.to_string()]),
        None => words.push("--all".to_owned()),
    }
    words.extend(["--from".to_owned(), arguments.from.to_string()]);
    if let Some(scenario) = &arguments.scenario {
        words.extend(["--scenario".to_owned(), scenario.clone()]);
    }
    if arguments.no_faults {
        words.push("--no-faults".to_owned());
    }
    words
}
