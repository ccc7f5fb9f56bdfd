//! M1 to M3: what is written into clusters besides the one that the operator runs in.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::identity::ClusterId;

use super::{Case, Findings, workload};
use crate::history::{Change, Course, History, Image, Object, Request};
use crate::spell::{Disturbance, Spell};

/// All changes of the operators in clusters besides home.
fn deeds(history: &History) -> impl Iterator<Item = (&ClusterId, &Change, &Request)> {
    history.members.keys().flat_map(move |id| {
        let deeds = history.deeds_in(id);
        deeds.map(move |(change, request)| (id, change, request))
    })
}

fn named(cluster: &ClusterId, object: &Object) -> String {
    format!("{} in {cluster}", workload::name(object))
}

/// Resources at home that speak of no cluster, and are large or many.
const SILENT: &[&str] = &[
    "apiextensions.k8s.io/",
    "rbac.authorization.k8s.io/",
    "/nodes",
];

fn is_silent(object: &Object) -> bool {
    SILENT.iter().any(|name| object.0.starts_with(name))
}

/// What people say by the annotation that confirms a cluster, object by object. What the operator writes there is nobody's word.
#[derive(Default)]
struct Words<'a>(BTreeMap<&'a Object, &'a str>);

impl<'a> Words<'a> {
    /// What was said at a moment.
    fn until(history: &'a History, at: Timestamp) -> Self {
        let mut words = Self::default();
        for change in spoken(history).take_while(|change| change.at <= at) {
            words.hear(change);
        }
        words
    }

    /// Takes in a change at home.
    fn hear(&mut self, change: &'a Change) {
        let said = |image: &'a Option<Arc<Image>>| image.as_ref()?.annotation(CONFIRM_CLUSTER);
        let after = said(&change.after);
        if after == said(&change.before) {
            return;
        }
        match after.filter(|_| change.by.is_none()) {
            Some(uid) => self.0.insert(&change.object, uid),
            None => self.0.remove(&change.object),
        };
    }

    /// Whether somebody says it of this cluster by an object.
    fn is_said_by(&self, object: &Object, uid: &str) -> bool {
        self.0.get(object) == Some(&uid)
    }
}

/// The changes at home that may speak of a cluster.
fn spoken(history: &History) -> impl Iterator<Item = &Change> {
    history.changes.iter().filter(|c| !is_silent(&c.object))
}

/// The changes at home that speak of a cluster's uid, each with the object and whether it does; of one that took another's place
/// only where a person says so.
struct Record<'a>(Vec<(Timestamp, &'a Object, bool)>);

impl<'a> Record<'a> {
    fn of(history: &'a History, uid: &str, took_a_place: bool) -> Self {
        let mut words = Words::default();
        let speaks = |change: &'a Change| {
            words.hear(change);
            let after = change.after.as_ref();
            let is_recorded = || after.is_some_and(|image| holds(image.value(), uid));
            let is_there = words.is_said_by(&change.object, uid) || !took_a_place && is_recorded();
            (change.at, &change.object, is_there)
        };
        Self(spoken(history).map(speaks).collect())
    }

    /// Whether an object spoke of it at a moment.
    fn is_there(&self, at: Timestamp) -> bool {
        let until = self.0.iter().take_while(|(when, ..)| *when <= at);
        let last: BTreeMap<&Object, bool> = until.map(|(_, object, is)| (*object, *is)).collect();
        last.values().any(|is| *is)
    }
}

/// Whether a text is in a value.
fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(all) => all.iter().any(|one| holds(one, text)),
        Value::Object(all) => all.values().any(|one| holds(one, text)),
        _ => false,
    }
}

/// Whether in the end nothing at home speaks of a cluster any more.
pub(super) fn is_forgotten(history: &History, cluster: &ClusterId) -> bool {
    let uid = history.members.get(cluster).and_then(|course| course.uid());
    uid.is_some_and(|uid| !Record::of(history, uid, false).is_there(history.end))
}

/// What a cluster is called at home, whichever one has the name.
fn name(cluster: &ClusterId) -> &str {
    let id = cluster.as_str();
    id.split_once('~').map_or(id, |(name, _)| name)
}

/// Whether a cluster has taken the place of another one of its name that home knew before. Whoever is seen first is taken for the
/// one that is meant: nobody has seen another.
fn took_a_place(history: &History, cluster: &ClusterId) -> bool {
    let of_name = history
        .members
        .iter()
        .filter(|(id, _)| name(id) == name(cluster));
    let all: Vec<(&ClusterId, &str)> = of_name
        .filter_map(|(id, course)| Some((id, course.uid()?)))
        .collect();
    if all.len() < 2 {
        return false;
    }
    let first = spoken(history).find_map(|change| {
        let image = change.after.as_ref()?;
        let spoken_of = all.iter().find(|(_, uid)| holds(image.value(), uid));
        spoken_of.map(|(_, uid)| *uid)
    });
    // Whoever takes the place a second time is the same that has taken it before.
    let own = all.iter().find(|(id, _)| *id == cluster);
    first.is_some_and(|first| own.is_none_or(|(_, uid)| first != *uid))
}

