//! `docs/figures.md` has a part for each bench, the README names the page, and a part that was kept says of what, when and on what.

use crate::{is_day, root};

/// What is wrong with a page of figures, for these benches.
fn complaints(page: &str, benches: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for bench in benches {
        let Some((_, part)) = page.split_once(&format!("<!-- {bench} -->")) else {
            all.push(format!("there is no part of {bench}"));
            continue;
        };
        let part = part.split("\n## ").next().unwrap().trim();
        let heading = part.lines().next().unwrap_or_default();
        let is_open = heading.starts_with("Not kept yet: `cargo xtask bench ");
        if !is_open && !is_whole(heading) {
            all.push(format!(
                "{bench}: {heading:?} says not which commit, day and machine"
            ));
        }
        if !is_open && !part.contains("```text\n") {
            all.push(format!("{bench}: there are no figures"));
        }
    }
    all
}

/// `Commit 0123456789ab, 2026-11-17, on 2 × …, 24 GiB, Linux …, load ….`
fn is_whole(heading: &str) -> bool {
    let Some(rest) = heading.strip_prefix("Commit ") else {
        return false;
    };
    let parts: Vec<&str> = rest.splitn(3, ", ").collect();
    let [commit, day, machine] = parts.as_slice() else {
        return false;
    };
    let commit = commit.split(' ').next().unwrap();
    let is_commit = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
    let is_machine = machine.starts_with("on ") && machine.contains(" GiB, Linux ");
    is_commit && is_day(day) && is_machine
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn figures_say_of_what_when_and_on_what() {
    let benches = read("xtask/src/bench.rs");
    let benches: Vec<&str> = benches
        .split("measure(\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(benches.len() >= 4, "{benches:?}");
    let wrong = complaints(&read("docs/figures.md"), &benches);
    assert!(wrong.is_empty(), "docs/figures.md: {wrong:#?}");
    assert!(
        read("README.md").contains("](docs/figures.md)"),
        "the README does not name docs/figures.md"
    );
}

#[test]
fn a_part_that_does_not_say_so_is_seen() {
    let page =
        |heading: &str| format!("# F\n\n<!-- a -->\n\n{heading}\n\n```text\n1\n```\n\n## B\n");
    let whole = "Commit 0123456789ab, 2026-11-17, on 2 × X, 24 GiB, Linux 6.1, load 0.1.";
    let changed = "Commit 0123456789ab with changes that are not committed, 2026-11-17, on 2 × X, 24 GiB, Linux 6.1, load 0.1.";
    for (heading, is_good) in [
        (whole, true),
        (changed, true),
        ("Commit 0123456789ab, 2026-11-17.", false),
        (
            "Commit , 2026-11-17, on 2 × X, 24 GiB, Linux 6.1, load 0.1.",
            false,
        ),
        ("On some machine.", false),
    ] {
        let wrong = complaints(&page(heading), &["a"]);
        assert_eq!(wrong.is_empty(), is_good, "{heading}: {wrong:?}");
    }
    assert_eq!(complaints(&page(whole), &["b"]).len(), 1);
    assert!(
        !complaints(
            "<!-- a -->\n\nCommit 0123456789ab, 2026-11-17, on 2 × X, 24 GiB, Linux 6.1.\n",
            &["a"]
        )
        .is_empty()
    );
}
