//! Reads the `generated.proto` files that lie beside Go types: the messages, and the numbers of their fields.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

/// How often a field may stand in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Once,
    Repeated,
    Map,
}

/// One field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) label: Label,
    pub(super) name: String,
}

/// Fields by number.
pub(super) type Message = BTreeMap<u32, Field>;

/// The messages of one package by name; none of a package without protobuf.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, Message>> {
    let path = folder.join("generated.proto");
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = std::fs::read_to_string(&path)?;
    parse(&text).with_context(|| format!("cannot read {}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, Message>> {
    let mut all = BTreeMap::new();
    let mut open: Option<(String, Message)> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix("message ")
            .and_then(|l| l.strip_suffix(" {"))
        {
            open = Some((name.to_owned(), Message::new()));
        } else if line == "}" {
            all.extend(open.take());
        } else if let Some((_, message)) = &mut open
            && let Some((number, field)) = field(line)?
        {
            message.insert(number, field);
        }
    }
    Ok(all)
}

/// The field on this line: `repeated Container containers = 2;`, `map<string, bytes> data = 2;`.
fn field(line: &str) -> Result<Option<(u32, Field)>> {
    let (label, rest) = if let Some(rest) = line.strip_prefix("optional ") {
        (Label::Once, rest)
    } else if let Some(rest) = line.strip_prefix("repeated ") {
        (Label::Repeated, rest)
    } else if line.starts_with("map<") {
        let (_, rest) = line.split_once(", ").context("a map without values")?;
        (Label::Map, rest)
    } else {
        return Ok(None);
    };
    let mut words = rest.trim_end_matches(';').split(' ').skip(1);
    let name = words.next().context("a field without name")?.to_owned();
    let number = words.nth(1).context("a field without number")?.parse()?;
    Ok(Some((number, Field { label, name })))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn reads_fields() {
        let text = "message Secret {\n  // The data.\n  map<string, bytes> data = 2;\n\n  optional string type = 3;\n\
            \n  repeated .k8s.io.x.Thing things = 14;\n}\n";
        let all = parse(text).unwrap();
        let message = all.get("Secret").unwrap();
        let shown: Vec<_> = message
            .iter()
            .map(|(n, f)| (*n, f.label, f.name.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                (2, Label::Map, "data"),
                (3, Label::Once, "type"),
                (14, Label::Repeated, "things")
            ]
        );
    }
}
