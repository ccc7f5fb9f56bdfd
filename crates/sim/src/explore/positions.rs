//! Where to break a run, and which of these runs cannot differ, so that one is made for all of them.
//!
//! A run is a function of its trial, and up to its fault it is the run without. So two single faults make the same run if the
//! stage is the same just after each of them, at the same moment:
//!
//! - A replica that dies leaves nothing behind but what others have taken in. Between two requests of it at one moment, with no
//!   change in any cluster meanwhile and no word to or from a webhook, a pod or the world outside, it has only read, and a read
//!   changes nothing. So it does not matter at which of them it dies before the request leaves, nor, of a read, whether that
//!   arrives, now or later. It is back five seconds after it died, so nothing of that moment depends on it.
//! - A read that is not answered: whether it arrived does not matter to anybody.
//!
//! Both hold only where nothing is drawn as requests are made: where the scenario has faults of its own by rates, the next
//! request draws what the one before would have drawn. Whether they hold is looked at in [`super::twins`]: one pair of 80 did not.
//!
//! A fault that cannot befall a request is no position: no server answers a read with a conflict.

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
    /// A replica dies at this moment, when so much has happened that stays.
    Dead(String, Timestamp, u64),
    /// This read is not answered.
    Broken(u64),
}

impl Class {
    pub(super) fn of(history: &History, injection: Injection) -> Self {
        let Injection::Request(number, fault) = injection else {
            return Self::Own(injection);
        };
        let at = usize::try_from(number).ok();
        let Some(request) = at.and_then(|at| history.requests.get(at)) else {
            return Self::Own(injection);
        };
        let is_read = !request.is_write();
        match fault {
            RequestFault::CrashBefore => Self::dead(request),
            RequestFault::CrashAfter | RequestFault::CrashLate if is_read => Self::dead(request),
            RequestFault::Lost | RequestFault::Unreachable if is_read => Self::Broken(number),
            _ => Self::Own(injection),
        }
    }

    fn dead(request: &Request) -> Self {
        Self::Dead(request.replica.clone(), request.at, request.tide)
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
    use serde_json::Value;
    use slipway_kernel::identity::ClusterId;

    use super::{Class, spread};
    use crate::fault::{Injection, REQUEST_FAULTS, RequestFault};
    use crate::history::{Context, Ending, History, Request};

    #[test]
    fn a_sample_is_even_and_a_small_whole_is_whole() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(10, 5), [0, 2, 4, 6, 8]);
        assert_eq!(spread(10, 0), [0_u64; 0]);
    }

    fn request(number: u64, replica: &str, method: &str, tide: u64) -> Request {
        Request {
            number,
            cluster: ClusterId::local(),
            at: jiff::Timestamp::UNIX_EPOCH,
            replica: replica.to_owned(),
            method: method.to_owned(),
            uri: "/api/v1/pods".to_owned(),
            media: String::new(),
            body: Value::Null,
            context: Context::default(),
            fault: None,
            ending: Ending::Answered(200),
            versions: (tide, tide),
            tide,
        }
    }

    #[test]
    fn only_runs_that_cannot_differ_are_of_one_class() {
        let history = History {
            requests: vec![
                request(0, "a", "GET", 1),
                request(1, "a", "PATCH", 1),
                request(2, "a", "GET", 2),
                request(3, "b", "GET", 2),
            ],
            ..History::default()
        };
        let class = |number, fault| Class::of(&history, Injection::Request(number, fault));
        let before = RequestFault::CrashBefore;
        let (after, late) = (RequestFault::CrashAfter, RequestFault::CrashLate);
        assert_eq!(class(0, before), class(0, after));
        assert_eq!(class(0, before), class(0, late));
        // The write does not leave.
        assert_eq!(class(0, before), class(1, before));
        // It does, or something else has changed, or somebody else dies.
        assert_ne!(class(0, before), class(1, after));
        assert_ne!(class(1, after), class(1, late));
        assert_ne!(class(0, before), class(2, before));
        assert_ne!(class(2, before), class(3, before));
        assert_eq!(
            class(0, RequestFault::Lost),
            class(0, RequestFault::Unreachable)
        );
        assert_ne!(
            class(1, RequestFault::Lost),
            class(1, RequestFault::Unreachable)
        );
        assert_ne!(class(0, RequestFault::Lost), class(2, RequestFault::Lost));
    }

    #[test]
    fn nothing_but_a_conflict_spares_a_read() {
        let spared = REQUEST_FAULTS
            .iter()
            .filter(|fault| !fault.can_befall("GET"));
        assert_eq!(spared.collect::<Vec<_>>(), [&RequestFault::Conflict]);
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert!(REQUEST_FAULTS.iter().all(|fault| fault.can_befall(method)));
        }
    }
}
