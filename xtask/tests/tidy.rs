//! The workspace's own rules, as tests: crate arrows, the files of a capability, file sizes, copies, names of products,
//! references, claims, figures, the gate, the layout, recordings, generated files, README commands, forbidden marks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/claims.rs"]
mod claims;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/copies.rs"]
mod copies;
#[path = "tidy/figures.rs"]
mod figures;
#[path = "tidy/gate.rs"]
mod gate;
#[path = "tidy/layout.rs"]
mod layout;
#[path = "tidy/products.rs"]
mod products;
#[path = "tidy/recordings.rs"]
mod recordings;
#[path = "tidy/references.rs"]
mod references;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/sizes.rs"]
mod sizes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use code::is_test;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Files that git knows, from the root.
fn listed(patterns: &[&str]) -> Vec<String> {
    let output = Command::new("git")
        .arg("ls-files")
        .args(patterns)
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let files: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(!files.is_empty(), "git lists no {patterns:?}");
    files
        .into_iter()
        .filter(|file| root().join(file).is_file())
        .collect()
}

fn sources() -> Vec<PathBuf> {
    let files = listed(&["*.rs"]).into_iter();
    files.map(|file| root().join(file)).collect()
}

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether a text is a day: `2026-11-17`.
fn is_day(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('-').collect();
    let is_of = |number: &str, digits: usize| {
        number.len() == digits && number.chars().all(|c| c.is_ascii_digit())
    };
    matches!(numbers.as_slice(), [year, month, day] if is_of(year, 4) && is_of(month, 2) && is_of(day, 2))
}

#[test]
fn a_day_has_its_parts() {
    assert!(is_day("2026-11-17"));
    for text in ["2026-11-1", "----------", "2026/11/17", "20261-1-17", ""] {
        assert!(!is_day(text), "{text}");
    }
}

/// A test that no tier runs cannot fail.
#[test]
fn every_test_target_is_in_a_tier() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let files = ["test.rs", "test/listed.rs", "test/servers.rs"];
    let tiers: String = files
        .iter()
        .map(|file| read(&format!("xtask/src/{file}")))
        .collect();
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let name = target["name"].as_str().unwrap();
            let is_test = target["kind"][0] == "test";
            assert!(
                !is_test || tiers.contains(&format!("\"{name}\"")),
                "no tier of xtask/src/test runs {} of {}",
                name,
                package["name"]
            );
        }
    }
}

/// Whether an oracle of this name is somewhere in the sources.
fn is_oracle(id: &str) -> bool {
    static TEXTS: OnceLock<String> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        // A toy that is part of no program has its oracles in its test.
        let is_toy = |file: &Path| {
            file.ends_with("convoy/oracles.rs") || file.ends_with("lookout/oracles.rs")
        };
        let files = sources().into_iter();
        let files = files.filter(|file| !is_test(file) || is_toy(file));
        let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
        texts.filter(|text| text.contains("racle")).collect()
    });
    texts.contains(&format!("\"{id}\""))
}

/// What is wrong with a row of a conformance table: its last cell names tests that exist, as `path::name`, or oracles, or
/// says how ours differs and names the decision.
fn complaint(row: &str) -> Option<String> {
    let last = row.trim().trim_end_matches('|').rsplit(" | ").next()?;
    let named: Vec<(&str, &str)> = last
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|quoted| quoted.split_once("::"))
        .collect();
    for (path, name) in &named {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        if !text.contains(&format!("fn {name}(")) {
            return Some(format!("there is no test {path}::{name}"));
        }
    }
    let oracles: Vec<&str> = last
        .split("oracle `")
        .skip(1)
        .filter_map(|rest| rest.split('`').next())
        .collect();
    if let Some(none) = oracles.iter().find(|id| !is_oracle(id)) {
        return Some(format!("there is no oracle {none}"));
    }
    let Some(why) = last.trim().strip_prefix("differs: ") else {
        return (named.is_empty() && oracles.is_empty())
            .then(|| "it names no test and does not say how ours differs".to_owned());
    };
    let decisions = std::fs::read_dir(root().join("docs/decisions")).unwrap();
    let mut numbers = decisions.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_written = numbers.any(|name| why.contains(&format!("({})", &name[..4])));
    (!is_written).then(|| "it names no decision, as (0013)".to_owned())
}

