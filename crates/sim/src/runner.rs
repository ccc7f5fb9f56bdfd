//! Runs a scenario once, on one thread, in virtual time: a function of scenario, wiring and trial.

use std::collections::BTreeMap;
use std::future::Future;

use crate::fault::RequestFault;
use crate::history::History;
use crate::oracles::{Findings, Verdict, Violation};
use crate::scenario::Scenario;
use crate::stage::{Audit, Prepared, Stage, Unplayable, Wiring};
use crate::trial::Trial;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All that happened.
    pub history: History,
    /// How many events the operator's watches got.
    pub events: u64,
    /// A hash over all requests of everybody.
    pub hash: String,
    /// Which rights were used, and which were missing.
    pub audit: Audit,
}

/// Runs to the end on a clock that jumps to the next timer whenever nothing else is to do. There is no I/O driver:
/// opening a socket panics.
pub fn virtually<F: Future>(work: F) -> F::Output {
    #[allow(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "a runtime without I/O has nothing that could fail"
    )]
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime in memory");
    runtime.block_on(work)
}

/// Makes all that is there at a scenario's start.
pub fn prepare(scenario: &Scenario, wiring: &Wiring) -> Result<Prepared, Unplayable> {
    virtually(Prepared::new(scenario, wiring))
}

/// Plays a scenario to its end.
pub fn play(
    scenario: &Scenario,
    wiring: &Wiring,
    prepared: &Prepared,
    trial: &Trial,
) -> Result<Outcome, Unplayable> {
    virtually(async {
        let mut stage = Stage::begin(scenario, wiring, prepared, trial)?;
        stage.play().await;
        Ok(stage.close())
    })
}

/// Plays a scenario once and asks all oracles that watch it; with a reference, also whether both came to the same.
pub fn judge(
    scenario: &Scenario,
    wiring: &Wiring,
    trial: &Trial,
    reference: Option<&Outcome>,
) -> Result<(Outcome, Vec<Verdict>), Unplayable> {
    let prepared = prepare(scenario, wiring)?;
    let outcome = play(scenario, wiring, &prepared, trial)?;
    let reference = reference.map(|r| &r.history);
    let verdicts = wiring.oracles.judge(scenario, &outcome.history, reference);
    Ok((outcome, verdicts))
}

/// The path of what a request asks for: of one that lists what has a name, of that one.
fn asked_for(uri: &str) -> String {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut parts = query.split('&');
    let name = parts.find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    name.map_or_else(|| path.to_owned(), |name| format!("{path}/{name}"))
}

impl Outcome {
    /// S2: no right was missing.
    pub fn rights(&self) -> Verdict {
        let mut findings = Findings {
            checked: self.history.requests.len() as u64,
            ..Findings::default()
        };
        let mut excused: BTreeMap<String, usize> = BTreeMap::new();
        for request in &self.history.requests {
            let refused = [RequestFault::Forbidden.name(), "refused"];
            if request.fault.is_some_and(|fault| refused.contains(&fault)) {
                *excused.entry(asked_for(&request.uri)).or_default() += 1;
            }
        }
        for denied in &self.audit.denied {
            let what = &denied.what;
            // Who is refused one way may look for another, once.
            let mut path = format!(
                "/namespaces/{}/{}/{}",
                denied.namespace, what.resource, denied.name
            );
            if !what.subresource.is_empty() {
                path = format!("{path}/{}", what.subresource);
            }
            let excuse = excused
                .iter_mut()
                .find(|(known, left)| known.ends_with(&path) && **left > 0);
            if let Some((_, left)) = excuse {
                *left -= 1;
                continue;
            }
            findings.violations.push(Violation {
                at: self.history.end,
                text: format!(
                    "no right to {} {}/{} {} in {:?}",
                    what.verb, what.group, what.resource, what.subresource, denied.namespace
                ),
            });
        }
        Verdict {
            id: "S2",
            what: "the operator never lacks a right under exactly the generated role",
            findings,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use slipway_apiserver::authorize::{Denied, Use};
    use slipway_kernel::identity::ClusterId;

    use super::Outcome;
    use crate::history::{Context, Ending, History, Request};
    use crate::stage::Audit;

    /// A list by this name is refused by a fault.
    fn refused(name: &str) -> Request {
        Request {
            number: 0,
            cluster: ClusterId::local(),
            at: jiff::Timestamp::UNIX_EPOCH,
            replica: "slipway-0-0".to_owned(),
            method: "GET".to_owned(),
            uri: format!(
                "/api/v1/namespaces/fleet/configmaps?&fieldSelector=metadata.name%3D{name}&limit=50"
            ),
            media: String::new(),
            body: Value::Null,
            context: Context::default(),
            fault: Some("refused"),
            ending: Ending::Answered(403),
            versions: (0, 0),
            tide: 0,
        }
    }

    /// Somebody without the right for it asks for the object of this name.
    fn denied(name: &str) -> Denied {
        Denied {
            user: "slipway".to_owned(),
            what: Use {
                verb: "get".to_owned(),
                group: String::new(),
                resource: "configmaps".to_owned(),
                subresource: String::new(),
            },
            namespace: "fleet".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn who_may_not_list_by_a_name_may_ask_for_that_one_once() {
        for (lists, gets, missing) in [
            (&["a"][..], &["a"][..], 0),
            (&["a"], &["a", "a"], 1),
            (&["a"], &["b"], 1),
            (&[], &["a"], 1),
        ] {
            let outcome = Outcome {
                history: History {
                    requests: lists.iter().map(|name| refused(name)).collect(),
                    ..History::default()
                },
                events: 0,
                hash: String::new(),
                audit: Audit {
                    denied: gets.iter().map(|name| denied(name)).collect(),
                    ..Audit::default()
                },
            };
            let found = outcome.rights().findings.violations.len();
            assert_eq!(found, missing, "{lists:?} {gets:?}");
        }
    }
}
