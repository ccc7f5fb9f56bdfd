//! The commands that README and documents show are ones that work.

use std::path::Path;

use super::program::{Place, succeeded};

/// What a page shows of our program, without the comments beside it.
fn commands(page: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let starts = ["cargo run --release -- ", "slipway "];
    // A picture of the screen begins like a command.
    let lines = text.lines().filter(|line| !line.contains('·'));
    let lines = lines.map(str::trim_start);
    let shown = lines.filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
    shown
        .map(|line| line.split(" #").next().unwrap())
        .map(|line| line.split(" |").next().unwrap().trim().to_owned())
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
    let pages = [
        "README.md",
        "docs/demo.md",
        "docs/fleet.md",
        "docs/try-webhooks.md",
    ];
    for page in pages {
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
    assert!(run >= 4 && parsed >= 6, "{run} were run, {parsed} parsed");
    assert_eq!(place.left_behind(), [""; 0]);
}
