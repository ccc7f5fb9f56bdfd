//! Slipway's build, test and control-plane commands: `cargo xtask --help`.

mod bench;
mod controlplane;
#[cfg(test)]
#[allow(unreachable_pub, reason = "the crate of tests exports it")]
#[path = "../../crates/e2e/src/documents.rs"]
mod documents;
mod fuzz;
mod generate;
mod kept;
mod layout;
mod load;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate of tests exports it, and uses all of it"
)]
#[path = "../../crates/e2e/src/order.rs"]
mod order;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate of tests exports it, and uses all of it"
)]
#[path = "../../crates/e2e/src/ports.rs"]
mod ports;
mod record;
mod report;
mod sim;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Slipway's build, test and control-plane commands"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up and run all tests; prints one line a tier with counts and time
    Test(test::Arguments),
    /// Write everything that is generated; with --check, fail if something differs
    Generate {
        /// Change nothing; fail if the tree is not what would be generated
        #[arg(long)]
        check: bool,
        /// Only manifests and pages of the reference, for which no Go is needed
        #[arg(long)]
        pages: bool,
    },
    /// Check the workspace's own rules: crate arrows, file sizes, generated files, README commands
    Tidy,
    /// Figures, side by side on the embedded and on a real server; ends with 3 where a goal is missed
    Bench(bench::Arguments),
    /// A real Kubernetes control plane on loopback
    #[command(subcommand)]
    Controlplane(controlplane::Command),
    /// Record of a real kube-apiserver what tests are held against
    Record(record::Arguments),
    /// Find out which functions run in an operator, so that they lie together in the program as it is shipped (needs valgrind)
    Layout(layout::Arguments),
    /// Feed the API server's readers with damaged input, a million cases each
    Fuzz(fuzz::Arguments),
    /// Run a command again and again beside a load, and keep what each run said
    Load(load::Arguments),
    /// Play all scenarios, break them in every way there is, and try seeds
    Sim(sim::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Generate { check, pages } => generate::run(check, pages),
        Command::Tidy => test::tidy(),
        Command::Bench(command) => bench::run(&command),
        Command::Controlplane(command) => controlplane::run(&command),
        Command::Record(arguments) => record::run(&arguments),
        Command::Layout(arguments) => layout::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error);
            ExitCode::from(code(&error))
        }
    }
}

/// What this program ends with after an error.
fn code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<bench::Missed>() {
        Some(_) => bench::MISSED,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{bench, code};

    #[test]
    fn a_missed_goal_is_told_from_other_failures() {
        assert_eq!(code(&anyhow::anyhow!("the bench could not run")), 1);
        assert_eq!(code(&anyhow::Error::from(bench::Missed)), 3);
        let told = anyhow::Error::from(bench::Missed).context("measuring zones");
        assert_eq!(code(&told), 3);
    }
}
