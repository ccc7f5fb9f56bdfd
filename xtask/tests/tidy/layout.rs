//! `crates/slipway/layout.txt` names functions in a way that lasts, each once, and of crates that are there.

use std::collections::BTreeSet;

use crate::{listed, root};

/// What is wrong with a list of functions, where these crates are ours.
fn complaints(list: &str, crates: &BTreeSet<String>) -> Vec<String> {
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for name in list.lines() {
        if !known.insert(name) {
            all.push(format!("{name}: twice"));
        }
        let lasts = name.starts_with("_R") && name.contains("Cs*_");
        if !lasts {
            all.push(format!(
                "{name}: changes with a compiler, or is not mangled"
            ));
        }
        for ours in ours_in(name) {
            if !crates.contains(ours) {
                all.push(format!("{name}: there is no crate {ours}"));
            }
        }
    }
    all
}

/// The crates of ours that a name speaks of: `Cs*_15slipway_runtime`.
fn ours_in(name: &str) -> impl Iterator<Item = &str> {
    name.split("Cs*_").skip(1).filter_map(|rest| {
        let digits = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let length: usize = rest[..rest.len() - digits.len()].parse().ok()?;
        digits
            .get(..length)
            .filter(|name| name.starts_with("slipway"))
    })
}

fn crates() -> BTreeSet<String> {
    listed(&["crates/*/Cargo.toml"])
        .iter()
        .filter_map(|path| path.split('/').nth(1))
        .map(|folder| match folder {
            "slipway" => folder.to_owned(),
            other => format!("slipway_{other}"),
        })
        .collect()
}

#[test]
fn what_lies_together_is_there_and_its_names_last() {
    let list = std::fs::read_to_string(root().join("crates/slipway/layout.txt")).unwrap();
    assert_eq!(complaints(&list, &crates()), Vec::<String>::new());
    // Fewer would be no operator: `cargo xtask layout` did not see one at work.
    assert!(list.lines().count() > 1_000);
}

#[test]
fn a_name_that_does_not_last_is_found() {
    let crates = BTreeSet::from(["slipway_kernel".to_owned()]);
    let found = |list: &str| !complaints(list, &crates).is_empty();
    assert!(!found("_RNvCs*_14slipway_kernel3run\n"));
    assert!(found("_RNvCs*_12slipway_gone3run\n"));
    assert!(found("_RNvCs4fqI2P2rA04_14slipway_kernel3run\n"));
    assert!(found("_ZN14slipway_kernel3run17h0123456789abcdefE\n"));
    assert!(found("_RNvCs*_3one\n_RNvCs*_3one\n"));
    assert!(found("_RNvCs*_3two\n_ZN3std4park17h*E\n"));
}
