//! The command line, as people type it. It promises names, defaults and help; what they mean is elsewhere.

mod apiserver;
mod demo;
mod flagger;
mod install;
mod members;
mod outside;
mod rollout_controller;
mod rollout_operator;
mod run;
mod webhooks;

pub(crate) use apiserver::Apiserver;
pub(crate) use demo::{Color, Demo};
pub(crate) use flagger::{Flagger, PROGRAM as FLAGGER};
pub(crate) use install::{Crds, Manifests};
pub(crate) use rollout_controller::{PROGRAM as CONTROLLER, RolloutController};
pub(crate) use rollout_operator::{ClusterValidation, PROGRAM, RolloutOperator};
pub(crate) use run::{LogFormat, LogLevel, Run, duration};
pub(crate) use webhooks::Webhooks;

/// One Kubernetes operator that makes change safe at every scale.
#[derive(Debug, clap::Parser)]
#[command(
    name = "slipway",
    version,
    about,
    after_help = "Exit codes: 0 done · 1 runtime or API error · 2 wrong usage · 6 a violation was found"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show the product at work, without a cluster
    Demo(Demo),
    /// Run the operator
    Run(Box<Run>),
    /// Run the operator in place of Grafana's rollout-operator, accepting its flags
    #[command(
        name = PROGRAM,
        disable_help_flag = true,
        after_long_help = RolloutOperator::usage()
    )]
    RolloutOperator {
        /// The original's flags, as Go reads them: -kubernetes.namespace=NS
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAG"
        )]
        flags: Vec<String>,
    },
    /// Run restarts in place of the rollout-controller of Flippers, accepting its flags
    #[command(
        name = CONTROLLER,
        disable_help_flag = true,
        after_long_help = RolloutController::usage()
    )]
    RolloutController {
        /// The original's flags, as Go reads them: --leader-elect
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAG"
        )]
        flags: Vec<String>,
    },
    /// Run canary in place of Flagger, accepting its flags
    #[command(
        name = FLAGGER,
        disable_help_flag = true,
        after_long_help = Flagger::usage()
    )]
    Flagger {
        /// The original's flags, as Go reads them: -mesh-provider=istio
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAG"
        )]
        flags: Vec<String>,
    },
    /// Run the embedded Kubernetes API server on its own
    Apiserver(Apiserver),
    /// Print the definitions of our kinds, to be applied with kubectl
    Crds(Crds),
    /// Print everything that installs the operator, to be applied with kubectl
    Manifests(Manifests),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference {
        /// Which page: `cli`, `permissions`, or a kind
        page: String,
    },
}
