//! How Canaries are shown: each with its two sides, its weight, and what it waits for; below it what is checked and which gates
//! are closed, while a version is tried.

use serde_json::Value;
use slipway_api::canary::Phase;
use slipway_kernel::capability::show::{Objects, Row, State, count, list, number, text, waits};

use crate::engine::Verdict;
use crate::reasons::Reason;

/// The Canaries of a cluster.
pub fn show(objects: &dyn Objects) -> Vec<Row> {
    let canaries = objects.all("flagger.app/canaries");
    canaries
        .flat_map(|canary| [row(canary)].into_iter().chain(below(canary)))
        .collect()
}

/// The checks of a version that is tried, and the gates that keep it.
fn below(canary: &Value) -> Vec<Row> {
    let phase = phase(canary);
    let is_tried = phase.is_running() || phase == Phase::Waiting;
    if !is_tried {
        return Vec::new();
    }
    let checks = list(canary, "/status/checks").iter();
    let checks = checks.map(|check| check_row(canary, check));
    let gates = [
        Reason::RolloutGateClosed,
        Reason::TrafficGateClosed,
        Reason::PromotionGateClosed,
    ];
    let waits = list(canary, "/status/waitingFor").iter();
    let closed = waits.filter(|one| {
        let reason = Reason::of(&text(one, "/reason"));
        reason.is_some_and(|reason| gates.contains(&reason))
    });
    let closed = closed.map(|one| Row {
        state: State::Waiting,
        word: text(one, "/reason"),
        problem: text(one, "/message"),
        ..part(canary, "gate")
    });
    checks.chain(closed).collect()
}

fn check_row(canary: &Value, check: &Value) -> Row {
    let verdict = text(check, "/verdict");
    let is = |known: Verdict| verdict == known.as_str();
    let value = check.get("value").and_then(Value::as_f64);
    Row {
        state: match () {
            () if is(Verdict::Failed) => State::Bad,
            () if is(Verdict::Held) => State::Waiting,
            () if is(Verdict::Passed) => State::Good,
            () => State::Idle,
        },
        problem: text(check, "/message"),
        info: value
            .map(|value| format!("measured {value}"))
            .into_iter()
            .collect(),
        word: verdict,
        ..part(canary, &text(check, "/name"))
    }
}

/// A row for something of a Canary.
fn part(canary: &Value, name: &str) -> Row {
    let namespace = text(canary, "/metadata/namespace");
    let own = text(canary, "/metadata/name");
    Row {
        icon: ("◦", "-"),
        title: format!("Canary/{own}/{name}"),
        name: format!("{name} of Canary {namespace}/{own}"),
        namespace,
        ..Row::default()
    }
}

fn phase(canary: &Value) -> Phase {
    Phase::of(canary.pointer("/status/phase").and_then(Value::as_str))
}

fn row(canary: &Value) -> Row {
    let namespace = text(canary, "/metadata/namespace");
    let own = text(canary, "/metadata/name");
    let name = format!("Canary {namespace}/{own}");
    let phase = phase(canary);
    let weight = number(canary, "/status/canaryWeight");
    let is_suspended = canary.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let waiting = waits(&name, canary);
    let state = match phase {
        _ if is_suspended => State::Paused,
        Phase::Failed => State::Bad,
        Phase::Initialized | Phase::Succeeded | Phase::Terminated => State::Good,
        Phase::Waiting | Phase::WaitingPromotion => State::Waiting,
        _ if !waiting.is_empty() => State::Waiting,
        _ => State::Busy,
    };
    let is_running = !matches!(
        phase,
        Phase::Initialized | Phase::Succeeded | Phase::Failed | Phase::Initializing
    );
    let target = text(canary, "/spec/targetRef/name");
    let kind = match text(canary, "/spec/targetRef/kind").as_str() {
        "DaemonSet" => "DaemonSet",
        _ => "Deployment",
    };
    Row {
        namespace,
        icon: ("◭", "^"),
        title: format!("Canary/{own}"),
        name,
        state,
        word: phase.as_str().to_owned(),
        problem: failing(canary),
        progress: is_running.then_some((weight, 100)),
        info: info(canary, weight, is_running),
        next: None,
        members: vec![(kind, format!("{target}-primary")), (kind, target)],
        in_turn: false,
        waiting,
    }
}

