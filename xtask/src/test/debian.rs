//! Programs of Debian's packages, downloaded and unpacked into the cache, without being installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kept::once;
use crate::report;
use crate::workspace;

/// A package with one program in it that is wanted.
pub(super) struct Package {
    name: &'static str,
    /// Where it has the program.
    program: &'static str,
    /// The variable that names a program that is there already, and by which tests find it.
    pub(super) variable: &'static str,
}

/// A real Prometheus.
pub(super) const PROMETHEUS: Package = Package {
    name: "prometheus",
    program: "usr/bin/prometheus",
    variable: "SLIPWAY_PROMETHEUS",
};

/// A real data plane.
pub(super) const NGINX: Package = Package {
    name: "nginx",
    program: "usr/sbin/nginx",
    variable: "SLIPWAY_NGINX",
};

/// Where a program comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// It is there, or has been fetched.
    Program(PathBuf),
    /// There is nothing here that it could be fetched with.
    NoApt(String),
}

impl Package {
    /// Where its program is. That it cannot be fetched with what is there is an error, and no reason to leave anything out.
    pub(super) fn locate(&self) -> Result<Source> {
        let (name, variable) = (self.name, self.variable);
        if let Some(given) = std::env::var_os(variable) {
            return Ok(Source::Program(given.into()));
        }
        let folder = workspace::cache()?.join(name);
        let program = folder.join(self.program);
        if program.is_file() {
            return Ok(Source::Program(program));
        }
        if let Some(tool) = missing() {
            let why = format!("there is no {tool} here, and {variable} names no {name}");
            return Ok(Source::NoApt(why));
        }
        once(&folder, |partial| {
            report::line(&format!("downloading {name} with apt-get, once"));
            self.fetch(partial)
        })?;
        Ok(Source::Program(program))
    }

    /// Downloads the package and unpacks it into a folder.
    fn fetch(&self, folder: &Path) -> Result<()> {
        let downloaded = folder.join("download");
        std::fs::create_dir_all(&downloaded).context("making a folder in the cache")?;
        download(self.name, &downloaded)?;
        let package = std::fs::read_dir(&downloaded)
            .context("looking for the package")?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "deb"))
            .context("apt-get has downloaded no package")?;
        succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
        let program = self.program;
        if !folder.join(program).is_file() {
            bail!("{} has no {program}", package.display());
        }
        std::fs::remove_dir_all(&downloaded).context("removing what was unpacked")
    }
}

/// What a package cannot be fetched without, and is not here.
fn missing() -> Option<&'static str> {
    let tools = ["apt-get", "dpkg-deb"];
    tools
        .into_iter()
        .find(|tool| workspace::which(tool).is_none())
}

/// Downloads the package into a folder. The system's lists of packages may be missing or of long ago: then those of today are
/// fetched beside it, which takes no rights and changes nothing of the system's.
fn download(package: &str, into: &Path) -> Result<()> {
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(words).current_dir(into);
        succeed(&mut apt)
    };
    if apt(&["download", package]).is_ok() {
        return Ok(());
    }
    let lists = into.join("lists");
    std::fs::create_dir_all(lists.join("partial")).context("making a folder for lists")?;
    let lists = format!("Dir::State::Lists={}", lists.display());
    apt(&["-o", &lists, "update"])?;
    apt(&["-o", &lists, "download", package])
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
