//! Who talks to an API server: the kubectl programs there are to run the session with, and this process itself.
//!
//! Of kubectl the one of `SLIPWAY_KUBECTL`, and the one on the PATH if it is of another version: the session promises two.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A kubectl program.
pub struct Client {
    /// Where it is.
    pub program: PathBuf,
    /// Major and minor, as in `1.36`: what its recording is named by.
    pub version: String,
}

/// The programs, newest first, one a version.
pub fn all() -> Result<Vec<Client>> {
    let named = std::env::var_os("SLIPWAY_KUBECTL").map(PathBuf::from);
    let mut clients: Vec<Client> = Vec::new();
    for program in named.into_iter().chain(on_path()) {
        let version = version(&program)?;
        if clients.iter().all(|client| client.version != version) {
            clients.push(Client { program, version });
        }
    }
    if clients.is_empty() {
        bail!("there is no kubectl: put one on the PATH or name one with SLIPWAY_KUBECTL");
    }
    clients.sort_by(|a, b| b.version.cmp(&a.version));
    Ok(clients)
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("kubectl"))
        .find(|file| file.is_file())
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .args(["version", "--client"])
        .output()
        .with_context(|| format!("asking {} for its version", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("Client Version: v"))
        .with_context(|| format!("{} does not tell its version: {text}", program.display()))?;
    Ok(version.split('.').take(2).collect::<Vec<_>>().join("."))
}

/// A client of this process with the rights of a kubeconfig's user, which does not try again by itself.
pub async fn connected(kubeconfig: &Path) -> Result<kube::Client> {
    made(Kubeconfig::read_from(kubeconfig)?).await
}

/// The same, by the text of a kubeconfig.
pub async fn connected_by(kubeconfig: &str) -> Result<kube::Client> {
    made(Kubeconfig::from_yaml(kubeconfig)?).await
}

async fn made(kubeconfig: Kubeconfig) -> Result<kube::Client> {
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}
