//! Whether a cluster is looked at that is said to be reachable. Who may look at what is told by the answers that the operator got, and
//! not by what it makes of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use slipway_sim::history::{Ending, Event, History, Image, Request};
use slipway_sim::oracles::{Case, Findings};

use super::{REMOTES, all_at, text};

/// For how long nothing but refusals came before it must be told.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// For how long after something else went wrong it need not have been told yet.
const HINDERED: SignedDuration = SignedDuration::from_mins(5);

/// No cluster is said to be reachable of which the operator is refused what it reads there, by all answers that it gets.
pub(in super::super) fn sighted(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    for cluster in history.members.keys() {
        let mut refused: BTreeMap<&str, Option<Timestamp>> = BTreeMap::new();
        let requests = history.requests.iter();
        for request in requests.filter(|one| one.cluster == *cluster && is_look(one)) {
            let since = refused.entry(&request.replica).or_default();
            *since = match request.ending {
                Ending::Answered(403) => since.or(Some(request.at)),
                _ => None,
            };
            // Whoever is dead looks at nothing.
            refused.retain(|replica, _| !has_died(history, replica, request.at));
            let is_long = |since: &Option<Timestamp>| {
                since.is_some_and(|since| request.at.duration_since(since) >= TOLD_WITHIN)
            };
            if !refused.values().all(is_long) || is_hindered(history, request.at) {
                continue;
            }
            let remotes = all_at(&history.changes, REMOTES, request.at);
            for (object, remote) in remotes {
                let is_of_it = &*object.2 == cluster.as_str();
                findings.check(request.at, !is_of_it || !is_reachable(remote), || {
                    format!("{cluster} is said to be reachable, and nobody may see what is in it")
                });
            }
        }
    }
    findings
}

fn has_died(history: &History, replica: &str, moment: Timestamp) -> bool {
    let is_its = |what: &Event| matches!(what, Event::Crashed(name) | Event::Ended(name, _) if name == replica);
    let mut marks = history.marks.iter();
    marks.any(|mark| mark.at <= moment && is_its(&mark.what))
}

/// Whether a request of home's operator looks at all assemblages of a cluster.
fn is_look(request: &Request) -> bool {
    request.method == "GET"
        && request.path().ends_with("/v1alpha1/assemblages")
        && !request.is_probe()
        && !request.is_from_within()
}

fn is_reachable(remote: &Image) -> bool {
    let conditions = remote.at("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == Some("Reachable") && text(condition, "/status") == Some("True")
    })
}

/// Whether something was wrong with home or a replica, so that something may not have been noticed or told yet.
fn is_hindered(history: &History, moment: Timestamp) -> bool {
    let lately = |at: Timestamp| at <= moment && moment.duration_since(at) <= HINDERED;
    let is_amiss = |what: &Event| match what {
        Event::Spell(spell) => spell.cluster.is_none(),
        Event::Started(_)
        | Event::User(_)
        | Event::Failed(_)
        | Event::Otherwise(_)
        | Event::Ready(..) => false,
        _ => true,
    };
    let mut marks = history.marks.iter();
    let mut spells = history.spells();
    marks.any(|mark| is_amiss(&mark.what) && lately(mark.at))
        || spells.any(|(began, spell)| {
            let over = began.checked_add(spell.over().saturating_sub(spell.at));
            began <= moment && over.is_ok_and(|over| moment <= over)
        })
        || history
            .requests
            .iter()
            .any(|request| request.fault.is_some() && request.is_home() && lately(request.at))
}
