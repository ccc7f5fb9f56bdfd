//! Z14: a rollout asks zone-aware budgets as an eviction does, and waits while there may be some that it does not know.

use jiff::{SignedDuration, Timestamp};
use slipway_api::purpose::runtime::REVIEW;
use slipway_sim::history::{Change, Ending, History, Image, Request};
use slipway_sim::oracles::{Case, Findings};
use slipway_sim::spell::Disturbance;

use super::departures::Departure;
use super::{Deletion, budgets_over, deletions, is_going, is_ready};

const PLURAL: &str = "zoneawarepoddisruptionbudgets";
const DEFINITION: &str = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

/// Within this time a refusal has been taken in, and what was decided before it has been sent.
const TAKEN_IN: SignedDuration = SignedDuration::from_secs(1);
/// Within this time it is noticed that a kind is defined, or that it is after all.
const NOTICED: SignedDuration = SignedDuration::from_secs(30);
/// So long reads may fail before what was known is no longer believed.
const FAILING: SignedDuration = SignedDuration::from_secs(15);

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The budgets over a pod that was deleted, as they had been seen. One that is gone since, with its definition or without,
/// counts no more.
fn budgets<'a>(history: &'a History, deletion: &Deletion<'a>) -> Vec<&'a Image> {
    let before = deletion.change.version - 1;
    let seen = deletion.request.context.basis.get(PLURAL).copied();
    let namespace = &deletion.change.object.1;
    let over = |version| budgets_over(history, version, namespace, deletion.pod);
    let now = over(before);
    let uid = |budget: &&Image| budget.text("/metadata/uid").map(str::to_owned);
    let mut all = over(seen.unwrap_or(before).min(before));
    all.retain(|budget| now.iter().any(|other| uid(other) == uid(budget)));
    all
}

/// Since when budgets are defined, by what there is; none if they are not, or if discovery may have said so.
fn defined_since(history: &History, request: &Request) -> Option<Timestamp> {
    let of_it = |change: &&Change| {
        &*change.object.0 == "apiextensions.k8s.io/customresourcedefinitions"
            && &*change.object.2 == DEFINITION
            && change.at <= request.at
    };
    let mut changes = history.changes.iter().rev().filter(of_it);
    let last = changes.next()?.after.as_deref();
    last.filter(|definition| !is_going(definition))?;
    let added = history.changes.iter().rev().filter(of_it);
    let added = added.into_iter().find(|change| change.before.is_none());
    let is_denied = history.spells().any(|(at, spell)| {
        let lasts = SignedDuration::try_from(spell.lasts).unwrap_or(SignedDuration::MAX);
        let until = later(later(at, lasts), NOTICED);
        matches!(&spell.disturbance, Disturbance::Unknown(kind) if kind == DEFINITION)
            && (at..=until).contains(&request.at)
    });
    (!is_denied).then(|| added.map_or(history.start, |change| change.at))
}

/// Whether the sender of a request could believe to know all budgets: it has listed them since they are defined, and was not
/// refused, nor failed for long, when it last tried.
fn knows_all(history: &History, request: &Request) -> bool {
    let Some(since) = defined_since(history, request) else {
        return true;
    };
    let is_new = later(since, NOTICED) > request.at && since > history.start;
    let tries = history.requests.iter().filter(|read| {
        read.replica == request.replica
            && read.method == "GET"
            && read.path().ends_with(PLURAL)
            && !read.is_probe()
            && !read.is_for(REVIEW)
            && read.number < request.number
    });
    let mut is_listed = false;
    let mut failing: Option<(Timestamp, u16)> = None;
    for read in tries {
        match read.ending {
            // What was decided before it was known is on its way already.
            Ending::Answered(400..) if later(read.at, TAKEN_IN) > request.at => {}
            Ending::Answered(code @ 400..) => {
                let first = failing.map_or(read.at, |(first, _)| first);
                failing = Some((first, code));
            }
            Ending::Answered(_) => {
                failing = None;
                let is_list = !read.uri.contains("watch=true");
                is_listed |= is_list && (read.at >= since || since <= history.start);
            }
            // Nobody can tell from outside what came of it.
            _ => failing = None,
        }
    }
    let is_trusted = match failing {
        None => true,
        Some((_, 403)) => false,
        Some((first, _)) => later(first, FAILING) > request.at,
    };
    is_new || is_listed && is_trusted
}

/// Z14.
pub(in super::super) fn rollouts(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for deletion in deletions(history).filter(|deletion| is_ready(deletion.pod)) {
        let at = deletion.change.at;
        findings.check(at, knows_all(history, deletion.request), || {
            let name = deletion.name();
            format!("{name} was deleted while there could be budgets that nobody had seen")
        });
        let over = budgets(history, &deletion);
        findings.check(at, over.len() <= 1, || {
            format!("{} was deleted, and has several budgets", deletion.name())
        });
        for budget in over {
            let Some(departure) = Departure::deleted(history, &deletion, budget) else {
                continue;
            };
            if departure.is_by_partition() {
                departure.check_partition(&mut findings);
            } else {
                departure.check_zones(&mut findings);
            }
        }
    }
    findings
}
