//! `cargo xtask bench fleet`: what the fleet costs over many clusters.
//!
//! `slipway run --controllers fleet` is alone in its process, and hub and leaves are embedded servers in another one. In each leaf
//! somebody stands in for the agent and for Flux: whatever is assigned is applied and healthy at once. Measured are memory, the
//! time until all is known and told after a start, one incremental rollout over some of the clusters, the time from a leaf's news
//! to what the hub writes of it, and how much the hub writes.

#[expect(dead_code, reason = "faults and cores are of another bench")]
#[path = "clusters_role.rs"]
mod role;
#[path = "fleet_servers.rs"]
mod servers;
#[path = "fleet_table.rs"]
mod table;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use slipway_e2e::operator::Operator;
use slipway_e2e::process::Folder;
use slipway_e2e::suite::say;

use role::Role;
use table::Figures;

/// Exit code of a bench whose goals are not all met.
const MISSED: u8 = 3;
/// How long anything may take, at most.
const PATIENCE: Duration = Duration::from_mins(10);

#[derive(Debug, Parser)]
struct Arguments {
    /// How many clusters, one run for each number
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
    clusters: Vec<usize>,
    /// How many assignments each of them has
    #[arg(long, default_value_t = 100)]
    assignments: usize,
    /// How many of them one rollout is for
    #[arg(long, default_value_t = 100)]
    rollout: usize,
    #[command(subcommand)]
    role: Option<Part>,
}

/// What a process of the bench does. Nobody but the bench itself asks for one.
#[derive(Debug, Subcommand)]
enum Part {
    /// Serves the hub and the leaves
    #[command(hide = true)]
    Servers {
        /// How many leaves
        count: usize,
        /// How many assignments each
        assignments: usize,
        /// How many of them the rollout is for
        rollout: usize,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Part::Servers {
        count,
        assignments,
        rollout,
    }) = arguments.role
    {
        return servers::run(count, assignments, rollout).map(|()| ExitCode::SUCCESS);
    }
    let mut all = Vec::new();
    for clusters in &arguments.clusters {
        let measured = measure(*clusters, &arguments);
        all.push(measured.with_context(|| format!("measuring {clusters} clusters"))?);
    }
    for line in table::lines(&all) {
        say(&line);
    }
    let mut code = ExitCode::SUCCESS;
    for (line, is_met) in table::goals(&all) {
        say(&line);
        if !is_met {
            code = ExitCode::from(MISSED);
        }
    }
    Ok(code)
}

fn measure(clusters: usize, arguments: &Arguments) -> Result<Figures> {
    say(&format!("{clusters} clusters: filling them"));
    let rollout = arguments.rollout.min(clusters);
    let words = ["servers".to_owned()];
    let numbers = [clusters, arguments.assignments, rollout].map(|number| number.to_string());
    let mut servers = Role::start(&[&words[..], &numbers[..]].concat())?;
    let home = servers.answer(PATIENCE)?;
    let folder = Folder::new("bench-fleet")?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, home.as_str().context("home is no text")?)?;
    say(&format!("{clusters} clusters: starting the operator"));
    let began = Instant::now();
    let operator = Operator::start(&kubeconfig, &["--controllers", "fleet"])?;
    asked(&mut servers, "steady").with_context(|| operator.log())?;
    let start = began.elapsed();
    let resident = operator.resident()?;
    say(&format!(
        "{clusters} clusters: all is told after {start:.1?}"
    ));
    asked(&mut servers, "first").with_context(|| operator.log())?;
    let rolled = asked(&mut servers, "second").with_context(|| operator.log())?;
    let number = |field: &str| {
        rolled
            .get(field)
            .and_then(Value::as_f64)
            .unwrap_or(f64::NAN)
    };
    let most = slipway_e2e::process::most_resident(operator.id())?;
    Ok(Figures {
        clusters,
        resident,
        most,
        start,
        rollout: number("seconds"),
        p50: number("p50"),
        p99: number("p99"),
        writes: number("writes"),
    })
}

fn asked(servers: &mut Role, what: &str) -> Result<Value> {
    servers.tell(&json!(what))?;
    servers.answer(PATIENCE)
}
