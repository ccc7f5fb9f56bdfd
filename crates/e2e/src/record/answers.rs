//! Records answers of a real kube-apiserver that unit tests are held against; `cargo xtask record apply` and `… heads` run it. It
//! wants a control plane that nobody else uses.

#[path = "answers_apply.rs"]
mod apply;
#[path = "answers_asked.rs"]
mod asked;
#[path = "answers_heads.rs"]
mod heads;
#[path = "answers_prepared.rs"]
mod prepared;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use asked::Asked;
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use serde_json::Value;
use slipway_apiserver::origin;
use slipway_e2e::client::connected;
use slipway_e2e::suite::say;

#[derive(Parser)]
struct Arguments {
    /// What to record
    what: What,
    /// The kubeconfig of the server
    #[arg(long)]
    upstream: PathBuf,
    /// The folder with the recording; requests that stand in it are made again
    #[arg(long)]
    folder: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Server-side apply and the ownership of fields
    Apply,
    /// Metadata of lists, in protobuf and in JSON
    Heads,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let asked = Asked::new(connected(&arguments.upstream).await?);
    let version: Value = asked.get("/version").await?;
    let origin = origin::of_real(&version)?;
    let folder = &arguments.folder;
    let recorded = match arguments.what {
        What::Apply => apply::record(&asked, folder).await?,
        What::Heads => heads::record(&asked, folder).await?,
    };
    note(folder, &origin)?;
    say(&format!("recorded {recorded} answers of {origin}"));
    Ok(())
}

/// Writes beside a recording where it comes from.
fn note(folder: &Path, origin: &str) -> Result<()> {
    let today = Timestamp::now().strftime("%Y-%m-%d");
    let path = folder.join("origin.txt");
    std::fs::write(&path, format!("{origin} | {today}\n"))
        .with_context(|| format!("writing {}", path.display()))
}
