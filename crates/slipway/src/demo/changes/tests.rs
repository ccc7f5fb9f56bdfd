//! Two models in, lines out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::model::{Cluster, Namespace};

fn model(state: State, word: &str, done: i64) -> Model {
    let web = Workload {
        kind: "Deployment".to_owned(),
        name: "web".to_owned(),
        state,
        word: word.to_owned(),
        progress: (done, 3),
        ..Workload::default()
    };
    let shop = Namespace {
        name: "shop".to_owned(),
        workloads: vec![web],
        ..Namespace::default()
    };
    Model {
        now: "2026-01-02T03:00:12Z".parse().unwrap(),
        clusters: vec![Cluster {
            namespaces: vec![shop],
            ..Cluster::default()
        }],
        ..Model::default()
    }
}

#[test]
fn a_rollout_is_told_step_by_step() {
    let (calm, first) = (
        model(State::Good, "3 pods", 3),
        model(State::Busy, "Rolling", 0),
    );
    assert_eq!(changes(&calm, &calm), [""; 0]);
    assert_eq!(
        changes(&calm, &first),
        ["2026-01-02T03:00:12Z Deployment shop/web is rolling: 0 of 3 pods"]
    );
    let second = model(State::Busy, "Rolling", 1);
    assert_eq!(
        changes(&first, &second),
        ["2026-01-02T03:00:12Z Deployment shop/web is rolling: 1 of 3 pods"]
    );
    assert_eq!(
        changes(&second, &calm),
        ["2026-01-02T03:00:12Z Deployment shop/web is healthy: 3 pods"]
    );
}

#[test]
fn a_wait_is_told_once_with_its_reason_and_its_end() {
    let before = model(State::Good, "3 pods", 3);
    let mut after = before.clone();
    after.clusters[0].waiting = vec![Waiting {
        since: "2026-01-02T03:00:00Z".parse().unwrap(),
        by: "Flipper shop/nightly".to_owned(),
        reason: "WindowClosed".to_owned(),
        object: "Deployment shop/web".to_owned(),
        message: "the window is closed".to_owned(),
        until: "2026-01-02T04:00:12Z".parse().ok(),
        unblock: "a window".to_owned(),
    }];
    let lines = changes(&before, &after);
    assert_eq!(
        lines,
        [
            "2026-01-02T03:00:12Z Deployment shop/web WAITS: the window is closed; until 04:00:12 (in 1h); a window \
          [WindowClosed]"
        ]
    );
    assert_eq!(changes(&after, &after), [""; 0]);
    let ended = changes(&after, &before);
    assert_eq!(
        ended,
        ["2026-01-02T03:00:12Z Deployment shop/web is no longer waiting (WindowClosed for 12s)"]
    );
}

#[test]
fn a_zone_that_is_queued_says_what_for_and_only_once() {
    let queued = |done: i64, info: &str| {
        let mut model = model(State::Waiting, "Waiting", done);
        model.clusters[0].namespaces[0].workloads[0].info = info.to_owned();
        model
    };
    let (calm, first) = (model(State::Good, "3 pods", 3), queued(0, "for zone-a"));
    assert_eq!(
        changes(&calm, &first),
        ["2026-01-02T03:00:12Z Deployment shop/web is waiting for zone-a"]
    );
    assert_eq!(changes(&first, &queued(1, "for zone-a")), [""; 0]);
    assert_eq!(
        changes(&first, &queued(0, "for zone-b")),
        ["2026-01-02T03:00:12Z Deployment shop/web is waiting for zone-b"]
    );
}
