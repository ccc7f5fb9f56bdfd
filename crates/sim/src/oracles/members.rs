//! M1 to M3: what is written into clusters besides the one that the operator runs in.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_api::names::CONFIRM_CLUSTER;
use slipway_kernel::identity::ClusterId;

use super::{Case, Findings, workload};
use crate::history::{Change, Course, History, Object, Request};

/// All changes of the operator in clusters besides home.
fn deeds<'a>(
    history: &'a History,
) -> impl Iterator<Item = (&'a ClusterId, &'a Course, &'a Change, &'a Request)> {
    let members = history.members.iter();
    members.flat_map(move |(id, course)| {
        let deeds = history.deeds_in(id);
        deeds.map(move |(change, request)| (id, course, change, request))
    })
}

fn named(cluster: &ClusterId, object: &Object) -> String {
    format!("{} in {cluster}", workload::name(object))
}

/// Which objects at home speak of a cluster's uid, from when to when; of one that took another's place only where a person says
/// so.
struct Record<'a> {
    history: &'a History,
    uid: &'a str,
    took_a_place: bool,
}

impl Record<'_> {
    fn is_in(&self, change: &Change) -> bool {
        let Some(image) = &change.after else {
            return false;
        };
        if self.took_a_place {
            return image.annotation(CONFIRM_CLUSTER) == Some(self.uid);
        }
        image.value().to_string().contains(self.uid)
    }

    /// Whether an object spoke of it at a moment.
    fn holds(&self, at: Timestamp) -> bool {
        let mut last: BTreeMap<&Object, bool> = BTreeMap::new();
        for change in self.history.changes.iter().filter(|c| c.at <= at) {
            last.insert(&change.object, self.is_in(change));
        }
        last.values().any(|holds| *holds)
    }
}

/// M1.
pub(super) fn identity(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    for (cluster, course, change, request) in deeds(case.history) {
        let uid = course.uid().unwrap_or_default();
        let record = Record {
            history: case.history,
            uid,
            took_a_place: cluster.as_str().contains('~'),
        };
        // What was on its way when the record was taken back was right when it left.
        let holds = !uid.is_empty() && record.holds(request.at);
        findings.check(change.at, holds, || {
            let what = named(cluster, &change.object);
            format!("{what} was written, and nothing at home says that it is {uid:?}")
        });
    }
    findings
}

/// M2.
pub(super) fn epochs(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut newest: BTreeMap<(&ClusterId, &str), u64> = BTreeMap::new();
    for (cluster, _, change, request) in deeds(case.history) {
        let context = &request.context;
        if context.controller.is_empty() || change.object.0.ends_with("/events") {
            continue;
        }
        let newest = newest.entry((cluster, &context.controller)).or_default();
        let mut own = case.specifics.iter();
        let own = own.find(|one| one.name == context.controller);
        let mut harmless = own.into_iter().flat_map(|one| one.harmless);
        let holds =
            context.epoch >= *newest || harmless.any(|purpose| request.is_for(*purpose));
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
    for (cluster, _, change, request) in deeds(case.history) {
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
