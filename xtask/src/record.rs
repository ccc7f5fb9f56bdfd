//! `cargo xtask record`: what tests of the embedded server are held against, recorded of a real kube-apiserver, or said by its own
//! packages where no request shows it. `docs/recordings.md` names all of it.

mod server;

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

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to record
    #[arg(value_enum, default_value_t = What::Foreign)]
    what: What,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// What foreign programs ask, for the replay test
    Foreign,
    /// Server-side apply and the ownership of fields
    Apply,
    /// Metadata of lists, in protobuf and in JSON
    Heads,
    /// What CEL rules cost, by kube-apiserver's packages
    Cost,
    /// Objects in protobuf, by kube-apiserver's packages
    Protobuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.what {
        What::Foreign => foreign(),
        What::Apply => server::answers("apply", "crates/apiserver/src/apply/testdata"),
        What::Heads => server::answers("heads", "crates/runtime/src/collection/testdata"),
        What::Cost => server::packages(
            "cost",
            "crates/apiserver/src/crd/rules/cost",
            "recorded.txt",
        ),
        What::Protobuf => server::packages("protobuf", "crates/apiserver/src/decode/testdata", ""),
    }
}

fn foreign() -> Result<()> {
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
