//! Where to break a run.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::fault::{Injection, RequestFault};
use crate::history::{History, Request};

/// How many of the requests that only ask whether the API is there are broken.
const PROBES: usize = 2;

/// Runs of one class cannot differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// A run of its own.
    Own(Injection),
    /// A replica dies at this moment, with the cluster at this version. Whether the read that it was about to send
    /// arrives does not matter to anybody.
    Dead(String, Timestamp, u64),
    /// This read is not answered. Whether it arrived does not matter to anybody.
    Broken(u64),
}

impl Class {
    pub(super) fn of(history: &History, injection: Injection) -> Self {
        let Injection::Request(number, fault) = injection else {
            return Self::Own(injection);
        };
        let at = usize::try_from(number).ok();
        let request = at.and_then(|at| history.requests.get(at));
        let Some(read) = request.filter(|request| !request.is_write()) else {
            return Self::Own(injection);
        };
        match fault {
            RequestFault::CrashBefore | RequestFault::CrashAfter | RequestFault::CrashLate => {
                Self::Dead(read.replica.clone(), read.at, read.versions.0)
            }
            RequestFault::Lost | RequestFault::Unreachable => Self::Broken(number),
            _ => Self::Own(injection),
        }
    }
}

/// How many requests of a run matter: those that only ask whether the API is there are many, and alike.
pub(super) fn size(history: &History) -> usize {
    let probes = history.requests.iter().filter(|r| r.is_probe());
    history.requests.len() - probes.count()
}

/// All places of a small run. Of a large one every write that is no renewal of a lease, then others evenly. Of requests
/// that only ask whether the API is there a few.
pub(super) fn requests(history: &History, most: usize) -> Vec<u64> {
    let (probes, others): (Vec<&Request>, Vec<&Request>) = history
        .requests
        .iter()
        .partition(|request| request.is_probe());
    let some = spread(probes.len() as u64, PROBES);
    let some = some
        .into_iter()
        .filter_map(|n| probes.get(usize::try_from(n).ok()?));
    let mut chosen: BTreeSet<u64> = some.map(|request| request.number).collect();
    if others.len() <= most {
        chosen.extend(others.iter().map(|request| request.number));
        return chosen.into_iter().collect();
    }
    let matters = |request: &&Request| request.is_write() && !request.path().contains("/leases");
    let writes: Vec<u64> = history
        .requests
        .iter()
        .filter(matters)
        .map(|request| request.number)
        .collect();
    // Renewals of leases make a run large, not what it is about.
    let enough = most.saturating_mul(3);
    let at = |n: u64| usize::try_from(n).ok();
    let spread_writes = spread(writes.len() as u64, enough).into_iter();
    chosen.extend(spread_writes.filter_map(|n| writes.get(at(n)?).copied()));
    let rest = spread(others.len() as u64, most / 2).into_iter();
    chosen.extend(rest.filter_map(|n| Some(others.get(at(n)?)?.number)));
    chosen.into_iter().collect()
}

/// Up to `most` of `0..total`, evenly.
pub(super) fn spread(total: u64, most: usize) -> Vec<u64> {
    let most = most as u64;
    if total <= most {
        return (0..total).collect();
    }
    (0..most).map(|n| n * total / most.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn a_sample_is_even_and_a_small_whole_is_whole() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(10, 5), [0, 2, 4, 6, 8]);
        assert_eq!(spread(10, 0), [0_u64; 0]);
    }
}
