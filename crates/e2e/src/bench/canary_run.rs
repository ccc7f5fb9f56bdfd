//! Many Canaries in one of the two: what they cost when idle, and one run of all of them at once.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::figures::number;
use slipway_e2e::operator::Operator;
use slipway_e2e::process::Folder;
use slipway_e2e::suite::say;

use crate::load::Load;
use crate::{INTERVAL, measured};

/// What is still said about what came before is not idleness.
const SETTLES: Duration = Duration::from_secs(30);
/// How many ticks idleness is looked at.
const TICKS: u32 = 6;

/// All figures of one of them.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// For a Canary and tick, when nothing is new.
    pub(crate) idle_calls: f64,
    /// The same, in milliseconds.
    pub(crate) idle_processor: f64,
    /// From the new image to the end, in seconds: the one in the middle, and the last.
    pub(crate) middle: f64,
    pub(crate) last: f64,
    /// For a Canary and run.
    pub(crate) calls: f64,
    /// For a Canary and run, in milliseconds.
    pub(crate) processor: f64,
    /// In bytes, after the run.
    pub(crate) resident: u64,
}

/// Measures ours, or the original.
pub(crate) fn measure(
    name: &str,
    original: Option<&Path>,
    cluster: &Cluster,
    load: &Load<'_>,
) -> Result<Figures> {
    let count = load.count;
    say(&format!("{name}: {count} Canaries begin"));
    load.create(&json!({"interval": "10s", "threshold": 5, "iterations": 6}))?;
    let folder = Folder::new("measured")?;
    let kubeconfig = measured(&cluster.kubeconfig, folder.path())?;
    let here = format!("-namespace={}", load.namespaces());
    let flags = [
        here.as_str(),
        "-mesh-provider=kubernetes",
        "-log-level=info",
        // Nobody asks it.
        "-metrics-server=http://127.0.0.1:9",
    ];
    let mut operator = Operator::flagger(original, &kubeconfig, &flags)?;
    operator.wait_until_healthy(crate::PATIENCE)?;
    load.until("Initialized").with_context(|| tail(&operator))?;
    std::thread::sleep(SETTLES);
    say(&format!("{name}: idle"));
    let (calls, processor) = (requests(cluster)?, operator.processor_time()?);
    std::thread::sleep(INTERVAL * TICKS);
    let idle_calls = requests(cluster)? - calls;
    let idle_processor = operator.processor_time()?.saturating_sub(processor);
    say(&format!("{name}: a new image for all"));
    let (calls, processor) = (requests(cluster)?, operator.processor_time()?);
    let began = std::time::Instant::now();
    load.release("app:2")?;
    // From when half of them had it.
    let before = began.elapsed() / 2;
    let ends = load.until("Succeeded").with_context(|| tail(&operator))?;
    let at = |place: usize| {
        let end = ends.get(place).copied().unwrap_or_default();
        (end + before).as_secs_f64()
    };
    std::thread::sleep(Duration::from_secs(5));
    let calls = requests(cluster)? - calls;
    let processor = operator.processor_time()?.saturating_sub(processor);
    let resident = operator.resident()?;
    operator.kill()?;
    load.remove()?;
    let each = number(count);
    Ok(Figures {
        idle_calls: number(idle_calls) / each / f64::from(TICKS),
        idle_processor: idle_processor.as_secs_f64() * 1e3 / each / f64::from(TICKS),
        middle: at(count / 2),
        last: at(count.saturating_sub(1)),
        calls: number(calls) / each,
        processor: processor.as_secs_f64() * 1e3 / each,
        resident,
    })
}

/// How many requests of the one who is measured the API server has written down.
fn requests(cluster: &Cluster) -> Result<usize> {
    let home = cluster.kubeconfig.parent();
    let path = home
        .context("a kubeconfig without a folder")?
        .join("audit.log");
    let file = std::fs::File::open(&path);
    let file = file.with_context(|| format!("opening {}", path.display()))?;
    Ok(BufReader::new(file).lines().count())
}

/// The end of a log.
pub(crate) fn tail(operator: &Operator) -> String {
    let log = operator.log();
    let end: Vec<&str> = log.lines().rev().take(20).collect();
    end.join("\n")
}
