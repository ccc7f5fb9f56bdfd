//! What the program itself prints: manifests and pages of the reference.
//!
//! xtask depends on none of our crates, so it builds the program and runs it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::settle;
use crate::workspace;

/// Where each is checked in, from the root of the workspace, and which command line prints it.
const PAGES: &[(&str, &[&str])] = &[
    ("deploy/crds.yaml", &["crds"]),
    (
        "deploy/canary.yaml",
        &["manifests", "--controllers", "canary"],
    ),
    (
        "deploy/restarts.yaml",
        &["manifests", "--controllers", "restarts"],
    ),
    (
        "deploy/zones.yaml",
        &["manifests", "--controllers", "zones", "--webhooks"],
    ),
    (
        "deploy/fleet.yaml",
        &["manifests", "--controllers", "fleet"],
    ),
    (
        "deploy/agent.yaml",
        &["manifests", "--controllers", "agent"],
    ),
    (
        "docs/reference/alertprovider.md",
        &["reference", "alertprovider"],
    ),
    ("docs/reference/assemblage.md", &["reference", "assemblage"]),
    (
        "docs/reference/bootstrapmodule.md",
        &["reference", "bootstrapmodule"],
    ),
    ("docs/reference/canary.md", &["reference", "canary"]),
    ("docs/reference/cli.md", &["reference", "cli"]),
    ("docs/reference/flipper.md", &["reference", "flipper"]),
    (
        "docs/reference/metrictemplate.md",
        &["reference", "metrictemplate"],
    ),
    ("docs/reference/module.md", &["reference", "module"]),
    (
        "docs/reference/permissions.md",
        &["reference", "permissions"],
    ),
    ("docs/reference/reasons.md", &["reference", "reasons"]),
    (
        "docs/reference/remoteassemblage.md",
        &["reference", "remoteassemblage"],
    ),
    ("docs/reference/rollout.md", &["reference", "rollout"]),
];

/// Writes or checks all of them.
pub(super) fn run(root: &Path, check: bool) -> Result<()> {
    let program = build()?;
    for (path, arguments) in PAGES {
        let output = Command::new(&program)
            .args(*arguments)
            .env_clear()
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        if !output.status.success() {
            bail!(
                "slipway {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let made = String::from_utf8(output.stdout).context("reading what slipway printed")?;
        let path = root.join(path);
        if let (Some(folder), false) = (path.parent(), check) {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("making {}", folder.display()))?;
        }
        settle(&path, &made, check)?;
    }
    Ok(())
}

/// Builds the program with the profile that this one was built with, so that nothing is compiled twice.
fn build() -> Result<std::path::PathBuf> {
    let own = std::env::current_exe().context("finding out where xtask is")?;
    let folder = own.parent().context("finding the folder of xtask")?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--bin", "slipway"]);
    cargo.args(workspace::AS_FOR_TESTS);
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().context("running cargo")?;
    if !status.success() {
        bail!("slipway does not build");
    }
    Ok(folder.join("slipway"))
}
