//! `cargo xtask fuzz`: all fuzz targets for as many cases as one likes, or one case again.

use anyhow::{Context, Result, bail};

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this target
    #[arg(long)]
    target: Option<String>,
    /// How many cases of each target
    #[arg(long, default_value_t = 1_000_000)]
    cases: u64,
    /// Other cases than those of the test command
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One case again, as a failure tells it: 'apply:00ff17'
    #[arg(long)]
    replay: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--release", "--quiet"]);
    command.args(programs(arguments));
    command.args(["--test", "fuzz", "--"]);
    command.args(words(arguments));
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!(
            "fuzzing found something, or could not run; a case that ended the process is told by the next run"
        );
    }
    Ok(())
}

/// The programs to be run: all, or that of a target, which its name begins with unless it is of the API server.
fn programs(arguments: &Arguments) -> Vec<&'static str> {
    let named = arguments.target.as_deref().or(arguments.replay.as_deref());
    match named {
        None => vec!["--workspace"],
        Some(name) if name.starts_with("bindings-") => vec!["-p", "slipway-bindings"],
        Some(_) => vec!["-p", "slipway-apiserver"],
    }
}

fn words(arguments: &Arguments) -> Vec<String> {
    if let Some(replay) = &arguments.replay {
        return vec!["--replay".to_owned(), replay.clone()];
    }
    let mut words = vec!["--cases".to_owned(), arguments.cases.to_string()];
    words.extend(["--seed".to_owned(), arguments.seed.to_string()]);
    if let Some(target) = &arguments.target {
        words.extend(["--target".to_owned(), target.clone()]);
    }
    words
}
