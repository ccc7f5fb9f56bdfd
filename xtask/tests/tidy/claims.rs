//! Every row of the README's tables is in `docs/claims.md`, with a test, an oracle or a dated source; every project that a column is
//! about is in `docs/peers.md`, with a date.

use std::path::Path;

use crate::{complaint, root};

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The tables of a page, each by its rows, without the line below the first.
fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
    let mut all: Vec<Vec<Vec<String>>> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let is_row = line.starts_with('|');
        if is_row && !inside {
            all.push(Vec::new());
        }
        inside = is_row;
        if is_row && !line.starts_with("|---") {
            all.last_mut().unwrap().push(cells(line));
        }
    }
    all
}

/// Whether a text has a year and a month in it: `2026-11`.
fn is_dated(text: &str) -> bool {
    let digits = text.split(|c: char| !c.is_ascii_digit() && c != '-');
    digits.into_iter().any(|word| {
        let mut parts = word.split('-');
        let year = parts
            .next()
            .is_some_and(|y| y.len() == 4 && y.starts_with("20"));
        year && parts.next().is_some_and(|m| m.len() == 2)
    })
}

/// Whether something shows a claim: a test or an oracle that is there, a scenario, or a page with a date.
fn is_shown(row: &str) -> bool {
    let last = row
        .trim()
        .trim_end_matches('|')
        .rsplit(" | ")
        .next()
        .unwrap();
    let is_page = last
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .any(|page| root().join("docs").join(page).is_file());
    let is_file = last.split('`').skip(1).step_by(2).any(|path| {
        Path::new(path).extension() == Some("yaml".as_ref()) && root().join(path).is_file()
    });
    complaint(row).is_none() || is_file || (is_page && is_dated(last))
}

#[test]
fn every_claim_of_the_readme_is_shown() {
    let claims = read("docs/claims.md");
    let rows: Vec<&str> = claims
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    let claimed: Vec<String> = rows.iter().map(|row| cells(row).swap_remove(0)).collect();
    for row in rows.iter().filter(|row| !row.starts_with("| claim |")) {
        assert!(is_shown(row), "docs/claims.md: {row}");
    }
    let peers = read("docs/peers.md");
    for table in tables(&read("README.md")) {
        let (title, rows) = table.split_first().unwrap();
        for row in rows {
            assert!(
                claimed.contains(&row[0]),
                "docs/claims.md has no row for {:?}",
                row[0]
            );
        }
        for column in title.iter().skip(2) {
            let peer = column.split(" (").next().unwrap();
            let part = peers.split("\n## ").find(|part| part.starts_with(peer));
            let part = part.unwrap_or_else(|| panic!("docs/peers.md has no part for {peer}"));
            for text in [column.as_str(), part] {
                assert!(
                    is_dated(text),
                    "it is not said when {peer} was looked at: {text}"
                );
            }
        }
    }
}

#[test]
fn a_claim_without_anything_that_shows_it_is_seen() {
    for (row, is_good) in [
        ("| a | `xtask/tests/tidy.rs::complaint` |", true),
        ("| a | oracle `G1` |", true),
        ("| a | [peers.md](peers.md), 2026-11 |", true),
        ("| a | [peers.md](peers.md) |", false),
        ("| a | [nowhere.md](nowhere.md), 2026-11 |", false),
        ("| a | everybody knows, 2026-11 |", false),
        ("| a | `crates/slipway/scenarios/none.yaml` |", false),
    ] {
        assert_eq!(is_shown(row), is_good, "{row}");
    }
}
