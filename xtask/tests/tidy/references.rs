//! Whoever reads this repo needs nothing else: a numbered law or requirement (`Z7`, `b11_…`, `E-4`) has its row in
//! `docs/conformance`, and no text cites what is not here.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{listed, root};

/// What numbers of laws, requirements, defects and faults begin with.
const FAMILIES: &str = "BCDEGILMRSTUVWZ";

/// Of that form, and something else.
const NO_NUMBERS: &[(&str, &str)] = &[
    ("I64", "an integer, in names of functions"),
    ("U64", "an integer, in names of functions"),
    ("V4", "a version of IP"),
    ("V6", "a version of IP"),
];

/// Not looked at: recorded from other programs, or about references itself.
const LEFT_OUT: &[&str] = &[
    "crates/apiserver/tests/conformance/",
    "xtask/tests/tidy/references.rs",
];

/// Words that lead out of the repo wherever they stand.
const OUTSIDE: &[&str] = &["specs/", "designs/", "../shared", "ARCHITECTURE", "§"];

/// Words that lead out of the repo when a number follows: `issue 5`.
const COUNTED: &[&str] = &["issue", "issues", "session", "helper", "rule"];

/// Whether a word has the form of a number of ours: a letter of a family and one or two digits, maybe with a dash.
fn is_number(word: &str) -> bool {
    let mut letters = word.chars();
    let is_family = letters.next().is_some_and(|c| FAMILIES.contains(c));
    let rest = letters.as_str();
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let is_short = matches!(digits.len(), 1 | 2) && !digits.starts_with('0');
    let is_other = NO_NUMBERS.iter().any(|(other, _)| *other == word);
    is_family && is_short && digits.bytes().all(|b| b.is_ascii_digit()) && !is_other
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
}

fn is_source(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "rs")
}

/// What people read in a line: of a source, its comment and its strings.
fn read(file: &str, line: &str) -> String {
    if !is_source(file) {
        return line.to_owned();
    }
    let strings = line.split('"').skip(1).step_by(2);
    let comment = line.split_once("//").map(|(_, comment)| comment);
    strings.chain(comment).collect::<Vec<_>>().join(" ")
}

/// Numbers at the beginning and at the end of a function's name.
fn named(file: &str, line: &str) -> Vec<String> {
    let name = line.split_once("fn ").map(|(_, rest)| rest);
    let Some(name) = name.filter(|_| is_source(file)) else {
        return Vec::new();
    };
    let name = words(name).next().unwrap_or_default();
    let upper: Vec<String> = name.split('_').map(str::to_ascii_uppercase).collect();
    let first = upper.iter().take_while(|word| is_number(word));
    let last = upper.iter().rev().take_while(|word| is_number(word));
    first.chain(last).cloned().collect()
}

/// A page of `docs/conformance`: its numbers, and where they are used.
struct Page {
    numbers: BTreeSet<String>,
    /// Beginnings of paths; an empty one is everywhere.
    places: Vec<String>,
}

impl Page {
    fn of(text: &str) -> Self {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        let first = rows.filter_map(|row| row.split_whitespace().next());
        let used = text.lines().find_map(|line| line.strip_prefix("Used in: "));
        let places = match used {
            Some(used) if used.starts_with("everywhere") => vec![String::new()],
            Some(used) => used
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect(),
            None => Vec::new(),
        };
        Self {
            numbers: first
                .filter(|word| is_number(word))
                .map(str::to_owned)
                .collect(),
            places,
        }
    }

    fn has(&self, file: &str, number: &str) -> bool {
        let is_text = !file.starts_with("crates/") && !file.starts_with("xtask/");
        let is_here = is_text || self.places.iter().any(|place| file.starts_with(place));
        is_here && self.numbers.contains(number)
    }
}

