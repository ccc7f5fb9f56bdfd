//! What excuses that a spec was changed another number of times than in the run without faults.
//!
//! There is no other excuse than in [`EXCUSES`]: G8 asks these, and these are printed.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use slipway_kernel::identity::ClusterId;

use super::Case;
use crate::fault::{EventFault, RequestFault};
use crate::history::{Event, History, Object};

/// What lasts as long keeps an operator from a version for longer than some people wait with the next one.
const LONG: Duration = Duration::from_secs(15);

/// An object, and where it is.
pub(super) type Place<'a> = (ClusterId, &'a Object);

/// How often the operator changed the spec of an object.
pub(super) struct Count<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) reference: &'a History,
    pub(super) place: &'a Place<'a>,
    /// Without faults.
    pub(super) want: u64,
    /// In this run.
    pub(super) have: u64,
    /// How many restarts the faults can have cost.
    pub(super) missed: u64,
}

impl Count<'_> {
    /// What excuses it, if it is another number.
    pub(super) fn excuses(&self) -> impl Iterator<Item = &'static Excuse> {
        let is_other = self.have != self.want;
        let all = EXCUSES.iter().filter(move |_| is_other);
        all.filter(move |one| (one.holds)(self))
    }
}

/// Why a number may be another one.
pub(super) struct Excuse {
    what: &'static str,
    why: &'static str,
    /// Whether it is late, and the end of its cluster with it: that is not compared then.
    pub(super) is_delay: bool,
    holds: fn(&Count<'_>) -> bool,
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let and = if self.is_delay {
            ", and the end of its cluster"
        } else {
            ""
        };
        let (what, why) = (self.what, self.why);
        write!(f, "how often a spec was changed{and}, {what}: {why}")
    }
}

/// All excuses.
pub(super) const EXCUSES: &[Excuse] = &[
    Excuse {
        what: "where it is fewer by what fits into the delay",
        why: "a storm, or what was never heard, delays restarts",
        is_delay: true,
        holds: is_fewer,
    },
    Excuse {
        what: "of what is only ever what was asked for last, and of workloads that are brought to it in steps, where that was held up",
        why: "what was asked for meanwhile is left out",
        is_delay: true,
        holds: is_late,
    },
    Excuse {
        what: "where it is more and a change of a policy was never heard of",
        why: "until it was heard of the old one counted, by which the capability's own laws judge",
        is_delay: false,
        holds: |count| count.have > count.want && is_misled(count.case),
    },
    Excuse {
        what: "of what is only ever what was asked for last, if by one",
        why: "what was asked for at once is written at once, or one by one where a fault came between",
        is_delay: false,
        holds: is_split,
    },
];

/// What goes down and up again is missed as a whole.
fn is_fewer(count: &Count<'_>) -> bool {
    let pair = if is_unchanged(count.reference, count.place) {
        2
    } else {
        1
    };
    count.have < count.want && count.have + pair * count.missed >= count.want
}

/// Of what takes the place of something else, some may never be done.
fn is_late(count: &Count<'_>) -> bool {
    let (case, place) = (count.case, count.place);
    let is_followed = || is_followed(case, place) && is_held_up_for_long(case);
    is_held_up(case) && (is_superseded(case, place.1) || is_followed())
}

/// Where a fault comes between two of such changes, they are not one.
fn is_split(count: &Count<'_>) -> bool {
    let is_latest = is_superseded(count.case, count.place.1);
    is_latest && count.case.history.is_disturbed() && count.have.abs_diff(count.want) <= 1
}

/// Whether the operator never heard of a change of a policy: then it went on by the old one until it listed them again,
/// which R1 to R3 judge.
pub(super) fn is_misled(case: &Case<'_>) -> bool {
    let lost = EventFault::Drop.name();
    case.history.marks.iter().any(|mark| {
        let Event::Watch(cluster, about, fault) = &mark.what else {
            return false;
        };
        let mut orders = case.specifics.iter().flat_map(|one| one.orders);
        cluster.is_local() && *fault == lost && orders.any(|plural| plural == about)
    })
}

/// How many restarts of one object in a cluster the faults there and at home can have cost: one for each ten minutes of storm, or
/// until a lost event was noticed; none for any other single fault.
pub(super) fn missed_in(case: &Case<'_>, cluster: &ClusterId) -> u64 {
    let history = case.history;
    let concerns = |other: &ClusterId| other.is_local() || other == cluster;
    let faults: Vec<&str> = history
        .requests
        .iter()
        .filter(|request| concerns(&request.cluster))
        .filter_map(|request| request.fault)
        .collect();
    let events = history.marks.iter().filter_map(|mark| match &mark.what {
        Event::Watch(of, _, fault) if concerns(of) => Some(*fault),
        _ => None,
    });
    let (lost, others): (Vec<&str>, Vec<&str>) =
        events.partition(|fault| *fault == EventFault::Drop.name());
    // Whoever is asked to wait for long waits for five minutes.
    let is_held_up = faults.contains(&RequestFault::ThrottledForLong.name())
        || history
            .all_spells()
            .any(|(_, spell)| spell.cluster.is_none() || spell.is_in(cluster));
    if lost.is_empty() && faults.len() + others.len() <= 1 && !is_held_up {
        return 0;
    }
    let storm = history.calm.duration_since(history.start);
    let lasted = storm.as_secs() / SignedDuration::from_mins(10).as_secs();
    1 + u64::try_from(lasted).unwrap_or_default()
}

/// Whether what is asked for takes the place of what was asked for before.
pub(super) fn is_superseded(case: &Case<'_>, (resource, ..): &Object) -> bool {
    let mut all = case.specifics.iter().flat_map(|one| one.superseded);
    all.any(|own| *own == &**resource)
}

/// Whether the faults can have kept an operator from something for longer than people wait until they ask for the next thing:
/// anything but a single fault that is over when it has happened.
pub(super) fn is_held_up(case: &Case<'_>) -> bool {
    let history = case.history;
    let faults = history.requests.iter().filter_map(|one| one.fault);
    let faults: Vec<&str> = faults.collect();
    let lasting = [RequestFault::ThrottledForLong, RequestFault::Forbidden];
    let events = history.marks.iter().filter_map(|mark| match &mark.what {
        Event::Watch(_, _, fault) => Some(*fault),
        _ => None,
    });
    let events: Vec<&str> = events.collect();
    faults.len() + events.len() > 1
        || lasting.iter().any(|fault| faults.contains(&fault.name()))
        || events.contains(&EventFault::Drop.name())
        || history.all_spells().next().is_some()
}

/// The same, where what goes wrong for a time does so for long enough that people have asked for something else meanwhile.
fn is_held_up_for_long(case: &Case<'_>) -> bool {
    let spells = case.history.all_spells();
    let longest = spells.map(|(_, spell)| spell.lasts).max();
    is_held_up(case) && longest.is_none_or(|longest| longest >= LONG)
}

/// Whether a capability makes of a workload at home, in steps, what people want of it now.
fn is_followed(case: &Case<'_>, (cluster, object): &Place<'_>) -> bool {
    let mut all = case.specifics.iter();
    cluster.is_local() && all.any(|one| (one.follows)(case, object))
}

/// Whether an object is asked for the same in the end as in the beginning.
fn is_unchanged(history: &History, (cluster, object): &Place<'_>) -> bool {
    let spec = |version| {
        let state = history.state_in(cluster, object, version);
        state.and_then(|image| image.at("/spec"))
    };
    spec(history.base_in(cluster)) == spec(u64::MAX)
}
