//! In which run each mutant was found: kept beside this file. The gate always makes these runs with the operator itself, so that a
//! bug like the mutant would be found by it; and hunts try them first. A trial that finds its mutant no more costs time, and the
//! hunt goes on over what else the gate always does.

use std::collections::BTreeMap;
use std::path::Path;

use slipway_sim::trial::Trial;

use super::Catch;
use crate::arguments::told;

const KEPT: &str = include_str!("killers.txt");

/// Runs in which an oracle has once objected to the operator itself, by what it was about.
const FOUND: &str = include_str!("found.txt");

/// All of them: scenario and trial. A line that cannot be read would be a run that is quietly made no more.
pub(crate) fn all() -> Vec<(String, Trial)> {
    let lines = KEPT.lines().chain(FOUND.lines());
    lines
        .map(|line| {
            let (_, run) = line.split_once(" | ").unwrap();
            told(run).unwrap()
        })
        .collect()
}

/// The run in which a mutant was found.
pub(super) fn of(mutant: &str) -> Option<(String, Trial)> {
    let lines = KEPT.lines().filter_map(|line| line.split_once(" | "));
    let mut lines = lines.filter(|(name, _)| *name == mutant);
    lines.next().and_then(|(_, run)| told(run).ok())
}

/// Keeps the runs in which mutants were found; of mutants that are no more none is kept.
pub(crate) fn keep(all: &[Catch]) -> std::io::Result<()> {
    let is_there = |name: &str| super::all().any(|mutant| mutant.name == name);
    let mut lines: BTreeMap<&str, String> = KEPT
        .lines()
        .filter_map(|line| line.split_once(" | "))
        .filter(|(name, _)| is_there(name))
        .map(|(name, run)| (name, run.to_owned()))
        .collect();
    for catch in all {
        if let Some((failure, _)) = &catch.hunt.caught {
            let run = format!("scenario={} {}", failure.scenario, failure.trial);
            lines.insert(catch.mutant, run);
        }
    }
    let mut text = String::new();
    for (name, run) in &lines {
        text.extend([name, " | ", run.as_str(), "\n"]);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation");
    std::fs::write(folder.join("killers.txt"), text)
}
