//! `cargo xtask record`: what foreign programs ask of a real kube-apiserver, recorded for the replay test.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::controlplane::{self, Borrowed, Profile, Shape};
use crate::report;
use crate::workspace;

/// How many pods the recorded workloads have: enough for some thousand pairs.
const CROWD: &str = "280";

/// How long the recorder may take to answer.
const WITHIN: Duration = Duration::from_secs(30);

pub(crate) fn run() -> Result<()> {
    workspace::build_programs()?;
    let real = Borrowed::start(1, &Profile::Bare.into()).context("starting a real API server")?;
    let folder = workspace::target().join(format!("recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let kubeconfig = folder.join("kubeconfig");
    let recording = workspace::root().join("crates/e2e/recordings/foreign.jsonl.gz");
    let mut recorder = Command::new(workspace::target().join("release/examples/recorder"))
        .arg("--upstream")
        .arg(real.kubeconfig(0))
        .arg("--kubeconfig-out")
        .arg(&kubeconfig)
        .arg("--out")
        .arg(&recording)
        .stdin(Stdio::piped())
        .spawn()
        .context("starting the recorder")?;
    let played = play(&kubeconfig);
    // The end of its standard input is what the recorder waits for.
    drop(recorder.stdin.take());
    let ended = recorder.wait().context("waiting for the recorder")?;
    let _ = std::fs::remove_dir_all(&folder);
    played?;
    if !ended.success() {
        bail!("the recorder ended with {ended}");
    }
    report::line("now look at what differs: cargo test --release --workspace --test replay");
    Ok(())
}

/// Runs the programs and their tests through the recorder.
fn play(kubeconfig: &Path) -> Result<()> {
    let start = Instant::now();
    while !kubeconfig.is_file() {
        if start.elapsed() > WITHIN {
            bail!("the recorder did not answer within {WITHIN:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let shape = Shape {
        flux: true,
        flagger: true,
        join: Some(kubeconfig.to_owned()),
        ..Shape::default()
    };
    let programs = Borrowed::start(1, &shape).context("starting the programs")?;
    let kubectl = controlplane::tools::locate(&Shape::default())?;
    let status = workspace::cargo()
        .args(["test", "--release", "--quiet", "--workspace"])
        .args(["--test", "foreign", "--", "real"])
        .env("SLIPWAY_REAL_FULL", kubeconfig)
        .env("SLIPWAY_KUBECTL", kubectl.path("kubectl")?)
        .env("SLIPWAY_FOREIGN_CROWD", CROWD)
        .status()
        .context("starting the tests")?;
    drop(programs);
    if !status.success() {
        bail!("the tests failed on the real API server");
    }
    Ok(())
}
