//! What came of an exploration, for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Means;
use crate::history;
use crate::oracles::{Verdict, Violation};
use crate::runner::Outcome;
use crate::scenario::Scenario;
use crate::trial::Trial;

/// How many lines of a history are shown with a failure.
const LINES: usize = 30;

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Done.
    pub done: u64,
    /// To be done.
    pub of: u64,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.done, self.of)
    }
}

/// A run that an oracle objects to.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Which scenario.
    pub scenario: String,
    /// Which run of it.
    pub trial: Trial,
    /// Which oracles object, and to what.
    pub violations: Vec<(&'static str, Violation)>,
    /// What happened until then.
    pub lines: Vec<String>,
}

impl Failure {
    /// The failure of a run, if there is one.
    pub fn of(
        scenario: &Scenario,
        trial: &Trial,
        outcome: &Outcome,
        verdicts: &[Verdict],
    ) -> Option<Self> {
        let violations: Vec<(&'static str, Violation)> = verdicts
            .iter()
            .flat_map(|verdict| {
                let all = verdict.findings.violations.iter().take(3);
                all.map(|violation| (verdict.id, violation.clone()))
            })
            .collect();
        let first = violations.iter().map(|(_, violation)| violation.at).min()?;
        Some(Self {
            scenario: scenario.name.clone(),
            trial: trial.clone(),
            violations,
            lines: history::tell(&outcome.history, first, LINES),
        })
    }

    /// The command that shows it again.
    pub fn replay(&self) -> String {
        format!(
            "cargo xtask sim --replay 'scenario={} {}'",
            self.scenario, self.trial
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scenario {}, {}", self.scenario, self.trial)?;
        for (id, violation) in &self.violations {
            writeln!(f, "  {id} at {}: {}", violation.at, violation.text)?;
        }
        for line in &self.lines {
            writeln!(f, "  {line}")?;
        }
        write!(f, "  again: {}", self.replay())
    }
}

/// What an oracle came to over all runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// What it says.
    pub what: &'static str,
    /// How often it had something to look at.
    pub checked: u64,
    /// How often it objected.
    pub violations: u64,
}

/// What came of an exploration.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Scenarios played.
    pub scenarios: u64,
    /// How many of them were played as they are and in no other way: nothing went wrong in them.
    pub spared: u64,
    /// Places among requests × faults.
    pub requests: Score,
    /// Places among watch events × faults.
    pub events: Score,
    /// Places among calls to the world outside × faults.
    pub calls: Score,
    /// Places at which a leader stood still.
    pub standstills: Score,
    /// Spells, by class.
    pub spells: BTreeMap<&'static str, Score>,
    /// Seeds.
    pub seeds: Score,
    /// Runs that were made for all of these; some stand for several that cannot differ.
    pub runs: u64,
    /// Oracles by id.
    pub oracles: BTreeMap<&'static str, Tally>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// What is wrong with all runs together.
    pub notes: Vec<String>,
    /// Mutants killed.
    pub mutants: Score,
    /// Of these, how many by which part of what is done with the operator itself.
    pub means: BTreeMap<Means, u64>,
    /// Rules of the operator's roles that were used, with the verbs.
    pub used: BTreeSet<(String, usize, String)>,
}

impl Report {
    /// Takes in what came of a run.
    pub fn take(
        &mut self,
        scenario: &Scenario,
        trial: &Trial,
        outcome: &Outcome,
        mut verdicts: Vec<Verdict>,
    ) {
        if scenario.asks("S2") {
            verdicts.push(outcome.rights());
        }
        for verdict in &verdicts {
            let tally = self.oracles.entry(verdict.id).or_default();
            tally.what = verdict.what;
            tally.checked += verdict.findings.checked;
            tally.violations += verdict.findings.violations.len() as u64;
        }
        self.used.extend(outcome.audit.used.iter().cloned());
        self.failures
            .extend(Failure::of(scenario, trial, outcome, &verdicts));
    }

