//! Where things are.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The target folder that cargo uses.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Where built control-plane programs are kept between runs and checkouts.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("SLIPWAY_CACHE") {
        return Ok(folder.into());
    }
    if let Some(folder) = std::env::var_os("XDG_CACHE_HOME") {
        return Ok(Path::new(&folder).join("slipway"));
    }
    let home = std::env::var_os("HOME")
        .context("finding the cache folder: neither SLIPWAY_CACHE nor HOME is set")?;
    Ok(Path::new(&home).join(".cache").join("slipway"))
}

/// Whether nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// The commit that is checked out; nothing where git does not say.
pub(crate) fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(root());
    let said = git.output().ok().filter(|output| output.status.success());
    said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

/// The day, as recordings and figures bear it.
pub(crate) fn today() -> Result<String> {
    let said = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let said = said.context("asking for the date")?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// A cargo of the same toolchain, in the workspace.
pub(crate) fn cargo() -> Command {
    called_as_by_hand(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program in the workspace that is not told what cargo told us, because it may call cargo too.
pub(crate) fn called_as_by_hand(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_told_by_cargo) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo tells this to a program that it runs, about that program. Nobody below may see it: dependencies whose build
/// looks at it (ring's does) would be built again, and all that stands on them, whenever somebody calls cargo by himself.
fn is_told_by_cargo(name: &str) -> bool {
    let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_"];
    let names = [
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
    ];
    about_us.iter().any(|start| name.starts_with(start)) || names.contains(&name)
}

/// The same command, which gives way to others that want the processor.
pub(crate) fn gently(command: &Command) -> Command {
    let mut gentle = if which("nice").is_some() {
        let mut nice = Command::new("nice");
        nice.args(["-n", "10"]).arg(command.get_program());
        nice
    } else {
        Command::new(command.get_program())
    };
    gentle.args(command.get_args()).current_dir(root());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => gentle.env(name, value),
            None => gentle.env_remove(name),
        };
    }
    gentle
}

/// What every build selects beside what it wants: all packages, and a test that takes no time to build. Features are put
/// together over what is built at once, and those of tests' dependencies count only where a test is: without either, cargo
/// would build half of the workspace a second time.
pub(crate) const AS_FOR_TESTS: &[&str] = &["--workspace", "--test", "tidy"];

/// Builds Slipway.
pub(crate) fn build_program() -> Result<()> {
    build(&["--bin", "slipway"])
}

/// Builds all programs of the workspace, those that measure as well.
pub(crate) fn build_programs() -> Result<()> {
    build(&["--bins", "--examples"])
}

fn build(what: &[&str]) -> Result<()> {
    let built = cargo()
        .args(["build", "--release", "--quiet"])
        .args(AS_FOR_TESTS)
        .args(what)
        .status()
        .context("starting cargo")?;
    if !built.success() {
        bail!("building the programs failed");
    }
    Ok(())
}

/// How the program is linked that is shipped: relocations in their short form, which need no megabyte of memory. It asks
/// for a libc of 2022 or later, which whoever builds for himself may not have. And without names, which the profile says too, but
/// cargo forgets it where a package of the profile has settings of its own.
const SHIPPED: &[&str] = &["-Clink-arg=-Wl,-z,pack-relative-relocs", "-Cstrip=symbols"];

/// How functions are called in it: by names that say of which types they are made, so that a list can tell them apart.
const NAMES: &str = "-Csymbol-mangling-version=v0";

/// The names of what runs in an operator, which lies together in the program as it is shipped.
pub(crate) fn layout() -> PathBuf {
    root().join("crates/slipway/layout.txt")
}

/// Builds the program as it is shipped; where it is.
pub(crate) fn build_shipped() -> Result<PathBuf> {
    crate::report::line("building the program as it is shipped; the first time takes minutes");
    shipped(&[])
}

/// The same program, whose functions can be told by their names.
pub(crate) fn build_shipped_with_names() -> Result<PathBuf> {
    crate::report::line("building the program as it is shipped, with names; this takes minutes");
    shipped(&["-Cstrip=none"])
}

fn shipped(besides: &[&str]) -> Result<PathBuf> {
    let list = std::fs::read_to_string(layout()).context("reading what lies together")?;
    let script = crate::layout::script(&list);
    // Cargo links anew for another name, not for other words in the same file.
    let mut hash = DefaultHasher::new();
    script.hash(&mut hash);
    let file = target().join(format!("layout-{:016x}.ld", hash.finish()));
    std::fs::create_dir_all(target()).context("creating the target folder")?;
    std::fs::write(&file, script).with_context(|| format!("writing {}", file.display()))?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let built = cargo()
        .args(["rustc", "--profile", "dist", "--quiet"])
        .args(["--package", "slipway", "--bin", "slipway", "--"])
        .args(SHIPPED)
        .arg(format!("-Clink-arg=-Wl,-T,{}", file.display()))
        .args(besides)
        .env("RUSTFLAGS", format!("{flags} {NAMES}").trim())
        .status()
        .context("starting cargo")?;
    if !built.success() {
        bail!("building the program as it is shipped failed");
    }
    Ok(target().join("dist").join("slipway"))
}

/// The path of a program on the PATH.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_called_as_by_hand() {
        // Cargo runs this test, and so tells it about its package.
        assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_PKG_NAME"));
        let removed = |command: &Command| {
            let mut all = command.get_envs();
            all.any(|(name, value)| name == "CARGO_PKG_NAME" && value.is_none())
        };
        let cargo = cargo();
        assert!(removed(&cargo));
        assert!(removed(&gently(&cargo)));
        assert!(
            removed(&called_as_by_hand("cargo")),
            "what calls cargo itself"
        );
        assert!(!is_told_by_cargo("CARGO_TARGET_DIR") && !is_told_by_cargo("CARGO"));
    }
}
