//! `cargo xtask bench clusters`: what an operator costs that works on many clusters.
//!
//! The operator is alone in its process, and the clusters are embedded servers in another one. They share a listener, and each
//! has an address and a token of its own, so that the operator has a connection to each. What it does is as small as can be: a
//! `ConfigMap` in a member that wants something gets it. Measured are memory, connections, tasks, the time until all members are
//! known, the time from a change to the write that follows, and processor time when nothing happens; and how each grows with the
//! number of members. Nothing happens for as long as it takes until each member has been looked at once with a heartbeat and each
//! watch has been opened again; that everything is listed again every half hour is not in it. What misses a goal comes with a
//! profile.

#[path = "clusters_figures.rs"]
mod figures;
#[path = "clusters_flotilla.rs"]
mod flotilla;
mod listener;
#[path = "clusters_operator.rs"]
mod operator;
#[path = "clusters_profile.rs"]
mod profile;
#[allow(dead_code, reason = "tests ask more of it")]
#[path = "clusters_role.rs"]
mod role;
#[path = "clusters_servers.rs"]
mod servers;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use serde_json::Value;
use slipway_e2e::growth::percentile;
use slipway_e2e::process;
use slipway_e2e::suite::say;

use figures::Figures;
use role::Role;

/// How long members may take to be known, at most.
const PATIENCE: Duration = Duration::from_mins(10);
/// What of the time after the start is not counted as idle: the first heartbeats of members come between 225 s and 375 s after
/// it, and each of them counts once if 300 s are looked at from here on.
const SETTLE: Duration = Duration::from_secs(75);

#[derive(Debug, Parser)]
struct Arguments {
    /// How many members, one run for each number
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000])]
    members: Vec<usize>,
    /// How many objects in each
    #[arg(long, default_value_t = 10)]
    objects: usize,
    /// How many changes are followed until the write that comes of them
    #[arg(long, default_value_t = 500)]
    changes: usize,
    /// For how many seconds is looked what it costs when nothing happens; less than 300 s leave heartbeats out
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    #[command(subcommand)]
    role: Option<Part>,
}

/// What a process of the bench does. Nobody but the bench itself asks for one.
#[derive(Debug, Subcommand)]
enum Part {
    /// Serves home and members
    #[command(hide = true)]
    Servers {
        /// How many members
        count: usize,
        /// How many objects in each
        objects: usize,
    },
    /// Runs the operator
    #[command(hide = true)]
    Operator,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Part::Servers { count, objects }) => {
            servers::run(count, objects).map(|()| ExitCode::SUCCESS)
        }
        Some(Part::Operator) => operator::run().map(|()| ExitCode::SUCCESS),
        None => bench(&arguments),
    }
}

fn bench(arguments: &Arguments) -> Result<ExitCode> {
    let mut all = Vec::new();
    for members in &arguments.members {
        let measured = measure(*members, arguments);
        all.push(measured.with_context(|| format!("measuring {members} members"))?);
    }
    for line in figures::table(&all) {
        say(&line);
    }
    let mut code = ExitCode::SUCCESS;
    for (line, is_missed) in figures::goals(&all) {
        say(&line);
        if is_missed {
            code = ExitCode::from(slipway_e2e::figures::MISSED);
        }
    }
    Ok(code)
}

fn measure(members: usize, arguments: &Arguments) -> Result<Figures> {
    say(&format!("{members} members: filling them"));
    let words = [
        "servers".to_owned(),
        members.to_string(),
        arguments.objects.to_string(),
    ];
    let mut servers = Role::start(&words)?;
    let home = servers.answer(PATIENCE)?;
    say(&format!("{members} members: starting the operator"));
    let idle = Duration::from_secs(arguments.idle);
    let began = Instant::now();
    let mut operator = Role::start(&["operator".to_owned()])?;
    operator.tell(&home)?;
    known(&mut operator, members, began)?;
    let start = began.elapsed();
    say(&format!("{members} members: known after {start:.1?}"));
    std::thread::sleep(SETTLE.min(idle));
    let before = asked(&mut operator)?;
    let worked = process::processor_time(operator.id())?;
    std::thread::sleep(idle);
    let used = process::processor_time(operator.id())?.saturating_sub(worked);
    let after = asked(&mut operator)?;
    let resident = process::resident(operator.id())?;
    let connections = process_sockets(operator.id())?;
    servers.tell(&Value::from(arguments.changes))?;
    let delays = servers.answer(PATIENCE)?;
    let delays: Vec<f64> = serde_json::from_value(delays).context("reading the delays")?;
    ensure!(!delays.is_empty(), "no change was followed by a write");
    let figures = Figures {
        members,
        resident: resident.max(process::resident(operator.id())?),
        most_resident: process::most_resident(operator.id())?,
        connections,
        tasks: number(&after, "tasks"),
        start,
        p50: percentile(&delays, 50),
        p99: percentile(&delays, 99),
        idle: used.as_secs_f64() / idle.as_secs_f64(),
        servers: process::resident(servers.id())?,
    };
    let goals = figures::of_size(&figures);
    if goals.iter().any(|(_, is_missed)| *is_missed) {
        let metrics = |said: &Value| text(said, "metrics");
        for line in profile::of(operator.id(), members, &metrics(&before), &metrics(&after)) {
            say(&line);
        }
    }
    Ok(figures)
}

fn number(said: &Value, field: &str) -> u64 {
    said.get(field).and_then(Value::as_u64).unwrap_or_default()
}

fn text(said: &Value, field: &str) -> String {
    let found = said.get(field).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// All that the operator says of itself.
fn asked(operator: &mut Role) -> Result<Value> {
    operator.tell(&Value::from(operator::WHY))?;
    operator.answer(PATIENCE)
}

/// Waits until the operator knows all members.
fn known(operator: &mut Role, members: usize, began: Instant) -> Result<()> {
    loop {
        operator.tell(&Value::Null)?;
        let synced = number(&operator.answer(PATIENCE)?, "synced");
        if usize::try_from(synced)? >= members {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let why = &asked(operator)?[operator::WHY];
            bail!("only {synced} of {members} members are known after {PATIENCE:?}: {why}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How many sockets a process has.
fn process_sockets(id: u32) -> Result<u64> {
    let folder = format!("/proc/{id}/fd");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {folder}"))? {
        // One that was closed in this very moment has no target any more.
        let target = std::fs::read_link(entry?.path()).unwrap_or_default();
        count += u64::from(target.to_string_lossy().starts_with("socket:"));
    }
    Ok(count)
}
