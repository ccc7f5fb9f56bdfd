//! A real Prometheus: Debian's package, downloaded and unpacked into the cache, without being installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report;
use crate::workspace;

/// Names a Prometheus that is there already.
const GIVEN: &str = "SLIPWAY_PROMETHEUS";

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
    let program = folder.join("usr/bin/prometheus");
    if program.is_file() {
        return Ok(Source::Program(program));
    }
    for tool in ["apt-get", "dpkg-deb"] {
        if workspace::which(tool).is_none() {
            let why = format!("there is no {tool} here, and {GIVEN} names no Prometheus");
            return Ok(Source::NoApt(why));
        }
    }
    report::line("downloading Prometheus with apt-get, once");
    fetch(&folder)?;
    Ok(Source::Program(program))
}

/// Downloads and unpacks the package beside the folder, and puts it in place when it is whole.
fn fetch(folder: &Path) -> Result<()> {
    let beside = folder.with_extension(format!("{}.part", std::process::id()));
    let fetched = fetch_into(&beside).and_then(|unpacked| {
        // Whoever was faster has the same.
        if !folder.exists() {
            std::fs::rename(unpacked, folder).context("putting Prometheus in place")?;
        }
        Ok(())
    });
    let _ = std::fs::remove_dir_all(&beside);
    fetched
}

fn fetch_into(beside: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(beside).context("making a folder in the cache")?;
    download(beside)?;
    let package = std::fs::read_dir(beside)
        .context("looking for the package")?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
        .context("apt-get has downloaded no package")?;
    let unpacked = beside.join("unpacked");
    succeed(
        Command::new("dpkg-deb")
            .arg("-x")
            .arg(&package)
            .arg(&unpacked),
    )?;
    if !unpacked.join("usr/bin/prometheus").is_file() {
        bail!("{} has no usr/bin/prometheus", package.display());
    }
    Ok(unpacked)
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
