//! `cargo xtask bench fleet`: what the fleet costs over many clusters.
//!
//! `slipway run --controllers fleet` is alone in its process, and hub and leaves are embedded servers in another one. In each leaf
//! somebody stands in for the agent and for Flux: whatever is assigned is applied and healthy at once. Measured are memory, the
//! time until a new process knows all (with the API's own time for lists in it), one incremental rollout over some of the clusters,
//! the time from a change of an assignment to the switch in its cluster (as people outside see it, the API's own time in it), how
//! much of that is between the two writes, where it is the operator's turn, and how much the hub writes.

#[path = "fleet_leaf.rs"]
mod leaf;
mod listener;
#[expect(dead_code, reason = "faults and cores are of another bench")]
#[path = "clusters_role.rs"]
mod role;
#[path = "fleet_servers.rs"]
mod servers;
#[path = "fleet_table.rs"]
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use slipway_e2e::growth::percentile;
use slipway_e2e::operator::Operator;
use slipway_e2e::process::{self, Folder};
use slipway_e2e::suite::say;

use leaf::PLACE;
use role::Role;
use servers::Sizes;
use table::Figures;

/// The servers are in the same program: what they take of the processors is taken from the operator, which has the allocator of its own
/// program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long anything may take, at most.
const PATIENCE: Duration = Duration::from_mins(10);
/// Between two looks whether the operator knows all.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Parser)]
struct Arguments {
    /// How many clusters, one run for each number
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000])]
    clusters: Vec<usize>,
    /// How many assignments each of them has
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=1000))]
    assignments: u64,
    /// How many of them one rollout is for
    #[arg(long, default_value_t = 100)]
    rollout: usize,
    /// How many changes are followed until the switch
    #[arg(long, default_value_t = 300)]
    changes: usize,
    #[command(subcommand)]
    role: Option<Part>,
}

/// What a process of the bench does. Nobody but the bench itself asks for one.
#[derive(Debug, Subcommand)]
enum Part {
    /// Serves the hub and the leaves
    #[command(hide = true)]
    Servers(Sizes),
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Part::Servers(sizes)) = arguments.role {
        return servers::run(sizes).map(|()| ExitCode::SUCCESS);
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
    for (line, is_missed) in table::goals(&all) {
        say(&line);
        if is_missed {
            code = ExitCode::from(slipway_e2e::figures::MISSED);
        }
    }
    Ok(code)
}

fn measure(clusters: usize, arguments: &Arguments) -> Result<Figures> {
    say(&format!("{clusters} clusters: filling them"));
    let sizes = [
        clusters.to_string(),
        arguments.assignments.to_string(),
        arguments.rollout.min(clusters).to_string(),
    ];
    let mut servers = Role::start(&[&["servers".to_owned()][..], &sizes].concat())?;
    let home = servers.answer(PATIENCE)?;
    let folder = Folder::new("bench-fleet")?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, home.as_str().context("home is no text")?)?;
    say(&format!("{clusters} clusters: assigning from nothing"));
    let (operator, began) = start(&kubeconfig)?;
    asked(&mut servers, &operator, &json!("steady"))?;
    let assigned = began.elapsed();
    asked(&mut servers, &operator, &json!({"roll": "v1"}))?;
    operator.terminate()?;
    say(&format!(
        "{clusters} clusters: assigned after {assigned:.1?}; starting anew"
    ));
    let (operator, began) = start(&kubeconfig)?;
    known(&operator, clusters, began)?;
    let start = began.elapsed();
    let resident = operator.resident()?;
    say(&format!("{clusters} clusters: known after {start:.1?}"));
    let rolled = asked(&mut servers, &operator, &json!({"roll": "v2"}))?;
    let number = |field: &str| rolled.get(field).and_then(Value::as_f64);
    let number = |field: &str| number(field).with_context(|| format!("nobody says {field}"));
    let followed = json!({"follow": arguments.changes});
    let delays = asked(&mut servers, &operator, &followed)?;
    let delays = |of: &str| -> Result<Vec<f64>> {
        let found = delays.get(of).cloned().unwrap_or_default();
        serde_json::from_value(found).with_context(|| format!("reading {of}"))
    };
    let (switches, requests) = (delays("switches")?, delays("requests")?);
    Ok(Figures {
        clusters,
        resident: resident.max(operator.resident()?),
        most: process::most_resident(operator.id())?,
        assigned,
        start,
        rollout: number("seconds")?,
        p50: percentile(&switches, 50),
        p99: percentile(&switches, 99),
        ours_p50: percentile(&requests, 50),
        ours_p99: percentile(&requests, 99),
        specs: number("specs")?,
        statuses: number("statuses")?,
        others: number("others")?,
        servers: process::resident(servers.id())?,
    })
}

/// Starts the operator. Its Lease is where the fleet is: there is no other namespace in the hub.
fn start(kubeconfig: &Path) -> Result<(Operator, Instant)> {
    let began = Instant::now();
    let words = ["--controllers", "fleet", "--operator-namespace", PLACE];
    Ok((Operator::start(kubeconfig, &words)?, began))
}

/// Waits until the operator knows all clusters, acts, and has nothing to do.
fn known(operator: &Operator, clusters: usize, began: Instant) -> Result<()> {
    loop {
        let metrics = operator.get("/metrics").unwrap_or_default();
        let value = |name: &str| {
            let of = metrics.lines().filter(|line| line.starts_with(name));
            let values = of.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.sum::<f64>()
        };
        #[allow(clippy::cast_precision_loss, reason = "numbers of clusters are small")]
        let is_known = value("slipway_members{state=\"Ready\"}") >= clusters as f64;
        let is_idle = value("slipway_leader{") > 0.0 && value("slipway_queue_depth{") < 1.0;
        if is_known && is_idle {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!(
                "not all clusters are known after {PATIENCE:?}: {}",
                tail(operator)
            );
        }
        std::thread::sleep(PAUSE);
    }
}

/// What the servers say to this, or else what the operator said last.
fn asked(servers: &mut Role, operator: &Operator, what: &Value) -> Result<Value> {
    servers.tell(what)?;
    servers
        .answer(PATIENCE)
        .with_context(|| format!("{what}: the operator says {}", tail(operator)))
}

fn tail(operator: &Operator) -> String {
    let log = operator.log();
    let lines: Vec<&str> = log.lines().rev().take(20).collect();
    lines.join("\n")
}
