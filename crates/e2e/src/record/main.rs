//! Records what programs ask of the API server of a kubeconfig, until standard input ends.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use serde_json::Value;
use slipway_apiserver::origin;
use slipway_e2e::cluster::Cluster;
use slipway_e2e::record::{Proxy, kept};
use slipway_e2e::suite::say;

#[derive(Parser)]
struct Arguments {
    /// The kubeconfig of the server
    #[arg(long)]
    upstream: PathBuf,
    /// Where to write a kubeconfig for the programs
    #[arg(long)]
    kubeconfig_out: PathBuf,
    /// Where to write the pairs
    #[arg(long)]
    out: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let client = Cluster::new(&PathBuf::from("kubectl"), &arguments.upstream)?
        .client()
        .await?;
    let asked = http::Request::get("/version").body(Vec::new())?;
    let origin = origin::of_real(&client.request::<Value>(asked).await?)?;
    let proxy = Proxy::new(client);
    proxy.begin().await?;
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        biased;
        _ = ended => {}
        served = proxy.clone().serve(&arguments.kubeconfig_out) => served?,
    }
    let pairs = proxy.pairs();
    kept::write(&arguments.out, &pairs)?;
    say(&format!(
        "recorded {} pairs of {origin} in {}",
        pairs.len(),
        arguments.out.display()
    ));
    Ok(())
}
