//! `cargo xtask bench canary`: what many Canaries without a mesh cost, beside Flagger on the same control plane; and how late ticks
//! come with many more of them, in ours alone.
//!
//! Requests are counted by the API server, in its audit log of the user `measured`. Both have the same flags, and neither elects a
//! leader, as is Flagger's default.

#[path = "canary_load.rs"]
mod load;
#[path = "canary_run.rs"]
mod run;
#[path = "canary_table.rs"]
mod table;
#[path = "canary_ticks.rs"]
mod ticks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::install::{node, printed};
use slipway_e2e::suite::say;
use slipway_e2e::{client, figures};

use load::Load;

/// How long anything may take, at most.
pub(crate) const PATIENCE: Duration = Duration::from_mins(20);
/// How many Canaries a namespace has where ours is alone: thousands in one are nobody's, and cost Kubernetes more than us.
const TOGETHER: usize = 100;
/// How often checks are made; neither goes below it.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Parser)]
struct Arguments {
    /// Flagger's program
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The kubeconfig of a real control plane with KWOK that writes down requests
    #[arg(long, env = "SLIPWAY_REAL_FULL")]
    real: PathBuf,
    /// How many Canaries both have
    #[arg(long, default_value_t = 200)]
    canaries: usize,
    /// How many ours has alone, one run for each number
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 5_000])]
    alone: Vec<usize>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let kubectl = client::all()?.into_iter().next();
    let kubectl = kubectl.context("there is no kubectl")?.program;
    let cluster = Cluster::new(&kubectl, &arguments.real)?;
    for definition in printed(&["crds", "--controllers", "canary"])? {
        cluster.apply(&definition.to_string())?;
    }
    for index in 0..3 {
        cluster.apply(&node(index).to_string())?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let api = runtime.block_on(cluster.client())?;
    let count = arguments.canaries;
    let one = |name: &'static str, original: Option<&Path>| -> Result<run::Figures> {
        let load = Load::within(&runtime, &api, format!("bench-{name}"), count);
        run::measure(name, original, &cluster, &load)
    };
    let theirs = arguments.peer.as_deref();
    let theirs = theirs.map(|flagger| one("flagger", Some(flagger)));
    let theirs = theirs.transpose().context("measuring Flagger")?;
    let ours = one("slipway", None).context("measuring ours")?;
    let mut late = Vec::new();
    for count in arguments.alone {
        let load = Load::spread(&runtime, &api, &format!("bench-{count}"), (count, TOGETHER));
        let measured = ticks::measure(&cluster, &load);
        let measured = measured.with_context(|| format!("measuring {count} Canaries"));
        // Of what was measured before nothing is lost; a goal that nobody has measured is missed.
        late.push(measured.unwrap_or_else(|error| {
            say(&format!("{error:#}"));
            ticks::Lateness::unknown(count)
        }));
    }
    let rows = table::rows(count, &ours, theirs.as_ref(), &late);
    say(&format!("\n{}", figures::title("canary", "Flagger")));
    for row in &rows {
        say(&row.line());
    }
    say(figures::MARKS);
    let (code, line) = figures::verdict(&rows);
    say(&line);
    Ok(ExitCode::from(code))
}

/// The kubeconfig of the user whose requests are counted.
pub(crate) fn measured(kubeconfig: &Path, folder: &Path) -> Result<PathBuf> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    let users = config.pointer_mut("/users").and_then(Value::as_array_mut);
    for user in users.into_iter().flatten() {
        user["user"] = json!({"token": "measured-token"});
    }
    let path = folder.join("kubeconfig");
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}
