//! Options of `slipway apiserver`.

use std::path::PathBuf;

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
    /// Run the simulator's controllers and three nodes in every cluster: Deployments get pods, and pods start
    #[arg(long)]
    pub(crate) actors: bool,
    /// Install the definitions of our kinds at the start
    #[arg(long)]
    pub(crate) crds: bool,
}
