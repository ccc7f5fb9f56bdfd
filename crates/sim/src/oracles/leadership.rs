//! G6 and L4: who acts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::workload;
use super::{Case, Findings};
use crate::history::Event;

/// A lease, the time of a request, the wait of a new leader, and a look around.
const FAILOVER: SignedDuration = SignedDuration::from_secs(15 + 10 + 10);

/// G6. Where replicas elect one of them, none even tries to act without a lease: that a precondition stops most of what a second
/// leader does is no reason to have one.
pub(super) fn epochs(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let is_for_all = |path: &str| path.contains("/leases") || path.contains("/events");
    let tries = case.history.requests.iter().filter(|request| {
        let is_of_a_plan = !request.context.controller.is_empty() && !is_for_all(request.path());
        request.is_write() && is_of_a_plan && case.scenario.replicas > 1
    });
    for request in tries {
        findings.check(request.at, request.context.epoch > 0, || {
            let (replica, what) = (&request.replica, request.path());
            format!("{replica} wrote to {what} without a lease")
        });
    }
    // Each controller has a leadership of its own.
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for (change, request) in case.history.deeds() {
        let context = &request.context;
        let (epoch, is_pod) = (context.epoch, &*change.object.0 == "/pods");
        // What webhooks do is done by every replica.
        if context.controller.is_empty() || !(is_pod || workload::kind(&change.object.0).is_some())
        {
            continue;
        }
        let newest = newest.entry(&context.controller).or_default();
        let mut specifics = case.specifics.iter();
        let own = specifics.find(|one| one.name == context.controller);
        let mut harmless = own.into_iter().flat_map(|one| one.harmless);
        let holds = epoch >= *newest || harmless.any(|purpose| request.is_for(*purpose));
        findings.check(change.at, holds, || {
            format!(
                "{}: {} wrote under leadership {epoch} after {newest}",
                workload::name(&change.object),
                request.replica
            )
        });
        *newest = epoch.max(*newest);
    }
    findings
}

/// L4. Only where another replica could take over and was left alone meanwhile.
pub(super) fn failover(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    if case.scenario.replicas < 2 {
        return findings;
    }
    let renewals: Vec<(Timestamp, &str)> = history
        .requests
        .iter()
        .filter(|r| r.path().contains("/leases") && r.is_committed())
        .map(|r| (r.at, r.replica.as_str()))
        .collect();
    for mark in &history.marks {
        let Event::Crashed(replica) = &mark.what else {
            continue;
        };
        let held = renewals.iter().rfind(|(at, _)| *at <= mark.at);
        let until = mark.at.checked_add(FAILOVER).unwrap_or(Timestamp::MAX);
        let others = history.marks.iter().any(|other| {
            let hurt = matches!(
                other.what,
                Event::Crashed(_) | Event::Paused(..) | Event::CutOff(..)
            );
            hurt && other != mark && other.at > mark.at - FAILOVER && other.at <= until
        });
        let storm = history.calm > mark.at;
        if held.is_none_or(|(_, holder)| holder != replica)
            || others
            || storm
            || until > history.end
        {
            continue;
        }
        let taken = renewals
            .iter()
            .any(|(at, holder)| *at > mark.at && *at <= until && holder != replica);
        findings.check(until, taken, || {
            format!("nobody took over within {FAILOVER} after {replica} died")
        });
    }
    findings
}
