//! Which spells a scenario is broken by, and when: at the operator's start, and at moments when it writes. What befalls single
//! clusters is in [`members`].
//!
//! What is wrong on the way from home reaches no operator that runs in another cluster, so that the moments of these are none of
//! home's. With several clusters, of moments within a second the first one counts: what lasts longer is on at the others too.

mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Known;
use crate::history::{History, Request};
use crate::spell::{Disturbance, MAPS, Spell};

/// The class of all spells beside which a leader dies.
pub(super) const PAIRS: &str = "pairs with a leader's death";

/// What befalls a cluster besides home.
pub(super) const MEMBERS: &str = "single clusters";

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// How long the API is away.
const OUTAGES: [Duration; 5] = [
    seconds(1),
    seconds(15),
    seconds(45),
    seconds(180),
    seconds(600),
];
/// How long watches say nothing.
const SILENCE: Duration = seconds(150);
/// How long a kind is refused: for a moment, and for longer than a replica stays ready without it.
const REFUSED: [Duration; 2] = [seconds(4), seconds(50)];
/// How long a kind is unknown: too short to be believed, of a kind that was never seen and of one that was.
const UNKNOWN: (Duration, Duration) = (seconds(3), seconds(15));
/// How long a definition is away.
const UNDEFINED: [Duration; 2] = [seconds(4), seconds(60)];
/// How far versions run back.
const BACK: Duration = seconds(20);
/// How long everything is throttled, and what `Retry-After` says.
const THROTTLED: Duration = seconds(2);
const AFTER: [(u16, u64); 3] = [(429, 3_600), (503, u64::MAX), (429, 0)];
/// How long a quota is used up, and how long deletions are late.
const LONG: Duration = seconds(60);
/// How far a clock is off.
const HOUR: i64 = 3_600;
/// With several clusters, moments that are nearer to each other are one.
const APART: Duration = seconds(1);
/// After a spell there is so much time left at least.
const REST: Duration = seconds(60);

/// What a scenario's run without faults says about where it can be hurt.
struct Case<'a> {
    known: &'a Known,
    /// Kinds that are listed, as `plural.group`.
    kinds: BTreeSet<String>,
    deletes: bool,
    makes_maps: bool,
}

impl<'a> Case<'a> {
    fn of(known: &'a Known) -> Self {
        let history = &known.reference.history;
        let is = |test: &dyn Fn(&Request) -> bool| history.requests.iter().any(test);
        Self {
            known,
            kinds: kinds(history, Request::is_home),
            deletes: is(&|request| request.is_home() && request.method == "DELETE"),
            makes_maps: is(&|request| {
                request.is_home() && request.is_write() && request.path().contains("/configmaps")
            }),
        }
    }

    /// Whether it fits into the run, with time to recover.
    fn fits(&self, spell: &Spell) -> bool {
        self.known.scenario.rests || spell.ends() + REST <= self.known.scenario.duration
    }

    /// All that can go wrong from a moment on.
    fn disturbances(&self, at: Duration) -> Vec<Spell> {
        let mut all: Vec<Spell> = Vec::new();
        let mut add = |disturbance: Disturbance, lasts: Duration| {
            all.push(Spell::new(disturbance, at, lasts));
        };
        for lasts in OUTAGES {
            add(Disturbance::Outage, lasts);
        }
        add(Disturbance::BlackHole, seconds(45));
        add(Disturbance::Silence(String::new()), SILENCE);
        for (code, wait) in AFTER {
            add(Disturbance::RetryAfter(code, wait), THROTTLED);
        }
        for kind in &self.kinds {
            add(Disturbance::Silence(kind.clone()), SILENCE);
            for code in [403, 404, 410, 500] {
                for lasts in REFUSED {
                    add(Disturbance::Refusal(code, kind.clone()), lasts);
                }
            }
            if is_defined(kind) {
                let is_first = at <= self.known.scenario.operator_starts;
                let lasts = if is_first { UNKNOWN.0 } else { UNKNOWN.1 };
                add(Disturbance::Unknown(kind.clone()), lasts);
                for lasts in UNDEFINED {
                    add(Disturbance::Undefined(kind.clone()), lasts);
                }
            }
        }
        if self.known.scenario.replicas > 1 {
            let leases = "leases.coordination.k8s.io".to_owned();
            add(Disturbance::Refusal(403, leases.clone()), REFUSED[0]);
            add(Disturbance::Refusal(500, leases), REFUSED[0]);
        }
        if self.makes_maps {
            add(Disturbance::Quota(MAPS.to_owned()), LONG);
        }
        if self.deletes {
            add(Disturbance::LateAnswers, LONG);
            add(Disturbance::LateArrivals, LONG);
        }
        if at > BACK {
            add(Disturbance::Restore, BACK);
        }
        for by in [HOUR, -HOUR] {
            all.push(Spell::new(Disturbance::Skew(by), at, Duration::ZERO).only(0));
        }
        if self.known.scenario.replicas > 1 {
            let outage = |lasts| Spell::new(Disturbance::Outage, at, lasts).only(0);
            all.extend([outage(seconds(15)), outage(seconds(45))]);
            let leases = "leases.coordination.k8s.io".to_owned();
            all.push(Spell::new(Disturbance::Refusal(403, leases), at, REFUSED[0]).only(0));
            all.push(Spell::new(Disturbance::Silence(String::new()), at, SILENCE).only(0));
        }
        all.retain(|spell| self.fits(spell));
        all
    }
}

