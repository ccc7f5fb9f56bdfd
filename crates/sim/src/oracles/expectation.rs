//! What a scenario itself expects.

use jiff::Timestamp;
use serde_json::Value;
use slipway_kernel::identity::ClusterId;

use super::{AFTERMATH, Case, Findings, members, workload};
use crate::history::{Change, Image, Object, Review};
use crate::scenario::{Expectation, Named, When, look};

/// `expect`.
pub(super) fn met(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    // A storm may delay what is expected at a moment; what comes of it is for the other oracles.
    let history = case.history;
    let disturbed = history.is_disturbed();
    let settled = history.calm.checked_add(AFTERMATH);
    let is_open = history.reviews.iter().any(Review::is_open);
    let is_other = is_open || history.is_restored();
    if history.is_out_of_time()
        || history.is_redefined()
        || disturbed && (is_other || settled.is_ok_and(|settled| settled > history.end))
    {
        return findings;
    }
    for expectation in &case.scenario.expect {
        let when = expectation.when(case.scenario);
        let at_the_end = when == When::At(case.scenario.duration);
        if disturbed && !at_the_end {
            continue;
        }
        // Events are told once at most: a process that dies takes those with it that it has not sent.
        let volatile = !expectation.restarts.is_empty() || !expectation.events.is_empty();
        if disturbed && volatile {
            continue;
        }
        // Where another cluster was the first that home saw under a name, or is the one that a person means, this one waits; one
        // that was put back is another question, as home is.
        let member = expectation.cluster.as_deref().map(ClusterId::remote);
        let is_disowned = |id: &ClusterId| members::is_disowned(history, id, history.end);
        let is_another = |id: ClusterId| {
            is_disowned(&id)
                || members::is_counted_otherwise(case, &id)
                || members::is_put_back(case, &id)
        };
        // What depends on all depends on one that nothing may be done in.
        let mut all = case.scenario.clusters.iter();
        let is_of_another =
            expectation.of_all && all.any(|cluster| is_disowned(&ClusterId::remote(&cluster.name)));
        if disturbed && (is_of_another || member.is_some_and(is_another)) {
            continue;
        }
        expect(&mut findings, case, expectation, when);
    }
    findings
}

fn expect(findings: &mut Findings, case: &Case<'_>, expectation: &Expectation, when: When) {
    let history = case.history;
    let cluster = expectation.cluster.as_deref();
    let cluster = cluster.map_or_else(ClusterId::local, ClusterId::remote);
    let changes = history.changes_in(&cluster);
    let why = expectation.why.as_deref().unwrap_or_default();
    let moment = match when {
        // The run goes on where something went wrong late.
        When::At(at) if at == case.scenario.duration => history.end,
        When::At(at) | When::During(_, at) => case.scenario.moment(at),
    };
    if history.is_disturbed() && is_instead(changes, expectation, moment) {
        return;
    }
    if let Some(object) = &expectation.object {
        let states = match when {
            When::At(_) => vec![(moment, state(changes, object, moment))],
            When::During(from, _) => during(changes, object, case.scenario.moment(from), moment),
        };
        for (at, image) in states {
            let path = expectation.path.as_deref().unwrap_or_default();
            let value = image.and_then(|image| look(image.value(), path));
            findings.check(at, holds(expectation, value), || {
                let found = value.map_or_else(|| "absent".to_owned(), Value::to_string);
                let wanted = wanted(expectation);
                let there = expectation.cluster.as_deref();
                let there = there.map_or(String::new(), |name| format!(" in {name}"));
                format!("{object}{there} {path} is {found}; {wanted} {why}")
            });
        }
    }
    for (name, want) in &expectation.restarts {
        let count = workload::restarts(history)
            .filter(|t| t.change.at <= moment && is(&t.change.object, name))
            .count();
        findings.check(moment, count as u64 == *want, || {
            format!("{name} was restarted {count} times, not {want} {why}")
        });
    }
    for (name, reason) in &expectation.events {
        let told = changes.iter().any(|change| {
            change.at <= moment
                && matches!(&*change.object.0, "events.k8s.io/events" | "/events")
                && change
                    .after
                    .as_deref()
                    .is_some_and(|image| about(image, name, reason))
        });
        findings.check(moment, told, || {
            format!("no event {reason} was told on {name} {why}")
        });
    }
}

/// Whether what is right as well is so.
fn is_instead(changes: &[Change], expectation: &Expectation, at: Timestamp) -> bool {
    expectation.unless.as_ref().is_some_and(|instead| {
        let image = state(changes, &instead.object, at);
        let value = image.and_then(|image| look(image.value(), &instead.path));
        value == Some(&instead.is)
    })
}

fn holds(expectation: &Expectation, value: Option<&Value>) -> bool {
    let is = expectation
        .is
        .as_ref()
        .is_none_or(|want| value == Some(want));
    let is_not = expectation
        .is_not
        .as_ref()
        .is_none_or(|bad| value != Some(bad));
    let exists = expectation
        .exists
        .is_none_or(|want| value.is_some() == want);
    is && is_not && exists
}

fn wanted(expectation: &Expectation) -> String {
    match (&expectation.is, &expectation.is_not, expectation.exists) {
        (Some(want), _, _) => format!("expected {want}"),
        (_, Some(bad), _) => format!("it should never be {bad}"),
        (_, _, Some(true)) => "it should be there".to_owned(),
        _ => "it should not be there".to_owned(),
    }
}

fn is(object: &Object, name: &Named) -> bool {
    *object.0 == *name.resource() && *object.1 == *name.0.namespace && *object.2 == *name.0.name
}

fn state<'a>(changes: &'a [Change], name: &Named, at: Timestamp) -> Option<&'a Image> {
    let changes = changes.iter().filter(|c| is(&c.object, name));
    let last = changes.rev().find(|change| change.at <= at)?;
    last.after.as_deref()
}

/// All states of an object in a time, each with its beginning.
fn during<'a>(
    all: &'a [Change],
    name: &Named,
    from: Timestamp,
    to: Timestamp,
) -> Vec<(Timestamp, Option<&'a Image>)> {
    let mut states = vec![(from, state(all, name, from))];
    let changes = all.iter().filter(|c| is(&c.object, name));
    let within = changes.filter(|change| change.at > from && change.at <= to);
    states.extend(within.map(|change| (change.at, change.after.as_deref())));
    states
}

fn about(event: &Image, name: &Named, reason: &str) -> bool {
    let object = |field: &str| {
        let regarding = event.text(&format!("/regarding/{field}"));
        regarding.or_else(|| event.text(&format!("/involvedObject/{field}")))
    };
    event.text("/reason") == Some(reason)
        && object("kind") == Some(name.0.kind.kind.as_ref())
        && object("name") == Some(name.0.name.as_str())
        && object("namespace").unwrap_or_default() == name.0.namespace
}
