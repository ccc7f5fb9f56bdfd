//! What can befall one of several clusters: it is cut off in each way, slow, replaced, restored, it forgets our credentials or a
//! kind; and all that also with the leader's death in the middle.

use std::time::Duration;

use super::{BACK, LONG, REFUSED, SILENCE, UNDEFINED, is_defined, kinds, seconds};
use crate::explore::Known;
use crate::spell::{Disturbance, Spell};

/// How long a cluster is away: too short to be noticed, and long enough to be told.
const AWAY: [Duration; 3] = [seconds(1), seconds(45), seconds(180)];
/// How slow it is: less than the operator waits, and more.
const SLOW: [u64; 2] = [4, 40];

/// All that can befall each cluster besides home from a moment on.
pub(super) fn of(known: &Known, at: Duration) -> Vec<Vec<Spell>> {
    let clusters = known.scenario.clusters.iter();
    clusters
        .flat_map(|cluster| of_one(known, &cluster.name, at))
        .collect()
}

fn of_one(known: &Known, cluster: &str, at: Duration) -> Vec<Vec<Spell>> {
    let history = &known.reference.history;
    let mut all: Vec<Spell> = Vec::new();
    let mut add = |disturbance: Disturbance, lasts: Duration| {
        all.push(Spell::new(disturbance, at, lasts).within(cluster));
    };
    for lasts in AWAY {
        add(Disturbance::Outage, lasts);
    }
    for away in [
        Disturbance::BlackHole,
        Disturbance::AnswersLost,
        Disturbance::RequestsLost,
        Disturbance::Revoked,
        Disturbance::Replaced,
    ] {
        add(away, LONG);
    }
    add(Disturbance::Silence(String::new()), SILENCE);
    for seconds in SLOW {
        add(Disturbance::Slow(seconds), LONG);
    }
    if at > BACK {
        add(Disturbance::Restore, BACK);
    }
    for kind in kinds(history, |request| request.cluster.as_str() == cluster) {
        for code in [403, 404, 500] {
            add(Disturbance::Refusal(code, kind.clone()), REFUSED[1]);
        }
        if is_defined(&kind) {
            add(Disturbance::Unknown(kind.clone()), LONG);
            add(Disturbance::Undefined(kind), UNDEFINED[1]);
        }
    }
    let mut runs: Vec<Vec<Spell>> = all.iter().map(|spell| vec![spell.clone()]).collect();
    if known.scenario.replicas > 1 && at > known.scenario.operator_starts {
        let death = Spell::new(Disturbance::LeaderDies, at + seconds(10), Duration::ZERO);
        let long = all.into_iter().filter(|spell| spell.lasts == LONG);
        runs.extend(long.map(|spell| vec![spell, death.clone()]));
    }
    runs
}
