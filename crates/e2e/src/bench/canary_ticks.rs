//! How late ticks come: many Canaries are held at a gate that is asked with every tick, and whoever keeps it sees when.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use slipway_e2e::cluster::Cluster;
use slipway_e2e::gates::Gates;
use slipway_e2e::operator::Operator;
use slipway_e2e::suite::say;

use crate::load::Load;
use crate::run::tail;
use crate::{INTERVAL, PATIENCE};

/// The gate.
const GATE: &str = "promotion";
/// How many ticks are looked at.
const TICKS: u32 = 6;

/// How late.
#[derive(Debug, Clone)]
pub(crate) struct Lateness {
    pub(crate) count: usize,
    /// In milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// In bytes.
    pub(crate) resident: u64,
    /// For a Canary and tick, in milliseconds.
    pub(crate) processor: f64,
}

impl Lateness {
    /// Of so many, when it could not be measured: nothing meets a goal.
    pub(crate) fn unknown(count: usize) -> Self {
        Self {
            count,
            p50: f64::NAN,
            p99: f64::NAN,
            resident: 0,
            processor: f64::NAN,
        }
    }
}

/// Measures ours with so many Canaries.
pub(crate) fn measure(cluster: &Cluster, load: &Load<'_>) -> Result<Lateness> {
    let count = load.count;
    say(&format!("slipway: {count} Canaries begin"));
    let gates = Gates::start()?;
    gates.set(GATE, false);
    let hooks = json!([gates.webhook("confirm-promotion", GATE)]);
    let analysis = json!({"interval": "10s", "threshold": 5, "iterations": 1, "webhooks": hooks});
    load.create(&analysis)?;
    let how = ["--controllers", "canary", "--no-leader-elect"];
    let outside = ["--call-special", "127.0.0.1"];
    let words = [&how[..], &outside].concat();
    let mut operator = Operator::start(&cluster.kubeconfig, &words)?;
    operator.wait_until_ready(PATIENCE)?;
    load.until("Initialized").with_context(|| tail(&operator))?;
    load.release("app:2")?;
    load.until("WaitingPromotion")
        .with_context(|| tail(&operator))?;
    say(&format!("slipway: {count} Canaries tick"));
    // Whatever was to be said when they came here is over.
    std::thread::sleep(INTERVAL * 2);
    let due = due(load)?;
    let processor = operator.processor_time()?;
    gates.take();
    std::thread::sleep(INTERVAL * TICKS);
    let calls = gates.take();
    let processor = operator.processor_time()?.saturating_sub(processor);
    let expected = count * usize::try_from(TICKS)?;
    // One may lie on either edge.
    ensure!(
        calls.len() + count >= expected && calls.len() <= expected + count,
        "{} ticks came, and not {expected}: {}",
        calls.len(),
        tail(&operator)
    );
    let mut late: Vec<f64> = Vec::new();
    for call in &calls {
        let name = call.body["name"].as_str().unwrap_or_default();
        let due = due.get(name).context("somebody unknown ticks")?;
        let since = call.at.duration_since(*due).as_secs_f64();
        late.push(since.rem_euclid(INTERVAL.as_secs_f64()) * 1e3);
    }
    late.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let place = (late.len() * percent / 100).min(late.len().saturating_sub(1));
        late.get(place).copied().unwrap_or(f64::NAN)
    };
    let resident = operator.resident()?;
    operator.kill()?;
    load.remove()?;
    let each = slipway_e2e::figures::number(count);
    Ok(Lateness {
        count,
        p50: at(50),
        p99: at(99),
        resident,
        processor: processor.as_secs_f64() * 1e3 / each / f64::from(TICKS),
    })
}

/// When each was due once; all its ticks are so many intervals later.
fn due(load: &Load<'_>) -> Result<BTreeMap<String, Timestamp>> {
    let all = load.canaries()?.into_iter().map(|(name, one)| {
        let due = one.pointer("/status/run/due").and_then(Value::as_str);
        let due = due.with_context(|| format!("{name} has nothing due"))?;
        Ok((name, due.parse()?))
    });
    all.collect()
}
