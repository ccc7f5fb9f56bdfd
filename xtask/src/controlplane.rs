//! A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
//! KWOK, found or built from pinned Go modules.
//!
//! Processes belong to a supervisor, which ends them when it is told to or when the one who wanted them is gone; so a
//! crashed test leaves nothing running. Flux will be another entry in [`tools::TOOLS`] and in [`cluster`].

mod cluster;
mod supervisor;
pub(crate) mod tools;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::report;
use crate::workspace;

/// How long a control plane may take to answer.
const READY_WITHIN: Duration = Duration::from_secs(90);

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Find or build all programs, and say where they are
    Build,
    /// Start control planes that run until `down`
    Up {
        /// How many
        #[arg(long, default_value_t = 1)]
        clusters: usize,
        /// Which processes besides etcd and kube-apiserver
        #[arg(long, value_enum, default_value_t = Profile::Full)]
        profile: Profile,
    },
    /// End what `up` started
    Down,
    /// Say what runs
    Status,
    /// Used by the other commands
    #[command(hide = true)]
    Supervise {
        /// How many
        #[arg(long)]
        clusters: usize,
        /// Which processes
        #[arg(long, value_enum)]
        profile: Profile,
        /// Where their files go
        #[arg(long)]
        folder: PathBuf,
        /// End when standard input ends
        #[arg(long)]
        tethered: bool,
    },
}

/// Which processes a control plane has besides etcd and kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// All controllers, the scheduler, and KWOK for nodes and pods
    Full,
    /// Only garbage collection and the end of namespaces: what the embedded API server has built in
    Collectors,
    /// Nobody else
    Bare,
}

impl Profile {
    /// As on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Collectors => "collectors",
            Self::Bare => "bare",
        }
    }
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Build => {
            for (name, path) in tools::locate()?.paths() {
                report::line(&format!("{name:24} {}", path.display()));
            }
            Ok(())
        }
        Command::Up { clusters, profile } => up(*clusters, *profile),
        Command::Down => down(),
        Command::Status => status(),
        Command::Supervise {
            clusters,
            profile,
            folder,
            tethered,
        } => supervisor::run(*clusters, *profile, folder, *tethered),
    }
}

fn default_folder() -> PathBuf {
    workspace::target().join("controlplane")
}

fn up(clusters: usize, profile: Profile) -> Result<()> {
    let folder = default_folder();
    if supervisor::is_running(&folder) {
        bail!(
            "a control plane is running already: `cargo xtask controlplane status` shows it, `down` ends it"
        );
    }
    tools::locate()?;
    let mut child = supervisor::start(clusters, profile, &folder, false)?;
    wait_until_ready(&folder, clusters, &mut child)?;
    for index in 0..clusters {
        report::line(&format!(
            "export KUBECONFIG={}",
            cluster::kubeconfig(&folder, index).display()
        ));
    }
    Ok(())
}

fn down() -> Result<()> {
    let ended = supervisor::stop(&default_folder())?;
    report::line(&format!("ended {ended} processes"));
    Ok(())
}

fn status() -> Result<()> {
    let folder = default_folder();
    let processes = supervisor::processes(&folder)?;
    if processes.is_empty() {
        report::line("nothing runs");
    }
    for process in processes {
        let state = if process.is_alive() {
            "running"
        } else {
            "ended"
        };
        report::line(&format!(
            "{:32} pid {:8} {state}",
            process.name, process.pid
        ));
    }
    Ok(())
}

/// Control planes that end with this value, or with this process.
pub(crate) struct Borrowed {
    supervisor: Child,
    folder: PathBuf,
}

impl Borrowed {
    /// Starts them; their programs are found or built first.
    pub(crate) fn start(clusters: usize, profile: Profile) -> Result<Self> {
        tools::locate()?;
        let name = format!("controlplane-{}-{}", profile.name(), std::process::id());
        let folder = workspace::target().join(name);
        let supervisor = supervisor::start(clusters, profile, &folder, true)?;
        let mut borrowed = Self { supervisor, folder };
        wait_until_ready(&borrowed.folder, clusters, &mut borrowed.supervisor)?;
        Ok(borrowed)
    }

    /// The kubeconfig of one of them, with the users `admin` and `alice`.
    pub(crate) fn kubeconfig(&self, index: usize) -> PathBuf {
        cluster::kubeconfig(&self.folder, index)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // Closing its standard input is what the supervisor waits for.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn wait_until_ready(folder: &Path, clusters: usize, supervisor: &mut Child) -> Result<()> {
    let start = Instant::now();
    while !(0..clusters).all(|index| cluster::kubeconfig(folder, index).is_file()) {
        if let Some(status) = supervisor
            .try_wait()
            .context("waiting for the control plane")?
        {
            bail!(
                "the control plane ended with {status}; its logs are in {}",
                folder.display()
            );
        }
        if start.elapsed() > READY_WITHIN {
            bail!(
                "the control plane did not answer within {READY_WITHIN:?}; its logs are in {}",
                folder.display()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Standard streams of a program whose output goes to a file.
fn logged(log: &Path) -> Result<(Stdio, Stdio)> {
    let file = std::fs::File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let second = file
        .try_clone()
        .with_context(|| format!("opening {}", log.display()))?;
    Ok((file.into(), second.into()))
}