    /// Takes in that a scenario was played twice with one seed.
    pub fn same_seed(&mut self, scenario: &Scenario, one: &Outcome, other: &Outcome) {
        let tally = self.oracles.entry("G14").or_default();
        tally.what = "the same seed is the same run";
        tally.checked += 1;
        if one.hash == other.hash {
            return;
        }
        tally.violations += 1;
        let violation = Violation {
            at: one.history.end,
            text: format!("hashes {} and {}", one.hash, other.hash),
        };
        self.failures.push(Failure {
            scenario: scenario.name.clone(),
            trial: Trial::calm(),
            violations: vec![("G14", violation)],
            lines: Vec::new(),
        });
    }

    /// Takes in something that was found out about all runs together.
    pub fn note(&mut self, id: &'static str, holds: bool, otherwise: &str) {
        let tally = self.oracles.entry(id).or_default();
        tally.checked += 1;
        if !holds {
            tally.violations += 1;
            self.notes.push(format!("{id}: {otherwise}"));
        }
    }

    /// Takes in that a run went all the way: an oracle that was never asked has found nothing wrong with nothing.
    pub fn asked_all(&mut self, oracles: impl Iterator<Item = &'static str>) {
        for id in oracles {
            let asked = self.oracles.get(id).map_or(0, |tally| tally.checked);
            if asked == 0 {
                self.notes.push(format!(
                    "{id}: asked 0 times: no scenario has what it is about, or it looks away"
                ));
            }
        }
    }

    /// Whether nothing was found.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.notes.is_empty()
    }

    /// How often any oracle objected.
    pub fn violations(&self) -> u64 {
        self.oracles.values().map(|tally| tally.violations).sum()
    }

    pub(super) fn sort(&mut self) {
        self.failures
            .sort_by_key(|failure| (failure.scenario.clone(), failure.trial.to_string()));
    }

    /// The oracles, one line each.
    pub fn table(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:8} {:>10} {:>10}  what",
            "oracle", "checked", "violations"
        )];
        lines.extend(self.oracles.iter().map(|(id, tally)| {
            format!(
                "{id:8} {:>10} {:>10}  {}",
                tally.checked, tally.violations, tally.what
            )
        }));
        lines
    }

    /// All in a line.
    pub fn line(&self) -> String {
        let spared = match self.spared {
            0 => String::new(),
            spared => format!(" ({spared} of them only without faults)"),
        };
        let mut parts = vec![
            format!("{} scenarios{spared}", self.scenarios),
            format!("requests × faults {}", self.requests),
            format!("watch events × faults {}", self.events),
        ];
        if self.calls.of > 0 {
            parts.push(format!("calls × faults {}", self.calls));
        }
        if self.standstills.of > 0 {
            parts.push(format!("standstills {}", self.standstills));
        }
        let spells = self.spells.iter();
        parts.extend(spells.map(|(class, score)| format!("{class} {score}")));
        parts.push(format!("seeds {}", self.seeds.done));
        parts.push(format!("violations {}", self.violations()));
        let means = self.means.iter();
        let means: Vec<String> = means
            .map(|(means, count)| format!("{count} {}", means.name()))
            .collect();
        let means = match means.as_slice() {
            [] => String::new(),
            all => format!(" ({})", all.join(", ")),
        };
        parts.push(format!("mutants killed {}{means}", self.mutants));
        format!("simulation: {}", parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn an_oracle_that_was_never_asked_is_a_failure() {
        let mut report = Report::default();
        report.note("Z1", true, "");
        report.asked_all(["Z1"].into_iter());
        assert!(report.is_good());
        report.asked_all(["Z1", "R10"].into_iter());
        assert!(!report.is_good());
        assert!(report.notes.iter().all(|note| note.starts_with("R10: ")));
    }

    #[test]
    fn what_nothing_went_wrong_in_is_told() {
        let mut report = Report {
            scenarios: 3,
            ..Report::default()
        };
        assert!(report.line().starts_with("simulation: 3 scenarios · "));
        report.spared = 2;
        let line = report.line();
        assert!(
            line.starts_with("simulation: 3 scenarios (2 of them only without faults) · "),
            "{line}"
        );
    }
}
