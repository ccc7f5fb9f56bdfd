//! `cargo xtask bench restarts`: what the operator costs with many Deployments, on the embedded and on the real server.
//!
//! Neither server has controllers here: what is measured is the operator and the API. All Deployments become due one
//! after another over a minute, as they would in a day that is long past their creation; then nothing is due for a
//! while; then all of them become due at once.
//!
//! Beside a peer both are measured twice, in turns (`restarts_turns.rs`).

mod load;
mod measure;
mod table;
#[path = "restarts_turns.rs"]
mod turns;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use slipway_e2e::client;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::operator::Operator;
use slipway_e2e::server::Embedded;

use crate::load::Load;
use crate::turns::Measurement;

#[derive(Debug, Parser)]
struct Arguments {
    /// How many Deployments
    #[arg(long, default_value_t = 10_000)]
    deployments: usize,
    /// Another operator's program, measured in the same way; it finds the cluster by KUBECONFIG
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The kubeconfig of a real kube-apiserver without controllers
    #[arg(long, env = "SLIPWAY_REAL_BARE")]
    real: Option<PathBuf>,
}

/// Time from the start of the operator to the first due restart.
const LEAD: SignedDuration = SignedDuration::from_secs(20);
/// Restarts are spread over this time.
const SPREAD: SignedDuration = SignedDuration::from_secs(60);
/// How long nothing is due.
const IDLE: Duration = Duration::from_secs(30);
/// Every restart policy's interval, long enough for one restart each.
const INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Who is measured.
#[derive(Debug, Clone)]
enum Contender {
    Slipway,
    Peer(PathBuf),
}

impl Contender {
    fn name(&self) -> String {
        match self {
            Self::Slipway => "slipway".to_owned(),
            Self::Peer(path) => path
                .file_name()
                .map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the bench's runtime")?;
    let kubectl = client::all()?
        .into_iter()
        .next()
        .context("there is no kubectl")?
        .program;
    table::note(&slipway_e2e::figures::machine());
    let mut contenders = vec![Contender::Slipway];
    contenders.extend(arguments.peer.clone().map(Contender::Peer));
    let turns: Vec<(usize, &Contender)> = turns::turns(contenders.len())
        .into_iter()
        .filter_map(|at| Some((at, contenders.get(at)?)))
        .collect();
    let mut runs = Vec::new();
    for (at, contender) in &turns {
        let embedded = Embedded::start(&["--no-controllers"])?;
        let kubeconfig = slipway_e2e::server::Server::kubeconfig(&embedded).to_owned();
        let run = bench("embedded", &kubectl, &kubeconfig, contender, &arguments);
        runs.push((*at, runtime.block_on(run)?));
        embedded.stop()?;
        if let Some(real) = &arguments.real {
            let run = bench("real", &kubectl, real, contender, &arguments);
            runs.push((*at, runtime.block_on(run)?));
        }
    }
    table::print(&turns::columns(runs), arguments.deployments);
    if turns.len() > 1 {
        let order: Vec<String> = turns.iter().map(|(_, who)| who.name()).collect();
        table::note(&format!(
            "measured in turns ({}): times, processor and memory are the better of a contender's two runs, what was written the most of both",
            order.join(", ")
        ));
        table::note(
            "slipway elects a leader and has its own role; its peer elects none (--leader-elect=false) and may do everything",
        );
    }
    if arguments.peer.is_none() {
        table::note("no peer given: name another operator's program with --peer PATH");
    }
    if arguments.real.is_none() {
        table::note(
            "no real API server given: set SLIPWAY_REAL_BARE or use `cargo xtask bench restarts`",
        );
    }
    Ok(())
}

async fn bench(
    server: &'static str,
    kubectl: &Path,
    kubeconfig: &Path,
    contender: &Contender,
    arguments: &Arguments,
) -> Result<Measurement> {
    let cluster = Cluster::new(kubectl, kubeconfig)?;
    let name = contender.name();
    table::note(&format!(
        "{server}, {name}: installing, and creating {} Deployments",
        arguments.deployments
    ));
    let load = Load::install(&cluster).await?;
    let first_due = Timestamp::now()
        + LEAD
        + SignedDuration::from_secs(Load::creation_time(arguments.deployments));
    load.create(arguments.deployments, first_due, SPREAD, INTERVAL)
        .await?;
    let mut counts = measure::Counts::start(&load).await?;
    let operator = match contender {
        Contender::Slipway => {
            let account = cluster.service_account("rollout", "controller-manager")?;
            let arguments = [
                "--controllers",
                "restarts",
                "--operator-namespace",
                "rollout",
            ];
            let mut operator = Operator::start(&account, &arguments)?;
            operator.wait_until_ready(Duration::from_mins(2))?;
            operator
        }
        Contender::Peer(path) => Operator::peer(path, kubeconfig, &["--leader-elect=false"])?,
    };
    let late = (Timestamp::now().duration_since(first_due)).is_positive();
    let spread = counts
        .restarts(
            arguments.deployments,
            first_due,
            SPREAD + SignedDuration::from_mins(3),
        )
        .await?;
    let idle = counts.idle(&operator, IDLE).await?;
    table::note(&format!("{server}, {name}: making all of them due at once"));
    let herd = counts.herd(&load, arguments.deployments).await?;
    let measurement = Measurement {
        server,
        contender: name,
        started_late: late,
        spread,
        idle,
        herd,
        resident: operator.resident()?,
        processor: operator.processor_time()?,
    };
    drop(operator);
    Load::remove(&cluster)?;
    Ok(measurement)
}
