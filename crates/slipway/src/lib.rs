//! Slipway: one Kubernetes operator that makes change safe at every scale.
//!
//! This crate wires: the command line is in [`args`], one file a subcommand is in [`command`], the capabilities that
//! there are in [`registry`]. What is decided is decided in the other crates.

mod args;
mod capabilities;
mod cluster_label;
mod command;
mod connect;
mod demo;
mod exit;
mod goflag;
mod kubeconfig;
mod logs;
mod manifests;
mod model;
mod output;
mod reference;
mod registry;
pub mod scenarios;
mod yaml;

use std::process::ExitCode;

use args::{Command, LogFormat};
use exit::Outcome;
use registry::Registry;

/// Parses the command line and carries it out. Exit codes: 0 done, 1 failed, 2 wrong usage, 6 a violation was found.
pub fn run() -> ExitCode {
    let given = || std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    if let Some(flags) = command::flags_of(args::PROGRAM, given()) {
        return command::rollout_operator::run(&flags);
    }
    if let Some(flags) = command::flags_of(args::CONTROLLER, given()) {
        return command::rollout_controller::run(&flags);
    }
    if let Some(flags) = command::flags_of(args::FLAGGER, given()) {
        return command::flagger::run(&flags);
    }
    let registry = Registry::default();
    let arguments = match registry.parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let (format, level) = match &arguments.command {
        Command::Run(run) => (run.log_format, logs::own(run.log_level.as_str())),
        // The picture must stay whole.
        Command::Demo(_) => (LogFormat::Logfmt, "off".to_owned()),
        _ => (LogFormat::Logfmt, "error".to_owned()),
    };
    logs::start(format, &level);
    let result = match arguments.command {
        Command::RolloutOperator { flags } => return command::rollout_operator::run(&flags),
        Command::RolloutController { flags } => return command::rollout_controller::run(&flags),
        Command::Flagger { flags } => return command::flagger::run(&flags),
        Command::Apiserver(arguments) => command::apiserver::run(&arguments).map(done),
        Command::Crds(arguments) => command::crds::run(&registry, &arguments).map(done),
        Command::Manifests(arguments) => command::manifests::run(&registry, &arguments).map(done),
        Command::Reference { page } => command::reference::run(&registry, &page).map(done),
        Command::Run(arguments) => command::run::run(&registry, &arguments).map(done),
        Command::Demo(arguments) => command::demo::run(&arguments),
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::error(&error);
            exit::code(&error)
        }
    }
}

fn done((): ()) -> Outcome {
    Outcome::Done
}
