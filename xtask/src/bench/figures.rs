//! What benches said last, in `docs/figures.md`: a part for each, replaced as a whole.

use std::process::Command;

use anyhow::{Context, Result};

use super::measured;
use crate::report;
use crate::workspace;

/// Of what, when and on what something is measured. Taken before it is: a bench is a load itself.
pub(crate) fn heading() -> Result<String> {
    let mut commit = workspace::commit();
    if has_changes()? {
        commit.push_str(" with changes that are not committed");
    }
    let (day, machine) = (workspace::today()?, measured::machine());
    Ok(format!("Commit {commit}, {day}, on {machine}."))
}

/// Whether the tree is another than the commit's, but for the page that figures are written into.
fn has_changes() -> Result<bool> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain", "--untracked-files=no"])
        .args(["--", ".", ":!docs/figures.md"])
        .current_dir(workspace::root());
    let said = git.output().context("asking git for changes")?;
    Ok(!said.status.success() || !said.stdout.is_empty())
}

/// Writes what a bench said into its part of the page.
pub(super) fn keep(program: &str, heading: &str, said: &[String]) -> Result<()> {
    let path = workspace::root().join("docs/figures.md");
    let page = std::fs::read_to_string(&path).context("reading docs/figures.md")?;
    let part = part(program, heading, said);
    std::fs::write(&path, replaced(&page, program, &part)).context("writing docs/figures.md")?;
    report::line("kept in docs/figures.md");
    Ok(())
}

fn mark(program: &str) -> String {
    format!("<!-- {program} -->")
}

fn part(program: &str, heading: &str, said: &[String]) -> String {
    let said = said.join("\n");
    format!(
        "{}\n\n{heading}\n\n```text\n{}\n```\n",
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
    use super::{heading, part, replaced};

    #[test]
    fn a_heading_says_commit_day_and_machine() {
        let heading = heading().unwrap_or_default();
        let parts: Vec<&str> = heading.splitn(3, ", ").collect();
        assert!(heading.starts_with("Commit "), "{heading}");
        assert_eq!(parts.get(1).map(|day| day.len()), Some("2026-11-17".len()));
        assert!(
            parts
                .get(2)
                .is_some_and(|on| on.starts_with("on ") && on.contains("GiB"))
        );
    }

    #[test]
    fn a_part_is_replaced_and_others_stay() {
        let page = "# Figures\n\n## A\n\n<!-- a -->\n\nold\n\n## B\n\n<!-- b -->\n\nkept\n";
        let part = part(
            "a",
            "Commit abc, 2026-11-17, on a machine.",
            &["one".to_owned(), "two".to_owned()],
        );
        let page = replaced(page, "a", &part);
        assert!(!page.contains("old") && page.contains("kept"));
        assert!(
            page.contains(
                "Commit abc, 2026-11-17, on a machine.\n\n```text\none\ntwo\n```\n\n## B"
            )
        );
        assert_eq!(replaced(&page, "a", &part), page);
    }
}
