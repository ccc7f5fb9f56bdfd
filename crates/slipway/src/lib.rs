//! Slipway: one Kubernetes operator that makes change safe at every scale.
//!
//! This crate wires: the command line is in [`args`], one file a subcommand is in [`command`]. What is decided is
//! decided in the other crates.

mod args;
mod command;
mod output;

use std::process::ExitCode;

use clap::Parser;

/// Parses the command line and carries it out. Exit codes: 0 done, 1 failed, 2 wrong usage.
pub fn run() -> ExitCode {
    let arguments = args::Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let result = match arguments.command {
        args::Command::Apiserver(arguments) => command::apiserver::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