/// Whether at a moment nothing may be done in a cluster, by which one it is: a person says that another one of its name is meant; or
/// it has taken another's place, and nobody says that it is meant. Whatever the operator has taken down meanwhile is no excuse.
pub(super) fn is_disowned(history: &History, cluster: &ClusterId, at: Timestamp) -> bool {
    let uid = |id: &ClusterId| history.members.get(id).and_then(Course::uid);
    let of_name = history
        .members
        .keys()
        .filter(|id| name(id) == name(cluster));
    let of_name: Vec<&str> = of_name.filter_map(uid).collect();
    let words = Words::until(history, at);
    let mut said = words
        .0
        .values()
        .filter(|uid| of_name.contains(uid))
        .peekable();
    if said.peek().is_some() {
        return said.all(|said| uid(cluster) != Some(*said));
    }
    took_a_place(history, cluster)
}

/// Whether another one has the number that a scenario knows a cluster by which takes another's place: more have taken it than
/// the scenario says.
pub(super) fn is_counted_otherwise(case: &Case<'_>, cluster: &ClusterId) -> bool {
    cluster.as_str() != name(cluster) && is_met_beside(case, cluster, &Disturbance::Replaced)
}

/// Whether a cluster was put back to an earlier time though the scenario says nothing of it: what people had done there is
/// undone, nobody does it again, and what was to follow from it does not.
pub(super) fn is_put_back(case: &Case<'_>, cluster: &ClusterId) -> bool {
    is_met_beside(case, cluster, &Disturbance::Restore)
}

/// Whether a cluster met more of this than the scenario says.
fn is_met_beside(case: &Case<'_>, cluster: &ClusterId, what: &Disturbance) -> bool {
    let is_meant = |spell: &Spell| {
        spell.disturbance == *what && spell.cluster.as_deref() == Some(name(cluster))
    };
    let found = case
        .history
        .all_spells()
        .filter(|(_, spell)| is_meant(spell));
    let known = case.scenario.spells.iter().filter(|spell| is_meant(spell));
    found.count() > known.count()
}

/// M1.
pub(super) fn identity(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for (cluster, course) in &history.members {
        let uid = course.uid().unwrap_or_default();
        // Who runs in a cluster knows where it is.
        let deeds = history.deeds_in(cluster);
        let mut deeds = deeds.filter(|(_, r)| !r.is_from_within()).peekable();
        if deeds.peek().is_none() {
            continue;
        }
        let record = Record::of(history, uid, took_a_place(history, cluster));
        for (change, request) in deeds {
            // What was on its way when the record was taken back was right when it left.
            let is_known = !uid.is_empty() && record.is_there(request.at);
            findings.check(change.at, is_known, || {
                let what = named(cluster, &change.object);
                format!("{what} was written, and nothing at home says that it is {uid:?}")
            });
        }
    }
    findings
}

/// M2.
pub(super) fn epochs(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut newest: BTreeMap<(&ClusterId, &str), u64> = BTreeMap::new();
    for (cluster, change, request) in deeds(case.history) {
        let context = &request.context;
        let is_news = change.object.0.ends_with("/events");
        if context.controller.is_empty() || is_news || request.is_from_within() {
            continue;
        }
        let newest = newest.entry((cluster, &context.controller)).or_default();
        let mut own = case.specifics.iter();
        let own = own.find(|one| one.name == context.controller);
        let mut harmless = own.into_iter().flat_map(|one| one.harmless);
        let holds = context.epoch >= *newest || harmless.any(|purpose| request.is_for(*purpose));
        findings.check(change.at, holds, || {
            let what = named(cluster, &change.object);
            let (replica, epoch) = (&request.replica, context.epoch);
            format!("{what}: {replica} wrote under leadership {epoch} after {newest}")
        });
        *newest = context.epoch.max(*newest);
    }
    findings
}

/// M3.
pub(super) fn targets(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (cluster, change, request) in deeds(case.history) {
        let mut specifics = case.specifics.iter();
        let holds = change.object.0.ends_with("/events")
            || specifics.any(|one| (one.may_change)(case, change, request));
        findings.check(change.at, holds, || {
            let what = named(cluster, &change.object);
            format!("{what} is none of the operator's business")
        });
    }
    findings
}

#[cfg(test)]
mod tests;
