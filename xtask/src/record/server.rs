//! Recordings of single answers, and of what kube-apiserver's packages say.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::controlplane::{Borrowed, Profile, tools};
use crate::report;
use crate::workspace;

/// Asks a real control plane again what a folder's recording asks.
pub(super) fn answers(what: &str, folder: &str) -> Result<()> {
    workspace::build_programs()?;
    // Controllers write into objects as well, which is a part of what is recorded; nothing else is in the way.
    let profile = if what == "heads" {
        Profile::Bare
    } else {
        Profile::Full
    };
    let real = Borrowed::start(1, &profile.into()).context("starting a real control plane")?;
    let status = Command::new(workspace::target().join("release/examples/answers"))
        .arg(what)
        .arg("--upstream")
        .arg(real.kubeconfig(0))
        .arg("--folder")
        .arg(workspace::root().join(folder))
        .status()
        .context("starting the recorder")?;
    if !status.success() {
        bail!("the recorder ended with {status}");
    }
    report::line(&format!("now look at what differs: git diff {folder}"));
    Ok(())
}

/// Has a Go program made of kube-apiserver's packages write what they make of a recording's inputs.
pub(super) fn packages(what: &str, folder: &str, file: &str) -> Result<()> {
    let folder = workspace::root().join(folder);
    let go = tools::run_recorder(&[what.as_ref(), folder.join(file).as_os_str()])?;
    let day = workspace::today()?;
    let origin = format!(
        "packages of kube-apiserver {}, {go} | {day}\n",
        tools::KUBERNETES
    );
    std::fs::write(folder.join("origin.txt"), origin).context("writing origin.txt")?;
    report::line(&format!(
        "now look at what differs: git diff {}",
        folder.display()
    ));
    Ok(())
}