/// What the last check that failed says.
fn failing(canary: &Value) -> String {
    let mut checks = list(canary, "/status/checks").iter();
    let failed = checks.find(|check| text(check, "/verdict") == "Failed");
    failed.map_or_else(String::new, |check| text(check, "/message"))
}

fn info(canary: &Value, weight: i64, is_running: bool) -> Vec<String> {
    let mut all = Vec::new();
    if is_running {
        all.push(format!("new version {weight}%"));
    }
    let failed = number(canary, "/status/failedChecks");
    if failed > 0 {
        let limit = number(canary, "/spec/analysis/threshold").max(1);
        let failed = usize::try_from(failed).unwrap_or_default();
        all.push(format!("{} of {limit} failed", count(failed, "check")));
    }
    let iterations = number(canary, "/spec/analysis/iterations");
    if is_running && iterations > 0 {
        let done = number(canary, "/status/iterations");
        all.push(format!("iteration {done}/{iterations}"));
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use serde_json::{Value, json};
    use slipway_kernel::capability::show::{Objects, State};

    use super::show;

    struct One(Value);

    impl Objects for One {
        fn all<'a>(&'a self, resource: &str) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
            let is_it = resource == "flagger.app/canaries";
            Box::new(is_it.then_some(&self.0).into_iter())
        }
    }

    #[test]
    fn a_running_canary_shows_its_weight_and_both_sides() {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "analysis": {"threshold": 5}},
            "status": {"phase": "Progressing", "canaryWeight": 30, "failedChecks": 1,
                "checks": [{"name": "errors", "verdict": "Failed", "message": "errors 2 is above 1"}]},
        });
        let rows = show(&One(object));
        let row = &rows[0];
        assert_eq!((row.state, row.progress), (State::Busy, Some((30, 100))));
        assert!(row.has("Deployment", "web") && row.has("Deployment", "web-primary"));
        assert_eq!(row.problem, "errors 2 is above 1");
        assert_eq!(row.info, ["new version 30%", "1 check of 5 failed"]);
        let check = &rows[1];
        assert_eq!(
            (check.state, check.title.as_str()),
            (State::Bad, "Canary/web/errors")
        );
    }

    #[test]
    fn a_closed_gate_is_a_row_while_it_keeps_somebody() {
        let waits = json!([{"reason": "RolloutGateClosed", "message": "webhook start does not approve"},
            {"reason": "RoutingPending", "message": "not yet"}]);
        let object = |phase: &str| {
            json!({
                "metadata": {"name": "web", "namespace": "shop"},
                "status": {"phase": phase, "waitingFor": waits, "checks": [{"name": "errors", "verdict": "Passed", "value": 0.5}]},
            })
        };
        let rows = show(&One(object("Waiting")));
        let shown: Vec<(&str, State)> = rows
            .iter()
            .map(|row| (row.title.as_str(), row.state))
            .collect();
        let errors = ("Canary/web/errors", State::Good);
        let gate = ("Canary/web/gate", State::Waiting);
        assert_eq!(shown, [("Canary/web", State::Waiting), errors, gate]);
        assert_eq!(rows[1].info, ["measured 0.5"]);
        assert_eq!(show(&One(object("Succeeded"))).len(), 1);
    }

    #[test]
    fn what_says_nothing_shows_as_little() {
        let rows = show(&One(json!({})));
        assert_eq!(rows[0].word, "Initializing");
        let idle = json!({"status": {"phase": "Failed"}});
        assert_eq!(show(&One(idle))[0].state, State::Bad);
        let held = json!({"spec": {"suspend": true}, "status": {"phase": "Progressing"}});
        assert_eq!(show(&One(held))[0].state, State::Paused);
    }
}
