//! The commands that README and documents show are ones that work.

use std::path::Path;

use super::program::{Place, succeeded};

/// What a page shows of our program, without the comments beside it.
fn commands(page: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let shown = text
        .lines()
        .filter_map(|line| line.strip_prefix("cargo run --release -- "));
    shown
        .map(|line| line.split(" #").next().unwrap().trim().to_owned())
        .collect()
}

/// Those that end by themselves, need nothing and are quick.
fn is_run(command: &str) -> bool {
    let quick = ["crds", "manifests", "demo --headless --scenario"];
    quick.iter().any(|start| command.starts_with(start))
}

#[test]
fn commands_that_are_shown_work() {
    let place = Place::new("readme");
    let (mut run, mut parsed) = (0, 0);
    for page in ["README.md", "docs/demo.md"] {
        for command in commands(page) {
            let mut words: Vec<&str> = command.split_whitespace().collect();
            if is_run(&command) {
                run += 1;
            } else {
                // Options before this one are looked at, and one that does not exist is refused.
                words.push("--help");
                parsed += 1;
            }
            succeeded(&place.run(&words));
        }
    }
    assert!(run >= 3 && parsed >= 4, "{run} were run, {parsed} parsed");
    assert_eq!(place.left_behind(), [""; 0]);
}
