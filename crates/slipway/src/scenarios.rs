//! The scenarios that this program knows, and the operator as they want it.
//!
//! One file each in `scenarios/`, embedded by the capability that it is about. The demo shows them, the simulation test breaks them.

mod wiring;

pub use wiring::wiring;
#[cfg(test)]
pub(crate) use wiring::wiring_of;

use slipway_sim::scenario::{Scenario, Unreadable};

use crate::registry::Registry;

/// Names and texts; the first is the demo's.
fn files(registry: &Registry) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    registry.all().iter().flat_map(|entry| entry.scenarios)
}

/// The names of all scenarios; the first is the one to begin with.
pub fn names() -> Vec<&'static str> {
    files(&Registry::default()).map(|(name, _)| *name).collect()
}

/// A scenario by its name; none if there is no such.
pub fn find(name: &str) -> Option<Result<Scenario, Unreadable>> {
    let registry = Registry::default();
    let (_, text) = files(&registry).find(|(known, _)| *known == name)?;
    Some(Scenario::read(name, text))
}

/// All scenarios.
pub fn all() -> Result<Vec<Scenario>, Unreadable> {
    all_of(&Registry::default())
}

/// All scenarios of these capabilities.
pub(crate) fn all_of(registry: &Registry) -> Result<Vec<Scenario>, Unreadable> {
    files(registry)
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
        assert_eq!(called, names());
        assert!(all.iter().all(|s| s.about.ends_with('.')));
    }

    #[test]
    fn every_scenario_is_in_one_share() {
        let shares = wiring().shares;
        let misplaced = slipway_sim::share::misplaced(&shares, names().into_iter());
        assert_eq!(misplaced, None);
    }

    #[test]
    fn every_file_is_known() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut known: Vec<String> = names()
            .into_iter()
            .map(|name| format!("{name}.yaml"))
            .collect();
        known.sort();
        assert_eq!(files, known);
    }
}
