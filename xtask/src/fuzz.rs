//! `cargo xtask fuzz`: the fuzz targets of all crates for as many cases as one likes, or one case again.

use std::process::Command;

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
    let replayed = arguments
        .replay
        .as_deref()
        .and_then(|case| case.split(':').next());
    if let Some(wanted) = arguments.target.as_deref().or(replayed) {
        // Each program passes over targets of the others, so that nobody would notice one that none has.
        let names = names()?;
        if !names.iter().any(|name| name == wanted) {
            bail!(
                "there is no target {wanted}; there are {}",
                names.join(", ")
            );
        }
    }
    let mut command = programs();
    command.args(words(arguments));
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!(
            "fuzzing found something, or could not run; a case that ended the process is told by the next run"
        );
    }
    Ok(())
}

/// All programs of fuzz targets, before what they are told.
fn programs() -> Command {
    let mut command = workspace::cargo();
    // What one program finds keeps no other from looking.
    command.args(["test", "--release", "--quiet", "--no-fail-fast"]);
    command.args(["--workspace", "--test", "fuzz", "--"]);
    command
}

/// The targets of all programs.
fn names() -> Result<Vec<String>> {
    let output = programs().arg("--list").output();
    let output = output.context("starting cargo")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text
        .lines()
        .filter_map(|line| line.strip_suffix(": target"));
    Ok(names.map(str::to_owned).collect())
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
