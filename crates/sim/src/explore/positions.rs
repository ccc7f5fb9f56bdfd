//! Where to break a run.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::fault::{Injection, RequestFault};
use crate::history::{History, Request};

/// How many of the requests that only ask whether the API is there are always broken.
const ALWAYS_PROBES: usize = 2;
/// How many writes.
const ALWAYS_WRITES: usize = 3;
/// How many watch events.
pub(super) const ALWAYS_EVENTS: usize = 2;

/// Runs of one class cannot differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// A run of its own.
    Own(Injection),
    /// A replica dies at this moment, when so much has changed in all clusters. Whether the read that it was about to send
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
                Self::Dead(read.replica.clone(), read.at, read.tide)
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

/// The requests of a run that are broken whatever the budget is: the first write of each resource, a few others that are no
/// renewal of a lease, and a few of those that only ask whether the API is there.
pub(super) fn always(history: &History) -> Vec<u64> {
    let probes: Vec<&Request> = history.requests.iter().filter(|r| r.is_probe()).collect();
    let writes: Vec<&Request> = history
        .requests
        .iter()
        .filter(|request| request.is_write() && !request.path().contains("/leases"))
        .collect();
    let mut first: BTreeMap<(bool, &str, &str), u64> = BTreeMap::new();
    for write in &writes {
        let what = (write.method.as_str(), resource(write.path()));
        first
            .entry((write.is_home(), what.0, what.1))
            .or_insert(write.number);
    }
    let mut chosen = some(&probes, ALWAYS_PROBES);
    chosen.extend(some(&writes, ALWAYS_WRITES));
    chosen.extend(first.into_values());
    chosen
}

/// What a path of an object in a namespace is about; of others, the path.
fn resource(path: &str) -> &str {
    let inside = path.split_once("/namespaces/").map(|(_, inside)| inside);
    inside
        .and_then(|inside| inside.split('/').nth(1))
        .unwrap_or(path)
}

fn some(requests: &[&Request], most: usize) -> Vec<u64> {
    let chosen = spread(requests.len() as u64, most).into_iter();
    chosen
        .filter_map(|n| Some(requests.get(usize::try_from(n).ok()?)?.number))
        .collect()
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
