//! The command line, as people type it.

use std::path::PathBuf;

/// One Kubernetes operator that makes change safe at every scale.
#[derive(Debug, clap::Parser)]
#[command(name = "slipway", version, about)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run the embedded Kubernetes API server on its own
    Apiserver(Apiserver),
}

/// Options of `slipway apiserver`.
#[derive(Debug, clap::Args)]
pub(crate) struct Apiserver {
    /// The port on loopback; 0 for any free one
    #[arg(long, default_value_t = 6443)]
    pub(crate) port: u16,
    /// Where to write a kubeconfig; it appears when the server answers and goes when it ends. Without this option it
    /// is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,
    /// Names of the clusters in this server; each has a context of its name in the kubeconfig
    #[arg(long, value_delimiter = ',', default_value = "slipway")]
    pub(crate) clusters: Vec<String>,
    /// Leave garbage collection and the end of namespaces to somebody else's controller manager
    #[arg(long)]
    pub(crate) no_controllers: bool,
}
