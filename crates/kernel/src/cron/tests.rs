#![allow(clippy::unwrap_used, reason = "tests")]

use jiff::Timestamp;

use super::{Cron, zone};

fn next(cron: &str, from: &str, place: &str) -> String {
    let from: Timestamp = from.parse().unwrap();
    let zone = zone(Some(place)).unwrap();
    let found = Cron::parse(cron).unwrap().next_after(from, &zone);
    found.unwrap().to_string()
}

#[test]
fn times_come_in_order_and_after() {
    for (cron, from, expected) in [
        ("0 3 * * *", "2026-03-04T03:00:00Z", "2026-03-05T03:00:00Z"),
        (
            "0 3 * * *",
            "2026-03-04T02:59:59.9Z",
            "2026-03-04T03:00:00Z",
        ),
        (
            "*/15 * * * *",
            "2026-03-04T12:00:00Z",
            "2026-03-04T12:15:00Z",
        ),
        (
            "5-10/5,59 * * * *",
            "2026-03-04T12:10:00Z",
            "2026-03-04T12:59:00Z",
        ),
        (
            "10/20 * * * *",
            "2026-03-04T12:30:00Z",
            "2026-03-04T12:50:00Z",
        ),
        (
            "0 0 1 jan *",
            "2026-03-04T12:00:00Z",
            "2027-01-01T00:00:00Z",
        ),
        (
            "0 9 * * MON-FRI",
            "2026-03-06T10:00:00Z",
            "2026-03-09T09:00:00Z",
        ),
        ("0 0 * * 7", "2026-03-04T00:00:00Z", "2026-03-08T00:00:00Z"),
        ("0 0 * * 0", "2026-03-04T00:00:00Z", "2026-03-08T00:00:00Z"),
        ("0 0 29 2 *", "2026-03-04T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 0 31 * *", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"),
        ("@hourly", "2026-03-04T12:00:00Z", "2026-03-04T13:00:00Z"),
        ("@daily", "2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z"),
        ("@weekly", "2026-03-04T12:00:00Z", "2026-03-08T00:00:00Z"),
        ("@monthly", "2026-03-04T12:00:00Z", "2026-04-01T00:00:00Z"),
        ("@yearly", "2026-03-04T12:00:00Z", "2027-01-01T00:00:00Z"),
    ] {
        assert_eq!(next(cron, from, "UTC"), expected, "{cron} after {from}");
    }
}

#[test]
fn either_day_fits_where_both_are_restricted() {
    // The 13th, or any Friday.
    let from = "2026-03-07T00:00:00Z";
    assert_eq!(next("0 0 15 * FRI", from, "UTC"), "2026-03-13T00:00:00Z");
    let from = "2026-03-13T00:00:00Z";
    assert_eq!(next("0 0 15 * FRI", from, "UTC"), "2026-03-15T00:00:00Z");
    // A plain star restricts nothing.
    assert_eq!(next("0 0 * * FRI", from, "UTC"), "2026-03-20T00:00:00Z");
    assert_eq!(next("0 0 15 * ?", from, "UTC"), "2026-03-15T00:00:00Z");
}

#[test]
fn clocks_that_change() {
    let berlin = "Europe/Berlin";
    // 02:30 does not exist on 29 March: it is the moment of the change, and the next day it is itself again.
    let skipped = next("30 2 * * *", "2026-03-28T12:00:00Z", berlin);
    assert_eq!(skipped, "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", &skipped, berlin), "2026-03-30T00:30:00Z");
    // 02:30 is twice on 25 October: once is enough.
    let repeated = next("30 2 * * *", "2026-10-24T12:00:00Z", berlin);
    assert_eq!(repeated, "2026-10-25T00:30:00Z");
    assert_eq!(
        next("30 2 * * *", &repeated, berlin),
        "2026-10-26T01:30:00Z"
    );
    // From within the second of the two hours.
    assert_eq!(
        next("45 2 * * *", "2026-10-25T01:30:00Z", berlin),
        "2026-10-26T01:45:00Z"
    );
}

#[test]
fn times_never_run_backwards_through_a_year() {
    for place in [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
    ] {
        let zone = zone(Some(place)).unwrap();
        let cron = Cron::parse("*/20 1-3 * * *").unwrap();
        let mut at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for _ in 0..3_200 {
            let next = cron.next_after(at, &zone).unwrap();
            assert!(next > at, "{place} at {at}");
            at = next;
        }
    }
}

#[test]
fn what_is_no_cron_is_told_why() {
    for (text, problem) in [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("60 * * * *", "out of range"),
        ("* 24 * * *", "out of range"),
        ("* * 0 * *", "out of range"),
        ("* * * 13 *", "out of range"),
        ("* * * * 8", "out of range"),
        ("*/0 * * * *", "step of zero"),
        ("5-1 * * * *", "ends before"),
        ("a * * * *", "neither"),
        ("-1 * * * *", "neither"),
        ("1, * * * *", "neither"),
        ("99999999999 * * * *", "neither"),
        ("mon * * * *", "neither"),
        ("0 0 30 2 *", "never"),
        ("0 0 31 4,6 *", "never"),
        ("@often", "five fields"),
        ("TZ=UTC 0 0 * * *", "five fields"),
    ] {
        let error = Cron::parse(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text:?}: {error}");
    }
    assert!(zone(Some("Europe/Atlantis")).is_err());
    assert!(zone(Some("../../etc/passwd")).is_err());
}
