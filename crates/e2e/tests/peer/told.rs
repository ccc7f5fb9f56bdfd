//! What was said, and where it differs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::calls::Call;

/// Differences that are known, by how they begin, and why they are there. Nobody has compared with an original yet.
const KNOWN: &[(&str, &str)] = &[];

/// Why a difference is there, if somebody knows.
pub(crate) fn why(difference: &str) -> Option<&'static str> {
    let known = KNOWN
        .iter()
        .find(|(start, _)| difference.starts_with(start));
    known.map(|(_, why)| *why)
}

/// An answer, without what no two runs share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer(Value);

impl Answer {
    /// The connection broke off.
    pub(crate) fn none() -> Self {
        Self(json!("no answer"))
    }

    /// Head and body as they came over the wire.
    pub(crate) fn read(answer: &[u8], namespace: &str) -> Self {
        let text = String::from_utf8_lossy(answer).replace(namespace, "NAMESPACE");
        let code = text.split(' ').nth(1).unwrap_or_default().to_owned();
        // Also out of chunks, whose lengths stand beside it.
        let body = text.find('{').zip(text.rfind('}'));
        let body = body.and_then(|(from, to)| text.get(from..=to));
        let review: Value = body
            .and_then(|body| serde_json::from_str(body).ok())
            .unwrap_or_default();
        let said = |pointer: &str| review.pointer(pointer).cloned().unwrap_or_default();
        Self(json!({
            "code": code,
            "allowed": said("/response/allowed"),
            "reason": said("/response/status/reason"),
            "status": said("/response/status/code"),
            "message": said("/response/status/message"),
            "warnings": said("/response/warnings"),
            "patches": review.pointer("/response/patch").is_some(),
        }))
    }
}

/// How two answers to a call differ.
pub(crate) fn difference(call: &Call, theirs: &Answer, ours: &Answer) -> Option<String> {
    let (name, theirs_said, ours_said) = (call.name, &theirs.0, &ours.0);
    (theirs != ours)
        .then(|| format!("answer to {name}: the original says {theirs_said}, ours {ours_said}"))
}

/// What the original has and ours has not.
pub(crate) fn missing(
    what: &str,
    theirs: &BTreeSet<String>,
    ours: &BTreeSet<String>,
) -> Vec<String> {
    let missing = theirs.difference(ours);
    missing
        .map(|name| format!("{what} {name}: ours has none"))
        .collect()
}

/// The flags of a program with their types, as Go prints them.
pub(crate) fn flags(program: &Path, words: &[&str]) -> Result<BTreeSet<String>> {
    let output = Command::new(program)
        .args(words)
        .arg("-h")
        .output()
        .with_context(|| format!("asking {} for its flags", program.display()))?;
    Ok(flags_in(&String::from_utf8_lossy(&output.stderr)))
}

/// The flags of such a text.
pub(crate) fn flags_in(text: &str) -> BTreeSet<String> {
    let flags = text.lines().filter_map(|line| line.strip_prefix("  -"));
    // A flag of one letter has its description on the same line.
    let names = flags.filter_map(|line| line.split('\t').next());
    names.map(|name| name.trim().to_owned()).collect()
}

/// Metrics that are the program's own, and not its runtime's.
pub(crate) fn families(metrics: &str) -> BTreeSet<String> {
    let types = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let of_runtime = |name: &&str| {
        ["go_", "process_", "promhttp_"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    types
        .filter(|line| !of_runtime(line))
        .map(str::to_owned)
        .collect()
}
