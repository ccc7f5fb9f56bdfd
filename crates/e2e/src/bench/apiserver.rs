//! `cargo xtask bench apiserver`: what the embedded API server costs, beside a real kube-apiserver in the same run.
//!
//! Each server has one processor and who asks has another. The embedded one is the product, `slipway apiserver
//! --no-controllers`; the real one is started with the words of one that runs already, on the same etcd, while that one
//! is halted. What happens inside of a process is measured in processes of their own, so that memory can be told apart.

#[path = "apiserver_definitions.rs"]
mod definitions;
#[path = "apiserver_fan.rs"]
mod fan;
#[path = "apiserver_inside.rs"]
mod inside;
#[path = "apiserver_load.rs"]
mod load;
#[path = "apiserver_objects.rs"]
mod objects;
#[path = "apiserver_servers.rs"]
mod servers;
#[path = "apiserver_table.rs"]
mod table;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use slipway_e2e::suite::say;
use slipway_e2e::{figures, process};

use crate::load::Rate;
use crate::servers::{Contender, Origin, Running};

/// The processor of the server.
pub(crate) const SERVER: &str = "0";
/// The processor of who asks.
const ASKER: &str = "1";
/// Starts of which the middle one counts.
const STARTS: usize = 5;
/// As many again, to see what a Pod takes.
const PODS: usize = 10_000;

#[derive(Debug, Parser)]
struct Arguments {
    /// How many objects are listed, and weighed
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// The kubeconfig of a real kube-apiserver without controllers, as `cargo xtask controlplane` makes it
    #[arg(long, env = "SLIPWAY_REAL_BARE")]
    real: Option<PathBuf>,
    /// Used by the bench itself: measures this inside of this process, and prints it
    #[arg(long, hide = true)]
    inside: Option<inside::Part>,
}

/// All figures of one server over HTTPS.
#[derive(Default)]
pub(crate) struct Measurement {
    /// From the start of the process to the first answer.
    pub(crate) first: Duration,
    pub(crate) get: Rate,
    pub(crate) post: Rate,
    pub(crate) fan: fan::Figures,
    /// Of the process and of what it keeps its objects in, when nothing has been asked yet.
    pub(crate) idle: u64,
    /// What each `ConfigMap`, and each Pod, added to the memory of the process.
    pub(crate) map: u64,
    pub(crate) pod: u64,
    /// Memory of the process with all objects, and the most that it ever had.
    pub(crate) full: u64,
    pub(crate) most: u64,
    pub(crate) list: load::Listed,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(part) = arguments.inside {
        return inside::measure(part, arguments.objects).map(|()| ExitCode::SUCCESS);
    }
    keep_to(ASKER)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the bench's runtime")?;
    say(&figures::machine());
    let inside = inside::gather(arguments.objects)?;
    let ours = runtime.block_on(bench(&Contender::Ours, arguments.objects))?;
    let real = arguments
        .real
        .as_deref()
        .map(|kubeconfig| {
            let real = Contender::Real(Origin::find(kubeconfig)?);
            runtime.block_on(bench(&real, arguments.objects))
        })
        .transpose()?;
    let rows = table::print(&inside, &ours, real.as_ref(), arguments.objects);
    if real.is_none() {
        say("no real API server given: set SLIPWAY_REAL_BARE or use `cargo xtask bench apiserver`");
    }
    let (code, line) = figures::verdict(&rows);
    say(&line);
    Ok(ExitCode::from(code))
}

async fn bench(contender: &Contender, count: usize) -> Result<Measurement> {
    let name = contender.name();
    let mut measurement = Measurement::default();
    say(&format!("{name}: starting"));
    let mut firsts = Vec::new();
    for _ in 0..STARTS {
        firsts.push(contender.start().await?.first);
    }
    firsts.sort();
    measurement.first = firsts.get(STARTS / 2).copied().unwrap_or_default();

    let server = contender.start().await?;
    load::prepare(&server).await?;
    say(&format!("{name}: GET, POST, watches"));
    measurement.get = load::get(&server).await?;
    measurement.post = load::post(&server).await?;
    measurement.fan = fan::measure(&server).await?;
    drop(server);

    say(&format!("{name}: {count} objects"));
    // A fresh process, whose memory nothing has stretched.
    let server = contender.start().await?;
    load::prepare(&server).await?;
    weigh(&server, contender, count, &mut measurement).await?;
    Ok(measurement)
}

/// Memory, and the list of everything.
async fn weigh(
    server: &Running,
    contender: &Contender,
    count: usize,
    measurement: &mut Measurement,
) -> Result<()> {
    let before = server.resident()?;
    measurement.idle = before + contender.beside()?;
    load::fill(server, "configmaps", &objects::config_map(), count).await?;
    measurement.full = server.resident()?;
    measurement.map = measurement.full.saturating_sub(before) / count.max(1) as u64;
    measurement.list = load::list(server, "configmaps", count).await?;
    measurement.most = process::most_resident(server.id())?;
    let before = server.resident()?;
    let pods = PODS.min(count);
    load::fill(server, "pods", &objects::pod(), pods).await?;
    measurement.pod = server.resident()?.saturating_sub(before) / pods.max(1) as u64;
    Ok(())
}

/// Keeps this process, and what it starts from now on, to a processor.
fn keep_to(processor: &str) -> Result<()> {
    let status = Command::new("taskset")
        .args(["-a", "-p", "-c", processor, &std::process::id().to_string()])
        .stdout(std::process::Stdio::null())
        .status()
        .context("starting taskset")?;
    ensure!(
        status.success(),
        "there is no processor {processor}: this bench needs one for the server and one for who asks"
    );
    Ok(())
}
