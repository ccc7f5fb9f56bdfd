//! Who owns the processes of a control plane.
//!
//! A supervisor is this program in another process. It ends its children when its standard input ends (a tethered one:
//! whoever wanted it is gone), when it finds a file named `stop`, or when one of them ends by itself. Process ids are
//! written down, so that `down` can end what a killed supervisor left. What tests of failures ask of one control plane
//! (`order.rs`) it does too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cluster::Cluster;
use super::tools::Programs;
use super::{Shape, cluster, logged, tools};
use crate::order::Order;

/// Where process ids are written down.
const PIDS: &str = "pids";

/// Between two looks at processes and orders.
const PAUSE: Duration = Duration::from_millis(100);

/// How long `down` waits for the supervisor before it ends the processes itself.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// A process that a supervisor started.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) pid: u32,
    folder: PathBuf,
}

impl Process {
    /// Whether it still runs: a process of that id that was started in our folder, not one that got the id later.
    pub(super) fn is_alive(&self) -> bool {
        let is_zombie =
            std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).is_ok_and(|stat| {
                stat.rsplit(')')
                    .next()
                    .is_some_and(|rest| rest.trim_start().starts_with('Z'))
            });
        let here = std::fs::read_link(format!("/proc/{}/cwd", self.pid));
        !is_zombie && here.is_ok_and(|cwd| cwd.starts_with(&self.folder))
    }
}

/// Starts a supervisor for `clusters` control planes with their files in `folder`.
pub(super) fn start(
    clusters: usize,
    shape: &Shape,
    folder: &Path,
    tethered: bool,
) -> Result<Child> {
    stop(folder)?;
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let (out, err) = logged(&folder.join("supervisor.log"))?;
    let mut command = Command::new(this_program()?);
    command
        .args([
            "controlplane",
            "supervise",
            "--clusters",
            &clusters.to_string(),
        ])
        .args(shape.arguments())
        .arg("--folder")
        .arg(folder)
        .args(tethered.then_some("--tethered"))
        .current_dir(folder)
        .stdin(if tethered {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(out)
        .stderr(err)
        // A group of its own: Ctrl-C at the terminal is for the one who waits, who then closes the tether.
        .process_group(0);
    command
        .spawn()
        .context("starting the control plane's supervisor")
}

/// This program, also when a build has replaced its file meanwhile: the tests build it again.
fn this_program() -> Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() {
        return Ok(running.to_owned());
    }
    std::env::current_exe().context("finding this program")
}

/// What the supervisor does.
pub(super) fn run(clusters: usize, shape: &Shape, folder: &Path, tethered: bool) -> Result<()> {
    let programs = tools::locate(shape)?;
    let stop = told_to_stop(folder, tethered);
    let roster = Roster::new(folder)?;
    let mut all = Vec::new();
    let result = prepare(&programs, shape, folder, clusters, &mut all)
        .and_then(|()| start_all(&mut all, &roster, &stop))
        .and_then(|()| watch_over(&mut all, folder, &roster, &stop));
    for cluster in all.iter_mut().rev() {
        cluster.end(&roster);
    }
    let _ = std::fs::remove_file(folder.join(PIDS));
    result
}

/// Becomes true when somebody wants the supervisor to end.
fn told_to_stop(folder: &Path, tethered: bool) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    if tethered {
        let stop = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
    }
    let (file, told) = (folder.join("stop"), stop.clone());
    std::thread::spawn(move || {
        while !file.exists() {
            std::thread::sleep(PAUSE);
        }
        told.store(true, Ordering::Relaxed);
    });
    stop
}

/// Prepares all control planes. Those that do not want an etcd to themselves use that of the first one.
fn prepare(
    programs: &Programs,
    shape: &Shape,
    folder: &Path,
    clusters: usize,
    all: &mut Vec<Cluster>,
) -> Result<()> {
    let uses_first = |index| uses_first(index, clusters, shape.own_etcd);
    let mut shared = None;
    for index in 0..clusters {
        let store = shared.filter(|_| uses_first(index));
        let mut cluster = Cluster::new(programs, shape, folder, index, store)?;
        if index == 0 && (0..clusters).any(uses_first) {
            cluster.share();
            shared = cluster.store();
        }
        all.push(cluster);
    }
    Ok(())
}

/// Whether a control plane keeps its objects in the first one's etcd.
fn uses_first(index: usize, clusters: usize, own_etcd: usize) -> bool {
    index > 0 && index < clusters.saturating_sub(own_etcd)
}

