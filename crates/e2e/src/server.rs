//! The servers a session runs on.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::order::Order;
use crate::process::Folder;

/// How long the embedded server may take to answer, and to end.
const WITHIN: Duration = Duration::from_mins(1);

/// Runs the server it is given as a child, and ends it with SIGTERM when standard input ends: so it ends even if the
/// test was killed.
const TETHER: &str = r#""$0" "$@" & server=$!; cat > /dev/null; kill -TERM $server; wait $server"#;

/// Something kubectl can talk to.
pub trait Server {
    /// What it is called in reports.
    fn name(&self) -> &'static str;
    /// The administrator's kubeconfig.
    fn kubeconfig(&self) -> &Path;
}

/// A server that somebody else started, who does what is asked of it.
pub trait Supervised: Server {
    /// Asks for this, and waits until it is done.
    fn order(&self, order: Order) -> Result<()> {
        let home = self.kubeconfig().parent();
        order.give(home.context("a kubeconfig without a folder")?)
    }
}

/// A real control plane.
pub struct Real(
    /// The administrator's kubeconfig.
    pub PathBuf,
);

/// The variables that name the kubeconfigs of further real control planes, and of further embedded ones.
const REAL_MEMBERS: &str = "SLIPWAY_REAL_MEMBERS";
const EMBEDDED_MEMBERS: &str = "SLIPWAY_EMBEDDED_MEMBERS";

/// The kubeconfigs that a variable names, as `PATH` names folders.
fn named(variable: &str) -> Vec<PathBuf> {
    let all = std::env::var_os(variable).unwrap_or_default();
    let named = std::env::split_paths(&all).filter(|path| !path.as_os_str().is_empty());
    named.collect()
}

impl Real {
    /// The control planes besides the one that a suite is given. The last one's etcd is its own.
    pub fn members() -> Vec<Self> {
        named(REAL_MEMBERS).into_iter().map(Self).collect()
    }
}

impl Supervised for Real {}

impl Server for Real {
    fn name(&self) -> &'static str {
        "real"
    }

    fn kubeconfig(&self) -> &Path {
        &self.0
    }
}

/// An embedded server that somebody else started, with programs on it.
pub struct Running(
    /// The administrator's kubeconfig.
    pub PathBuf,
);

impl Running {
    /// The embedded servers besides the one that a suite is given.
    pub fn members() -> Vec<Self> {
        named(EMBEDDED_MEMBERS).into_iter().map(Self).collect()
    }
}

impl Supervised for Running {}

impl Server for Running {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn kubeconfig(&self) -> &Path {
        &self.0
    }
}

/// `slipway apiserver`, ended with this value.
pub struct Embedded {
    tether: Child,
    kubeconfig: PathBuf,
    folder: Folder,
}

impl Server for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Embedded {
    /// Starts one with these further arguments, and waits until it answers.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let program = program()?;
        let folder = Folder::new("server")?;
        let kubeconfig = folder.path().join("kubeconfig");
        let log = std::fs::File::create(folder.path().join("log"))?;
        let tether = Command::new("sh")
            .args(["-c", TETHER])
            .arg(&program)
            .args(["apiserver", "--port", "0", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let server = Self {
            tether,
            kubeconfig,
            folder,
        };
        let start = Instant::now();
        while !server.kubeconfig.is_file() {
            if start.elapsed() > WITHIN {
                bail!(
                    "{} did not answer within {WITHIN:?}: {}",
                    program.display(),
                    server.log()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Ends it as a user would, which must succeed.
    pub fn stop(mut self) -> Result<()> {
        drop(self.tether.stdin.take());
        let start = Instant::now();
        loop {
            match self.tether.try_wait()? {
                Some(status) if status.success() && !self.kubeconfig.exists() => return Ok(()),
                Some(status) if status.success() => {
                    bail!("the server left its kubeconfig: {}", self.log())
                }
                Some(status) => bail!(
                    "the server ended with {status} after SIGTERM: {}",
                    self.log()
                ),
                None if start.elapsed() > WITHIN => {
                    bail!("SIGTERM did not end the server: {}", self.log())
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Sends its process a signal: STOP makes it one that answers nobody, CONT one that goes on where it was.
    pub fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("pkill")
            .arg(format!("-{name}"))
            .args(["-P", &self.tether.id().to_string(), "-x", "slipway"])
            .status()
            .context("starting pkill")?;
        if !status.success() {
            bail!("the server got no signal {name}: pkill ended with {status}");
        }
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Closing the tether is what its shell waits for.
        drop(self.tether.stdin.take());
        let start = Instant::now();
        while start.elapsed() < WITHIN && matches!(self.tether.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The `slipway` program: `SLIPWAY_BIN`, else the one built beside this test.
pub fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SLIPWAY_BIN") {
        return Ok(PathBuf::from(path));
    }
    let here = std::env::current_exe().context("finding this program")?;
    // A test lies in a folder below the programs, a bench beside them.
    let beside = here
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("slipway"))
        .find(|file| file.is_file());
    beside.context("there is no slipway program beside this test: build it with cargo build --release -p slipway")
}
