//! `labels_test`, `delay_test` and parts of `replicas_test` and `util_test` of the original.

use std::time::Duration;

use super::*;

fn effective(text: Option<&str>, replicas: Option<i64>) -> i64 {
    text.map_or(Ok(MaxUnavailable::DEFAULT), MaxUnavailable::read)
        .unwrap_or(MaxUnavailable::DEFAULT)
        .of(replicas)
}

#[test]
fn labels_test_the_eleven_max_unavailable_parses() {
    assert_eq!(effective(None, Some(3)), 1);
    assert_eq!(effective(Some("3"), Some(3)), 3);
    for invalid in [
        "xxx", "0", "-1", "300%", "0%", "25 %", "", "%", "1.5", "+-3", "101%",
    ] {
        assert_eq!(effective(Some(invalid), Some(10)), 1, "{invalid}");
        assert!(MaxUnavailable::read(invalid).is_err(), "{invalid}");
    }
    assert_eq!(effective(Some("30%"), Some(10)), 3);
    assert_eq!(effective(Some("25%"), Some(10)), 2);
    assert_eq!(effective(Some("50%"), Some(3)), 1);
    assert_eq!(effective(Some("30%"), None), 1);
    assert_eq!(effective(Some(" +3 "), Some(10)), 3);
    assert_eq!(effective(Some("100%"), Some(7)), 7);
    assert_eq!(effective(Some("1%"), Some(0)), 1);
}

#[test]
fn replicas_test_force_replicas() {
    for (text, want) in [
        (None, None),
        (Some("5"), Some(5)),
        (Some("0"), Some(0)),
        (Some("-1"), None),
        (Some("text"), None),
        (Some(""), None),
        (Some("2147483648"), None),
    ] {
        assert_eq!(force_replicas(text), want, "{text:?}");
    }
}

#[test]
fn write_back_is_on_unless_told_otherwise() {
    assert!(write_back(None) && write_back(Some("T")));
    for off in ["false", "0", "F", "bad value", "", "yes"] {
        assert!(!write_back(Some(off)), "{off}");
    }
}

#[test]
fn only_the_group_of_an_api_version_counts() {
    assert_eq!(api_group("apps/v1"), Some("apps"));
    assert_eq!(api_group("v1"), Some(""));
    assert_eq!(api_group(""), Some(""));
    assert_eq!(api_group("a/b/c"), None);
}

#[test]
fn go_durations_know_no_days() {
    let hours = |number: u64| Ok(Duration::from_secs(number * 3600));
    assert_eq!(go_duration("12h"), hours(12));
    assert_eq!(go_duration("1h30m"), Ok(Duration::from_mins(90)));
    assert_eq!(go_duration("-5m"), Ok(Duration::ZERO));
    for wrong in ["1d", "1 h", "", "12", "h", "1w"] {
        assert!(go_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn prometheus_durations_are_whole_and_in_order() {
    for (text, seconds) in [
        ("0", 0),
        ("1h", 3600),
        ("13h", 46_800),
        ("1d", 86_400),
        ("1h0m0s", 3600),
        ("1y2w", 365 * 86_400 + 14 * 86_400),
    ] {
        assert_eq!(
            prometheus_duration(text),
            Ok(Duration::from_secs(seconds)),
            "{text}"
        );
    }
    assert_eq!(prometheus_duration("5ms"), Ok(Duration::from_millis(5)));
    for wrong in [
        "",
        "1",
        "1m1h",
        "1.5h",
        "-1h",
        "h",
        "1h1h",
        "99999999999y",
        "1 h",
    ] {
        assert!(prometheus_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn delay_test_the_host_is_replaced_and_the_port_kept() {
    let host = "sts-3.svc.ns.svc.cluster.local.";
    let url = |text| with_host(text, host);
    assert_eq!(
        url("http://pod/prepare?unset=x").unwrap(),
        "http://sts-3.svc.ns.svc.cluster.local./prepare?unset=x"
    );
    assert_eq!(
        url("http://pod:8080/prepare").unwrap(),
        "http://sts-3.svc.ns.svc.cluster.local.:8080/prepare"
    );
    assert_eq!(url("/prepare"), None);
    assert_eq!(url("http:///prepare"), None);
}

#[test]
fn util_test_fully_qualified_names_with_and_without_the_last_dot() {
    let host = |domain| pod_host("ingester-zone-a", 2, "ingester", "mimir", domain);
    assert_eq!(
        host("cluster.local."),
        "ingester-zone-a-2.ingester.mimir.svc.cluster.local."
    );
    assert_eq!(
        host("cluster.local"),
        "ingester-zone-a-2.ingester.mimir.svc.cluster.local"
    );
}
