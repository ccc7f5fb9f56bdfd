//! Tiers that need nothing but Rust, and how tests are run in all of them: a tier says all of its failures, not only those of its
//! first program that fails.

use std::process::Command;

use crate::workspace;

/// The tier that runs the program as people do.
pub(super) const PROGRAM: &str = "program";

/// The tier that goes the whole way only where nobody waits for it.
pub(super) const SIMULATION: &str = "simulation";

/// The variable that properties draw their cases from. By hand each run has others; where nobody waits for it each commit has, so
/// that what failed there fails again.
const PROPERTIES_FROM: &str = "PROPTEST_RNG_SEED";

/// What a commit draws. What is no commit draws as one does.
fn drawn(commit: &str) -> u64 {
    u64::from_str_radix(commit, 16).unwrap_or_default()
}

/// One tier.
pub(super) struct Listed {
    pub(super) name: &'static str,
    runs: Runs,
}

/// What a tier runs.
enum Runs {
    /// cargo, with these words.
    Cargo(&'static [&'static str]),
    /// Tests, which these words select.
    Tests(&'static [&'static str]),
}

const fn cargo(name: &'static str, words: &'static [&'static str]) -> Listed {
    Listed {
        name,
        runs: Runs::Cargo(words),
    }
}

const fn selected(name: &'static str, words: &'static [&'static str]) -> Listed {
    Listed {
        name,
        runs: Runs::Tests(words),
    }
}

/// What the others stand on.
pub(super) const FIRST: &[Listed] = &[
    cargo("format", &["fmt", "--all", "--check"]),
    cargo(
        "lint",
        &[
            "clippy",
            "--release",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    // All at once, so that the cores are busy; each of the tiers below finds its programs ready.
    selected("build", &["--no-run", "--bins", "--tests"]),
];

/// Those that have the machine to themselves, but for what gives way: some of their tests look at how long something takes.
pub(super) const ALONE: &[Listed] = &[
    selected("tidy", &["--test", "tidy"]),
    selected("units", &["--lib", "--bins"]),
    selected("integration", &["--test", "integration"]),
    selected("capabilities", &["--test", "suite", "--test", "admit"]),
    selected("actors alone", &["--test", "actors"]),
];

/// Those that mostly wait, or that nobody waits for: something may run beside them.
pub(super) const PATIENT: &[Listed] = &[
    // The second has nobody to compare with here, and looks whether it would see a difference.
    selected(PROGRAM, &["--test", "cli", "--test", "peer"]),
    selected("replay", &["--test", "replay"]),
    selected("fuzz", &["--test", "fuzz"]),
    selected("documentation", &["--doc"]),
];

impl Listed {
    pub(super) fn command(&self) -> Command {
        match self.runs {
            Runs::Cargo(words) => {
                let mut command = workspace::cargo();
                command.args(words);
                command
            }
            Runs::Tests(words) => test(words),
        }
    }
}

/// Tests of these names, wherever they are.
pub(super) fn tests(names: &[&str]) -> Command {
    let words: Vec<&str> = names.iter().flat_map(|name| ["--test", *name]).collect();
    test(&words)
}

/// Tests of the whole workspace: with a single package selected, cargo would build the dependencies anew with that package's
/// features. One program that fails keeps no other from running.
fn test(words: &[&str]) -> Command {
    let mut command = workspace::cargo();
    if workspace::is_ci() {
        command.env(PROPERTIES_FROM, drawn(&workspace::commit()).to_string());
    }
    command
        .args([
            "test",
            "--release",
            "--quiet",
            "--no-fail-fast",
            "--workspace",
        ])
        .args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::{ALONE, FIRST, Listed, PATIENT, drawn, tests};

    fn all() -> impl Iterator<Item = &'static Listed> {
        [FIRST, ALONE, PATIENT].into_iter().flatten()
    }

    #[test]
    fn each_commit_draws_other_cases() {
        assert_eq!(drawn("ec1768d8a4f4"), 0xec17_68d8_a4f4);
        assert_ne!(drawn("ec1768d8a4f4"), drawn("a4f4e155ec17"));
        assert_eq!(drawn(""), 0, "not a repository");
    }

    #[test]
    fn nothing_runs_before_all_is_built_but_what_builds() {
        let first: Vec<&str> = FIRST.iter().map(|listed| listed.name).collect();
        assert_eq!(first, ["format", "lint", "build"]);
    }

    fn words(command: &std::process::Command) -> Vec<String> {
        let words = command.get_args();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn every_tier_of_tests_says_all_its_failures() {
        let mut of_tests = 0;
        for listed in all() {
            let words = words(&listed.command());
            let is_test = words.first().is_some_and(|word| word == "test");
            assert!(
                !is_test || words.iter().any(|word| word == "--no-fail-fast"),
                "{}: {words:?}",
                listed.name
            );
            of_tests += usize::from(is_test);
        }
        assert_eq!(of_tests, all().count() - 2, "all but format and lint");
        assert!(words(&tests(&["a"])).ends_with(&["--test".to_owned(), "a".to_owned()]));
    }
}