/// A table that says what is tested must not go on saying so when the test is gone.
#[test]
fn conformance_tables_name_tests_that_exist() {
    let folder = root().join("docs/conformance");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|---");
        let rows: Vec<&str> = text.lines().filter(is_row).collect();
        let rows: Vec<&str> = rows
            .into_iter()
            .filter(|row| !(row.starts_with("| item |") && row.ends_with("| test |")))
            .collect();
        assert!(!rows.is_empty(), "{} has no rows", file.display());
        let wrong: Vec<String> = rows
            .iter()
            .filter_map(|row| Some(format!("{row}: {}", complaint(row)?)))
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", file.display());
    }
    for (row, is_wrong) in [
        ("| a | `xtask/tests/tidy.rs::complaint` |", false),
        ("| a | `xtask/tests/tidy.rs::no_such_test` |", true),
        ("| a | `xtask/tests/none.rs::complaint` |", true),
        ("| a | oracle `G1` |", false),
        ("| a | oracle `none` |", true),
        ("| a | |", true),
        ("| a | differs: on purpose (0013) |", false),
        ("| a | differs: on purpose |", true),
    ] {
        assert_eq!(complaint(row).is_some(), is_wrong, "{row}");
    }
}

#[test]
fn nothing_is_left_to_do_in_the_sources() {
    // Spelled apart, so that this file does not find itself.
    let marks = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore]"),
    ];
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        for mark in marks {
            assert!(!text.contains(mark), "{} contains {mark}", file.display());
        }
    }
}

#[test]
fn every_module_says_what_it_is() {
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("//!"),
            "{} does not begin with its documentation",
            file.display()
        );
    }
}

#[test]
fn no_file_names_a_registry_host() {
    let hosts = [
        concat!("proxy.golang", ".org"),
        concat!("static.crates", ".io"),
        concat!("registry.npmjs", ".org"),
        concat!("deb.debian", ".org"),
    ];
    let output = Command::new("git")
        .args(["ls-files"])
        .current_dir(root())
        .output()
        .unwrap();
    for line in String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| *line != "Cargo.lock")
    {
        let Ok(text) = std::fs::read_to_string(root().join(line)) else {
            continue;
        };
        for host in hosts {
            assert!(!text.contains(host), "{line} names {host}");
        }
    }
}

/// Lines of the README's shell blocks.
fn readme_commands() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut commands = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && !line.trim().is_empty() && !line.starts_with('#') {
            commands.push(line.split(" # ").next().unwrap_or(line).trim().to_owned());
        }
    }
    commands
}

/// That they work is tested where the program is: `crates/slipway/tests/cli/readme.rs`.
#[test]
fn commands_of_the_readme_exist() {
    let commands = readme_commands();
    assert!(
        commands.iter().any(|c| c == "cargo xtask test"),
        "the README does not tell how to run the tests"
    );
    let known = [
        "cargo xtask test",
        "cargo xtask controlplane up",
        "cargo xtask controlplane down",
        "cargo run --release -- apiserver",
        "cargo run --release -- crds",
        "cargo run --release -- demo",
        "cargo run --release -- manifests",
        "cargo run --release -- rollout-controller",
        "cargo run --release -- rollout-operator",
        "cargo run --release -- run",
    ];
    for command in commands.iter().filter(|c| c.starts_with("cargo")) {
        assert!(
            known.iter().any(|k| command.starts_with(k)),
            "the README shows `{command}`, which no test knows"
        );
    }
}

#[test]
fn generated_files_are_current() {
    let mut generate = Command::new(env!("CARGO_BIN_EXE_xtask"));
    generate.args(["generate", "--check"]);
    if Command::new("go").arg("version").output().is_err() {
        // Without Go the sources of the table are not there; `cargo xtask test` says so when it matters.
        let ci = std::env::var("CI").is_ok_and(|v| !v.is_empty() && v != "0" && v != "false");
        assert!(
            !ci,
            "with CI set nothing may be left out: there is no Go to generate from"
        );
        generate.arg("--pages");
    }
    let status = generate.status().unwrap();
    assert!(status.success(), "run `cargo xtask generate`");
}
