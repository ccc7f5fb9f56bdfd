//! What can happen between a program and its API server, without a hand on either.
//!
//! Others who use the same API server notice nothing of it.

mod checkpoint;
mod relay;

pub use checkpoint::Checkpoint;
pub use relay::Relay;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// The first cluster's server of a kubeconfig.
pub(crate) fn server(config: &Value) -> Result<&str> {
    config
        .pointer("/clusters/0/cluster/server")
        .and_then(Value::as_str)
        .context("the kubeconfig names no server")
}

/// A kubeconfig, as it is written.
pub(crate) fn read(kubeconfig: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(kubeconfig)
        .with_context(|| format!("reading {}", kubeconfig.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("reading {}", kubeconfig.display()))
}
