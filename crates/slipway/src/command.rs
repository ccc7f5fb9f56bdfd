//! One file a subcommand.

pub(crate) mod apiserver;
pub(crate) mod crds;
pub(crate) mod demo;
pub(crate) mod manifests;
mod operation;
pub(crate) mod reference;
pub(crate) mod rollout_operator;
pub(crate) mod run;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Ends when Ctrl-C, SIGTERM or SIGHUP comes. They are caught from this call on.
pub(crate) fn until_told_to_end() -> Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    let mut hangup = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
