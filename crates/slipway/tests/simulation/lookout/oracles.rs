//! What must be true of every history of the lookout. Read from the history alone.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use slipway_sim::history::{Asked, Change, History};
use slipway_sim::oracles::{Case, Findings, Fleeting, Oracle, Specifics};

use super::{CHAT, GATE, LEASE, NAME, PREFIX, PROMETHEUS, QUERY, TAKE, TAKEN, TOO_MANY};

pub(super) static SPECIFICS: Specifics = Specifics {
    name: NAME,
    lease: LEASE,
    oracles: ORACLES,
    maps: &[PREFIX],
    copies: &[],
    fleeting: Fleeting {
        annotations: &[TAKEN],
        ..Fleeting::NONE
    },
    statuses: &[],
    orders: &[],
    superseded: &[],
    follows: |_, _| false,
    is_unconditional: |_| false,
    has_secret: |_| false,
    may_change: |_, _, _| false,
    harmless: &[],
    nothing_left: |_, _| {},
};

const ORACLES: &[Oracle] = &[
    Oracle {
        id: "Q1",
        what: "a stage is taken only on a yes and a good measurement that this replica was told since the stage before",
        check: told,
    },
    Oracle {
        id: "Q2",
        what: "what is done has been told, and what was told is done",
        check: heard,
    },
    Oracle {
        id: "Q3",
        what: "a token is shown to whom it is for and to nobody else",
        check: shown,
    },
];

/// How long after the last fault it is done at the latest.
const PATIENCE: SignedDuration = SignedDuration::from_mins(4);

fn stage(change: &Change) -> Option<u32> {
    let after = change.after.as_ref()?;
    after.text("/data/stage")?.parse().ok()
}

/// Changes by which a stage was taken, each with the replica that did it.
fn stages(history: &History) -> Vec<(&Change, &str, Timestamp)> {
    let deeds = history.deeds().filter(|(_, request)| request.is_for(TAKE));
    deeds
        .map(|(change, request)| (change, request.replica.as_str(), request.at))
        .collect()
}

/// What a replica was told by a host between two moments.
fn answers<'a>(
    history: &'a History,
    (replica, host): (&'a str, &'a str),
    (from, to): (Timestamp, Timestamp),
) -> impl Iterator<Item = (&'a Asked, Timestamp, u16)> {
    let of = history
        .asked
        .iter()
        .filter(move |one| one.replica == replica && one.host() == host);
    of.filter_map(|one| one.told.map(|(at, code)| (one, at, code)))
        .filter(move |(_, at, _)| *at > from && *at <= to)
}

/// What Prometheus measured at a moment, by the scenario.
fn errors(case: &Case<'_>, at: Timestamp) -> Option<f64> {
    let mut peers = case.scenario.world.iter();
    let peer = peers.find(|peer| peer.host == PROMETHEUS)?;
    let since = at.duration_since(case.history.start);
    let since = Duration::try_from(since).unwrap_or_default();
    let (_, body) = peer.answer(since, "/api/v1/query", Some(QUERY), &|_| false);
    let body: serde_json::Value = serde_json::from_str(&body).ok()?;
    if body.get("warnings").is_some() {
        // On some of the data.
        return None;
    }
    let result = body.pointer("/data/result")?.as_array()?;
    let [only] = result.as_slice() else {
        return None;
    };
    only.pointer("/value/1")?.as_str()?.parse().ok()
}

/// Q1.
fn told(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let mut before = history.start;
    for (change, replica, sent) in stages(history) {
        let within = (before, sent);
        let mut gate = answers(history, (replica, GATE), within);
        let is_yes = gate.any(|(_, _, code)| (200..300).contains(&code));
        findings.check(change.at, is_yes, || {
            format!("stage {:?} without a yes of the gate", stage(change))
        });
        let mut measured = answers(history, (replica, PROMETHEUS), within);
        let is_good = measured.any(|(one, at, code)| {
            let errors = errors(case, at);
            code == 200 && one.is_readable() && errors.is_some_and(|errors| errors < TOO_MANY)
        });
        findings.check(change.at, is_good, || {
            format!("stage {:?} without few errors", stage(change))
        });
        before = sent;
    }
    findings
}

/// Q2.
fn heard(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let history = case.history;
    let said = history.asked.iter().filter(|one| one.host() == CHAT);
    let said: Vec<&Asked> = said.collect();
    let settled = history.calm.checked_add(PATIENCE);
    let is_settled = settled.is_ok_and(|settled| settled <= history.end);
    for (object, map) in history.last() {
        let text = |pointer: &str| map.text(pointer);
        if &*object.0 != "/configmaps" || !object.2.starts_with(PREFIX) {
            continue;
        }
        let is_done = text("/data/stage") == text("/data/last");
        let words = format!("{} is done", object.2);
        let of = said.iter().filter(|one| one.body.contains(&words));
        let arrived: u32 = of.clone().map(|one| one.arrived).sum();
        if is_settled {
            findings.check(history.end, is_done && arrived > 0, || {
                format!(
                    "{} is done: {is_done}, and was told {arrived} times",
                    object.2
                )
            });
        }
        let is_noted = text("/data/told").is_some();
        findings.check(history.end, !is_noted || arrived > 0, || {
            format!("{} says that it was told, and nobody was", object.2)
        });
        for one in of {
            let version = history.changes.iter().filter(|c| c.at <= one.at);
            let version = version.map(|c| c.version).max().unwrap_or_default();
            let then = history.state(object, version);
            let was_done =
                then.is_some_and(|map| map.text("/data/stage") == map.text("/data/last"));
            findings.check(one.at, was_done, || {
                format!("{} was told to be done before it was", object.2)
            });
        }
    }
    findings
}

/// Q3: by what is in an address or a body; headers are not written down.
fn shown(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let peers = case.scenario.world.iter();
    let tokens = peers.filter_map(|peer| {
        let text = peer.authorization.as_deref()?;
        text.strip_prefix("Bearer ")
    });
    let tokens: Vec<&str> = tokens.collect();
    for one in &case.history.asked {
        let is_clean = !tokens
            .iter()
            .any(|token| one.url.contains(token) || one.body.contains(token));
        findings.check(one.at, is_clean, || {
            format!("{} has a token in it", one.url)
        });
    }
    for request in case.history.requests.iter().filter(|r| r.is_write()) {
        let body = request.body.to_string();
        let is_clean = !tokens.iter().any(|token| body.contains(token));
        findings.check(request.at, is_clean, || {
            format!("{} {} has a token in it", request.method, request.uri)
        });
    }
    findings
}
