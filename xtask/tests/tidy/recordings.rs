//! Every recording is in `docs/recordings.md` with whoever records it, and says beside it of which server and of which day it is.

use crate::{is_day, listed, root};

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

/// Recordings whose origin was written by a person, because no recorder has made them again yet: how many lines say so. The page says
/// of each that it is *unconfirmed*. Who records one anew takes it off here.
const UNCONFIRMED: &[(&str, usize)] = &[
    ("crates/apiserver/src/apply/testdata", 1),
    ("crates/sim/tests/reality/golden", 45),
];

/// Who says where a recording comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Nobody, or not of which server and of which day it is.
    Unsaid,
    /// A person.
    Person,
    /// Its recorder, which asked the server: only that says which compiler made it.
    Recorder,
}

/// Reads a line that says where something comes from: `… kube-apiserver v1.36.3, go1.26.8, … | 2026-11-17`.
fn origin_by(line: &str) -> Origin {
    let Some((server, day)) = line.rsplit_once(" | ") else {
        return Origin::Unsaid;
    };
    let version = server.split("kube-apiserver v").nth(1).unwrap_or_default();
    if !is_day(day) || !version.starts_with(|c: char| c.is_ascii_digit()) {
        return Origin::Unsaid;
    }
    let parts: Vec<&str> = version.split(", ").collect();
    let is_compiler = |part: &str| {
        let number = part.strip_prefix("go").unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit()) && !number.contains(' ')
    };
    match parts.as_slice() {
        [_, compiler] if is_compiler(compiler) => Origin::Recorder,
        [_, compiler, platform] if is_compiler(compiler) && platform.contains('/') => {
            Origin::Recorder
        }
        _ => Origin::Person,
    }
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
            let by = |wanted: Origin| lines.lines().filter(move |line| origin_by(line) == wanted);
            let wrong: Vec<&str> = by(Origin::Unsaid).collect();
            assert!(wrong.is_empty(), "{path}: {wrong:?}");
            let open = UNCONFIRMED.iter().find(|(open, _)| path == open);
            let persons = by(Origin::Person).count();
            assert_eq!(
                persons,
                open.map_or(0, |(_, lines)| *lines),
                "{path}: so many origins are by no recorder"
            );
            let row = page
                .lines()
                .find(|row| row.starts_with(&format!("| `{path}`")));
            assert_eq!(
                row.unwrap().contains("unconfirmed"),
                persons > 0,
                "docs/recordings.md: whether a recorder confirmed {path}"
            );
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
    for (line, by) in [
        (
            "kube-apiserver v1.36.3, go1.26.8, linux/amd64 | 2026-11-17",
            Origin::Recorder,
        ),
        (
            "packages of kube-apiserver v1.36.3, go1.26.8 | 2026-11-17",
            Origin::Recorder,
        ),
        (
            "a | kube-apiserver v1.36.3, by the suite's documents | 2026-11-15",
            Origin::Person,
        ),
        (
            "kube-apiserver v1.36.3, go1.26.8 by the suite's documents | 2026-11-15",
            Origin::Person,
        ),
        (
            "kube-apiserver v1.36.3, by hand, go1.26.8, linux/amd64 | 2026-11-15",
            Origin::Person,
        ),
        ("kube-apiserver v1.36.3 | 2026-11-15", Origin::Person),
        (
            "kube-apiserver v1.36.3, go1.26.8, linux/amd64",
            Origin::Unsaid,
        ),
        ("kube-apiserver | 2026-11-17", Origin::Unsaid),
        ("ours v1.36.3 | 2026-11-17", Origin::Unsaid),
    ] {
        assert_eq!(origin_by(line), by, "{line}");
    }
}
