//! What the bench prints: ours, the real server's, how they compare, and what was asked for.

use serde_json::Value;
use slipway_e2e::figures::{self, Goal, Row, mega, milli};
use slipway_e2e::suite::say;

use crate::inside::Figures;
use crate::load::Rate;
use crate::{Measurement, SERVER, objects};

/// Who asks is no limit below this part of its processor.
const BUSY: f64 = 0.9;

/// Prints all of it, and gives the rows.
pub(crate) fn print(
    inside: &Figures,
    ours: &Measurement,
    real: Option<&Measurement>,
    count: usize,
) -> Vec<Row> {
    say(&format!(
        "\n{}",
        figures::title("the API server", "kube-apiserver")
    ));
    let mut rows = over_https(ours, real, count);
    rows.extend(in_process(inside));
    for row in &rows {
        say(&row.line());
    }
    say(&format!(
        "\nserver on processor {SERVER}; who asks on the other one, and etcd on whichever is free"
    ));
    let size = |template: objects::Template| template.named("object-000000").len();
    say(&format!(
        "as sent: ConfigMap {} bytes, Pod {}, the small ConfigMap of requests and watches {}; HTTPS: 32 connections; watches: \
         1,000 on 20 connections of HTTP/2",
        size(objects::config_map()),
        size(objects::pod()),
        size(objects::small())
    ));
    for (name, of) in [("slipway", Some(ours)), ("kube-apiserver", real)] {
        let Some(of) = of else { continue };
        for (what, rate) in [("GET", &of.get), ("POST", &of.post)] {
            let note = if rate.asker > BUSY {
                ": it was the limit"
            } else {
                ""
            };
            say(&format!(
                "{name} {what}: who asked needed {:.0} % of its processor{note}",
                rate.asker * 100.0
            ));
        }
    }
    rows
}

fn over_https(ours: &Measurement, real: Option<&Measurement>, count: usize) -> Vec<Row> {
    let mut all = Vec::new();
    let mut both = |name: &str, unit, of: &dyn Fn(&Measurement) -> f64, goal| {
        all.push(Row {
            name: name.to_owned(),
            unit,
            ours: Some(of(ours)),
            theirs: real.map(of),
            earlier: None,
            goal,
        });
    };
    both(
        "start to first answer",
        "ms",
        &|of| milli(of.first),
        Goal::Most(50.0),
    );
    for (what, rate) in [
        ("GET", (|of| &of.get) as fn(&Measurement) -> &Rate),
        ("POST", |of| &of.post),
    ] {
        let name = format!("{what} over HTTPS");
        both(&name, "/s", &|of| rate(of).a_second, Goal::Times(3.0));
        let each = |of: &Measurement| milli(rate(of).each) * 1e3;
        both(
            "  the server's processor time for one",
            "µs",
            &each,
            Goal::None,
        );
        both("  p50", "ms", &|of| milli(rate(of).p50), Goal::None);
        both("  p99", "ms", &|of| milli(rate(of).p99), Goal::None);
    }
    both(
        "written to seen by 1,000 watches, p50",
        "ms",
        &|of| milli(of.fan.p50),
        Goal::None,
    );
    both(
        "  slowest",
        "ms",
        &|of| milli(of.fan.most),
        Goal::Most(100.0),
    );
    both(
        &format!("list of {count} ConfigMaps"),
        "ms",
        &|of| milli(of.list.took),
        Goal::None,
    );
    both(
        "  its size",
        "MB",
        &|of| mega(of.list.bytes as u64),
        Goal::None,
    );
    let most = Goal::Most(f64::from(1 << 30) / 1e6);
    both(
        &format!("memory with {count} ConfigMaps"),
        "MB",
        &|of| mega(of.full),
        most,
    );
    both(
        "  most, while they were listed",
        "MB",
        &|of| mega(of.most),
        Goal::None,
    );
    both(
        "  each ConfigMap",
        "KB",
        &|of| mega(of.map) * 1e3,
        Goal::None,
    );
    both("  each Pod", "KB", &|of| mega(of.pod) * 1e3, Goal::None);
    both(
        "memory of a cluster in a process of its own",
        "MB",
        &|of| mega(of.idle),
        Goal::None,
    );

    all
}

/// What nobody else has: name, unit, where it is among the figures, in how many of the unit it was measured, goal.
const IN_PROCESS: [(&str, &str, &str, f64, Goal); 15] = [
    ("in process: GET", "/s", "get", 1.0, Goal::Least(20_000.0)),
    (
        "  processor time for one",
        "µs",
        "get_each",
        1.0,
        Goal::None,
    ),
    ("in process: POST", "/s", "post", 1.0, Goal::Least(20_000.0)),
    (
        "  processor time for one",
        "µs",
        "post_each",
        1.0,
        Goal::None,
    ),
    (
        "in process: seen by 1,000 watches, p50",
        "ms",
        "fan_p50",
        1.0,
        Goal::None,
    ),
    ("  slowest", "ms", "fan_most", 1.0, Goal::Most(100.0)),
    ("in process: list", "ms", "list", 1.0, Goal::None),
    (
        "in process: each ConfigMap",
        "KB",
        "object",
        1e-3,
        Goal::None,
    ),
    (
        "in process: one more cluster",
        "KB",
        "cluster",
        1e-3,
        Goal::Most(50.0),
    ),
    ("  time to make it", "ms", "cluster_time", 1.0, Goal::None),
    (
        "in process: three large definitions, as sent",
        "KB",
        "definitions",
        1e-3,
        Goal::None,
    ),
    (
        "  the first cluster with them and their objects",
        "KB",
        "definitions_first",
        1e-3,
        Goal::None,
    ),
    (
        "  one more cluster with three definitions",
        "KB",
        "definitions_more",
        1e-3,
        Goal::Most(100.0),
    ),
    (
        "  time to make it",
        "ms",
        "definitions_time",
        1.0,
        Goal::None,
    ),
    (
        "  the fastest",
        "ms",
        "definitions_fastest",
        1.0,
        Goal::None,
    ),
];

fn in_process(inside: &Figures) -> Vec<Row> {
    let measured = |key: &str| inside.get(key).and_then(Value::as_f64);
    let rows = IN_PROCESS.into_iter();
    rows.map(|(name, unit, key, scale, goal)| Row {
        name: name.to_owned(),
        unit,
        ours: measured(key).map(|value| value * scale),
        theirs: None,
        earlier: None,
        goal,
    })
    .collect()
}
