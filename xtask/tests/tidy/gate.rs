//! The gate leaves nothing out: `.ci/run` says so itself, and where something cannot be run, nothing is.

use std::path::Path;
use std::process::Command;

use crate::root;

#[test]
fn the_gate_sets_ci_itself() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    let set = script.lines().position(|line| line == "export CI=true");
    let run = script
        .lines()
        .position(|line| line == "exec cargo xtask test");
    let (set, run) = (set.unwrap(), run.unwrap());
    assert!(set < run, "CI is set after the tests have run");
    // Nothing takes it back.
    assert_eq!(script.matches("CI=").count(), 1, "{script}");
    assert!(!script.contains("unset"), "{script}");
}

/// What `cargo xtask test` says on a machine with these programs, and whether it is content.
fn asked(path: &Path, ci: &str) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["test", "--only", "conformance"])
        .env("PATH", path)
        .env("CARGO", path.join("cargo"))
        .env("SLIPWAY_CACHE", path)
        .env_remove("KUBEBUILDER_ASSETS")
        .env("CI", ci)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn without_go_the_gate_fails_before_it_begins() {
    // A folder without any program: neither Go, nor what Go would have built, nor cargo.
    let bare = root().join("docs");
    let (is_content, said) = asked(&bare, "true");
    assert!(!is_content, "{said}");
    assert!(said.contains("nothing may be left out"), "{said}");
    assert!(!said.contains("── conformance"), "{said}");
    // Others than the gate are told what is left out, and the rest is tried: here there is not even a cargo.
    let (is_content, said) = asked(&bare, "");
    assert!(!is_content, "{said}");
    assert!(said.contains("LEFT OUT: conformance"), "{said}");
}
