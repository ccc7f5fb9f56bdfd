//! What each format accepts and refuses.

use super::{duration_nanos, matches};

fn all(format: &str, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(matches(format, text), "{format}: {text} should be accepted");
    }
    for text in bad {
        assert!(!matches(format, text), "{format}: {text} should be refused");
    }
}

#[test]
fn formats_accept_and_refuse() {
    all(
        "date-time",
        &["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.5+01:00"],
        &["x", "2024-01-02", "2024-13-02T03:04:05Z"],
    );
    all("date", &["2024-02-29"], &["2023-02-29", "24-1-1"]);
    all(
        "duration",
        &["1h30m", "5s", "0", "1.5h", "2 days"],
        &["x", "", "5"],
    );
    all("byte", &["YQ==", "YWJj"], &["*", ""]);
    all(
        "uri",
        &["https://a.b/c?d=e", "/path", "mailto:x"],
        &["x", "", "http://a b/"],
    );
    all(
        "email",
        &["a@b.c", "A B <a@b>"],
        &["a", "a@", "@b", "a b@c"],
    );
    all(
        "hostname",
        &["a", "example.com", "a-b.example.org"],
        &["-a", "a_b", ""],
    );
    all(
        "ipv4",
        &["1.2.3.4", "010.0.0.1"],
        &["1.2.3", "256.1.1.1", "::1"],
    );
    all("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::g"]);
    all(
        "cidr",
        &["10.0.0.0/8", "::/0"],
        &["10.0.0.0", "10.0.0.0/33"],
    );
    all(
        "mac",
        &["01:23:45:67:89:ab", "0123.4567.89ab"],
        &["01:23", "zz:23:45:67:89:ab"],
    );
    all(
        "uuid",
        &["52a7bc2f-cc6b-47c4-b367-9eeadb79fdc8"],
        &["52a7bc2f"],
    );
    all("isbn", &["0321751043", "978-0321751041"], &["0321751044"]);
    all(
        "creditcard",
        &["4111 1111 1111 1111"],
        &["4111111111111112"],
    );
    all("hexcolor", &["#fff", "FFFFFF"], &["#ff"]);
    all("rgbcolor", &["rgb(1, 20,255)"], &["rgb(1,2,300)"]);
    all("ssn", &["111-22-3333"], &["111"]);
    all("k8s-short-name", &["a-b"], &["A", "a.b"]);
    all("k8s-long-name", &["a.b-c"], &["a..b"]);
    all("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
}

#[test]
fn durations_are_measured() {
    assert_eq!(duration_nanos("1.5s"), Some(1_500_000_000));
    assert_eq!(duration_nanos("-1m"), Some(-60_000_000_000));
    assert_eq!(duration_nanos("2 days"), Some(172_800_000_000_000));
}
