//! What is there before a test begins: what `slipway` prints to be installed, and nodes.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::server::program;

/// The documents that a subcommand of slipway prints.
pub fn printed(arguments: &[&str]) -> Result<Vec<Value>> {
    let what = arguments.join(" ");
    let output = Command::new(program()?).args(arguments).output()?;
    if !output.status.success() {
        bail!(
            "slipway {what}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout)?;
    serde_saphyr::from_multiple(&text)
        .with_context(|| format!("reading what slipway {what} printed"))
}

/// A node for KWOK to play.
pub fn node(index: u32) -> Value {
    let room = json!({"cpu": "1000", "memory": "1000Gi", "pods": "10000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("node-{index}"), "labels": {"topology.kubernetes.io/zone": format!("zone-{index}")}},
        "status": {"allocatable": room, "capacity": room},
    })
}
