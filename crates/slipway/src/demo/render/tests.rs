//! The picture, held against what it should be.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use jiff::Timestamp;

use super::*;
use crate::demo::model::Pace;
use crate::model::{Cluster, Namespace, Pod, Revision, Row, State, Told, Workload};

const PLAIN: Style = Style {
    color: false,
    ascii: false,
};

fn at(time: &str) -> Timestamp {
    format!("2026-01-02T{time}Z").parse().unwrap()
}

fn pod(name: &str, state: State, word: &str) -> Pod {
    Pod {
        name: name.to_owned(),
        state,
        word: word.to_owned(),
        restarts: if state == State::Warning { 4 } else { 0 },
        created: Some(at("03:00:02")),
    }
}

fn workload(name: &str, state: State, word: &str) -> Workload {
    Workload {
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
        state,
        word: word.to_owned(),
        progress: (1, 3),
        info: String::new(),
        restarted: Some(at("03:00:00")),
        revisions: vec![
            Revision {
                name: format!("{name}-7d9f"),
                number: 2,
                pods: vec![
                    pod(&format!("{name}-7d9f-a"), State::Good, "Running"),
                    pod(&format!("{name}-7d9f-b"), State::Busy, "Starting"),
                ],
            },
            Revision {
                name: format!("{name}-6c4b"),
                number: 1,
                pods: vec![
                    pod("x", State::Good, "Running"),
                    pod("y", State::Good, "Running"),
                ],
            },
        ],
    }
}

fn model() -> Model {
    let shop = Namespace {
        name: "shop".to_owned(),
        rows: vec![Row {
            icon: ("⟳", "@"),
            title: "Flipper/nightly".to_owned(),
            state: State::Busy,
            word: "Restarting".to_owned(),
            info: ["at 0 3 * * *", "1 rolling", "1 due"]
                .map(str::to_owned)
                .to_vec(),
            next: Some("2026-01-03T03:00:00Z".parse().unwrap()),
            ..Row::default()
        }],
        workloads: vec![
            workload("api", State::Good, "3 pods"),
            workload("web", State::Busy, "Rolling"),
        ],
    };
    Model {
        now: at("03:00:12"),
        began: at("00:00:00"),
        pace: Pace {
            speed: 20.0,
            ..Pace::default()
        },
        scenario: "nightly-restart".to_owned(),
        about: "Every night at three the shop is restarted, one workload at a time.".to_owned(),
        seed: 7,
        kubeconfig: "/tmp/slipway-demo-1/kubeconfig".to_owned(),
        clusters: vec![Cluster {
            name: "hub".to_owned(),
            nodes: (3, 3),
            namespaces: vec![shop],
            waiting: vec![Waiting {
                since: at("03:00:00"),
                by: "Flipper shop/nightly".to_owned(),
                reason: "MaxConcurrent".to_owned(),
                object: "Deployment shop/search".to_owned(),
                message: "1 of 1 is rolling".to_owned(),
                until: None,
                unblock: "the end of the rollout of shop/web".to_owned(),
            }],
            events: vec![Told {
                at: at("03:00:00"),
                about: "Deployment shop/web".to_owned(),
                reason: "RestartTriggered".to_owned(),
                note: "restarted\u{1b}[2J by shop/nightly".to_owned(),
                warning: false,
                count: 1,
            }],
        }],
        next_action: Some((at("06:00:00"), "ana deploys web".to_owned())),
        ..Model::default()
    }
}

fn picture(model: &Model, width: usize, style: Style) -> String {
    let lines = render(model, width, style);
    let text: Vec<String> = lines
        .iter()
        .map(|line| line.paint(style).trim_end().to_owned())
        .collect();
    text.join("\n") + "\n"
}

#[test]
fn a_restart_in_the_middle() {
    insta::assert_snapshot!(picture(&model(), 100, PLAIN));
}

