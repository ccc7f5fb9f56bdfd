//! What is masked in outputs, so that two runs can be compared.

use std::fmt::Write;

use anyhow::{Context, Result};
use regex::Regex;

use crate::session::{Compare, Mask, Session, Step};

/// The masks of a session.
pub(crate) struct Masks {
    everywhere: Vec<(Regex, String)>,
    table: String,
}

impl Masks {
    pub(crate) fn load(session: &Session) -> Result<Self> {
        let everywhere = session.masks.iter().map(compile).collect::<Result<_>>()?;
        let mut table = String::from("masked in every output:\n");
        for mask in &session.masks {
            row(&mut table, mask, "");
        }
        table.push_str("masked in one output:\n");
        for step in &session.steps {
            for mask in &step.mask {
                compile(mask)?;
                row(&mut table, mask, &step.run);
            }
        }
        Ok(Self { everywhere, table })
    }

    /// The list of masks with their reasons.
    pub(crate) fn table(&self) -> String {
        self.table.trim_end().to_owned()
    }

    /// Whether a server is told by its address whichever port it drew, also one of those that nodes have.
    pub(crate) fn know_servers(&self) -> bool {
        let known = |port: u16| self.everywhere(format!("https://127.0.0.1:{port}")) == "SERVER";
        [6_443, 30_000, 32_767, 32_768, 32_999, 45_000]
            .into_iter()
            .all(known)
    }

    fn everywhere(&self, mut text: String) -> String {
        for (pattern, with) in &self.everywhere {
            text = pattern.replace_all(&text, with.as_str()).into_owned();
        }
        text
    }

    /// The text without what differs between any two runs.
    pub(crate) fn normalise(&self, step: &Step, text: &str) -> Result<String> {
        let mut text = match step.compare {
            // Reading it sorts its members.
            Compare::Json => serde_json::from_str::<serde_json::Value>(text)
                .map_or_else(|_| text.to_owned(), |value| value.to_string()),
            Compare::All | Compare::Sorted => text.to_owned(),
        };
        for mask in &step.mask {
            let (pattern, with) = compile(mask)?;
            text = pattern.replace_all(&text, with.as_str()).into_owned();
        }
        let text = self.everywhere(text);
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        if step.compare == Compare::Sorted {
            lines.sort_unstable();
        }
        Ok(lines
            .iter()
            .fold(String::new(), |text, line| text + line + "\n"))
    }
}

fn compile(mask: &Mask) -> Result<(Regex, String)> {
    let pattern =
        Regex::new(&mask.pattern).with_context(|| format!("the mask {}", mask.pattern))?;
    Ok((pattern, mask.with.clone()))
}

/// What follows the number of a group: `AGE` in `{1}AGE`.
fn kept(piece: &str) -> &str {
    piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == '{' || c == '}')
}

fn row(table: &mut String, mask: &Mask, run: &str) {
    let place = if run.is_empty() {
        String::new()
    } else {
        format!("  [{run}]")
    };
    // What is kept of the masked text stands as dots.
    let with = match mask.with.as_str() {
        "" => "(nothing)".to_owned(),
        with => with.split('$').map(kept).collect::<Vec<_>>().join("…"),
    };
    // Writing to a string does not fail.
    let _ = writeln!(table, "  {with:12} {}{place}", mask.because);
}
