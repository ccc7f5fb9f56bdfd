//! G6 and L4: who acts.

use jiff::{SignedDuration, Timestamp};

use super::workload;
use super::{Case, Findings};
use crate::history::Event;

/// A lease, the time of a request, the wait of a new leader, and a look around.
const FAILOVER: SignedDuration = SignedDuration::from_secs(15 + 10 + 10);

/// G6.
pub(super) fn epochs(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut newest = 0;
    for touch in workload::touches(case.history) {
        let epoch = touch.request.context.epoch;
        findings.check(touch.change.at, epoch >= newest, || {
            format!(
                "{}: {} wrote under leadership {epoch} after {newest}",
                workload::name(&touch.change.object),
                touch.request.replica
            )
        });
        newest = newest.max(epoch);
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