/// Whether a kind has a definition of its own: those that Kubernetes has itself have groups without a dot, or in its own
/// domain.
fn is_defined(kind: &str) -> bool {
    let group = kind.split_once('.').map_or("", |(_, group)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Kinds that the operator lists there, as `plural.group`.
fn kinds(history: &History, there: impl Fn(&Request) -> bool) -> BTreeSet<String> {
    let watches = history.requests.iter().filter(|request| {
        there(request) && request.method == "GET" && request.uri.contains("watch=")
    });
    let all = watches.filter_map(|request| {
        let mut parts = request.path().split('/').skip(1);
        let group = match parts.next()? {
            "apis" => parts.next()?,
            _ => "",
        };
        let plural = request.path().rsplit('/').next()?;
        Some(slipway_apiserver::status::qualified(group, plural))
    });
    all.collect()
}

/// The moments of interest: when the operator starts, and when it writes.
fn moments(known: &Known) -> Vec<Duration> {
    let history = &known.reference.history;
    let writes = history.requests.iter().filter(|request| {
        request.is_write()
            && !request.is_from_within()
            && !request.path().contains("/leases")
            && !request.path().contains("/events")
    });
    let times: BTreeSet<u64> = writes
        .filter_map(|request| {
            let since = request.at.duration_since(history.start);
            u64::try_from(since.as_millis()).ok()
        })
        .collect();
    let mut all = vec![known.scenario.operator_starts];
    all.extend(times.into_iter().map(Duration::from_millis));
    all.dedup();
    if !known.scenario.clusters.is_empty() {
        let mut last = None;
        all.retain(|at| {
            let is_apart = last.is_none_or(|last: Duration| *at >= last.saturating_add(APART));
            if is_apart {
                last = Some(*at);
            }
            is_apart
        });
    }
    all
}

/// All spells for a scenario, each with the class that reports count it in, and whether it is tried whatever the budget is:
/// those that begin with the operator are.
pub(super) fn of(known: &Known) -> Vec<(&'static str, Vec<Spell>, bool)> {
    let case = Case::of(known);
    let mut all: Vec<(&'static str, Vec<Spell>, bool)> = Vec::new();
    for at in moments(known) {
        let is_always = at == known.scenario.operator_starts;
        let disturbances = case.disturbances(at);
        let alone = disturbances
            .iter()
            .map(|spell| (spell.disturbance.class(), vec![spell.clone()]));
        let pairs = pairs(&case, &disturbances, at);
        let abroad = members::of(known, at).into_iter();
        let abroad = abroad.filter(|spells| spells.iter().all(|spell| case.fits(spell)));
        all.extend(
            alone
                .chain(pairs)
                .chain(abroad.map(|spells| (MEMBERS, spells)))
                .map(|(class, spells)| (class, spells, is_always)),
        );
    }
    all
}

/// One spell of each class, and the leader dies in the middle of it, or shortly before.
fn pairs(case: &Case<'_>, disturbances: &[Spell], at: Duration) -> Vec<(&'static str, Vec<Spell>)> {
    let mut one: BTreeMap<&'static str, &Spell> = BTreeMap::new();
    for spell in disturbances {
        let known = one.entry(spell.disturbance.class()).or_insert(spell);
        // The longest of them: there is room for a death.
        if known.lasts < spell.lasts && spell.lasts <= SILENCE {
            *known = spell;
        }
    }
    let mut all = Vec::new();
    for spell in one.into_values() {
        let before = at.saturating_sub(seconds(3));
        let middle = at + spell.lasts.min(LONG) / 2;
        for dies in BTreeSet::from([before, middle]) {
            let death = Spell::new(Disturbance::LeaderDies, dies, Duration::ZERO);
            if dies > case.known.scenario.operator_starts && case.fits(&death) {
                all.push((PAIRS, vec![spell.clone(), death]));
            }
        }
    }
    all
}
