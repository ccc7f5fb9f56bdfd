//! Whatever is there twice is changed once: no block of six lines stands twice in these crates, be it to the letter or
//! with other names and values.
//!
//! Lines that say nothing by themselves (imports, comments, attributes, braces) are passed over. Where only the shape is
//! compared, so are declarations: fields and signatures look alike because that is how types are written, and a table
//! (few different lines, many times) is no copy of itself.

#[path = "copies/shape.rs"]
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::code::{is_test, production};
use crate::{listed, root};

/// How many lines make a block.
const BLOCK: usize = 6;

/// A block has at least this many different lines, and words; otherwise it is a table.
const LEAST_DIFFERENT: usize = 4;
const LEAST_WORDS: usize = 12;

const SIGNATURE: &str = "the signature of a method of a trait, which its implementors repeat";

/// Files that share a block, and why they may.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/canary/src/router/gateway.rs",
        "crates/canary/src/router/smi.rs",
        SIGNATURE,
    ),
    (
        "crates/kernel/src/admission.rs",
        "crates/zones/src/admit/pod_eviction.rs",
        SIGNATURE,
    ),
    (
        "crates/kernel/src/admission.rs",
        "crates/zones/src/admit/prepare_downscale.rs",
        SIGNATURE,
    ),
    (
        "crates/runtime/src/channel.rs",
        "crates/runtime/src/member/wire.rs",
        SIGNATURE,
    ),
    (
        "crates/zones/src/admit/pod_eviction.rs",
        "crates/zones/src/admit/prepare_downscale.rs",
        SIGNATURE,
    ),
];

/// A line that counts.
struct Line {
    number: usize,
    text: String,
    words: usize,
}

/// What is compared: the letters of a line, or its shape; none if it is passed over.
type Reading = fn(&str) -> Option<(String, usize)>;

/// Equal letters say enough, however few they are.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a reading may pass a line over; this one never does"
)]
fn to_the_letter(line: &str) -> Option<(String, usize)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some((words.join(" "), LEAST_WORDS))
}

fn by_shape(line: &str) -> Option<(String, usize)> {
    let tokens = shape::tokens(line);
    if shape::is_declaration(&tokens) {
        return None;
    }
    let words = tokens.iter().filter(|token| shape::is_word(token)).count();
    Some((tokens.join(" "), words))
}

/// Whether a line says nothing by itself.
fn is_passed_over(line: &str) -> bool {
    let beginnings = ["//", "#[", "#![", "use ", "mod ", "pub use ", "pub mod "];
    let is_import =
        line.starts_with("pub(") && (line.contains(") use ") || line.contains(") mod "));
    !line.contains(char::is_alphanumeric)
        || is_import
        || beginnings
            .iter()
            .any(|beginning| line.starts_with(beginning))
}

/// Whether an import begins that goes on in the next line.
fn begins_import(line: &str) -> bool {
    let is_import = line.starts_with("use ") || line.starts_with("pub") && line.contains(" use ");
    is_import && line.ends_with('{')
}

/// The lines of a source that count.
fn lines(text: &str, reading: Reading) -> Vec<Line> {
    let mut all = Vec::new();
    let mut is_import = false;
    for (number, line) in production(text) {
        let line = line.trim();
        let begins = begins_import(line);
        if is_import || begins {
            is_import = !line.ends_with(';');
            continue;
        }
        if is_passed_over(line) {
            continue;
        }
        let code = line.split(" // ").next().unwrap_or(line);
        if let Some((text, words)) = reading(code) {
            all.push(Line {
                number,
                text,
                words,
            });
        }
    }
    all
}

/// What a block is, if it is more than a table.
fn block(lines: &[Line]) -> Option<Vec<&str>> {
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let different: BTreeSet<&&str> = texts.iter().collect();
    let words: usize = lines.iter().map(|line| line.words).sum();
    (different.len() >= LEAST_DIFFERENT && words >= LEAST_WORDS).then_some(texts)
}

