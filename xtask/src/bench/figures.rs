//! What benches said last, in `docs/figures.md`: a part for each, replaced as a whole.

use std::process::Command;

use anyhow::{Context, Result};

use crate::report;
use crate::workspace;

/// Writes what a bench said into its part of the page.
pub(super) fn keep(program: &str, said: &[String]) -> Result<()> {
    let path = workspace::root().join("docs/figures.md");
    let page = std::fs::read_to_string(&path).context("reading docs/figures.md")?;
    let part = part(program, &workspace::commit(), &today()?, said);
    std::fs::write(&path, replaced(&page, program, &part)).context("writing docs/figures.md")?;
    report::line("kept in docs/figures.md");
    Ok(())
}

fn today() -> Result<String> {
    let said = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let said = said.context("asking for the date")?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn mark(program: &str) -> String {
    format!("<!-- {program} -->")
}

fn part(program: &str, commit: &str, day: &str, said: &[String]) -> String {
    let said = said.join("\n");
    format!(
        "{}\n\nCommit {commit}, {day}.\n\n```text\n{}\n```\n",
        mark(program),
        said.trim()
    )
}

/// The page with another part; what follows a mark up to the next heading is its part.
fn replaced(page: &str, program: &str, part: &str) -> String {
    let Some((before, rest)) = page.split_once(&mark(program)) else {
        return format!("{}\n\n{part}", page.trim_end());
    };
    let after = rest
        .find("\n## ")
        .map_or("", |at| rest.get(at..).unwrap_or_default());
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::{part, replaced};

    #[test]
    fn a_part_is_replaced_and_others_stay() {
        let page = "# Figures\n\n## A\n\n<!-- a -->\n\nold\n\n## B\n\n<!-- b -->\n\nkept\n";
        let part = part(
            "a",
            "abc",
            "2026-11-17",
            &["one".to_owned(), "two".to_owned()],
        );
        let page = replaced(page, "a", &part);
        assert!(!page.contains("old") && page.contains("kept"));
        assert!(page.contains("Commit abc, 2026-11-17.\n\n```text\none\ntwo\n```\n\n## B"));
        assert_eq!(replaced(&page, "a", &part), page);
    }
}
