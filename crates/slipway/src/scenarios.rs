//! The scenarios that this program knows, and the operator as they want it.
//!
//! One file each in `scenarios/`, embedded. The demo shows them, the simulation test breaks them.

mod wiring;

pub use wiring::wiring;

use slipway_sim::scenario::{Scenario, Unreadable};

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".yaml")))),+]
    };
}

/// Names and texts; the first is the demo's.
const FILES: &[(&str, &str)] = files![
    "nightly-restart",
    "restart-daily",
    "restart-after-downtime",
    "restart-during-rollout",
    "flipper-changes",
    "flipper-invalid",
    "flipper-typo",
    "leader-failover",
    "statefulset-daemonset",
    "opt-out-pause-zero",
    "pdb",
    "overlap",
    "max-concurrent-many",
    "label-later",
    "flipper-suspended",
    "zone-rollout",
    "zone-order",
    "zone-budget",
    "zone-evict",
    "zone-partition",
    "zone-downscale",
    "zone-failover",
    "zone-follow",
    "zone-quiet",
    "zone-race",
];

/// The names of all scenarios; the first is the one to begin with.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// A scenario by its name; none if there is no such.
pub fn find(name: &str) -> Option<Result<Scenario, Unreadable>> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(Scenario::read(name, text))
}

/// All scenarios.
pub fn all() -> Result<Vec<Scenario>, Unreadable> {
    FILES
        .iter()
        .map(|(name, text)| Scenario::read(name, text))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_scenario_can_be_read_and_is_called_as_its_file() {
        let all = all().unwrap();
        let called: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(called, names().collect::<Vec<_>>());
        assert!(all.iter().all(|s| s.about.ends_with('.')));
    }

    #[test]
    fn every_file_is_known() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut known: Vec<String> = names().map(|name| format!("{name}.yaml")).collect();
        known.sort();
        assert_eq!(files, known);
    }
}
