//! What a server said in a session, as text that people read and tests compare.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::session::folder;

/// What begins a command in the recording; no normalised output has it at the start of a line.
const MARK: &str = "=== ";

/// The normalised outputs of a session, one block a command.
pub(crate) struct Transcript(Vec<String>);

impl Transcript {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a command.
    pub(crate) fn push(&mut self, why: &str, run: &str, out: &str, err: &str, exit: Option<i32>) {
        let mut block = format!(
            "{MARK}{} {why}\n$ {}\n{out}",
            self.0.len() + 1,
            run.trim_end()
        );
        if !err.is_empty() {
            block.push_str("--- stderr\n");
            block.push_str(err);
        }
        if let Some(code) = exit.filter(|code| *code != 0) {
            // Writing to a string does not fail.
            let _ = writeln!(block, "--- exit {code}");
        }
        self.0.push(block);
    }

    pub(crate) fn read(version: &str) -> Result<Self> {
        let path = path(version);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "{} is not there: record it with -- --record",
                path.display()
            )
        })?;
        let mut blocks: Vec<String> = Vec::new();
        for line in text.lines() {
            match blocks.last_mut() {
                Some(block) if !line.starts_with(MARK) => {
                    block.push_str(line);
                    block.push('\n');
                }
                _ => blocks.push(format!("{line}\n")),
            }
        }
        Ok(Self(blocks))
    }

    pub(crate) fn write(&self, version: &str) -> Result<PathBuf> {
        let path = path(version);
        std::fs::write(&path, self.0.concat())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// The commands in which `other` differs from this recording, as text.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let count = self.0.len().max(other.0.len());
        (0..count)
            .filter_map(|index| {
                let expected = self.0.get(index).map_or("", String::as_str);
                let got = other.0.get(index).map_or("", String::as_str);
                (expected != got).then(|| difference(expected, got))
            })
            .collect()
    }
}

/// What the recording of a version of kubectl is called.
pub(crate) fn name(version: &str) -> String {
    format!("golden-{version}")
}

fn path(version: &str) -> PathBuf {
    folder().join(format!("{}.txt", name(version)))
}

/// The versions of kubectl that were recorded.
pub(crate) fn recorded() -> Result<Vec<String>> {
    let mut versions = Vec::new();
    let files = std::fs::read_dir(folder()).context("listing the recordings")?;
    for file in files {
        let file = file.context("listing the recordings")?.file_name();
        let file = file.to_string_lossy();
        let version = file.strip_prefix("golden-");
        let version = version.and_then(|rest| rest.strip_suffix(".txt"));
        versions.extend(version.map(str::to_owned));
    }
    versions.sort();
    Ok(versions)
}

/// Expected and got, by lines, without what they begin and end with in common.
fn difference(expected: &str, got: &str) -> String {
    let (expected, got): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), got.lines().collect());
    let before = expected
        .iter()
        .zip(&got)
        .take_while(|(a, b)| a == b)
        .count();
    let rest = expected.len().min(got.len()) - before;
    let after = expected
        .iter()
        .rev()
        .zip(got.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let mut text = String::new();
    let part = |lines: &[&str], sign: &str, from: usize, to: usize| {
        lines
            .iter()
            .take(to)
            .skip(from)
            .fold(String::new(), |text, line| text + sign + line + "\n")
    };
    text.push_str(&part(&expected, "  ", 0, before.min(2)));
    if before > 5 {
        text.push_str("  …\n");
    }
    text.push_str(&part(
        &expected,
        "  ",
        before.saturating_sub(3).max(2),
        before,
    ));
    text.push_str(&part(&expected, "- ", before, expected.len() - after));
    text.push_str(&part(&got, "+ ", before, got.len() - after));
    text.push_str(&part(
        &expected,
        "  ",
        expected.len() - after,
        (expected.len() - after + 2).min(expected.len()),
    ));
    text
}
