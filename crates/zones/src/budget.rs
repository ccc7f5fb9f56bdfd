//! Which pods of a zone may go now.
//!
//! A pod that is down already costs nothing: such pods go first, however many are down (a failed rollout heals itself).
//! Of the others, as many as the zone has places left, lowest ordinal first.

use crate::readiness::{Health, Member, Survey};

/// The pods that may go now, unless somebody else refuses.
#[derive(Debug, Default)]
pub struct Victims<'s, 'w> {
    /// Pods that are down already.
    pub stuck: Vec<&'s Member<'w>>,
    /// Pods that are up, as many as there are places.
    pub next: Vec<&'s Member<'w>>,
    /// How many more have to wait for a place.
    pub waiting: usize,
}

/// Chooses among the pods of a zone. A terminating pod, one that should not be there, or one that its `StatefulSet` does
/// not control is never chosen.
pub fn victims<'s, 'w>(survey: &'s Survey<'w>) -> Victims<'s, 'w> {
    let places = survey.set().most_unavailable() - survey.unavailable();
    let places = usize::try_from(places).unwrap_or_default();
    let candidates = survey.members.iter().filter(|member| {
        member.is_outdated
            && member.is_expected
            && member.is_owned
            && member.health != Health::Terminating
    });
    let (stuck, mut next): (Vec<_>, Vec<_>) =
        candidates.partition(|member| member.health == Health::Unready);
    let waiting = next.len().saturating_sub(places);
    next.truncate(places);
    Victims {
        stuck,
        next,
        waiting,
    }
}
