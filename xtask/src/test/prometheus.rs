//! A real Prometheus: Debian's package, downloaded and unpacked into the cache, without being installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kept::once;
use crate::report;
use crate::workspace;

/// Names a Prometheus that is there already.
const GIVEN: &str = "SLIPWAY_PROMETHEUS";

/// Where the package has it.
const PROGRAM: &str = "usr/bin/prometheus";

/// Where a Prometheus comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// It is there, or has been fetched.
    Program(PathBuf),
    /// There is nothing here that it could be fetched with.
    NoApt(String),
}

/// Where Prometheus is. That it cannot be fetched with what is there is an error, and no reason to leave anything out.
pub(super) fn locate() -> Result<Source> {
    if let Some(given) = std::env::var_os(GIVEN) {
        return Ok(Source::Program(given.into()));
    }
    let folder = workspace::cache()?.join("prometheus");
    let program = folder.join(PROGRAM);
    if program.is_file() {
        return Ok(Source::Program(program));
    }
    for tool in ["apt-get", "dpkg-deb"] {
        if workspace::which(tool).is_none() {
            let why = format!("there is no {tool} here, and {GIVEN} names no Prometheus");
            return Ok(Source::NoApt(why));
        }
    }
    once(&folder, |partial| {
        report::line("downloading Prometheus with apt-get, once");
        fetch(partial)
    })?;
    Ok(Source::Program(program))
}

/// Downloads the package and unpacks it into a folder.
fn fetch(folder: &Path) -> Result<()> {
    let downloaded = folder.join("download");
    std::fs::create_dir_all(&downloaded).context("making a folder in the cache")?;
    download(&downloaded)?;
    let package = std::fs::read_dir(&downloaded)
        .context("looking for the package")?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .context("apt-get has downloaded no package")?;
    succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
    if !folder.join(PROGRAM).is_file() {
        bail!("{} has no {PROGRAM}", package.display());
    }
    std::fs::remove_dir_all(&downloaded).context("removing what was unpacked")
}

/// Downloads the package into a folder. The system's lists of packages may be missing or of long ago: then those of today are
/// fetched beside it, which takes no rights and changes nothing of the system's.
fn download(into: &Path) -> Result<()> {
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(words).current_dir(into);
        succeed(&mut apt)
    };
    if apt(&["download", "prometheus"]).is_ok() {
        return Ok(());
    }
    let lists = into.join("lists");
    std::fs::create_dir_all(lists.join("partial")).context("making a folder for lists")?;
    let lists = format!("Dir::State::Lists={}", lists.display());
    apt(&["-o", &lists, "update"])?;
    apt(&["-o", &lists, "download", "prometheus"])
}

fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("starting {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    bail!("{name} failed ({}): {last}", output.status)
}
