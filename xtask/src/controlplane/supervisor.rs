//! Who owns the processes of a control plane.
//!
//! A supervisor is this program in another process. It ends its children when its standard input ends (a tethered one:
//! whoever wanted it is gone), when it finds a file named `stop`, or when one of them ends by itself. Process ids are
//! written down, so that `down` can end what a killed supervisor left.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Shape, cluster, logged, tools};

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
    let stop = Arc::new(AtomicBool::new(false));
    if tethered {
        let stop = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
    }
    let mut started = Vec::new();
    note(folder, &[("supervisor".to_owned(), std::process::id())])?;
    let mut result = Ok(());
    for index in 0..clusters {
        result = cluster::start(&programs, shape, folder, index, &mut started);
        let pids: Vec<_> = started
            .iter()
            .map(|process| (process.name.clone(), process.child.id()))
            .collect();
        note(folder, &pids)?;
        if result.is_err() {
            break;
        }
    }
    while result.is_ok() && !stop.load(Ordering::Relaxed) && !folder.join("stop").exists() {
        for process in &mut started {
            if let Some(status) = process.child.try_wait()? {
                let name = &process.name;
                result = Err(anyhow::anyhow!(
                    "{name} ended by itself with {status}; see its log"
                ));
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    // kube-apiserver takes up to half a minute to end politely, and nothing here is worth keeping.
    for process in started.iter_mut().rev() {
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
    let _ = std::fs::remove_file(folder.join("pids"));
    result
}

fn note(folder: &Path, processes: &[(String, u32)]) -> Result<()> {
    let path = folder.join("pids");
    let mut lines = format!("{} supervisor\n", std::process::id());
    for (name, pid) in processes.iter().filter(|(name, _)| name != "supervisor") {
        let _ = writeln!(lines, "{pid} {name}");
    }
    std::fs::write(&path, lines).with_context(|| format!("writing {}", path.display()))
}

/// The processes that were started in `folder` and have not been ended by `down`.
pub(super) fn processes(folder: &Path) -> Result<Vec<Process>> {
    let path = folder.join("pids");
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
