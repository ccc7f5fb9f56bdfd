//! Whether runs that are said not to differ do not: some are made, and what is left of them is compared.
//!
//! What the replica did in vain before it died is no part of that, as it is no part of what anybody else could see.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use slipway_kernel::identity::ClusterId;

use super::{Effort, Known, Report, order, singles};
use crate::history::{Change, Event, History};
use crate::runner;
use crate::stage::{Unplayable, Wiring};
use crate::trial::Trial;

/// What it is called in reports.
const ID: &str = "twins";

/// Two runs of a scenario, the second of which is said not to differ from the first.
struct Pair<'a> {
    known: &'a Known,
    one: Trial,
    other: Trial,
}

impl Pair<'_> {
    /// In what they do differ.
    fn difference(&self, wiring: &Wiring) -> Result<Option<String>, Unplayable> {
        let known = self.known;
        let play = |trial| runner::play(&known.scenario, wiring, &known.prepared, trial);
        let (one, other) = (play(&self.one)?, play(&self.other)?);
        Ok(difference(&one.history, &other.history))
    }
}

/// Makes both for drawn positions of each scenario.
pub fn twins(
    known: &[Arc<Known>],
    wiring: &Wiring,
    effort: &Effort,
    report: &mut Report,
) -> Result<(), Unplayable> {
    let pairs: Vec<Pair<'_>> = known.iter().flat_map(|one| drawn(one, effort)).collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..effort.threads.max(1) {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let difference = pair.difference(wiring);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((pair, difference));
                }
            });
        }
    });
    for (pair, difference) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let difference = difference?;
        let text = format!(
            "scenario {}: {} and {} differ: {}",
            pair.known.scenario.name,
            pair.one,
            pair.other,
            difference.as_deref().unwrap_or_default()
        );
        report.note(ID, difference.is_none(), &text);
    }
    Ok(())
}

fn drawn<'a>(known: &'a Arc<Known>, effort: &Effort) -> impl Iterator<Item = Pair<'a>> {
    let pairs = singles(known).into_iter().filter_map(|job| {
        let (one, other) = (job.trial, job.twin?);
        Some(Pair { known, one, other })
    });
    let pairs = order::scattered(pairs.collect(), effort.draw);
    pairs.into_iter().take(effort.twins)
}

/// The first thing in which what is left of two runs differs.
fn difference(one: &History, other: &History) -> Option<String> {
    let home = ClusterId::local();
    let mut clusters = std::iter::once(&home).chain(one.members.keys());
    let changed =
        clusters.find_map(|cluster| changed(one.changes_in(cluster), other.changes_in(cluster)));
    let befell = || first(befallen(one), befallen(other));
    let arrived = || first(arrived(one), arrived(other));
    let members = || first(one.members.keys(), other.members.keys());
    changed.or_else(members).or_else(befell).or_else(arrived)
}

/// What else happened that anybody can see.
fn befallen(history: &History) -> impl Iterator<Item = (Timestamp, &Event)> {
    history.marks.iter().map(|mark| (mark.at, &mark.what))
}

/// What came to the world outside.
fn arrived(history: &History) -> impl Iterator<Item = (&str, &str, &str, u32)> {
    let asked = history.asked.iter().filter(|asked| asked.arrived > 0);
    asked.map(|asked| (&*asked.method, &*asked.url, &*asked.body, asked.arrived))
}

/// The first place in which two of these differ.
fn first<T: PartialEq + Debug>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> Option<String> {
    let (mut one, mut other) = (one.fuse(), other.fuse());
    loop {
        let (left, right) = (one.next(), other.next());
        if left != right {
            return Some(format!("{left:?} and {right:?}"));
        }
        left?;
    }
}

fn changed(one: &[Change], other: &[Change]) -> Option<String> {
    let told = |change: &Change| {
        let after = change.after.as_ref().map(|image| image.value());
        (
            change.at,
            change.version,
            change.object.clone(),
            after.cloned(),
        )
    };
    first(one.iter().map(told), other.iter().map(told))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::difference;
    use crate::history::{Change, ChangeKind, Event, History, Image, Mark};

    fn history(number: u64, mark: &str) -> History {
        let mut history = History::default();
        history.changes.push(Change {
            at: Timestamp::UNIX_EPOCH,
            version: 1,
            kind: ChangeKind::Added,
            object: ("/pods".into(), "shop".into(), "a".into()),
            before: None,
            after: Some(Image::made(json!({"number": number})).into()),
            by: None,
        });
        history.marks.push(Mark {
            at: Timestamp::UNIX_EPOCH,
            what: Event::User(mark.to_owned()),
        });
        history
    }

    #[test]
    fn runs_that_leave_something_else_behind_differ() {
        assert_eq!(difference(&history(1, "a"), &history(1, "a")), None);
        assert!(difference(&history(1, "a"), &history(2, "a")).is_some());
        assert!(difference(&history(1, "a"), &history(1, "b")).is_some());
        assert!(difference(&history(1, "a"), &History::default()).is_some());
    }
}
