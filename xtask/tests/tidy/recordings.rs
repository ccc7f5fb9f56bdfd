//! Every recording is in `docs/recordings.md` with whoever records it, and says beside it of which server and of which day it is.

use crate::{listed, root};

/// Folders of tests whose files are of no server.
const OTHERS: &[&str] = &["crates/runtime/tests/integration/testdata/"];

/// The rows of the page: what, and by whom it is recorded.
fn rows(page: &str) -> Vec<(String, String)> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let first = row.split('`').nth(1).unwrap().to_owned();
        let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").collect();
        (first, cells.last().unwrap().trim().to_owned())
    })
    .collect()
}

/// What is wrong with a line that says where something comes from: `… kube-apiserver v1.36.3, … | 2026-11-17`.
fn is_origin(line: &str) -> bool {
    let Some((server, day)) = line.rsplit_once(" | ") else {
        return false;
    };
    let is_day = day.len() == 10 && day.chars().all(|c| c.is_ascii_digit() || c == '-');
    let version = server.split("kube-apiserver v").nth(1).unwrap_or_default();
    is_day && version.starts_with(|c: char| c.is_ascii_digit())
}

/// The lines that say where a recording comes from; none for one that says so itself.
fn origin(path: &str) -> Option<String> {
    if path.ends_with(".jsonl.gz") {
        return None;
    }
    // A pattern stands for its folder.
    let path = path.split('*').next().unwrap();
    let path = root().join(path);
    let folder = if path.is_dir() {
        path.as_path()
    } else {
        path.parent().unwrap()
    };
    let places = [
        folder.join("origin.txt"),
        folder.join("origins.txt"),
        folder.parent().unwrap().join("origins.txt"),
    ];
    let found = places.iter().find(|place| place.is_file());
    Some(found.map_or_else(String::new, |place| std::fs::read_to_string(place).unwrap()))
}

#[test]
fn every_recording_has_a_recorder_and_an_origin() {
    let page = std::fs::read_to_string(root().join("docs/recordings.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() >= 8, "{rows:?}");
    for (path, recorder) in &rows {
        assert!(
            recorder.contains("`cargo xtask record") || recorder.contains("-- --record`"),
            "{path}: nothing in the repo records it: {recorder}"
        );
        if let Some(lines) = origin(path) {
            assert!(
                !lines.is_empty(),
                "{path} does not say of which server it is"
            );
            let wrong: Vec<&str> = lines.lines().filter(|line| !is_origin(line)).collect();
            assert!(wrong.is_empty(), "{path}: {wrong:?}");
        }
    }
    let patterns = [
        "crates/*/testdata/*",
        "crates/*/golden*",
        "crates/*/recordings/*",
        "crates/*recorded.txt",
    ];
    for file in listed(&patterns) {
        let is_named = rows
            .iter()
            .any(|(path, _)| file.starts_with(path.split('*').next().unwrap()));
        let is_other = OTHERS.iter().any(|folder| file.starts_with(folder));
        assert!(
            is_named || is_other,
            "docs/recordings.md does not name {file}"
        );
    }
}

#[test]
fn an_origin_without_a_server_or_a_day_is_seen() {
    for (line, is_good) in [
        (
            "kube-apiserver v1.36.3, go1.26.8, linux/amd64 | 2026-11-17",
            true,
        ),
        (
            "packages of kube-apiserver v1.36.3, go1.26.8 | 2026-11-17",
            true,
        ),
        (
            "a | kube-apiserver v1.36.3, by the suite's documents | 2026-11-15",
            true,
        ),
        ("kube-apiserver v1.36.3, go1.26.8, linux/amd64", false),
        ("kube-apiserver | 2026-11-17", false),
        ("ours v1.36.3 | 2026-11-17", false),
    ] {
        assert_eq!(is_origin(line), is_good, "{line}");
    }
}
