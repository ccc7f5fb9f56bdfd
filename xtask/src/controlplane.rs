//! A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
//! KWOK, with Flux and Flagger where they are asked for, found or built from pinned Go modules.
//!
//! In the place of etcd and kube-apiserver there can be slipway's own API server, or one that runs elsewhere. Several control
//! planes share an etcd, each in a folder of its own there, unless one is asked to have its own.
//!
//! Processes belong to a supervisor, which ends them when it is told to or when the one who wanted them is gone; so a
//! crashed test leaves nothing running.

mod cluster;
mod delivery;
mod part;
mod supervisor;
pub(crate) mod tools;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::order::Order;
use crate::report;
use crate::workspace;

/// How long a control plane may take to answer.
const READY_WITHIN: Duration = Duration::from_mins(3);

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Find or build all programs, and say where they are
    Build,
    /// Start control planes that run until `down`
    Up {
        /// How many
        #[arg(long, default_value_t = 1)]
        clusters: usize,
        #[command(flatten)]
        shape: Shape,
    },
    /// End what `up` started
    Down,
    /// Say what runs
    Status,
    /// Ask something of one control plane that `up` started
    Order {
        /// Which, counted from 0
        #[arg(long)]
        cluster: usize,
        #[arg(value_enum)]
        order: Order,
    },
    /// Used by the other commands
    #[command(hide = true)]
    Supervise {
        /// How many
        #[arg(long)]
        clusters: usize,
        #[command(flatten)]
        shape: Shape,
        /// Where their files go
        #[arg(long)]
        folder: PathBuf,
        /// End when standard input ends
        #[arg(long)]
        tethered: bool,
    },
}

/// What a control plane is made of.
#[derive(Debug, Clone, Default, clap::Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a word of the command line"
)]
pub(crate) struct Shape {
    /// Which processes besides the API server
    #[arg(long, value_enum, default_value_t = Profile::Full)]
    pub(crate) profile: Profile,
    /// Flux's source-controller and kustomize-controller besides
    #[arg(long)]
    pub(crate) flux: bool,
    /// Flagger besides, for canaries without a mesh
    #[arg(long)]
    pub(crate) flagger: bool,
    /// Slipway's own API server instead of etcd and kube-apiserver
    #[arg(long)]
    pub(crate) embedded: bool,
    /// So many of the control planes, the last ones, have an etcd to themselves; all others share one
    #[arg(long, default_value_t = 0)]
    pub(crate) own_etcd: usize,
    /// The API server writes down the requests of the user `measured`, in `audit.log` beside the kubeconfig
    #[arg(long)]
    pub(crate) audit: bool,
    /// No API server: the processes join the one of this kubeconfig
    #[arg(long, conflicts_with = "embedded")]
    pub(crate) join: Option<PathBuf>,
}

impl From<Profile> for Shape {
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }
}

impl Shape {
    /// As on the command line.
    fn arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["--profile".into(), self.profile.name().into()];
        all.extend(["--own-etcd".into(), self.own_etcd.to_string().into()]);
        for (wanted, flag) in [
            (self.flux, "--flux"),
            (self.flagger, "--flagger"),
            (self.embedded, "--embedded"),
            (self.audit, "--audit"),
        ] {
            all.extend(wanted.then(|| flag.into()));
        }
        if let Some(kubeconfig) = &self.join {
            all.extend(["--join".into(), kubeconfig.into()]);
        }
        all
    }

    /// Part of a folder's name.
    fn name(&self) -> String {
        let server = match (self.embedded, &self.join) {
            (true, _) => "embedded-",
            (false, Some(_)) => "joined-",
            (false, None) => "",
        };
        format!("{server}{}", self.profile.name())
    }
}

/// Which processes a control plane has besides its API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// All controllers, the scheduler, and KWOK for nodes and pods
    #[default]
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
            let all = Shape {
                flux: true,
                flagger: true,
                ..Shape::default()
            };
            for (name, path) in tools::locate(&all)?.paths() {
                report::line(&format!("{name:24} {}", path.display()));
            }
            Ok(())
        }
        Command::Up { clusters, shape } => up(*clusters, shape),
        Command::Down => down(),
        Command::Status => status(),
        Command::Order { cluster, order } => {
            order.give(&cluster::home(&default_folder(), *cluster))
        }
        Command::Supervise {
            clusters,
            shape,
            folder,
            tethered,
        } => supervisor::run(*clusters, shape, folder, *tethered),
    }
}

fn default_folder() -> PathBuf {
    workspace::target().join("controlplane")
}

fn up(clusters: usize, shape: &Shape) -> Result<()> {
    let folder = default_folder();
    if supervisor::is_running(&folder) {
        bail!(
            "a control plane is running already: `cargo xtask controlplane status` shows it, `down` ends it"
        );
    }
    tools::locate(shape)?;
    let start = Instant::now();
    let mut child = supervisor::start(clusters, shape, &folder, false)?;
    wait_until_ready(&folder, clusters, &mut child)?;
    let took = start.elapsed();
    for index in 0..clusters {
        report::line(&format!(
            "export KUBECONFIG={}",
            cluster::kubeconfig(&folder, index).display()
        ));
    }
    report::line(&format!("# ready after {}", report::duration(took)));
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

/// How many this process has borrowed.
static BORROWED: AtomicU32 = AtomicU32::new(0);

/// Control planes that end with this value, or with this process.
pub(crate) struct Borrowed {
    supervisor: Child,
    folder: PathBuf,
    clusters: usize,
}

impl Borrowed {
    /// Starts them; their programs are found or built first.
    pub(crate) fn start(clusters: usize, shape: &Shape) -> Result<Self> {
        tools::locate(shape)?;
        // Several of one shape may be there at once.
        let number = BORROWED.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let name = format!("controlplane-{}-{process}-{number}", shape.name());
        let folder = workspace::target().join(name);
        let supervisor = supervisor::start(clusters, shape, &folder, true)?;
        let mut borrowed = Self {
            supervisor,
            folder,
            clusters,
        };
        wait_until_ready(&borrowed.folder, clusters, &mut borrowed.supervisor)?;
        Ok(borrowed)
    }

    /// How many there are.
    pub(crate) fn clusters(&self) -> usize {
        self.clusters
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
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("creating {}", log.display()))?;
    let second = file
        .try_clone()
        .with_context(|| format!("opening {}", log.display()))?;
    Ok((file.into(), second.into()))
}
