#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use super::*;

#[test]
fn subdomains_are_judged_in_the_apis_words() {
    assert!(dns_subdomain("a.b-c.0", false).is_empty());
    assert_eq!(
        dns_subdomain("A", false),
        [
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(dns_subdomain("", false).len(), 1);
    assert_eq!(dns_subdomain("a..b", false).len(), 1);
    assert_eq!(dns_subdomain("a-", false).len(), 1);
    assert_eq!(
        dns_subdomain(&"a".repeat(254), false),
        ["must be no more than 253 characters"]
    );
}

#[test]
fn a_prefix_may_end_with_a_dash() {
    assert!(dns_subdomain("web-", true).is_empty());
    assert!(dns_label("web-", true).is_empty());
    assert!(!dns_label("-", true).is_empty());
    // Two characters go, one comes: 64 bytes pass as a prefix.
    assert!(dns_label(&format!("{}-", "a".repeat(63)), true).is_empty());
}

#[test]
fn labels_say_when_only_the_dots_are_wrong() {
    assert_eq!(dns_label("a.b", false), ["must not contain dots"]);
    assert!(dns_label("1a", false).is_empty());
    assert!(service_name("1a", false).is_empty());
    assert!(dns_1035_label("1a", false)[0].starts_with("a DNS-1035 label must consist of"));
}

#[test]
fn path_segments() {
    assert!(path_segment("system:node", false).is_empty());
    assert_eq!(path_segment(".", false), ["may not be '.'"]);
    assert!(path_segment(".", true).is_empty());
    assert_eq!(
        path_segment("a/b%", false),
        ["may not contain '/'", "may not contain '%'"]
    );
}

#[test]
fn label_keys() {
    assert!(label_key("app.kubernetes.io/name").is_empty());
    assert!(label_key("A_b").is_empty());
    assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
    assert_eq!(label_key("a/")[0], "name part must be non-empty");
    assert_eq!(label_key("a/").len(), 2);
    assert!(label_key("A/b")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
    assert!(label_key("a/b/c")[0].starts_with("a valid label key must consist of"));
    assert_eq!(
        label_key(&"a".repeat(64)),
        ["name part must be no more than 63 bytes"]
    );
    assert!(annotation_key("Example.COM/Key").is_empty());
}

#[test]
fn label_values() {
    assert!(label_value("").is_empty());
    assert!(label_value("a.b_C-1").is_empty());
    assert_eq!(label_value("a b").len(), 1);
    assert_eq!(
        label_value(&"a".repeat(64)),
        ["must be no more than 63 bytes"]
    );
}

#[test]
fn finalizers_of_built_in_kinds_are_qualified() {
    assert!(standard_finalizer("foregroundDeletion").is_empty());
    assert!(standard_finalizer("example.com/x").is_empty());
    assert_eq!(standard_finalizer("x").len(), 1);
}

#[test]
fn config_keys_do_not_climb() {
    assert!(config_map_key("a.b_c-D").is_empty());
    assert_eq!(config_map_key(".."), ["must not be '..'"]);
    assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
    assert_eq!(config_map_key("a b").len(), 1);
    assert_eq!(config_map_key("").len(), 1);
}

#[test]
fn environment_variables() {
    assert!(env_var_name("MY.ENV-x").is_empty());
    assert_eq!(env_var_name("1a").len(), 1);
    assert!(relaxed_env_var_name("1a b").is_empty());
    assert_eq!(relaxed_env_var_name("a=b").len(), 1);
    assert_eq!(
        relaxed_env_var_name(""),
        ["environment variable name must be non-empty"]
    );
    assert!(c_identifier("_a1").is_empty());
    assert_eq!(c_identifier("1a").len(), 1);
}

#[test]
fn ports() {
    assert!(port_name("http-2").is_empty());
    assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
    assert_eq!(port_name("-a--b").len(), 2);
    assert_eq!(port_name("").len(), 2);
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
}

#[test]
fn addresses() {
    assert!(ip("10.0.0.1").is_empty());
    assert!(ip("2001:db8::1").is_empty());
    assert_eq!(ip("010.0.0.1"), ["must not have leading 0s"]);
    assert_eq!(
        ip("::ffff:1.2.3.4"),
        ["must not be an IPv4-mapped IPv6 address"]
    );
    assert_eq!(
        ip("2001:DB8::1"),
        ["must be in canonical form (\"2001:db8::1\")"]
    );
    assert_eq!(
        ip("x"),
        ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    );
    assert!(ip_sloppy("010.0.0.1").is_empty());
    assert_eq!(
        ip_warnings("spec.clusterIP", "010.0.0.1"),
        ["spec.clusterIP: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""]
    );
}

#[test]
fn networks() {
    assert!(cidr("10.0.0.0/8").is_empty());
    assert!(cidr("::/0").is_empty());
    assert_eq!(
        cidr("10.0.0.1/8"),
        ["must not have bits set beyond the prefix length"]
    );
    assert_eq!(
        cidr("10.0.0.0/08"),
        ["must not have leading 0s in IP or prefix length"]
    );
    assert_eq!(cidr("10.0.0.0/33").len(), 1);
    assert_eq!(
        cidr_warnings("p", "10.0.0.1/8"),
        [
            "p: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
        ]
    );
}

#[test]
fn percents_and_reasons() {
    assert!(percent("25%").is_empty());
    assert_eq!(percent("%").len(), 1);
    assert_eq!(percent("25").len(), 1);
    assert!(condition_reason("A").is_empty());
    assert_eq!(condition_reason("A:").len(), 1);
}
