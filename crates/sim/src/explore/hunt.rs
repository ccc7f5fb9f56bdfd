//! Hunts for mutants, with the effort that the gate spends on the operator itself and no more: what is killed here, the gate would
//! have found.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Failure, Known, examine, order, singles, under_spells};
use crate::runner;
use crate::stage::{Unplayable, Wiring};
use crate::trial::Trial;

/// Of what the gate does with the operator itself, the part that found a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// A scenario without faults.
    Calm,
    /// A position that is always tried.
    Always,
    /// A run that is kept, and so always made.
    Kept,
    /// Nothing: it was found by looking further than the gate does.
    Beyond,
}

impl Means {
    /// What it is called in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "without faults",
            Self::Always => "at positions always tried",
            Self::Kept => "in runs kept for it",
            Self::Beyond => "beyond the gate",
        }
    }
}

/// How far a hunt goes: as far as the gate goes with the operator itself, whatever the commit, so that nothing is drawn.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// The run that is kept for the mutant.
    pub kept: Option<(String, Trial)>,
    /// Whether the gate's budget bounds also what it otherwise always tries of these scenarios ([`super::Effort::is_bounded`]):
    /// then it tries that on some commits only, and it is not tried here.
    pub is_bounded: bool,
    /// On, up to so many runs: so finds, for what the gate does not see yet, the run that is to be kept.
    pub beyond: Option<usize>,
}

/// What came of a hunt.
#[derive(Debug, Default)]
pub struct Hunt {
    /// How many runs it took.
    pub runs: usize,
    /// The run in which an oracle objected that is meant to, and none does without the mutant.
    pub caught: Option<(Failure, Means)>,
    /// Oracles that objected on the way to it, and are not meant to.
    pub others: BTreeSet<&'static str>,
    /// Runs on the way to it in which an oracle objects to the sound operator as well.
    pub unsound: Vec<Failure>,
    /// Runs in which the bent operator asked nothing of the API: it did not even start, and whoever objects objects to that.
    pub idle: usize,
}

/// Looks for a run in which one of the oracles `by` objects to the `bent` operator, and none at all to the `sound` one. The bent
/// one is judged alone: a bug in the operator itself would be in the run without faults too, so that nobody who compares with that
/// one would see it.
pub fn hunt(
    known: &[Arc<Known>],
    (sound, bent): (&Wiring, &Wiring),
    by: &[&str],
    reach: &Reach,
) -> Result<Hunt, Unplayable> {
    let mut hunt = Hunt::default();
    let kept = reach.kept.as_ref().and_then(|(name, trial)| {
        let known = known.iter().find(|known| known.scenario.name == *name)?;
        Some((known, trial.clone(), means_of(known, trial, reach)))
    });
    let calm = known
        .iter()
        .map(|known| (known, Trial::calm(), Means::Calm));
    // They are many: only if they are needed.
    let broken = std::iter::once_with(|| positions_of(known, reach));
    for (known, trial, means) in kept
        .into_iter()
        .chain(calm)
        .chain(broken.flatten())
        .take(reach.beyond.unwrap_or(usize::MAX))
    {
        hunt.runs += 1;
        let outcome = runner::play(&known.scenario, bent, &known.prepared, &trial)?;
        if outcome.history.requests.is_empty() {
            hunt.idle += 1;
            continue;
        }
        let verdicts = bent.oracles.judge(&known.scenario, &outcome.history, None);
        let Some(failure) = Failure::of(&known.scenario, &trial, &outcome, &verdicts) else {
            continue;
        };
        let is_meant = |(id, _): &(&str, _)| by.contains(id);
        if !failure.violations.iter().any(is_meant) {
            hunt.others
                .extend(failure.violations.iter().map(|(id, _)| *id));
            continue;
        }
        let Some(unsound) = failure_of(known, sound, &trial)? else {
            hunt.caught = Some((failure, means));
            break;
        };
        hunt.unsound.push(unsound);
    }
    Ok(hunt)
}

/// Runs with something wrong: those that are always made first, then, if it goes on, all others, in an order that is always the
/// same.
fn positions_of<'a>(
    known: &'a [Arc<Known>],
    reach: &Reach,
) -> impl Iterator<Item = (&'a Arc<Known>, Trial, Means)> + use<'a> {
    let mut always = Vec::new();
    let mut others = Vec::new();
    for known in known {
        for job in singles(known).into_iter().chain(under_spells(known)) {
            if job.is_owed(reach.is_bounded) {
                always.push((known, job.trial, Means::Always));
            } else if reach.beyond.is_some() {
                others.push((known, job.trial, Means::Beyond));
            }
        }
    }
    let always = order::scattered(always, 0);
    always.into_iter().chain(order::scattered(others, 0))
}

/// What part of the gate's effort a run is.
fn means_of(known: &Arc<Known>, trial: &Trial, reach: &Reach) -> Means {
    if *trial == Trial::calm() {
        return Means::Calm;
    }
    let mut jobs = singles(known).into_iter().chain(under_spells(known));
    if jobs.any(|job| job.is_owed(reach.is_bounded) && job.trial == *trial) {
        Means::Always
    } else {
        Means::Kept
    }
}

fn failure_of(
    known: &Known,
    wiring: &Wiring,
    trial: &Trial,
) -> Result<Option<Failure>, Unplayable> {
    let (outcome, verdicts) = examine(known, wiring, trial)?;
    Ok(Failure::of(&known.scenario, trial, &outcome, &verdicts))
}