/// Starts all control planes side by side.
fn start_all(all: &mut [Cluster], roster: &Roster, stop: &AtomicBool) -> Result<()> {
    // The slowest first: all API servers, before anything joins one of them.
    all.iter_mut()
        .try_for_each(|cluster| cluster.launch(roster))?;
    let started: Vec<Result<()>> = std::thread::scope(|scope| {
        let starting: Vec<_> = all
            .iter_mut()
            .map(|cluster| scope.spawn(move || cluster.start(roster, stop)))
            .collect();
        let panicked = |_| Err(anyhow::anyhow!("the start of a control plane panicked"));
        starting
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    });
    started.into_iter().collect()
}

/// Does what is asked of them, until it is time to end or one of their processes does so by itself.
fn watch_over(
    all: &mut [Cluster],
    folder: &Path,
    roster: &Roster,
    stop: &AtomicBool,
) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        for (index, cluster) in all.iter_mut().enumerate() {
            Order::take(&cluster::home(folder, index), |order| {
                cluster.carry_out(order, roster, stop)
            })?;
            if let Some((name, status)) = cluster.ended()? {
                bail!("{name} ended by itself with {status}; see its log");
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The processes that run, written down as they come and go.
pub(super) struct Roster {
    file: PathBuf,
    pids: Mutex<BTreeMap<String, u32>>,
}

impl Roster {
    fn new(folder: &Path) -> Result<Self> {
        let roster = Self {
            file: folder.join(PIDS),
            pids: Mutex::default(),
        };
        roster.change(|_| ())?;
        Ok(roster)
    }

    /// A process runs.
    pub(super) fn add(&self, name: &str, pid: u32) -> Result<()> {
        self.change(|pids| {
            pids.insert(name.to_owned(), pid);
        })
    }

    /// It does not run any more.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        self.change(|pids| {
            pids.remove(name);
        })
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, u32>)) -> Result<()> {
        let mut pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut pids);
        let mut lines = format!("{} supervisor\n", std::process::id());
        for (name, pid) in pids.iter() {
            let _ = writeln!(lines, "{pid} {name}");
        }
        // Moved there, so that nobody reads half of it.
        let written = self.file.with_extension("written");
        std::fs::write(&written, lines)
            .and_then(|()| std::fs::rename(&written, &self.file))
            .with_context(|| format!("writing {}", self.file.display()))
    }
}

/// The processes that were started in `folder` and have not been ended by `down`.
pub(super) fn processes(folder: &Path) -> Result<Vec<Process>> {
    let path = folder.join(PIDS);
    let Ok(lines) = std::fs::read_to_string(&path) else {
        return Ok(Vec::new());
    };
    let folder = folder
        .canonicalize()
        .with_context(|| format!("finding {}", folder.display()))?;
    let mut found = Vec::new();
    for line in lines.lines() {
        let Some((pid, name)) = line.split_once(' ') else {
            continue;
        };
        if let Ok(pid) = pid.parse() {
            found.push(Process {
                name: name.to_owned(),
                pid,
                folder: folder.clone(),
            });
        }
    }
    Ok(found)
}

/// Whether anything of `folder` runs.
pub(super) fn is_running(folder: &Path) -> bool {
    processes(folder).is_ok_and(|found| found.iter().any(Process::is_alive))
}

/// Ends everything that was started in `folder`; says how many processes that were.
pub(super) fn stop(folder: &Path) -> Result<usize> {
    let running: Vec<Process> = processes(folder)?
        .into_iter()
        .filter(Process::is_alive)
        .collect();
    if running.is_empty() {
        return Ok(0);
    }
    std::fs::write(folder.join("stop"), "")?;
    let start = Instant::now();
    while running.iter().any(Process::is_alive) && start.elapsed() < STOP_WITHIN {
        std::thread::sleep(Duration::from_millis(100));
    }
    for process in running.iter().filter(|process| process.is_alive()) {
        let status = Command::new("kill")
            .args(["-KILL", &process.pid.to_string()])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            bail!("ending {} (pid {})", process.name, process.pid);
        }
    }
    Ok(running.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_control_planes_have_an_etcd_to_themselves_and_the_others_share_one() {
        let all = |clusters, own| -> Vec<bool> {
            (0..clusters)
                .map(|index| uses_first(index, clusters, own))
                .collect()
        };
        assert_eq!(all(4, 0), [false, true, true, true]);
        assert_eq!(all(4, 1), [false, true, true, false]);
        assert_eq!(all(2, 1), [false, false]);
        assert_eq!(all(3, 9), [false, false, false]);
    }
}
