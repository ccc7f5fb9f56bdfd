//! One file a subcommand.

pub(crate) mod apiserver;
pub(crate) mod crds;
pub(crate) mod demo;
pub(crate) mod flagger;
pub(crate) mod manifests;
mod operation;
pub(crate) mod reference;
pub(crate) mod rollout_controller;
pub(crate) mod rollout_operator;
pub(crate) mod run;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// The flags of the program of this name, if the command line is one for it: by the name under which we were started,
/// or as the first argument.
pub(crate) fn flags_of(
    program: &str,
    mut arguments: impl Iterator<Item = String>,
) -> Option<Vec<String>> {
    let started = arguments.next()?;
    let name = started.rsplit('/').next().unwrap_or_default();
    let is_asked = name == program || arguments.next().is_some_and(|first| first == program);
    is_asked.then(|| arguments.collect())
}

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

#[cfg(test)]
mod tests {
    use super::flags_of;

    #[test]
    fn a_program_that_is_replaced_is_asked_for_by_either_name() {
        for program in ["rollout-operator", "rollout-controller", "flagger"] {
            let flags = |line: &str| {
                let line = line.replace("NAME", program);
                flags_of(program, line.split_whitespace().map(str::to_owned))
            };
            let given = Some(vec!["-a".to_owned(), "run".to_owned()]);
            assert_eq!(flags("/usr/bin/NAME -a run"), given);
            assert_eq!(flags("NAME -a run"), given);
            assert_eq!(flags("/usr/bin/slipway NAME -a run"), given);
            assert_eq!(flags("slipway run NAME"), None);
            assert_eq!(flags("slipway"), None);
        }
    }
}
