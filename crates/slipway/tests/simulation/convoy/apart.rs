//! C3: how soon a member that is well gets what is ordered, whatever befalls the others.
//!
//! By the clock, and not by comparing runs: an operator that always waits for the slowest does so without faults too. What can
//! be meant by "soon" is known where nothing else goes wrong: a member that has its turn gets the image at once, and where the
//! budget keeps nobody waiting it has its turn as soon as there is an order, and it is not under way with the one before.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Change, Event, History, Image, Mark, Request};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::spell::Disturbance;

use super::{app, held, image, is_under_way, meant, named};
use crate::convoy::{PREFIX, TURN};

/// What is to be done is done within this time.
const SOON: SignedDuration = SignedDuration::from_secs(2);

/// The same after a replica has begun: everything is listed, and each member is asked who it is.
const BEGINS: SignedDuration = SignedDuration::from_secs(5);

/// The same after something has befallen a replica: another lease, the wait of a new leader, another process.
const FAILOVER: SignedDuration = SignedDuration::from_secs(60);

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Members with a problem; none if something went wrong at home or on the way to one of the others.
fn hurt(history: &History) -> Option<BTreeSet<&str>> {
    let mut members = BTreeSet::new();
    for (_, spell) in history.all_spells() {
        if spell.disturbance != Disturbance::LeaderDies {
            members.insert(spell.cluster.as_deref()?);
        }
    }
    let is_theirs = |request: &Request| members.contains(meant(&request.cluster));
    let mut faults = history.requests.iter().filter(|r| r.fault.is_some());
    let mut marks = history.marks.iter();
    let only = faults.all(is_theirs) && !marks.any(|m| matches!(m.what, Event::Watch(..)));
    only.then_some(members)
}

/// When something that was due at a moment is done at the latest, with all that befell replicas meanwhile.
fn latest(history: &History, due: Timestamp) -> Timestamp {
    let starts = |mark: &&Mark| matches!(mark.what, Event::Started(_));
    let first = history.marks.iter().find(starts).map(|mark| mark.at);
    let mut until = later(due.max(first.unwrap_or(due)), SOON);
    for mark in &history.marks {
        let after = match &mark.what {
            Event::Started(_) => BEGINS,
            Event::Crashed(_) | Event::Ended(..) | Event::Skewed(..) => FAILOVER,
            Event::Paused(_, time) | Event::CutOff(_, time) => {
                FAILOVER + SignedDuration::try_from(*time).unwrap_or(SignedDuration::MAX)
            }
            _ => continue,
        };
        if mark.at <= until {
            until = until.max(later(mark.at, after));
        }
    }
    until
}

/// What an object's changes came to by a moment.
fn state<'a>(changes: &[&'a Change], at: Timestamp) -> Option<&'a Image> {
    let before = changes.iter().take_while(|change| change.at <= at);
    before.last().and_then(|change| change.after.as_deref())
}

/// One member that is well.
struct Well<'a> {
    name: &'a str,
    /// What happened to its map at home, and to its Deployment.
    map: Vec<&'a Change>,
    app: Vec<&'a Change>,
    /// Everything in it.
    all: &'a [Change],
}

impl<'a> Well<'a> {
    fn of(history: &'a History, name: &'a str) -> Option<Self> {
        let id = history.members.keys().find(|id| id.as_str() == name)?;
        let (map, app) = (named(&format!("{PREFIX}{name}")), app());
        let all = history.changes_in(id);
        Some(Self {
            name,
            map: history.changes.iter().filter(|c| c.object == map).collect(),
            app: all.iter().filter(|c| c.object == app).collect(),
            all,
        })
    }

    /// Whether somebody held it at any time between these two.
    fn is_held(&self, from: Timestamp, to: Timestamp) -> bool {
        let until = |at: Timestamp| self.all.iter().take_while(move |c| c.at <= at);
        let within = self.all.iter().filter(|c| from <= c.at && c.at <= to);
        let mut moments = std::iter::once(from).chain(within.map(|c| c.at));
        moments.any(|at| held(until(at)).is_some())
    }

    /// A member that has its turn gets the image.
    fn gets_it(&self, findings: &mut Findings, history: &History) {
        for change in self.map.iter().filter(|change| begins(change)) {
            let turn = change.after.as_deref().and_then(|map| map.annotation(TURN));
            let by = latest(history, change.at);
            let now = state(&self.map, by).and_then(|map| map.annotation(TURN));
            if by > history.end || now != turn || self.is_held(change.at, by) {
                continue;
            }
            let has = state(&self.app, by).and_then(image);
            findings.check(by, has == turn, || {
                let name = self.name;
                format!("{name} has its turn for {turn:?}, and still has {has:?}")
            });
        }
    }

    /// A member that need not wait for another one has its turn.
    fn has_its_turn(&self, findings: &mut Findings, history: &History, clusters: usize) {
        let order = named("convoy-order");
        let orders = history.changes.iter().filter(|c| c.object == order);
        for change in orders {
            let Some(wanted) = change.after.as_deref() else {
                continue;
            };
            let most = wanted.text("/data/most").and_then(|n| n.parse().ok());
            if most.is_none_or(|most: usize| most < clusters) {
                continue;
            }
            let ordered = wanted.text("/data/image");
            let Some(free) = self.is_free_from(change.at) else {
                continue;
            };
            let by = latest(history, free);
            let of_order: Vec<&Change> = history
                .changes
                .iter()
                .filter(|c| c.object == order)
                .collect();
            let now = state(&of_order, by).and_then(|order| order.text("/data/image"));
            if by > history.end || now != ordered {
                continue;
            }
            let turn = state(&self.map, by).and_then(|map| map.annotation(TURN));
            findings.check(by, turn == ordered, || {
                let name = self.name;
                format!("{ordered:?} is ordered, and {name} has its turn for {turn:?}")
            });
        }
    }

    /// From when on it is not under way with another order, not earlier than this.
    fn is_free_from(&self, from: Timestamp) -> Option<Timestamp> {
        let is_free = |map: Option<&Image>| map.is_some_and(|map| !is_under_way(map));
        if is_free(state(&self.map, from)) {
            return Some(from);
        }
        let mut after = self.map.iter().filter(|change| change.at > from);
        let freed = after.find(|change| is_free(change.after.as_deref()))?;
        Some(freed.at)
    }
}

/// Whether a member is under way from a change of its map on, and was not before, or not for this.
fn begins(change: &Change) -> bool {
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    let turn = |map: Option<&Image>| map.and_then(|map| map.annotation(TURN).map(str::to_owned));
    after.is_some_and(is_under_way)
        && (turn(before) != turn(after) || !before.is_some_and(is_under_way))
}

/// C3.
pub(super) fn apart(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let Some(hurt) = hurt(history) else {
        return findings;
    };
    let clusters = &case.scenario.clusters;
    let well = clusters
        .iter()
        .filter(|c| !hurt.contains(c.name.as_str()) && c.lacks.is_empty());
    for member in well.filter_map(|c| Well::of(history, &c.name)) {
        member.gets_it(&mut findings, history);
        member.has_its_turn(&mut findings, history, clusters.len());
    }
    findings
}
