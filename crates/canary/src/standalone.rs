//! The standalone mode: a workload, and a copy of it that serves.
//!
//! ```text
//! apex Service ──────────► NAME-primary (the source: what was promoted)
//! apex-primary Service ──┘
//! apex-canary Service ───► NAME         (the target: what a person changes; at zero while nothing is analysed)
//! ```
//!
//! Names, labels and configs are Flagger's, so that each takes over what the other leaves: [`adopt`] reads a status that
//! Flagger wrote. A person's workload is changed in nothing but its replicas (a `DaemonSet`: one node selector).

mod about;
pub mod acts;
pub mod adopt;
mod apart;
pub mod configs;
pub mod cookies;
pub mod hash;
pub mod leave;
pub mod primary;
pub mod readiness;
pub mod revert;
pub mod scaler;
pub mod scene;
pub mod services;

use serde_json::Value;
use slipway_api::flagger::{CANARY, PRIMARY, SELECTOR_LABELS};
use slipway_kernel::fields::strings;

/// What things are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The workload.
    pub target: String,
    /// Its copy that serves.
    pub primary: String,
    /// The Service that clients know.
    pub apex: String,
    /// The Service of the copy.
    pub apex_primary: String,
    /// The Service of the workload.
    pub apex_canary: String,
}

impl Names {
    /// For a workload and an apex of these names.
    pub fn of(target: &str, apex: &str) -> Self {
        Self {
            target: target.to_owned(),
            primary: format!("{target}{PRIMARY}"),
            apex: apex.to_owned(),
            apex_primary: format!("{apex}{PRIMARY}"),
            apex_canary: format!("{apex}{CANARY}"),
        }
    }
}

/// The label by which a workload's pods are known, and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodLabel {
    /// Its name.
    pub key: String,
    /// Its value on the workload's pods.
    pub value: String,
}

impl PodLabel {
    /// Its value on the pods of the copy.
    pub fn primary(&self) -> String {
        format!("{}{PRIMARY}", self.value)
    }

    /// The first of these labels that the workload selects its pods by.
    pub fn of(workload: &Value, looked_for: &[String]) -> Option<Self> {
        let selector = strings(workload, "/spec/selector/matchLabels");
        known_by(looked_for).into_iter().find_map(|key| {
            let value = selector.get(&key)?.clone();
            Some(Self { key, value })
        })
    }
}

/// The labels by which pods may be known: these, or the usual ones where none are named.
fn known_by(looked_for: &[String]) -> Vec<String> {
    if looked_for.is_empty() {
        return SELECTOR_LABELS.map(str::to_owned).to_vec();
    }
    looked_for.to_vec()
}