/// What is wrong with a line.
fn complaints(pages: &[Page], file: &str, line: &str) -> Vec<String> {
    let text = read(file, line);
    let is_explained = |number: &str| pages.iter().any(|page| page.has(file, number));
    let unexplained = |number: &str| format!("{number} has no row in docs/conformance");
    let mut all: Vec<String> = words(&text)
        .filter(|word| is_number(word) && !is_explained(word))
        .map(unexplained)
        .collect();
    // A name has no room for the dash.
    let dashed = |number: &str| format!("{}-{}", &number[..1], &number[1..]);
    let in_name = named(file, line).into_iter();
    let in_name = in_name.filter(|number| !is_explained(number) && !is_explained(&dashed(number)));
    all.extend(in_name.map(|number| unexplained(&number)));
    let outside = OUTSIDE.iter().filter(|mark| text.contains(**mark));
    all.extend(outside.map(|mark| format!("{mark:?} leads out of the repo")));
    let lower = text.to_ascii_lowercase();
    // `#303` is an issue of somebody else, as theirs are cited.
    let is_edge = |c: char| !c.is_alphanumeric() && c != '#';
    let plain = lower
        .split_whitespace()
        .map(|word| word.trim_matches(is_edge));
    let plain: Vec<&str> = plain.filter(|word| !word.is_empty()).collect();
    for pair in plain.windows(2) {
        let is_counted = COUNTED.contains(&pair[0]) && pair[1].parse::<u32>().is_ok();
        if is_counted || pair == ["the", "issue"] || pair == ["the", "issues"] {
            all.push(format!("\"{} {}\" leads out of the repo", pair[0], pair[1]));
        }
    }
    all
}

fn pages() -> Vec<Page> {
    let files = listed(&["docs/conformance/*.md"]).into_iter();
    files
        .map(|file| Page::of(&std::fs::read_to_string(root().join(file)).unwrap()))
        .collect()
}

#[test]
fn no_reference_leads_out_of_the_repo() {
    let pages = pages();
    let mut wrong = Vec::new();
    let files = listed(&["*.rs", "*.md", "*.yaml", "*.toml"]).into_iter();
    for file in files.filter(|file| !LEFT_OUT.iter().any(|left| file.starts_with(left))) {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        for (at, line) in text.lines().enumerate() {
            let found = complaints(&pages, &file, line).into_iter();
            wrong.extend(found.map(|complaint| format!("{file}:{}: {complaint}", at + 1)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn references_that_lead_out_are_found() {
    let page = Page::of(
        "Used in: `crates/zones`.\n\n| item | test |\n|---|---|\n| Z7 a | b |\n| W-6 c | d |\n",
    );
    let pages = [page];
    for (file, line, is_wrong) in [
        ("crates/zones/a.rs", "/// Z7: one zone at a time.", false),
        ("crates/zones/a.rs", "/// Z8, Z7.", true),
        ("crates/runtime/a.rs", "/// Z7.", true),
        ("docs/a.md", "Z7 holds, and Z10–Z12 do not.", true),
        ("docs/a.md", "Z7 holds.", false),
        ("crates/zones/a.rs", "    assert!(ok, \"Z9\");", true),
        ("crates/zones/a.rs", "    Version::V1 => 1,", false),
        ("crates/zones/a.rs", "fn z7_one_zone() {", false),
        ("crates/zones/a.rs", "fn z9_one_zone() {", true),
        ("crates/zones/a.rs", "fn gone_w6() {", false),
        ("crates/zones/a.rs", "fn gone_l5_w6() {", true),
        ("crates/zones/a.rs", "fn visit_i64() {", false),
        (
            "crates/zones/a.rs",
            "/// The paths of specs/zones.md.",
            true,
        ),
        (
            "crates/zones/a.rs",
            "    object.pointer(\"/spec/replicas\")",
            false,
        ),
        ("docs/a.md", "in the order of the issues", true),
        ("docs/a.md", "The issuer of issue #303 in Mimir", false),
        ("docs/a.md", "as session 5 found", true),
        ("docs/a.md", "a session of kubectl", false),
    ] {
        let found = complaints(&pages, file, line);
        assert_eq!(!found.is_empty(), is_wrong, "{line}: {found:?}");
    }
}