/// Pairs of files that share a block, with the first place in each.
fn shared(files: &[(String, String)], reading: Reading) -> BTreeMap<(&str, &str), (usize, usize)> {
    let read: Vec<(&str, Vec<Line>)> = files
        .iter()
        .map(|(file, text)| (file.as_str(), lines(text, reading)))
        .collect();
    let mut places: BTreeMap<Vec<&str>, Vec<(&str, usize, usize)>> = BTreeMap::new();
    for (file, lines) in &read {
        for (at, window) in lines.windows(BLOCK).enumerate() {
            if let (Some(block), Some(first)) = (block(window), window.first()) {
                let stands = places.entry(block).or_default();
                stands.push((file, at, first.number));
            }
        }
    }
    let mut found = BTreeMap::new();
    for stands in places.values() {
        for (n, (one, at, line)) in stands.iter().enumerate() {
            for (other, other_at, other_line) in stands.iter().skip(n + 1) {
                if one != other || at.abs_diff(*other_at) >= BLOCK {
                    let places = found.entry((*one, *other)).or_insert((*line, *other_line));
                    *places = (*places).min((*line, *other_line));
                }
            }
        }
    }
    found
}

#[test]
fn nothing_is_there_twice() {
    let crates = ["canary", "kernel", "restarts", "runtime", "zones"];
    let patterns = crates.map(|name| format!("crates/{name}/src/*.rs"));
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let files: Vec<(String, String)> = listed(&patterns)
        .into_iter()
        .filter(|file| !is_test(Path::new(file)))
        .map(|file| {
            let text = std::fs::read_to_string(root().join(&file)).unwrap();
            (file, text)
        })
        .collect();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for reading in [to_the_letter as Reading, by_shape] {
        for ((one, other), (line, other_line)) in shared(&files, reading) {
            match ALLOWED.iter().find(|(a, b, _)| (*a, *b) == (one, other)) {
                Some(allowed) => {
                    used.insert(allowed);
                }
                None => wrong.push(format!("{one}:{line} and {other}:{other_line}")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a block of {BLOCK} lines stands in both; extend the one that is there: {wrong:#?}"
    );
    let stale: Vec<_> = ALLOWED.iter().filter(|pair| !used.contains(pair)).collect();
    assert!(
        stale.is_empty(),
        "allowed, and not there any more: {stale:#?}"
    );
}

#[test]
fn copies_are_found() {
    let one = "use a::{\n    b,\n};\n\nfn one() {\n    let list = read(path)?;\n    let mut all = Vec::new();\n    \
               for item in list {\n        // Why.\n        all.push(item.name());\n    }\n    all.sort();\n    \
               if all.is_empty() {\n        return None;\n    }\n    Some(all)\n}\n";
    let renamed = one
        .replace("list", "table")
        .replace("all", "rows")
        .replace("// Why.", "// For another reason.");
    let short = "fn two() {\n    let list = read(path)?;\n    let mut all = Vec::new();\n}\n";
    let table =
        "const TABLE: &[(&str, &str)] = &[\n".to_owned() + &"    (\"a\", \"b\"),\n".repeat(20);
    let of = |text: &str| ("a.rs".to_owned(), text.to_owned());
    let found = |one: &str, other: &str| {
        let files = [of(one), ("b.rs".to_owned(), other.to_owned())];
        let letter = shared(&files, to_the_letter).len();
        (letter, shared(&files, by_shape).len())
    };
    assert_eq!(found(one, one), (1, 1));
    assert_eq!(found(one, &renamed), (0, 1));
    assert_eq!(found(one, short), (0, 0));
    assert_eq!(shared(&[of(&table)], by_shape).len(), 0);
    let twice = format!("{one}\n{one}");
    assert_eq!(shared(&[of(&twice)], by_shape).len(), 1);
    let inside = one.replace('\n', "\n    ");
    let tested = format!("{one}\n#[cfg(test)]\nmod tests {{\n    {inside}\n}}\n");
    assert_eq!(shared(&[of(&tested)], to_the_letter).len(), 0);
}
