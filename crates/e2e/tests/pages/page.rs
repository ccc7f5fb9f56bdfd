//! A page of the documentation, as a list of what is to be typed.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// A block of a page.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The heading it stands under.
    pub(crate) heading: String,
    /// The line that it begins in.
    pub(crate) line: usize,
    /// What is to be typed.
    pub(crate) text: String,
}

/// Where pages, and what they name, lie.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of a page that are to be typed, in order.
pub(crate) fn blocks(name: &str) -> Result<Vec<Block>> {
    let path = root().join("docs").join(name);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
    let mut blocks = Vec::new();
    let mut heading = String::new();
    let mut open: Option<(&str, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let block = Block {
                    heading: heading.clone(),
                    line: index + 1,
                    text: String::new(),
                };
                open = Some((language, block));
            }
            (None, None) => {
                if let Some(text) = line.strip_prefix('#') {
                    text.trim_start_matches('#').trim().clone_into(&mut heading);
                }
            }
            (Some((_, block)), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (Some(_), Some(_)) => {
                if let Some((language, block)) = open.take() {
                    blocks.extend(typed(name, language, block)?);
                }
            }
        }
    }
    ensure!(open.is_none(), "{name}: a block does not end");
    ensure!(!blocks.is_empty(), "{name} has nothing to type");
    Ok(blocks)
}

/// The block, if it is to be typed.
fn typed(name: &str, language: &str, block: Block) -> Result<Option<Block>> {
    let line = block.line;
    match language {
        "sh" | "bash" => Ok(Some(block)),
        "sh,norun" | "bash,norun" => {
            ensure!(
                block.text.lines().any(|line| line.starts_with("# ")),
                "{name}:{line}: a block that is not run says why in a comment"
            );
            Ok(None)
        }
        _ => Ok(None),
    }
}
