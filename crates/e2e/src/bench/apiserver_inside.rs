//! The server inside of a process, as simulations use it: no socket, no TLS, one thread.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use slipway_apiserver::cluster::{Cluster, Config};
use slipway_apiserver::server::InProcessService;
use slipway_e2e::process;
use slipway_e2e::suite::say;
use tower::Service;

use crate::definitions;
use crate::fan::{self, Seen};
use crate::load::collection;
use crate::{SERVER, objects};

pub(crate) const TOKEN: &str = "admin";
/// What of a run is not counted, and how long each run is that is.
const WARM: Duration = Duration::from_millis(500);
const RUN: Duration = Duration::from_secs(2);
/// Runs of which the middle one counts.
const RUNS: usize = 3;
/// How many clusters are weighed, and how many come before them.
const CLUSTERS: usize = 1_000;
pub(crate) const FIRST_CLUSTERS: usize = 10;

/// What is measured in one process.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Part {
    Requests,
    Objects,
    Clusters,
    Definitions,
}

/// All figures, by name.
pub(crate) type Figures = serde_json::Map<String, Value>;

/// Measures each part in a process of its own.
pub(crate) fn gather(objects: usize) -> Result<Figures> {
    let mut all = Figures::new();
    for part in ["requests", "objects", "clusters", "definitions"] {
        say(&format!("in process: {part}"));
        let output = Command::new("taskset")
            .args(["-c", SERVER])
            .arg(std::env::current_exe()?)
            .args(["--inside", part, "--objects", &objects.to_string()])
            .output()
            .context("starting the bench in another process")?;
        ensure!(
            output.status.success(),
            "measuring {part} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let figures: Figures = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("reading the figures of {part}"))?;
        all.extend(figures);
    }
    Ok(all)
}

/// Measures a part in this process, and prints it.
pub(crate) fn measure(part: Part, objects: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let figures = runtime.block_on(async {
        match part {
            Part::Requests => requests().await,
            Part::Objects => weigh(objects).await,
            Part::Clusters => clusters(),
            Part::Definitions => definitions::weigh().await,
        }
    })?;
    say(&figures.to_string());
    Ok(())
}

pub(crate) fn cluster(number: usize) -> Arc<Cluster> {
    Config::seeded(&format!("c{number}"), number as u64, Arc::default())
        .with_admin(TOKEN)
        .build()
}

/// A request and its whole answer.
pub(crate) async fn ask(
    service: &mut InProcessService,
    request: Request<Full<Bytes>>,
    code: u16,
) -> Result<Bytes> {
    let response = service.call(request).await?;
    let found = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(found == code, "{found}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

fn get(path: &str) -> Result<Request<Full<Bytes>>> {
    Ok(Request::get(path).body(Full::default())?)
}

pub(crate) fn post(path: &str, body: String) -> Result<Request<Full<Bytes>>> {
    Ok(Request::post(path)
        .header("content-type", "application/json")
        .body(Full::from(body))?)
}

async fn requests() -> Result<Value> {
    let path = collection("default", "configmaps");
    let template = objects::small();
    let (mut gets, mut posts) = (Rates::default(), Rates::default());
    for run in 0..=RUNS {
        let time = if run == 0 { WARM } else { RUN };
        // A new one each time, so that none has more objects than another.
        let mut service = cluster(run).service(TOKEN);
        ask(&mut service, post(&path, template.named("small"))?, 201).await?;
        let one = format!("{path}/small");
        let (start, before, mut count) = (Instant::now(), used()?, 0_u32);
        while start.elapsed() < time {
            ask(&mut service, get(&one)?, 200).await?;
            count += 1;
        }
        gets.note(run, count, start, before)?;
        let (start, before, mut count) = (Instant::now(), used()?, 0_u32);
        while start.elapsed() < time {
            let body = template.named(&format!("p-{count:07}"));
            ask(&mut service, post(&path, body)?, 201).await?;
            count += 1;
        }
        posts.note(run, count, start, before)?;
    }
    let fan = fan_out().await?;
    Ok(json!({
        "get": middle(gets.a_second),
        "get_each": middle(gets.each),
        "post": middle(posts.a_second),
        "post_each": middle(posts.each),
        "fan_p50": fan.p50.as_secs_f64() * 1e3,
        "fan_most": fan.most.as_secs_f64() * 1e3,
    }))
}

/// Processor time of this process so far.
fn used() -> Result<Duration> {
    process::processor_time(std::process::id())
}

/// What all runs came to.
#[derive(Default)]
struct Rates {
    a_second: Vec<f64>,
    /// Microseconds of processor time for one.
    each: Vec<f64>,
}

impl Rates {
    /// Notes a run that counts.
    fn note(&mut self, run: usize, count: u32, start: Instant, before: Duration) -> Result<()> {
        let took = start.elapsed();
        let used = used()?.saturating_sub(before);
        if run > 0 {
            self.a_second.push(f64::from(count) / took.as_secs_f64());
            self.each.push(used.as_secs_f64() * 1e6 / f64::from(count));
        }
        Ok(())
    }
}

fn middle(mut rates: Vec<f64>) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

async fn fan_out() -> Result<fan::Figures> {
    let mut service = cluster(0).service(TOKEN);
    let path = collection("default", "configmaps");
    let seen = Arc::new(Seen::default());
    let mut watches = tokio::task::JoinSet::new();
    for _ in 0..fan::WATCHERS {
        let watch = get(&format!(
            "{path}?watch=true&fieldSelector=metadata.name%21%3Dkube-root-ca.crt"
        ))?;
        let response = service.call(watch).await?;
        ensure!(
            response.status() == 200,
            "a watch was answered with {}",
            response.status()
        );
        let (seen, mut body) = (seen.clone(), response.into_body());
        watches.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                if let Some(piece) = frame.data_ref() {
                    seen.count(piece);
                }
            }
        });
    }
    let template = objects::small();
    let mut times = Vec::new();
    for number in 0..fan::WARM + fan::WRITES {
        let body = template.named(&format!("f-{number}"));
        ask(&mut service, post(&path, body)?, 201).await?;
        times.push(seen.all(Instant::now()).await?);
    }
    Ok(fan::Figures::of(&times))
}

async fn weigh(count: usize) -> Result<Value> {
    let mut service = cluster(0).service(TOKEN);
    let path = collection("default", "configmaps");
    let template = objects::config_map();
    ask(&mut service, post(&path, template.named("first"))?, 201).await?;
    let before = process::resident(std::process::id())?;
    for number in 0..count {
        let body = template.named(&format!("object-{number:06}"));
        ask(&mut service, post(&path, body)?, 201).await?;
    }
    let after = process::resident(std::process::id())?;
    let mut fastest = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        ask(&mut service, get(&path)?, 200).await?;
        fastest = fastest.min(start.elapsed());
    }
    Ok(json!({
        "object": after.saturating_sub(before) / count.max(1) as u64,
        "list": fastest.as_secs_f64() * 1e3,
    }))
}

fn clusters() -> Result<Value> {
    let mut all: Vec<Arc<Cluster>> = (0..FIRST_CLUSTERS).map(cluster).collect();
    let before = process::resident(std::process::id())?;
    let start = Instant::now();
    all.extend((FIRST_CLUSTERS..FIRST_CLUSTERS + CLUSTERS).map(cluster));
    let took = start.elapsed();
    let after = process::resident(std::process::id())?;
    drop(all);
    let count = u32::try_from(CLUSTERS)?;
    Ok(json!({
        "cluster": after.saturating_sub(before) / u64::from(count),
        "cluster_time": (took / count).as_secs_f64() * 1e3,
    }))
}
