//! `cargo xtask bench facts`: what it costs to ask the world outside.
//!
//! The operator is alone in its process, with the production runtime and one small capability: each of many `ConfigMap`s asks
//! three questions every ten seconds, a query of Prometheus and two webhooks, and does nothing with the answers. The API server
//! and whoever is asked are in another process, which sees how late each question comes: when it was due is in its name.

#[path = "facts_operator.rs"]
mod operator;
#[expect(dead_code, reason = "faults and cores are of another bench")]
#[path = "clusters_role.rs"]
mod role;
#[path = "facts_servers.rs"]
mod servers;
#[path = "facts_watch.rs"]
mod watch;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use serde_json::Value;
use slipway_e2e::process;
use slipway_e2e::suite::say;

use role::Role;

/// Exit code of a bench whose goals are not all met.
const MISSED: u8 = 3;
/// How long a part of the bench may take to say something.
const PATIENCE: Duration = Duration::from_mins(2);
/// What of the time after the start is not counted.
const SETTLE: Duration = Duration::from_secs(15);
/// How many questions a key asks in each period.
const QUESTIONS: usize = 3;

/// What is asked for: lateness in milliseconds, processor time in milliseconds a question, and by which part memory may
/// grow from the first minute on.
const MOST_LATE: f64 = 100.0;
const MOST_TIME: f64 = 0.3;
const MOST_GROWTH: f64 = 1.1;

#[derive(Debug, Parser)]
struct Arguments {
    /// How many keys
    #[arg(long, default_value_t = 1_000)]
    keys: usize,
    /// For how many minutes; memory is looked at after 1, 5 and 10
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    #[command(subcommand)]
    role: Option<Part>,
}

/// What a process of the bench does. Nobody but the bench itself asks for one.
#[derive(Debug, Subcommand)]
enum Part {
    /// Serves home, and whoever is asked
    #[command(hide = true)]
    Servers {
        /// How many keys
        count: usize,
    },
    /// Runs the operator
    #[command(hide = true)]
    Operator,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Part::Servers { count }) => servers::run(count).map(|()| ExitCode::SUCCESS),
        Some(Part::Operator) => operator::run().map(|()| ExitCode::SUCCESS),
        None => bench(&arguments),
    }
}

/// What was measured.
struct Figures {
    asked: usize,
    /// In milliseconds, sorted.
    late: Vec<f64>,
    /// Of the operator.
    used: Duration,
    /// After so many minutes, in bytes, with the number of answers that were kept.
    memory: Vec<(u64, u64, u64)>,
}

fn bench(arguments: &Arguments) -> Result<ExitCode> {
    let figures = measure(arguments)?;
    let late = |percent: usize| {
        let place = figures.late.len() * percent / 100;
        let last = figures.late.len().saturating_sub(1);
        figures
            .late
            .get(place.min(last))
            .copied()
            .unwrap_or(f64::NAN)
    };
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let each = figures.used.as_secs_f64() * 1e3 / figures.asked.max(1) as f64;
    say(&format!(
        "{} keys, {QUESTIONS} questions each every {:?}, {} minutes: {} questions",
        arguments.keys,
        watch::EVERY,
        arguments.minutes,
        figures.asked
    ));
    say(&format!(
        "lateness: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        late(50),
        late(99),
        late(100)
    ));
    say(&format!("processor time: {each:.3} ms a question"));
    for (minute, bytes, answers) in &figures.memory {
        #[allow(clippy::cast_precision_loss, reason = "figures for people")]
        let mega = *bytes as f64 / 1e6;
        say(&format!(
            "resident memory after {minute} min: {mega:.1} MB, {answers} answers kept"
        ));
    }
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let growth = match figures.memory.as_slice() {
        [(_, first, _), .., (_, last, _)] => *last as f64 / *first as f64,
        _ => 1.0,
    };
    let mut code = ExitCode::SUCCESS;
    for (what, is, most) in [
        ("lateness p99 in ms", late(99), MOST_LATE),
        ("processor time in ms a question", each, MOST_TIME),
        ("memory, last to first", growth, MOST_GROWTH),
    ] {
        let is_met = is <= most;
        let word = if is_met { "met" } else { "MISSED" };
        say(&format!("goal {word}: {what}: {is:.3}, at most {most}"));
        if !is_met {
            code = ExitCode::from(MISSED);
        }
    }
    Ok(code)
}

fn measure(arguments: &Arguments) -> Result<Figures> {
    let mut servers = Role::start(&["servers".to_owned(), arguments.keys.to_string()])?;
    let home = servers.answer(PATIENCE).context("starting the servers")?;
    let mut operator = Role::start(&["operator".to_owned()])?;
    operator.tell(&home)?;
    std::thread::sleep(SETTLE);
    // What came before is forgotten.
    servers.tell(&Value::Null)?;
    servers.answer(PATIENCE)?;
    let (_, answered_before, failed_before) = said(&mut operator)?;
    let before = process::processor_time(operator.id())?;
    let began = Instant::now();
    let mut memory = Vec::new();
    for minute in [1, 5, 10, arguments.minutes] {
        let is_new = memory.last().is_none_or(|(last, _, _)| *last < minute);
        if minute > arguments.minutes || !is_new {
            continue;
        }
        let until = began + Duration::from_secs(60 * minute);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        let (kept, _, _) = said(&mut operator)?;
        memory.push((minute, process::resident(operator.id())?, kept));
    }
    let used = process::processor_time(operator.id())?.saturating_sub(before);
    servers.tell(&Value::Null)?;
    let late = servers.answer(PATIENCE)?;
    let mut late: Vec<f64> = serde_json::from_value(late).context("reading how late it was")?;
    late.sort_by(f64::total_cmp);
    let periods = Duration::from_secs(60 * arguments.minutes).as_secs() / watch::EVERY.as_secs();
    let expected = usize::try_from(periods)? * arguments.keys * QUESTIONS;
    ensure!(
        late.len() * 100 >= expected * 98,
        "{} questions came, and {expected} were due",
        late.len()
    );
    // Whoever is asked may be asked in vain: what counts is what the operator was told.
    let (kept, answered, failed) = said(&mut operator)?;
    let (answered, failed) = (answered - answered_before, failed - failed_before);
    ensure!(
        answered * 100 >= u64::try_from(expected)? * 98 && failed == 0,
        "{answered} questions were answered and {failed} were not, and {expected} were due"
    );
    ensure!(
        kept >= u64::try_from(arguments.keys)?,
        "{kept} answers are kept for {} keys",
        arguments.keys
    );
    Ok(Figures {
        asked: late.len(),
        late,
        used,
        memory,
    })
}

/// What the operator says of itself: how many answers it keeps, and how many calls were answered and were not.
fn said(operator: &mut Role) -> Result<(u64, u64, u64)> {
    operator.tell(&Value::Null)?;
    let said = operator.answer(PATIENCE)?;
    let number = |field: &str| {
        let found = said.get(field).and_then(Value::as_u64);
        found.with_context(|| format!("the operator does not say {field}"))
    };
    Ok((number("kept")?, number("answered")?, number("failed")?))
}