#[test]
fn in_ascii_nothing_else_is_drawn() {
    let style = Style {
        ascii: true,
        ..PLAIN
    };
    let text = picture(&model(), 100, style);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn clusters_stand_beside_each_other_and_what_is_told_names_its_own() {
    let mut model = model();
    let mut east = model.clusters[0].clone();
    east.name = "east".to_owned();
    east.nodes = (2, 3);
    model.clusters.push(east);
    let text = picture(&model, 100, PLAIN);
    let roots: Vec<&str> = text.lines().filter(|line| line.starts_with('⎈')).collect();
    assert_eq!(roots.len(), 2, "{text}");
    assert!(roots[0].starts_with("⎈ hub") && roots[1].starts_with("⎈ east"));
    assert!(roots[1].contains("2/3 nodes"), "{text}");
    for line in ["RestartTriggered  hub ", "RestartTriggered  east "] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("east Deployment shop/search"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_screen_and_no_message_moves_the_cursor() {
    for width in [1, 20, 40, 80, 200] {
        for line in render(&model(), width, PLAIN) {
            assert!(line.width() <= width, "{width}: {line:?}");
            assert!(!line.paint(PLAIN).contains('\u{1b}'));
        }
    }
}

#[test]
fn eighty_columns_show_name_status_and_progress() {
    let text = picture(&model(), 80, PLAIN);
    let line = text
        .lines()
        .find(|line| line.contains("Deployment/web "))
        .unwrap();
    assert!(line.contains("◌ Rolling") && line.contains("██░"), "{line}");
}

#[test]
fn what_is_well_is_folded_when_there_is_much_of_it() {
    let mut model = model();
    let shop = &mut model.clusters[0].namespaces[0];
    shop.workloads = (0..40)
        .map(|n| workload(&format!("w{n:02}"), State::Good, "3 pods"))
        .collect();
    shop.workloads
        .push(workload("sick", State::Warning, "CrashLoopBackOff"));
    let text = picture(&model, 100, PLAIN);
    assert!(text.contains("▣ 40 workloads"), "{text}");
    assert!(text.contains("⚠ CrashLoopBackOff"), "{text}");
    assert!(!text.contains("w07"), "{text}");
}

#[test]
fn a_pause_and_the_oracles_are_shown() {
    let mut model = model();
    model.pace.paused = true;
    let verdict = |oracle: &str, checked, violations: &[&str]| Verdict {
        oracle: oracle.to_owned(),
        what: "one restart an interval".to_owned(),
        checked,
        violations: violations.iter().map(|&text| text.to_owned()).collect(),
    };
    model.verdicts = vec![
        verdict("R1", 6, &[]),
        verdict("R2", 0, &[]),
        verdict("R3", 4, &["03:00:01 2 were rolling"]),
    ];
    let text = picture(&model, 100, PLAIN);
    assert!(text.lines().next().unwrap().contains("paused"));
    let oracles = text.split("ORACLE").nth(1).unwrap();
    let want = "  RESULT       CHECKS  RULE\n\
        R1      ✔ holds      6       one restart an interval\n\
        R3      ✖ VIOLATED   4       one restart an interval\n        03:00:01 2 were rolling\n";
    assert_eq!(oracles, want);
}

#[test]
fn a_small_window_keeps_what_matters() {
    let mut model = model();
    model.verdicts = vec![Verdict {
        oracle: "R1".to_owned(),
        what: "one restart an interval".to_owned(),
        checked: 1,
        violations: Vec::new(),
    }];
    let all = render(&model, 80, PLAIN);
    assert_eq!(fit(all.clone(), all.len()), all);
    for height in [1, 2, 5, 10, 16] {
        assert_eq!(fit(all.clone(), height).len(), height);
    }
    let text = |height: usize| -> Vec<String> {
        fit(all.clone(), height)
            .iter()
            .map(|line| line.paint(PLAIN))
            .collect()
    };
    // First go the words about the scenario and the oracles that hold, then empty lines, then the oldest events.
    assert!(
        text(20)
            .iter()
            .all(|line| !line.contains("Every night") && !line.contains("R1")),
        "{:#?}",
        text(20)
    );
    let few = text(12);
    assert!(
        few.iter().any(|line| line.contains("Deployment/web")),
        "{few:#?}"
    );
    assert!(
        few.iter().any(|line| line.starts_with("WAITING")),
        "{few:#?}"
    );
    let fewer = text(8);
    assert!(
        fewer[0].starts_with("slipway demo") && fewer[7].contains("lines more"),
        "{fewer:#?}"
    );
}

#[test]
fn zones_stand_below_their_group() {
    let mut model = model();
    let shop = model.clusters[0].namespaces.first_mut().unwrap();
    let mut zone = workload("zone-a", State::Warning, "CrashLoopBackOff");
    zone.kind = "StatefulSet".to_owned();
    shop.workloads.push(zone);
    shop.rows.push(Row {
        icon: ("⧈", "&"),
        title: "group/db".to_owned(),
        state: State::Busy,
        word: "RollingOut".to_owned(),
        progress: Some((1, 6)),
        info: ["3 zones", "5 pods to be replaced"]
            .map(str::to_owned)
            .to_vec(),
        members: vec![("StatefulSet", "zone-a".to_owned())],
        ..Row::default()
    });
    let lines: Vec<String> = render(&model, 120, PLAIN)
        .iter()
        .map(|line| line.paint(PLAIN))
        .collect();
    let at = lines
        .iter()
        .position(|line| line.contains("group/db"))
        .unwrap();
    assert!(lines[at].contains("RollingOut") && lines[at].contains("5 pods to be replaced"));
    assert!(
        lines[at + 1].contains("─ ▥ StatefulSet/zone-a"),
        "{}",
        lines[at + 1]
    );
    assert!(lines[at + 1].contains("CrashLoopBackOff"));
    let named = lines
        .iter()
        .filter(|line| line.contains("StatefulSet/zone-a"));
    assert_eq!(named.count(), 1, "it is not shown twice");
}

/// Names that differ only at their ends, or only in their middles, do not look alike where there is little room.
#[test]
fn eighty_columns_tell_long_names_apart() {
    for names in [
        ["mimir-prod-ingester-zone-a", "mimir-prod-ingester-zone-b"],
        [
            "mimir-eu-west-store-gateway-headless",
            "mimir-us-west-store-gateway-headless",
        ],
    ] {
        let mut model = model();
        let shop = &mut model.clusters[0].namespaces[0];
        shop.workloads = names
            .iter()
            .map(|name| workload(name, State::Good, "3 pods"))
            .collect();
        for width in [80, 100] {
            let text = picture(&model, width, PLAIN);
            let shown: Vec<&str> = text
                .lines()
                .filter(|line| line.contains("3 pods"))
                .map(|line| line.split_once('▣').unwrap().1.split('✔').next().unwrap())
                .collect();
            assert_eq!(shown.len(), 2, "{text}");
            assert_ne!(shown[0], shown[1], "{width} columns: {text}");
        }
    }
}

#[test]
fn a_zone_that_waits_says_at_eighty_columns_what_for() {
    let mut model = model();
    let shop = model.clusters[0].namespaces.first_mut().unwrap();
    let mut zone = workload("ingester-zone-b", State::Waiting, "Waiting");
    zone.kind = "StatefulSet".to_owned();
    zone.info = "for ingester-zone-a".to_owned();
    shop.workloads.push(zone);
    let text = picture(&model, 80, PLAIN);
    let line = text.lines().find(|line| line.contains("-zone-b")).unwrap();
    assert!(line.contains("◷ Waiting "), "{line}");
    assert!(line.ends_with(" for ingester-zone-a"), "{line}");
}
