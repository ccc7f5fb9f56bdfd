//! `cargo xtask bench zones`: what rollouts of zones and their webhooks cost, beside the original on the same control
//! plane.
//!
//! Where the original's program is not given, its figures are those measured earlier (`earlier` in `zones_table.rs`),
//! and marked so.

#[path = "zones_door.rs"]
mod door;
#[path = "zones_rollout.rs"]
mod rollout;
#[path = "zones_table.rs"]
mod table;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use slipway_e2e::client;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::figures;
use slipway_e2e::install::node;
use slipway_e2e::operator::Operator;
use slipway_e2e::process::Folder;
use slipway_e2e::suite::say;
use slipway_e2e::zones::{Place, definitions};

/// Pods of all zones when memory is looked at.
const SIZES: [usize; 3] = [3, 300, 3_000];
/// How many of a zone may be away.
const BUDGET: usize = 10;

#[derive(Debug, Parser)]
struct Arguments {
    /// The original's program
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The kubeconfig of a real control plane with KWOK
    #[arg(long, env = "SLIPWAY_REAL_FULL")]
    real: Option<PathBuf>,
    /// The largest number of pods
    #[arg(long, default_value_t = 3_000)]
    pods: usize,
    /// Used by the bench itself: asks as this file says, and prints what that came to
    #[arg(long, hide = true)]
    flood: Option<PathBuf>,
}

/// Who is measured: ours, or the original by its path.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) original: Option<PathBuf>,
}

impl Contender {
    /// Starts it for a place, on all processors or on one.
    pub(crate) fn start(
        &self,
        place: &Place<'_>,
        more: &[&str],
        processor: Option<usize>,
    ) -> Result<Operator> {
        let mut arguments = place.arguments()?;
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        // With all rights, so that nothing is left out for want of one.
        let kubeconfig = &place.cluster.kubeconfig;
        let mut operator = Operator::rollout_operator(
            self.original.as_deref(),
            kubeconfig,
            &arguments,
            processor,
        )?;
        operator.wait_until_ready(Duration::from_mins(2))?;
        Ok(operator)
    }

    fn program(&self) -> Result<PathBuf> {
        self.original
            .clone()
            .map_or_else(slipway_e2e::server::program, Ok)
    }
}

/// All figures of one contender.
#[derive(Default)]
pub(crate) struct Measurement {
    /// Bytes, at each of the sizes.
    pub(crate) resident: Vec<u64>,
    pub(crate) rollout: Option<rollout::Figures>,
    pub(crate) evictions: Option<door::Evictions>,
    pub(crate) door: Option<door::Figures>,
    /// How many handshakes failed, of how many.
    pub(crate) handshakes: Option<(usize, usize)>,
    pub(crate) size: u64,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(file) = &arguments.flood {
        return door::flood(file).map(|()| ExitCode::SUCCESS);
    }
    say(&figures::machine());
    let real = arguments.real.clone().context(
        "no real control plane given: set SLIPWAY_REAL_FULL or use `cargo xtask bench zones`",
    )?;
    let kubectl = client::all()?
        .into_iter()
        .next()
        .context("there is no kubectl")?
        .program;
    let cluster = Cluster::new(&kubectl, &real)?;
    for index in 0..3 {
        cluster.apply(&node(index).to_string())?;
    }
    cluster.apply(&definitions()?)?;
    let ours = Contender {
        name: "slipway",
        original: None,
    };
    let mine = bench(&cluster, &ours, arguments.pods)?;
    let theirs = arguments
        .peer
        .clone()
        .map(|path| {
            let peer = Contender {
                name: "rollout-operator",
                original: Some(path),
            };
            bench(&cluster, &peer, arguments.pods)
        })
        .transpose()?;
    let rows = table::print(&mine, theirs.as_ref());
    if theirs.is_none() {
        let marks = figures::MARKS;
        say(&format!(
            "no peer given: {marks}; name the original's program with --peer PATH"
        ));
    }
    let (code, line) = figures::verdict(&rows);
    say(&line);
    Ok(ExitCode::from(code))
}

fn bench(cluster: &Cluster, contender: &Contender, most: usize) -> Result<Measurement> {
    let place = Place::new(cluster, &format!("bench-{}", contender.name))?;
    let mut measurement = Measurement {
        size: size(&contender.program()?)?,
        ..Measurement::default()
    };
    for pods in SIZES.into_iter().filter(|pods| *pods <= most) {
        say(&format!("{}: {pods} pods", contender.name));
        rollout::fill(&place, pods / 3, "app:1")?;
        measurement.resident.push(resident(contender, &place)?);
        if pods == 300 {
            say(&format!("{}: a rollout of {pods} pods", contender.name));
            measurement.rollout = Some(rollout::measure(contender, &place, pods / 3)?);
            say(&format!("{}: evictions, and downscales", contender.name));
            measurement.evictions = Some(door::evictions(contender, &place)?);
            measurement.door = Some(door::measure(contender, &place)?);
            if contender.original.is_none() {
                say(&format!(
                    "{}: handshakes across a rotation of the certificate",
                    contender.name
                ));
                measurement.handshakes = Some(door::handshakes(contender, &place)?);
            }
            rollout::fill(&place, pods / 3, "app:1")?;
        }
    }
    Ok(measurement)
}

/// Memory of one that has just started and has nothing to do, without webhooks as it was measured earlier.
fn resident(contender: &Contender, place: &Place<'_>) -> Result<u64> {
    let operator = contender.start(place, &["-server-tls.enabled=false"], None)?;
    std::thread::sleep(Duration::from_secs(8));
    let resident = operator.resident()?;
    operator.terminate()?;
    Ok(resident)
}

/// How large a program is without what only debuggers read; as it is where nobody can take that out.
fn size(program: &Path) -> Result<u64> {
    let folder = Folder::new("size")?;
    let bare = folder.path().join("program");
    let stripped = std::process::Command::new("strip")
        .arg("-o")
        .arg(&bare)
        .arg(program)
        .status();
    let is_bare = stripped.is_ok_and(|status| status.success());
    let measured = if is_bare { &bare } else { program };
    Ok(std::fs::metadata(measured)?.len())
}

/// The one in the middle, by this.
pub(crate) fn median<T: Default, O: PartialOrd>(mut all: Vec<T>, by: impl Fn(&T) -> O) -> T {
    all.sort_by(|one, other| by(one).partial_cmp(&by(other)).unwrap_or(Ordering::Equal));
    let middle = all.len() / 2;
    all.into_iter().nth(middle).unwrap_or_default()
}

/// The text of a file of the bench.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}
