//! A real Prometheus: Debian's package, downloaded and unpacked into the cache, without being installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report;
use crate::workspace;

/// Names a Prometheus that is there already.
const GIVEN: &str = "SLIPWAY_PROMETHEUS";

/// Where Prometheus is; an error says why there is none.
pub(super) fn locate() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os(GIVEN) {
        return Ok(given.into());
    }
    let folder = workspace::cache()?.join("prometheus");
    let program = folder.join("usr/bin/prometheus");
    if program.is_file() {
        return Ok(program);
    }
    for tool in ["apt-get", "dpkg-deb"] {
        if workspace::which(tool).is_none() {
            bail!("there is no {tool} here, and {GIVEN} names no Prometheus");
        }
    }
    report::line("downloading Prometheus with apt-get, once");
    fetch(&folder)?;
    Ok(program)
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
    succeed(
        Command::new("apt-get")
            .args(["download", "prometheus"])
            .current_dir(beside),
    )?;
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
