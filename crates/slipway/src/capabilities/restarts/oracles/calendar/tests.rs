//! The oracles' calendar and the planner's are written apart, and say the same.
#![allow(clippy::unwrap_used, reason = "tests")]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use slipway_kernel::cron::{Cron, Schedule, zone};
use slipway_kernel::window;

use super::{Hours, Times};

const CRONS: &[&str] = &[
    "0 2 * * *",
    "0,30 * * * *",
    "*/7 8-17 * * mon-fri",
    "15 3 1,15 * 2",
    "5/20 22 * jan,FEB *",
    "@weekly",
    "@hourly",
    "0 0 * * 7",
];

const ZONES: &[&str] = &["UTC", "Asia/Tokyo", "America/St_Johns", "Asia/Kathmandu"];

/// Moments of three weeks in winter, none of them at a round time only.
fn moments() -> impl Iterator<Item = Timestamp> {
    let start: Timestamp = "2026-01-05T00:00:00Z".parse().unwrap();
    (0..3_000_i64).map(move |n| start + SignedDuration::from_secs(n * 607))
}

fn both(cron: &str, place: &str) -> (Times, Schedule) {
    let own = Times::read(&json!({"cron": cron, "timeZone": place})).unwrap();
    let schedule = Schedule {
        cron: Cron::parse(cron).unwrap(),
        zone: zone(Some(place)).unwrap(),
    };
    (own, schedule)
}

#[test]
fn times_are_those_of_the_planner() {
    for cron in CRONS {
        for place in ZONES {
            let (own, schedule) = both(cron, place);
            for at in moments().step_by(5) {
                let from = at - SignedDuration::from_hours(5);
                let next = schedule.next_after(from).unwrap();
                assert_eq!(own.has_between(from, at), next <= at, "{cron} {place} {at}");
            }
        }
    }
}

#[test]
fn hours_are_those_of_the_planner() {
    let excluded = ["2026-01-08", "2026-01-12"];
    for cron in CRONS {
        for place in ZONES {
            let (_, opens) = both(cron, place);
            let lasts = std::time::Duration::from_mins(95);
            let theirs = window::Calendar {
                windows: vec![window::Window {
                    opens,
                    duration: lasts,
                }],
                excluded: excluded.iter().map(|date| date.parse().unwrap()).collect(),
                zone: None,
            };
            let spec: Value = json!({"excludeDates": excluded,
                "windows": [{"cron": cron, "timeZone": place, "duration": "95m"}]});
            let own = Hours::read(&spec, None);
            for at in moments().step_by(3) {
                let hours = theirs.at(at);
                let is_closed = matches!(hours, window::Hours::Closed(_));
                let is_excluded = matches!(hours, window::Hours::Excluded(_));
                assert_eq!(own.is_open(at), !is_closed, "{cron} {place} {at}");
                assert_eq!(own.is_free(at), !is_excluded, "{cron} {place} {at}");
            }
        }
    }
}

#[test]
fn where_clocks_change_nothing_is_judged() {
    let berlin = Times::read(&json!({"cron": "0 2 * * *", "timeZone": "Europe/Berlin"})).unwrap();
    for (at, is_unsteady) in [
        ("2026-01-12T01:00:00Z", false),
        ("2026-03-29T01:00:00Z", true),
        ("2026-10-25T12:00:00Z", true),
    ] {
        assert_eq!(berlin.is_unsteady(at.parse().unwrap()), is_unsteady, "{at}");
    }
}

#[test]
fn what_is_no_time_is_none() {
    for cron in [
        "61 1 * * *",
        "1 1 * *",
        "1 1 0 * *",
        "*/0 * * * *",
        "a * * * *",
    ] {
        assert!(Times::read(&json!({"cron": cron})).is_none(), "{cron}");
    }
}
