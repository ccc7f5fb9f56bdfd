//! `kernel` and `runtime` serve any capability: they name none, and no product that one of them takes the place of.
//! What such a product is known by (names of metrics, headers, certificates, log lines) is a value of the capability or
//! of the drop-in command.

use std::path::Path;

use crate::code::{is_test, production};
use crate::{listed, root};

/// Names of products and of what is theirs, in lower case.
const PRODUCTS: &[&str] = &[
    "flagger",
    "flipper",
    "grafana",
    "loki",
    "mimir",
    "rollout-controller",
    "rollout-operator",
    "rollout_controller",
    "rollout_operator",
    "zpdb",
];

/// Names of capabilities, where they would be used.
const CAPABILITIES: &[&str] = &[
    "\"canary\"",
    "\"restarts\"",
    "\"zones\"",
    "slipway_api::flipper",
    "slipway_api::zones",
    "slipway_canary",
    "slipway_restarts",
    "slipway_zones",
];

/// What a line names that it should not.
fn named(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let mut all = PRODUCTS.iter().chain(CAPABILITIES);
    all.find(|name| lower.contains(**name)).copied()
}

#[test]
fn shared_crates_name_no_product_and_no_capability() {
    let mut wrong = Vec::new();
    for file in listed(&["crates/kernel/src/*.rs", "crates/runtime/src/*.rs"]) {
        if is_test(Path::new(&file)) {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        for (number, line) in production(&text) {
            wrong.extend(named(line).map(|name| format!("{file}:{number}: {name}")));
        }
    }
    assert!(
        wrong.is_empty(),
        "take it as a value from the capability or the drop-in: {wrong:#?}"
    );
}

#[test]
fn names_are_found() {
    for (line, is_wrong) in [
        ("const NAME: &str = \"rollout_operator_requests\";", true),
        ("/// As Grafana's operator does.", true),
        ("    kinds::FLIPPER,", true),
        ("use slipway_api::zones;", true),
        ("let zone = tail.strip_prefix('.');", false),
        ("/// Restarts of the process.", false),
    ] {
        assert_eq!(named(line).is_some(), is_wrong, "{line}");
    }
}
